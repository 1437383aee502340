-- A process strings work, waits and time together. Its state is a reading of its task's status (working: running,
-- waiting: waiting, done: completed, all else: failed), so the two cannot disagree.
create table process (
    id             uuid primary key,
    kind           text not null check (kind in ('review_claim')),
    claim_id       uuid not null references claim,
    task_id        uuid not null references task,
    attempt        integer not null check (attempt >= 1),
    -- How long its waits may take before it fails, in seconds.
    within_seconds bigint not null check (within_seconds > 0),
    started_at     timestamptz not null,
    started_by     uuid references person
);
create unique index process_task on process (task_id);
-- Two restarts at once start one attempt.
create unique index process_attempt on process (claim_id, kind, attempt);
