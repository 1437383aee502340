//! The record: what happened on a task, in sentences a person reads.

use chrono::{DateTime, Utc};

use crate::{Engine, Refusal, Tx, ids::TaskId};

#[derive(Clone, Debug)]
pub struct RecordLine {
    pub at: DateTime<Utc>,
    /// started, model, tool, asked, answered, cancelled, expired, stopped, finished, failed
    pub kind: String,
    pub text: String,
}

/// The record of a task, from its start. Whether the reader may see it is decided where the task is read.
pub async fn record(engine: &Engine, task: TaskId) -> Result<Vec<RecordLine>, Refusal> {
    Ok(sqlx::query_as!(
        RecordLine,
        "select at, kind, text from record_line where task_id = $1 order by id limit 1000",
        task.0
    )
    .fetch_all(&engine.pool)
    .await?)
}

/// Writes one line in the transaction of what it tells.
pub(crate) async fn write(tx: &mut Tx, task: TaskId, kind: &str, text: &str) -> Result<(), Refusal> {
    let now = tx.now();
    sqlx::query!("insert into record_line (task_id, at, kind, text) values ($1, $2, $3, $4)", task.0, now, kind, text)
        .execute(tx.conn())
        .await?;
    Ok(())
}
