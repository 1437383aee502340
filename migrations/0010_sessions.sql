-- The server's side of the cookie: what a session holds, under the hash of its id, so that a copy of this table opens
-- nothing. Who it is, is in `sign_in`.
create table session (
    hash       bytea primary key,
    data       jsonb not null,
    expires_at timestamptz not null
);
create index session_expiry on session (expires_at);
