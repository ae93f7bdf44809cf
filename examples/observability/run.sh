#!/usr/bin/env bash
# A real Prometheus scrapes weir while a load passes it, and answers all that the
# dashboard and the rules ask. It needs no key; Prometheus is Debian's package.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
  echo "skipped: Prometheus is not installed: apt-get install prometheus" >&2
  exit 0
fi
exec go test -count 1 -run 'TestPromtoolTakesTheRules|TestEveryQueryReturnsDataAfterARun' -v .
