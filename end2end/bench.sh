#!/usr/bin/env bash
# What `make bench` runs on a throw-away Postgres with fsync on: Layby under load through HTTP, and beside it, in the same
# run, its own statements as bare SQL through pgbench. Prints one JSON object.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d /tmp/layby-bench.XXXXXX)
trap 'kill "${server:-}" 2>/dev/null || true; wait "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

cat > "$work/script.json" <<'JSON'
[{"calls": [{"id": "c", "name": "ask_person", "arguments": {"question": "What was it for?"}}]},
 {"calls": [{"id": "c", "name": "hand_back", "arguments": {"verdict": "approve", "summary": "Fine."}}]}]
JSON
layby="$target/release/layby"
LAYBY_LISTEN=127.0.0.1:3977 LAYBY_RATE_LIMIT=0 LAYBY_LOG=warn LAYBY_SCRIPT="$work/script.json" "$layby" serve --demo >"$work/log" 2>&1 &
server=$!
for _ in $(seq 100); do curl -sf http://127.0.0.1:3977/readyz >/dev/null && break; sleep 0.1; done
"$layby" agent add Refunds --outside --sponsor noor@layby.example >/dev/null
agent=$("$layby" token create --agent Refunds --scope ask --scope read)
person=$("$layby" token create --person mia@layby.example --scope answer --scope read)
"$target/release/load" --url http://127.0.0.1:3977 --agent-token "$agent" --person-token "$person" --pid "$server" "$@" > "$work/layby.json"
kill "$server"; wait "$server" || true
python3 end2end/bench/limit.py "$work" > "$work/limit.json"
end2end/bench/timers.sh "$layby" "$work" > "$work/timers.json"
python3 end2end/bench/together.py "$work/layby.json" "$work/limit.json" "$work/timers.json"
