-- The answer to a POST with an Idempotency-Key, saved in the transaction that did the work; kept for 24 hours.
create table idempotent_reply (
    caller     text not null,
    key        text not null check (length(key) between 1 and 255),
    body_hash  bytea not null,
    status     smallint,
    body       jsonb,
    created_at timestamptz not null,
    primary key (caller, key)
);
create index idempotent_reply_age on idempotent_reply (created_at);
