-- Away, with a cover who answers meanwhile. `covered` is set and cleared when the times come (person/away.rs), so that
-- authority is a reading of rows and needs no clock.
alter table person
    add column away_from  timestamptz,
    add column away_until timestamptz,
    add column cover_id   uuid references person check (cover_id <> id),
    add column covered    boolean not null default false,
    add check (not covered or cover_id is not null);
create index person_cover on person (cover_id) where covered;
create index person_away on person (away_from) where away_from is not null;

create or replace view acting_person as
    select p.id, p.name, p.email, p.time_zone,
           array['person:' || p.id]
               || array(select 'group:' || group_id from group_member where person_id = p.id)
               || array(select 'role:' || role from person_role where person_id = p.id)
               -- What an absent person was asked, their cover may answer.
               || array(select 'person:' || away.id from person away where away.covered and away.cover_id = p.id) as keys
    from person p where p.disabled_at is null;
