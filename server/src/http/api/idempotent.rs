//! A POST as one unit of work, with the caller's Idempotency-Key when there is one (`api.md`, ground rules).

use axum::{
    Json,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use engine::{Actor, Tx, idempotency};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{super::Http, Problem};

/// A unit of work with the caller's Idempotency-Key, if there is one; or what was answered before.
pub(super) async fn begin(
    http: &Http,
    actor: &Actor,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<(Tx, Option<String>, Option<Response>), Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok((http.engine.single().await?, None, None)) };
    let key = key.to_str().map_err(|_| Problem::field("", "An Idempotency-Key is plain text."))?.to_owned();
    let mut tx = http.engine.begin().await?;
    let hash = Sha256::new().chain_update(path).chain_update([0]).chain_update(body).finalize();
    let saved = idempotency::reserve(&mut tx, &actor.key(), &key, &hash).await?;
    let again = saved
        .map(|saved| (StatusCode::from_u16(saved.status).unwrap_or(StatusCode::OK), Json(saved.body)).into_response());
    Ok((tx, Some(key), again))
}

/// Saves the answer under the key and makes the work durable.
pub(super) async fn finish(
    mut tx: Tx,
    actor: &Actor,
    key: Option<String>,
    status: StatusCode,
    body: Value,
) -> Result<Response, Problem> {
    if let Some(key) = key {
        idempotency::save(&mut tx, &actor.key(), &key, status.as_u16(), &body).await?;
    }
    tx.commit().await?;
    Ok((status, Json(body)).into_response())
}
