-- Every kind of question: approvals with their arguments and votes, secrets, handing over, files. Only additions, so that
-- the version before goes on over the same database.
alter table slot
    -- An approval's arguments as they stand after an edit; null while nobody changed what was asked.
    add column arguments      jsonb,
    add column edited_by      uuid references person,
    -- [{"id", "name", "email", "at"}]: who approved so far. In the row, so that its lock decides who was the last.
    add column votes          jsonb not null default '[]',
    -- An approval runs once, a secret is handed out once.
    add column used_at        timestamptz,
    -- "I'm on it": shown to others, over by itself.
    add column taken_by       uuid references person,
    add column taken_until    timestamptz,
    add column declined       uuid[] not null default '{}',
    -- How often it was handed on: whoever closes it clears the inboxes of those that it read.
    add column handed         integer not null default 0,
    -- 0 whoever was asked, 1 the sponsor, 2 the managers.
    add column rung           smallint not null default 0,
    -- How long the asker waits, for the new deadline of the next rung.
    add column wait_seconds   bigint,
    -- Why whoever was asked cannot answer.
    add column alarm          text;

-- json, not jsonb: a form has its fields, and a table its arguments, in the order in which they were written.
alter table slot alter column schema type json, alter column action type json;

-- Whoever declined or voted already does not see it in their inbox.
alter table slot_candidate add column hidden_from uuid[] not null default '{}';

-- The lines that tell a slot's history; found by their task. Without a key to slot: every line written would pay for it.
alter table record_line add column slot_id uuid;

-- A secret from its deposit until it is handed out: then the row is gone. Sealed by the program, never by the database.
create table sealed_secret (
    slot_id uuid primary key references slot,
    key_id  text not null,
    sealed  bytea not null
);

-- What an asker attaches or a person hands in. Belongs to nobody's slot until it is asked with or answered with.
create table file (
    id         uuid primary key,
    slot_id    uuid references slot,
    -- Who brought it, and so which side of the slot it is on.
    agent_id   uuid references agent,
    person_id  uuid references person,
    name       text not null,
    media_type text not null,
    size       integer not null,
    bytes      bytea not null,
    created_at timestamptz not null,
    check ((agent_id is null) <> (person_id is null))
);
-- Pictures and PDFs are compressed already.
alter table file alter column bytes set storage external;
create index file_slot on file (slot_id) where slot_id is not null;
create index file_unused on file (created_at) where slot_id is null;

-- What an agent may do by itself: `alone`, only `propose`, or `never`. A tool that is not named follows its own default.
create table permit (
    agent_id uuid not null references agent,
    tool     text not null,
    rule     text not null check (rule in ('alone', 'propose', 'never')),
    primary key (agent_id, tool)
);
-- Tools that run in the program of whoever the work is for: [{"name", "description", "arguments", "output"}].
alter table agent add column client_tools jsonb not null default '[]';
