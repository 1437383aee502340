-- A sign-in is the server's side of a session: the cookie's session row holds only this id, so ending the row ends
-- the session whatever the browser keeps, and people can see and end their own.
create table sign_in (
    id         uuid primary key,
    person_id  uuid not null references person,
    user_agent text not null default '',
    created_at timestamptz not null,
    seen_at    timestamptz not null,
    ended_at   timestamptz
);
create index sign_in_person on sign_in (person_id) where ended_at is null;

-- Failed tries, counted over all instances. The key is "email:<address>|<network>" or "network:<address>": a stranger
-- elsewhere who guesses cannot lock the person out of their own network.
create table sign_in_failure (
    id  bigint generated always as identity primary key,
    key text not null,
    at  timestamptz not null
);
create index sign_in_failure_key on sign_in_failure (key, at);

-- The one-time code for /setup: only its hash, one row at most, gone when the first administrator exists.
create table setup_code (
    only_one   boolean primary key default true check (only_one),
    hash       bytea not null,
    created_at timestamptz not null
);
