//! Where sessions are kept: what a cookie's id stands for, under the hash of the id.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Engine, Refusal};

/// Keeps what a session holds. With `fresh`, false when there is one under this id already, which is then left alone.
pub async fn save(
    engine: &Engine,
    id: &str,
    data: &Value,
    expires_at: DateTime<Utc>,
    fresh: bool,
) -> Result<bool, Refusal> {
    let saved = sqlx::query!(
        "insert into session (hash, data, expires_at) values ($1, $2, $3)
         on conflict (hash) do update set data = excluded.data, expires_at = excluded.expires_at where not $4",
        hash(id),
        data,
        expires_at,
        fresh,
    )
    .execute(&engine.pool)
    .await?;
    Ok(saved.rows_affected() == 1)
}

/// What the session holds and until when; None when there is none or its time is over.
pub async fn load(engine: &Engine, id: &str) -> Result<Option<(Value, DateTime<Utc>)>, Refusal> {
    let now = engine.clock.now();
    let row = sqlx::query!("select data, expires_at from session where hash = $1 and expires_at > $2", hash(id), now)
        .fetch_optional(&engine.pool)
        .await?;
    Ok(row.map(|row| (row.data, row.expires_at)))
}

/// Ends the session, and clears away those whose time is over.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), Refusal> {
    sqlx::query!("delete from session where hash = $1 or expires_at < $2", hash(id), engine.clock.now())
        .execute(&engine.pool)
        .await?;
    Ok(())
}

fn hash(id: &str) -> Vec<u8> {
    Sha256::digest(id).to_vec()
}
