//! `/files`: what an agent attaches to a question, and what a person hands in as an answer. An addition to `api.md`: the
//! body is the file itself, so that 10 MB need no text around them.

use axum::{
    Extension,
    body::Bytes,
    extract::{Path, Query, State, rejection::BytesRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use engine::{Actor, Refusal, file, ids::FileId};
use serde::Deserialize;
use serde_json::json;

use super::{
    super::Http,
    Problem,
    auth::needs,
    idempotent::{begin, finish},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddQuery {
    #[serde(default)]
    name: String,
}

pub(super) async fn add(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Query(query): Query<AddQuery>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    needs(&actor, if matches!(actor, Actor::Agent(_)) { "ask" } else { "answer" })?;
    let body = body.map_err(|rejection| match rejection.status().as_u16() {
        413 => Problem::simple(413, "too_large", "A file has at most 10 MB."),
        _ => Problem::simple(400, "malformed", "The body could not be read to its end."),
    })?;
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/files?{}", query.name), &body).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    let id = file::add(&mut tx, &actor, &query.name, &body, "").await?;
    finish(tx, &actor, key, StatusCode::CREATED, json!({ "id": id, "size": body.len() })).await
}

pub(super) async fn get(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    needs(&actor, "read")?;
    let id: FileId = id.parse().map_err(|_| Refusal::NotFound)?;
    let (file, bytes) = file::get(&http.engine, &actor, id).await?;
    Ok(([(header::CONTENT_TYPE, media_type(&file)), download(&file)], bytes).into_response())
}

fn media_type(file: &file::File) -> HeaderValue {
    HeaderValue::from_str(&file.media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

fn download(file: &file::File) -> (HeaderName, HeaderValue) {
    let value = app::content_disposition("attachment", &file.name);
    (header::CONTENT_DISPOSITION, HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("attachment")))
}
