//! Timers that failed again and again, for an administrator.

use chrono::{DateTime, Utc};

use crate::{Engine, Refusal, actor::PersonActor, audit, calendar::only_admins, ids::SlotId, wake::Topic};

#[derive(Clone, Debug)]
pub struct FailedTimer {
    pub id: i64,
    pub slot: SlotId,
    pub message: String,
    pub kind: String,
    pub due_at: DateTime<Utc>,
    pub tries: i16,
    pub problem: String,
    /// When it is tried again by itself; None when it was given up.
    pub next_at: Option<DateTime<Utc>>,
}

/// The newest hundred, and how many there are. Refuses with `forbidden`.
pub async fn failed(engine: &Engine, person: &PersonActor) -> Result<(Vec<FailedTimer>, i64), Refusal> {
    only_admins(person)?;
    let timers = sqlx::query_as!(
        FailedTimer,
        r#"select t.id, t.slot_id as "slot: SlotId", left(s.message, 200) as "message!", t.kind, t.due_at, t.tries,
                  coalesce(t.problem, '') as "problem!", case when not t.failed then t.run_at end as next_at
           from timer t join slot s on s.id = t.slot_id where t.tries > 3 order by t.id desc limit 100"#
    )
    .fetch_all(&engine.pool)
    .await?;
    Ok((timers, in_trouble(engine).await?))
}

/// How many there are.
pub async fn in_trouble(engine: &Engine) -> Result<i64, Refusal> {
    Ok(sqlx::query_scalar!(r#"select count(*) as "count!" from timer where tries > 3"#).fetch_one(&engine.pool).await?)
}

/// Tries one again, at once, or all. Refuses with `forbidden`, or `not_found` when there is none.
pub async fn retry(engine: &Engine, person: &PersonActor, id: Option<i64>) -> Result<(), Refusal> {
    only_admins(person)?;
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let again = sqlx::query!(
        "update timer set failed = false, tries = 0, run_at = $2 where tries > 3 and ($1::bigint is null or id = $1)",
        id,
        now
    )
    .execute(tx.conn())
    .await?;
    if again.rows_affected() == 0 {
        return Err(Refusal::NotFound);
    }
    let object = id.map_or_else(|| "timer:all".to_owned(), |id| format!("timer:{id}"));
    audit::write(&mut tx, &format!("person:{}", person.id), "timer.retried", &object, None).await?;
    tx.wake(Topic::Clock);
    tx.commit().await
}
