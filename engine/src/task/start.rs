//! Giving an inside agent a piece of work.

use serde_json::json;

use super::record;
use crate::{
    Refusal, Tx, audit,
    ids::{AgentId, ClaimId, PersonId, TaskId},
    wake::Topic,
};

pub struct NewTask<'a> {
    pub agent_id: AgentId,
    pub title: &'a str,
    /// What the agent is told to do: the first turn of its conversation.
    pub instruction: &'a str,
    pub claim_id: Option<ClaimId>,
    pub for_id: Option<PersonId>,
    /// The line of the record that says how it began.
    pub said: &'a str,
    /// The audit's key of who gave the work.
    pub by: &'a str,
}

/// Opens a task with its instruction and makes it ready for any instance. Needs a transaction.
pub async fn start(tx: &mut Tx, new: NewTask<'_>) -> Result<TaskId, Refusal> {
    let id: TaskId = tx.new_id();
    let now = tx.now();
    let agent = sqlx::query!(
        "insert into task (id, agent_id, title, claim_id, for_id, status, budget_micros, currency, turns, ready_at,
                           created_at, updated_at)
         select $1, id, $3, $4, $5, 'working', budget_micros, currency, 1, $6, $6, $6
         from agent where id = $2 and inside and disabled_at is null",
        id.0,
        new.agent_id.0,
        new.title,
        new.claim_id.map(|id| id.0),
        new.for_id.map(|id| id.0),
        now,
    )
    .execute(tx.conn())
    .await?;
    if agent.rows_affected() != 1 {
        return Err(Refusal::invalid("/agent", "There is no such agent of Layby's own that takes work."));
    }
    sqlx::query!(
        "insert into turn (task_id, seq, kind, body, created_at) values ($1, 1, 'instruction', $2, $3)",
        id.0,
        json!({ "text": new.instruction }),
        now,
    )
    .execute(tx.conn())
    .await?;
    record::write(tx, id, "started", new.said).await?;
    audit::write(tx, new.by, "task.started", &format!("task:{id}"), None).await?;
    sqlx::query!("insert into outbox (at, type, task_id) values ($1, 'task.started', $2)", now, id.0)
        .execute(tx.conn())
        .await?;
    tx.wake(Topic::Work);
    tx.wake(Topic::AnyTask);
    Ok(id)
}
