-- One wait for a person. `waiting`, then once and for ever one of the other three.
-- Sizes are checked where the words come in: a check here is parsed anew by every statement.
create table slot (
    id            uuid primary key,
    task_id       uuid not null references task,
    agent_id      uuid not null references agent,
    -- The call of the conversation that asked; '' for an outside agent, whose conversation is its own.
    call_id       text not null default '',
    name          text not null,
    kind          text not null check (kind in ('question', 'approval', 'sign_in', 'client_tool', 'human')),
    message       text not null,
    context       text not null default '',
    options       jsonb,
    schema        jsonb,
    secret        boolean not null default false,
    action        jsonb,
    digest        text,
    revision      integer not null default 1,
    -- Who was asked, as the asker named them (e-mail, group:, role:) and as the keys that authority compares.
    asked         text[] not null,
    candidates    text[] not null,
    assignee_id   uuid references person,
    waiting_on    text not null,
    needs         integer not null default 1,
    -- 0 low, 1 normal, 2 high, 3 urgent
    priority      smallint not null default 1,
    status        text not null default 'waiting' check (status in ('waiting', 'answered', 'cancelled', 'expired')),
    opened_at     timestamptz not null,
    target_at     timestamptz,
    due_at        timestamptz,
    expires_at    timestamptz,
    on_expiry     text not null default 'tell' check (on_expiry in ('tell', 'fail', 'default', 'escalate')),
    default_value jsonb,
    answer        jsonb,
    note          text,
    answered_by   uuid references person,
    on_behalf_of  uuid references person,
    reason        text,
    closed_at     timestamptz,
    check ((status = 'waiting') = (closed_at is null)),
    check ((status = 'answered') = (answered_by is not null))
);
-- Asked again under the same task, call and name is the same slot.
create unique index slot_asked_once on slot (task_id, call_id, name);
create index slot_agent on slot (agent_id, id desc);
create index slot_expiry on slot (expires_at) where status = 'waiting' and expires_at is not null;

-- The inbox, shaped for its one question: "the most urgent that this person may answer". One row for each party asked
-- while the slot waits; closing deletes them. candidate: "person:<id>", "group:<id>" or "role:<role>".
create table slot_candidate (
    slot_id   uuid not null references slot,
    candidate text not null,
    priority  smallint not null,
    due_at    timestamptz not null,  -- 'infinity' when there is no target
    opened_at timestamptz not null,
    primary key (slot_id, candidate)
);
create index slot_candidate_urgent on slot_candidate (candidate, priority desc, due_at, opened_at, slot_id);

-- What somebody answered lately.
create index slot_answered on slot (answered_by, closed_at desc) where answered_by is not null;
