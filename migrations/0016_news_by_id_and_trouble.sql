-- What somebody has seen of their news is what the page showed, not what came while they read. The time that stood for it
-- until now, person.notified_at, stays for instances of the former version and goes in a later one.
alter table person add column notified_id bigint not null default 0;
update person p set notified_id = coalesce((select max(id) from notification n where n.at <= p.notified_at), 0)
where p.notified_at is not null;

-- Timers in trouble are shown before they are given up.
drop index timer_failed;
create index timer_in_trouble on timer (id) where tries > 3;
