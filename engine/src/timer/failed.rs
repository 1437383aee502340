//! Timers that were given up, for an administrator.

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
}

/// The newest hundred. Refuses with `forbidden`.
pub async fn failed(engine: &Engine, person: &PersonActor) -> Result<Vec<FailedTimer>, Refusal> {
    only_admins(person)?;
    Ok(sqlx::query_as!(
        FailedTimer,
        r#"select t.id, t.slot_id as "slot: SlotId", left(s.message, 200) as "message!", t.kind, t.due_at, t.tries,
                  coalesce(t.problem, '') as "problem!"
           from timer t join slot s on s.id = t.slot_id where t.failed order by t.id desc limit 100"#
    )
    .fetch_all(&engine.pool)
    .await?)
}

/// Tries one again, at once. Refuses with `forbidden` or `not_found`.
pub async fn retry(engine: &Engine, person: &PersonActor, id: i64) -> Result<(), Refusal> {
    only_admins(person)?;
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let again =
        sqlx::query!("update timer set failed = false, tries = 0, run_at = $2 where id = $1 and failed", id, now)
            .execute(tx.conn())
            .await?;
    if again.rows_affected() != 1 {
        return Err(Refusal::NotFound);
    }
    audit::write(&mut tx, &format!("person:{}", person.id), "timer.retried", &format!("timer:{id}"), None).await?;
    tx.wake(Topic::Clock);
    tx.commit().await
}
