-- Named workers. Inside: Layby runs the loop. Outside: somebody's own program, with a token.
create table agent (
    id            uuid primary key,
    name          text not null check (length(name) between 1 and 100),
    inside        boolean not null,
    purpose       text not null default '',
    prompt        text not null default '',
    model         text not null default 'rules',
    -- An agent that keeps no conversation has nothing to come back to: it is refused when it asks (design section 5).
    memory        text not null default 'persistent' check (memory in ('persistent', 'none')),
    may_choose    boolean not null default true,
    when_stuck    boolean not null default true,
    about         text not null default '',
    most          integer not null default 3 check (most >= 0),
    stuck_after   integer not null default 2 check (stuck_after >= 1),
    max_turns     integer not null default 20 check (max_turns >= 1),
    budget_micros bigint check (budget_micros >= 0),
    currency      text not null default 'EUR' check (currency ~ '^[A-Z]{3}$'),
    sponsor_id    uuid references person,
    disabled_at   timestamptz,
    created_at    timestamptz not null
);
create unique index agent_name on agent (lower(name));

-- Only the SHA-256 of a token is kept; the token itself has 256 random bits, so a slow hash would add nothing.
create table token (
    id         uuid primary key,
    hash       bytea not null,
    agent_id   uuid references agent,
    person_id  uuid references person,
    scopes     text[] not null,
    created_at timestamptz not null,
    revoked_at timestamptz,
    check ((agent_id is null) <> (person_id is null))
);
create unique index token_hash on token (hash);
