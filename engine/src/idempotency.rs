//! The answer to a POST with an Idempotency-Key, saved in the transaction that did the work (`api.md`).

use chrono::Duration;
use serde_json::Value;

use crate::{Refusal, Tx};

/// What was answered to the same request before.
pub struct Saved {
    pub status: u16,
    pub body: Value,
}

/// Takes the key for this transaction: two requests at once run one after the other, and the second gets the first's
/// answer. None when the work is still to be done. Needs a transaction.
///
/// Refuses with `idempotency_mismatch` when the key came with another body. A key is free again after 24 hours.
pub async fn reserve(tx: &mut Tx, caller: &str, key: &str, body_hash: &[u8]) -> Result<Option<Saved>, Refusal> {
    if key.is_empty() || key.len() > 255 || key.contains('\0') {
        return Err(Refusal::invalid("", "An Idempotency-Key has 1 to 255 characters."));
    }
    let now = tx.now();
    sqlx::query!(
        "delete from idempotent_reply where caller = $1 and key = $2 and created_at < $3",
        caller,
        key,
        now - Duration::hours(24)
    )
    .execute(tx.conn())
    .await?;
    let inserted = sqlx::query!(
        "insert into idempotent_reply (caller, key, body_hash, created_at) values ($1, $2, $3, $4)
         on conflict (caller, key) do nothing",
        caller,
        key,
        body_hash,
        now
    )
    .execute(tx.conn())
    .await?;
    if inserted.rows_affected() == 1 {
        return Ok(None);
    }
    let row = sqlx::query!(
        "select body_hash, status, body from idempotent_reply where caller = $1 and key = $2",
        caller,
        key
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.body_hash != body_hash {
        return Err(Refusal::IdempotencyMismatch);
    }
    match (row.status, row.body) {
        (Some(status), Some(body)) => Ok(Some(Saved { status: status as u16, body })),
        _ => Ok(None),
    }
}

/// Saves what is answered, in the transaction that [`reserve`]d the key. A refusal is not saved: its transaction is
/// rolled back, and the same request may be tried again.
pub async fn save(tx: &mut Tx, caller: &str, key: &str, status: u16, body: &Value) -> Result<(), Refusal> {
    sqlx::query!(
        "update idempotent_reply set status = $3, body = $4 where caller = $1 and key = $2",
        caller,
        key,
        status as i16,
        body
    )
    .execute(tx.conn())
    .await?;
    Ok(())
}
