-- What is to happen by itself, a row each. Whoever claims a row (for update skip locked) does it and deletes it in the same
-- transaction, so it takes effect once however many instances run. A timer of a slot that no longer waits does nothing.
create table timer (
    id      bigint generated always as identity primary key,
    slot_id uuid not null references slot,
    kind    text not null check (kind in ('remind', 'at_risk', 'breach', 'managers', 'expire')),
    -- When it fell due: what is stamped. `run_at` is later only after a failed try.
    due_at  timestamptz not null,
    run_at  timestamptz not null,
    -- The how-manieth reminder.
    nth     integer not null default 1,
    tries   smallint not null default 0,
    problem text,
    -- Given up after too many tries: an admin sees it.
    failed  boolean not null default false,
    -- In a transaction of its own: it changes more than a line (expiry, and escalation that hands the question on).
    alone   boolean not null default false
);
create index timer_run on timer (alone, run_at, id) where not failed;
create index timer_slot on timer (slot_id);
create index timer_failed on timer (id) where failed;

alter table slot
    -- What it follows, kept from when it was asked: seconds, and whether they are business time.
    add column target_seconds  bigint,
    add column business        boolean not null default false,
    add column at_risk_at      timestamptz,
    add column remind_every    bigint,
    add column remind_most     integer,
    add column escalate_after  bigint,
    add column reassign_late   boolean not null default false,
    -- Stamped with the time they fell due, not when somebody noticed.
    add column warned_at       timestamptz,
    add column breached_at     timestamptz,
    -- The other clock: how much business time it waited, by the calendar of whoever was asked.
    add column waited_business bigint;

-- Questions that wait already get their timers.
insert into timer (slot_id, kind, due_at, run_at, alone)
    select id, 'expire', expires_at, expires_at, true from slot where status = 'waiting' and expires_at is not null
    union all
    select id, 'breach', due_at, due_at, false from slot where status = 'waiting' and due_at is not null;

drop index slot_expiry;

-- Lines are only ever written beside the task they tell of, and tasks are never deleted: checking it again for every line
-- was a third of what a reminder costs.
alter table record_line drop constraint record_line_task_id_fkey;

-- When a line's event fell due, where that is another time than when it happened.
alter table record_line add column due_at timestamptz;
alter table outbox add column due_at timestamptz;

-- How long people were waited for, for the receipt.
alter table task add column waiting_since timestamptz, add column waited interval not null default '0';
update task set waiting_since = updated_at where status = 'waiting';

-- What somebody should know, by key (person:, group:, role:), as authority compares them. The first channel; mail is another.
create table notification (
    id      bigint generated always as identity primary key,
    key     text not null,
    slot_id uuid not null,
    kind    text not null,
    due_at  timestamptz not null,
    at      timestamptz not null
);
create index notification_key on notification (key, id desc);
alter table person add column notified_at timestamptz;
