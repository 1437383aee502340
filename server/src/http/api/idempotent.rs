//! A POST as one unit of work, with the caller's Idempotency-Key when there is one (`api.md`, ground rules).

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use engine::{Actor, Refusal, Tx, idempotency};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{super::Http, Problem, body};

/// A call that changes something: who makes it, with what body, and under which key.
pub(super) struct Post {
    pub http: Http,
    pub actor: Actor,
    pub body: Bytes,
    headers: HeaderMap,
    /// Below `/api/v1`, with its query.
    path: String,
}

impl FromRequest<Http> for Post {
    type Rejection = Problem;

    async fn from_request(request: Request, http: &Http) -> Result<Self, Problem> {
        let (headers, path) = (request.headers().clone(), request.uri().to_string());
        // The layer of `auth::bearer` put it there; without a good token nothing comes this far.
        let Some(actor) = request.extensions().get::<Actor>().cloned() else { return Err(Refusal::NotFound.into()) };
        let body = Bytes::from_request(request, http).await.map_err(|rejection| match rejection.status().as_u16() {
            413 => Problem::simple(413, "too_large", "A body of JSON has at most 1 MiB, a file at most 10 MB."),
            _ => Problem::simple(400, "malformed", "The body could not be read to its end."),
        })?;
        Ok(Self { http: http.clone(), actor, body, headers, path })
    }
}

impl Post {
    /// The body as JSON. Not JSON: 400; another type: 415; a field that is unknown, missing or of the wrong type: 422.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        body::read(&self.headers, &self.body)
    }

    pub(super) fn has_key(&self) -> bool {
        self.headers.contains_key("idempotency-key")
    }

    /// Does the work once: asked again under the same key, it answers what it answered before.
    pub(super) async fn once(
        &self,
        work: impl AsyncFnOnce(&mut Tx) -> Result<(StatusCode, Value), Problem>,
    ) -> Result<Response, Problem> {
        self.once_known_by(&self.body, work).await
    }

    /// The same, the request known again by `known_by` instead of its body.
    pub(super) async fn once_known_by(
        &self,
        known_by: &[u8],
        work: impl AsyncFnOnce(&mut Tx) -> Result<(StatusCode, Value), Problem>,
    ) -> Result<Response, Problem> {
        let Some(key) = self.headers.get("idempotency-key") else {
            let mut tx = self.http.engine.single().await?;
            let (status, body) = work(&mut tx).await?;
            tx.commit().await?;
            return Ok((status, Json(body)).into_response());
        };
        let key = key.to_str().map_err(|_| Problem::field("", "An Idempotency-Key is plain text."))?;
        let mut tx = self.http.engine.begin().await?;
        let hash = Sha256::new().chain_update(&self.path).chain_update([0]).chain_update(known_by).finalize();
        if let Some(saved) = idempotency::reserve(&mut tx, &self.actor.key(), key, &hash).await? {
            return Ok((StatusCode::from_u16(saved.status).unwrap_or(StatusCode::OK), Json(saved.body)).into_response());
        }
        let (status, body) = work(&mut tx).await?;
        idempotency::save(&mut tx, &self.actor.key(), key, status.as_u16(), &body).await?;
        tx.commit().await?;
        Ok((status, Json(body)).into_response())
    }
}
