//! `/files`: what an agent attaches to a question, and what a person hands in as an answer. An addition to `api.md`: the
//! body is the file itself, so that 10 MB need no text around them.

use axum::{
    Extension,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use engine::{Actor, Refusal, file, ids::FileId};
use serde::Deserialize;
use serde_json::json;

use super::{
    super::Http,
    Problem,
    auth::needs,
    body::{Asked, Path},
    idempotent::Post,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddQuery {
    #[serde(default)]
    name: String,
}

pub(super) async fn add(Asked(query): Asked<AddQuery>, post: Post) -> Result<Response, Problem> {
    needs(&post.actor, if matches!(post.actor, Actor::Agent(_)) { "ask" } else { "answer" })?;
    post.once(async |tx| {
        let id = file::add(tx, &post.actor, &query.name, &post.body, "").await?;
        Ok((StatusCode::CREATED, json!({ "id": id, "size": post.body.len() })))
    })
    .await
}

pub(super) async fn get(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path,
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
