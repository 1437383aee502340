-- Business time. person_id null: the site's calendar, of which there is one. `week`: Monday first, each day a list of
-- [from, to) in minutes of the local day.
create table calendar (
    id        uuid primary key,
    person_id uuid references person,
    zone      text not null,
    week      jsonb not null
);
create unique index calendar_owner on calendar (coalesce(person_id, '00000000-0000-0000-0000-000000000000'));

create table holiday (
    calendar_id uuid not null references calendar on delete cascade,
    day         date not null,
    yearly      boolean not null,
    name        text not null,
    primary key (calendar_id, day, yearly)
);

-- How long an answer may take, who is reminded when, and who hears of it when it is late. Null: any. The most specific
-- that fits a slot decides; what the slot itself says goes before.
create table policy (
    id                uuid primary key,
    agent_id          uuid references agent,
    kind              text,
    priority          smallint,
    target_seconds    bigint check (target_seconds > 0),
    business          boolean not null default true,
    at_risk_percent   smallint not null default 75 check (at_risk_percent between 1 and 99),
    remind_after      bigint check (remind_after > 0),
    remind_every      bigint check (remind_every > 0),
    remind_most       integer not null default 3 check (remind_most between 0 and 100),
    -- After the breach the sponsor hears of it; so long after that, the managers.
    escalate_after    bigint check (escalate_after > 0),
    -- Whether the question itself goes to them, not only the news.
    reassign          boolean not null default false
);
create unique index policy_scope on policy (
    coalesce(agent_id, '00000000-0000-0000-0000-000000000000'), coalesce(kind, ''), coalesce(priority, -1::smallint));
