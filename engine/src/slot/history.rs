//! What happened to one slot, in the sentences of its task's record.

use crate::{Engine, Refusal, ids::SlotId, task::RecordLine};

/// The slot's lines, from the first. Whether the reader may see it is decided where the slot is read.
pub async fn history(engine: &Engine, slot: SlotId) -> Result<Vec<RecordLine>, Refusal> {
    Ok(sqlx::query_as!(
        RecordLine,
        "select at, kind, text from record_line where slot_id = $1 order by id limit 500",
        slot.0
    )
    .fetch_all(&engine.pool)
    .await?)
}
