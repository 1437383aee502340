"""The limit: the very statements of the engine (read from .sqlx, so they cannot drift apart) through pgbench."""

import json, os, pathlib, re, subprocess, sys

WORK = pathlib.Path(sys.argv[1])
BIN = pathlib.Path(os.environ["LAYBY_PG_BIN"])
URL = os.environ["DATABASE_URL"]
COUNT, CLIENTS = 2_000, 16


def statement(begins):
    for path in pathlib.Path(".sqlx").glob("query-*.json"):
        query = json.loads(path.read_text())["query"]
        if begins in query:
            # pgbench takes a colon and a letter for a variable of its own, also inside quotes.
            return re.sub(r"--[^\n]*", "", query).replace("'role:manager'", "('role' || chr(58) || 'manager')").replace(
                "'role:admin'", "('role' || chr(58) || 'admin')")
    sys.exit(f"no statement in .sqlx has: {begins}")


def filled(query, values):
    return re.sub(r"\$(\d+)", lambda found: f"({values[int(found.group(1))]})", query)


def sql(text):
    made = subprocess.run([BIN / "psql", URL, "-XAtqc", text], check=True, capture_output=True, text=True)
    return made.stdout.strip()


def pgbench(name, query):
    """Transactions a second of one statement; client k works on the ids k * 1,000,000 + 1, 2, 3, …"""
    path = WORK / f"{name}.sql"
    path.write_text(f"\\set n :n + 1\n\\set id :client_id * 1000000 + :n\n{' '.join(query.split())};\n")
    made = subprocess.run(
        [BIN / "pgbench", "-n", "-M", "prepared", "-D", "n=0", "-c", str(CLIENTS), "-j", "2", "-t", str(COUNT // CLIENTS),
         "-f", path, URL],
        capture_output=True, text=True)
    rate = re.search(r"tps = ([0-9.]+)", made.stdout)
    if made.returncode or not rate or "number of failed transactions: 0" not in made.stdout:
        sys.exit(made.stdout + made.stderr)
    return round(float(rate.group(1)))


agent = sql("select id from agent where not inside limit 1")
mia = sql("select id from person where email = 'mia@layby.example'")
key = f"array['person:{mia}']"
uuid = lambda prefix: f"('{prefix}' || lpad(to_hex(:id::bigint), 16, '0'))::uuid"
TASK, SLOT = uuid("0000000000007000"), uuid("0000000000008000")
park = filled(statement("with fresh as"), {
    1: TASK, 2: f"'{agent}'::uuid", 3: "'How much do we refund for A-17?'", 4: "clock_timestamp()", 5: "true", 6: "null",
    7: SLOT, 8: "''", 9: "'0123456789abcdef01234567'", 10: "'question'", 11: "'How much do we refund for A-17?'", 12: "''",
    13: "null::jsonb", 14: "'{\"type\": \"number\", \"exclusiveMinimum\": 0}'::jsonb", 15: "array['mia@layby.example']", 16: key,
    17: f"'{mia}'::uuid", 18: "'an answer from Mia Lindqvist'", 19: "1::smallint", 20: "null::timestamptz",
    21: "null::timestamptz", 22: "'tell'", 23: "null::jsonb", 24: "array['started', 'asked']",
    25: "array['Refunds opened this work.', 'Refunds asked Mia Lindqvist: How much do we refund for A-17?']",
    26: f"'agent:{agent}'", 27: "array['task.started', 'slot.opened', 'task.waiting']",
    28: "1", 29: "0", 30: "false", 31: "null::json", 32: "null", 33: "1", 34: "null::bigint", 35: "null",
    36: "null::bigint", 37: "false", 38: "null::timestamptz", 39: "null::bigint", 40: "null::int", 41: "null::bigint",
    42: "false", 43: "array[]::text[]", 44: "array[]::timestamptz[]", 45: "false", 46: "false"})
answer = filled(statement("withdrawn as ("), {
    1: SLOT, 2: TASK, 3: "'answered'::text", 4: "'40'::jsonb", 5: "null", 6: f"'{mia}'::uuid", 7: "null::uuid", 8: "null",
    9: "clock_timestamp()", 10: "1", 11: "'{\"answer\": 40}'::jsonb", 12: "'Mia Lindqvist answered after less than a minute.'",
    13: f"'person:{mia}'", 14: "null::jsonb", 15: "null::jsonb", 16: "null::text", 17: "null::uuid", 18: "null::int",
    19: "null::text", 20: "null::bytea", 21: "0", 22: "0::bigint", 23: "false"})
rates = {"parks_per_second": pgbench("park", park), "answers_per_second": pgbench("answer", answer)}
answered = int(sql("select count(*) from slot where status = 'answered' and id::text like '00000000-0000-8000-%'"))
if answered != COUNT // CLIENTS * CLIENTS:
    sys.exit(f"the bare statements answered {answered} questions instead of {COUNT}")
print(json.dumps(rates))
