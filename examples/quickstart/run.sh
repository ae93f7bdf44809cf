#!/usr/bin/env bash
# Three processes, as they stand in real use: an endpoint (here a simulated
# one), weir in front of it, and a load that goes through weir. Then the report,
# out of the database. It needs no key and no network.
#
#   FOR=1m bash run.sh     the load model played in a minute instead of 10 s
#   WEIR=weir bash run.sh  with a weir that is built already
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
pids=()
cleanup() {
  status=$?
  # The last that was started is stopped first, so that weir outlives its load
  # and the endpoint outlives weir.
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill -INT "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" || true
  done
  if [ "$status" -ne 0 ]; then
    tail -n 20 "$work"/*.log >&2 || true
  fi
  rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT

weir=${WEIR:-}
if [ -z "$weir" ]; then
  weir=$work/weir
  go build -o "$weir" ../../cmd/weir
fi

# serve NAME ARGUMENTS starts a weir command in the background and puts the
# address that it says it listens on into $url.
serve() {
  local log="$work/$1.log" pid
  shift
  : >"$log" # read below before the command may have opened it
  "$weir" "$@" >"$log" 2>&1 &
  pid=$!
  pids+=("$pid")
  for ((tries = 0; tries < 300; tries++)); do
    url=$(sed -n 's/.*listens on \(http:[^ ]*\).*/\1/p' "$log")
    if [ -n "$url" ]; then
      return
    fi
    if ! kill -0 "$pid" 2>/dev/null; then
      break
    fi
    sleep 0.1
  done
  echo "weir $1 does not listen" >&2
  return 1
}

db=$work/weir.db
serve sim sim --listen 127.0.0.1:0 --seed 1
serve proxy proxy --upstream "$url" --listen 127.0.0.1:0 --db "$db"

# 3 says that this machine was too slow to send on time: the figures stand under
# that headline, and the example goes on.
code=0
"$weir" load load_model.json --target "$url" --for "${FOR:-10s}" --seed 1 --db "$db" || code=$?
if [ "$code" -ne 0 ] && [ "$code" -ne 3 ]; then
  exit "$code"
fi

"$weir" report last --db "$db" --json >"$work/report.json"
for scenario in short_chat long_context_rag multi_turn_agent long_output; do
  if ! grep -q "\"$scenario\"" "$work/report.json"; then
    echo "the report has no row of $scenario" >&2
    exit 1
  fi
done
echo "all four scenarios are in the report"
