-- Who did what: append only, also for the program itself.
create table audit (
    id      bigint generated always as identity primary key,
    at      timestamptz not null,
    actor   text not null,        -- "person:<id>", "agent:<id>" or "system"
    action  text not null,
    object  text not null,        -- "slot:<id>", "task:<id>", ...
    detail  jsonb
);

create function audit_is_append_only() returns trigger language plpgsql as
$$ begin raise exception 'the audit log is append only'; end $$;
create trigger audit_append_only before update or delete on audit
    for each row execute function audit_is_append_only();
create trigger audit_not_emptied before truncate on audit
    for each statement execute function audit_is_append_only();

-- Events for webhooks and the event stream, written in the transaction that made them true. Only what happened and to
-- what: the bodies are read when they are sent.
create table outbox (
    id      bigint generated always as identity primary key,
    at      timestamptz not null,
    type    text not null,
    task_id uuid,
    slot_id uuid
);
