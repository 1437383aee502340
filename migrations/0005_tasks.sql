-- One piece of an agent's work and its receipt. What a wait needs is here and in `slot`, never in a process.
create table task (
    id            uuid primary key,
    agent_id      uuid not null references agent,
    title         text not null,
    about_kind    text,
    about_title   text,
    about_url     text,
    claim_id      uuid references claim,
    for_id        uuid references person,
    status        text not null check (status in ('working', 'waiting', 'done', 'failed', 'stopped', 'cancelled')),
    model_calls   integer not null default 0,
    input_tokens  bigint not null default 0,
    output_tokens bigint not null default 0,
    cost_micros   bigint not null default 0,
    budget_micros bigint,
    currency      text not null default 'EUR',
    questions     integer not null default 0,
    result        jsonb,
    problem       text,
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    finished_at   timestamptz,
    -- Counters that the row lock guards: how many slots are open, how many turns the conversation has.
    open_slots    integer not null default 0,
    turns         integer not null default 0,
    -- When Layby's own loop has something to do; null while nothing is (waiting, ended, or an outside agent's task).
    ready_at      timestamptz,
    -- The lease. Every claim raises the epoch and every write of the loop names it: an instance that lost the lease
    -- can write nothing.
    epoch         bigint not null default 0,
    leased_by     uuid,
    lease_until   timestamptz,
    check ((status in ('working', 'waiting')) = (finished_at is null)),
    check (status <> 'waiting' or open_slots > 0)
);
create index task_status on task (status, id desc);
create index task_ready on task (ready_at) where ready_at is not null;
create index task_claim on task (claim_id) where claim_id is not null;
create index task_for on task (for_id, id desc) where for_id is not null;

-- The conversation: append only. A parked run is a call in the log with no result yet.
create table turn (
    task_id    uuid not null references task,
    seq        integer not null,
    kind       text not null check (kind in ('instruction', 'reply', 'result', 'advice')),
    call_id    text,
    body       jsonb not null,
    created_at timestamptz not null,
    primary key (task_id, seq)
);
-- A call has one result, whoever writes it.
create unique index turn_one_result on turn (task_id, call_id) where kind = 'result';

-- What happened, in sentences a person reads (the record, or trajectory): append only.
create table record_line (
    id      bigint generated always as identity primary key,
    task_id uuid not null references task,
    at      timestamptz not null,
    kind    text not null,
    text    text not null
);
create index record_line_task on record_line (task_id, id);
