//! What happened to one slot, in the sentences of its task's record.

use super::Slot;
use crate::{Engine, Refusal, task::RecordLine};

/// The slot's lines, from the first. Whether the reader may see it is decided where the slot is read.
pub async fn history(engine: &Engine, slot: &Slot) -> Result<Vec<RecordLine>, Refusal> {
    Ok(sqlx::query_as!(
        RecordLine,
        "select at, kind, text from record_line where task_id = $1 and slot_id = $2 order by id limit 500",
        slot.task_id.0,
        slot.id.0
    )
    .fetch_all(&engine.pool)
    .await?)
}
