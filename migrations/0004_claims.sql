-- The business record that the built-in agents work on. Money is integer micros with a currency; a refund is negative.
create table claim (
    id            uuid primary key,
    filer_id      uuid not null references person,
    spent_on      date not null,
    merchant      text not null check (length(merchant) between 1 and 200),
    amount_micros bigint not null,
    currency      text not null check (currency ~ '^[A-Z]{3}$'),
    category      text not null,
    explanation   text not null default '' check (length(explanation) <= 4000),
    created_at    timestamptz not null
);
create index claim_filer on claim (filer_id, id desc);
-- What the Auditor looks for: the same charge filed twice, and what is usual for a category.
create index claim_same_charge on claim (lower(merchant), amount_micros, currency);
create index claim_category on claim (category, currency);
