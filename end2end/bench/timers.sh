#!/usr/bin/env bash
# A burst of timers on two instances, and beside it a bare SKIP LOCKED loop. Needs DATABASE_URL with open slots in it, as the
# load driver leaves them. Prints one JSON object.
set -euo pipefail
layby=$1 work=$2
sql() { "$LAYBY_PG_BIN/psql" "$DATABASE_URL" -XAtq -v ON_ERROR_STOP=1 -c "$1"; }
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait' EXIT
for port in 3978 3979; do
    LAYBY_LISTEN=127.0.0.1:$port LAYBY_LOG=warn LAYBY_DATA=$work "$layby" serve >"$work/timers.$port" 2>&1 &
    pids+=($!)
done
for port in 3978 3979; do
    for _ in $(seq 100); do curl -sf "http://127.0.0.1:$port/readyz" >/dev/null && break; sleep 0.1; done
done
sql "create table bare_timer as select * from timer limit 0"
sql "create index on bare_timer (alone, run_at, id) where not failed"

# $1 reminders, all due at one moment two seconds from now. Answers: seconds to finish, p99 of lateness, how many fired.
burst() {
    sql "insert into timer (slot_id, kind, due_at, run_at, nth)
         select id, 'remind', date_trunc('second', clock_timestamp()) + interval '3 seconds', date_trunc('second', clock_timestamp()) + interval '3 seconds', $2 + n
         from (select id, generate_series(1, ceil($1 / 10000.0)::int) as n from (select id from slot where status = 'waiting' order by id limit 10000) s) t
         limit $1" >/dev/null
    sql "analyze timer" >/dev/null
    for _ in $(seq 600); do [ "$(sql "select count(*) from timer where kind = 'remind'")" = 0 ] && break; sleep 0.1; done
    sql "select json_build_object(
             'timers', count(*),
             'fired_twice', count(*) - count(distinct (slot_id, text)),
             'seconds_to_finish', round(extract(epoch from max(at) - min(due_at))::numeric, 2),
             'per_second', round((count(*) / greatest(extract(epoch from max(at) - min(due_at)), 0.001))::numeric),
             'lateness_p50_ms', round((percentile_disc(0.5) within group (order by extract(epoch from at - due_at)) * 1000)::numeric),
             'lateness_p99_ms', round((percentile_disc(0.99) within group (order by extract(epoch from at - due_at)) * 1000)::numeric))
         from record_line where kind = 'reminded' and text ~ '\\(($3)' and due_at > clock_timestamp() - interval '5 minutes'"
}
small=$(burst 10000 100 '10[0-9]')
large=$(burst 100000 200 '2[0-9][0-9]')
sql "insert into bare_timer select n, gen_random_uuid(), 'remind', now(), now(), 1, 0, null, false, false from generate_series(1, 100000) n" >/dev/null
sql "analyze bare_timer" >/dev/null
cat > "$work/bare.sql" <<'SQL'
delete from bare_timer where id in (select id from bare_timer where not failed and not alone and run_at <= now() order by run_at, id limit 500 for update skip locked);
SQL
bare=$("$LAYBY_PG_BIN/pgbench" -n -M prepared -c 2 -j 2 -t 100 -f "$work/bare.sql" "$DATABASE_URL" | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
echo "{\"burst_10000\": $small, \"burst_100000\": $large, \"bare_skip_locked_loop_per_second\": $(printf '%.0f' "$(echo "$bare * 500" | bc)")}"
