-- Whether reminders and the next rung are business time, each for itself: the asker's own words are
-- plain time, a policy's are business time when it says so, and a question may follow some of each
-- (design 7). What is already asked follows its one former answer.
alter table slot
    add column remind_business   boolean not null default false,
    add column escalate_business boolean not null default false;
update slot set remind_business = business, escalate_business = business
where business and status = 'waiting';
