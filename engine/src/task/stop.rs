//! Ending a task: stopped by a person, or by the loop when the work is done, failed or over a limit.

use serde_json::Value;

use super::{Status, list};
use crate::{
    Refusal, Tx,
    actor::PersonActor,
    ids::{ClaimId, TaskId},
    slot::{self, cancel::checked_reason},
    wake::Topic,
};

/// Calls work off, working or waiting: it ends `cancelled`, its open slots with it, and an instance in the middle of a
/// model call writes no more. A manager, an admin, or the person it is for. Needs a transaction.
///
/// Refuses with `not_found`, `invalid` (pointer /reason) or `task_ended`.
pub async fn stop(tx: &mut Tx, person: &PersonActor, id: TaskId, reason: &str) -> Result<(), Refusal> {
    let task = list::seen(tx.conn(), person, id).await?;
    let reason = checked_reason(reason)?;
    let ended = Ending {
        status: Status::Cancelled,
        result: None,
        problem: Some(&reason),
        said: &format!("{} stopped this work: {reason}", person.name),
        slots: &format!("{} stopped the work: {reason}", person.name),
        actor: &format!("person:{}", person.id),
        epoch: None,
    };
    if end(tx, id, ended).await? {
        return Ok(());
    }
    Err(Refusal::TaskEnded(match task.status {
        Status::Working | Status::Waiting => "This work ended just before you stopped it.".to_owned(),
        ended => format!("This work has ended already ({}), so there is nothing to stop.", ended.as_str()),
    }))
}

/// How a task ends.
pub(crate) struct Ending<'a> {
    pub status: Status,
    pub result: Option<&'a Value>,
    pub problem: Option<&'a str>,
    /// The line of the record.
    pub said: &'a str,
    /// Why its open slots are cancelled, as whoever answers late will read it.
    pub slots: &'a str,
    /// The audit's key of who did it.
    pub actor: &'a str,
    /// The loop's lease; an end from outside the loop needs none.
    pub epoch: Option<i64>,
}

/// Ends a task that is open; answers false when it is not, or the epoch has passed on. Needs a transaction: the slots
/// are looked for in a second statement, with a snapshot from after the task's row was locked, so none opened in
/// between is left behind.
pub(crate) async fn end(tx: &mut Tx, id: TaskId, ending: Ending<'_>) -> Result<bool, Refusal> {
    let now = tx.now();
    let ended = sqlx::query!(
        r#"
        with ended as (
            update task
            set status = $2, result = $3, problem = $4, finished_at = $5, updated_at = $5,
                waited = waited + coalesce($5 - waiting_since, '0'), waiting_since = null,
                open_slots = 0, ready_at = null, leased_by = null, lease_until = null,
                -- Whoever still holds a lease can write nothing from here on.
                epoch = epoch + 1
            where id = $1 and status in ('working', 'waiting') and ($6::bigint is null or epoch = $6)
            returning id, claim_id
        ), line as (
            insert into record_line (task_id, at, kind, text)
            select id, $5, case $2 when 'done' then 'finished' when 'cancelled' then 'stopped' else $2 end, $7 from ended
        ), audited as (
            insert into audit (at, actor, action, object) select $5, $8, 'task.' || $2, 'task:' || id from ended
        ), event as (
            insert into outbox (at, type, task_id)
            select $5, 'task.' || case $2 when 'done' then 'finished' else $2 end, id from ended
        )
        select claim_id as "claim_id: ClaimId" from ended
        "#,
        id.0,
        ending.status.as_str(),
        ending.result,
        ending.problem,
        now,
        ending.epoch,
        ending.said,
        ending.actor,
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(ended) = ended else { return Ok(false) };
    slot::close_all(tx, id, ending.slots, ending.actor).await?;
    // A secret that nobody took before the end is nobody's any more; also one that was handed in while this waited for the
    // task's row, which the statement above cannot see.
    sqlx::query!("delete from sealed_secret s using slot where slot.task_id = $1 and s.slot_id = slot.id", id.0)
        .execute(tx.conn())
        .await?;
    tx.wake(Topic::Task(id));
    tx.wake(Topic::AnyTask);
    if let Some(claim) = ended.claim_id {
        tx.wake(Topic::Claim(claim));
    }
    Ok(true)
}
