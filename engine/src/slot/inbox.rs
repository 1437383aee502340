//! The inbox: what needs somebody, the most urgent first. One index answers it (see `migrations/0006_slots.sql`).

use chrono::{DateTime, Utc};

use super::{Kind, Priority};
use crate::{
    Engine, Refusal,
    actor::PersonActor,
    ids::{ClaimId, SlotId, TaskId},
};

/// What a page shows at most. A number in the statements, not a parameter: only so does Postgres keep their plans, and
/// planning cost more than finding the rows.
pub const SHOWN: usize = 50;
/// [`count`] stops counting here.
pub const COUNTED: i64 = 200;

#[derive(Clone, Debug)]
pub struct InboxLine {
    pub id: SlotId,
    pub kind: Kind,
    /// Nobody who was asked can answer, so it is here.
    pub alarm: bool,
    /// Who said that they are on it.
    pub taken_by: Option<String>,
    pub message: String,
    pub agent: String,
    pub task_id: TaskId,
    pub task_title: String,
    pub claim_id: Option<ClaimId>,
    pub priority: Priority,
    pub opened_at: DateTime<Utc>,
    pub due_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub for_name: Option<String>,
}

/// The first [`SHOWN`] waiting slots for which the person, a group or a role of theirs was asked: by priority, then what is
/// due first, then what waits longest.
pub async fn inbox(engine: &Engine, person: &PersonActor) -> Result<Vec<InboxLine>, Refusal> {
    Ok(sqlx::query!(
        r#"
        with top as (
            -- The first of each key, straight from the index; a slot asked of two of them appears twice.
            select distinct c.slot_id, c.priority, c.due_at, c.opened_at
            from acting_person p
            cross join unnest(p.keys) key
            cross join lateral (
                select slot_id, priority, due_at, opened_at from slot_candidate
                where candidate = key and p.id <> all(hidden_from)
                  -- What an absent person had their say on is not their cover's either.
                  and substr(key, 8) <> all(hidden_from::text[])
                order by priority desc, due_at, opened_at, slot_id
                limit 50
            ) c
            where p.id = $1
            order by priority desc, due_at, opened_at, slot_id
            limit 50
        )
        select s.id as "id: SlotId", s.kind as "kind: Kind", (s.alarm is not null) as "alarm!",
               (select name from person where id = s.taken_by and s.taken_until > $2) as taken_by, left(s.message, 400) as "message!", a.name as agent, t.id as "task_id: TaskId",
               t.title as task_title, t.claim_id as "claim_id: ClaimId", s.priority, s.opened_at, s.due_at,
               s.expires_at, p.name as "for_name?"
        from top
        join slot s on s.id = top.slot_id
        join task t on t.id = s.task_id
        join agent a on a.id = s.agent_id
        left join person p on p.id = t.for_id
        order by top.priority desc, top.due_at, top.opened_at, top.slot_id
        "#,
        person.id.0,
        engine.clock.now(),
    )
    .fetch_all(&engine.pool)
    .await?
    .into_iter()
    .map(|row| InboxLine {
        id: row.id,
        kind: row.kind,
        alarm: row.alarm,
        taken_by: row.taken_by,
        message: row.message,
        agent: row.agent,
        task_id: row.task_id,
        task_title: row.task_title,
        claim_id: row.claim_id,
        priority: Priority::from_rank(row.priority),
        opened_at: row.opened_at,
        due_at: row.due_at,
        expires_at: row.expires_at,
        for_name: row.for_name,
    })
    .collect())
}

/// How many wait for the person, counted up to [`COUNTED`].
pub async fn count(engine: &Engine, person: &PersonActor) -> Result<i64, Refusal> {
    Ok(sqlx::query_scalar!(
        r#"select count(distinct slot_id) as "count!"
           from (
               select c.slot_id from acting_person p
               cross join unnest(p.keys) key
               cross join lateral (select slot_id from slot_candidate where candidate = key and p.id <> all(hidden_from)
                                    and substr(key, 8) <> all(hidden_from::text[]) limit 201) c
               where p.id = $1 limit 201
           ) counted"#,
        person.id.0,
    )
    .fetch_one(&engine.pool)
    .await?
    .min(COUNTED))
}

/// An answer that the person gave.
#[derive(Clone, Debug)]
pub struct RecentAnswer {
    pub id: SlotId,
    pub message: String,
    pub agent: String,
    pub answered_at: DateTime<Utc>,
}

/// The last five answers that the person gave.
pub async fn answered(engine: &Engine, person: &PersonActor) -> Result<Vec<RecentAnswer>, Refusal> {
    Ok(sqlx::query_as!(
        RecentAnswer,
        r#"select s.id as "id: SlotId", left(s.message, 400) as "message!", a.name as agent, s.closed_at as "answered_at!"
           from slot s join agent a on a.id = s.agent_id
           where s.answered_by = $1 order by s.closed_at desc limit 5"#,
        person.id.0,
    )
    .fetch_all(&engine.pool)
    .await?)
}
