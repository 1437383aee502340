//! What ends a question, or moves it to somebody else: `answer`, `resolve`, `cancel`, `reassign`, and taking a secret.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use engine::{
    Actor, FieldError, Refusal,
    ids::{SlotId, TaskId},
    slot::{self, Deposited, Moved, NotResolved, Resolved},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::Http,
    Problem,
    auth::{needs, needs_one},
    body::{self, Body},
    idempotent::{begin, finish},
    shown::time,
    slots::slot_id,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    value: Value,
    revision: Option<i32>,
    note: Option<String>,
}

pub(super) async fn answer(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    needs(&actor, "answer")?;
    let id = slot_id(&id)?;
    let answer = body::read::<AnswerBody>(&headers, &body)?;
    // What is kept to know the request again must not let a secret be guessed from it.
    let secret = headers.contains_key("idempotency-key") && slot::secret::is_asked(&http.engine, id).await?;
    let known_by = if secret { &b"a secret"[..] } else { &body };
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/slots/{id}/answer"), known_by).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    let deposited = slot::deposit(&mut tx, &actor, id, answer.revision, answer.value, answer.note).await?;
    finish(tx, &actor, key, StatusCode::OK, done(id, deposited)).await
}

/// What came of an answer: "waiting" while an approval needs more.
fn done(id: SlotId, deposited: Deposited) -> Value {
    match deposited.still {
        None => json!({ "id": id, "status": "answered" }),
        Some(still) => json!({ "id": id, "status": "waiting", "still_needs": still }),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveBody {
    answers: Vec<ResolveOne>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveOne {
    slot_id: SlotId,
    revision: Option<i32>,
    value: Value,
}

pub(super) async fn resolve(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    needs(&actor, "answer")?;
    let task: TaskId = id.parse().map_err(|_| Refusal::NotFound)?;
    let answers = body::read::<ResolveBody>(&headers, &body)?.answers;
    let ids: Vec<SlotId> = answers.iter().map(|answer| answer.slot_id).collect();
    let mut secret = false;
    for id in ids.iter().filter(|_| headers.contains_key("idempotency-key")) {
        secret |= slot::secret::is_asked(&http.engine, *id).await?;
    }
    let known_by = if secret { &b"a secret"[..] } else { &body };
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/tasks/{task}/resolve"), known_by).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    let answers = answers.into_iter().map(|answer| Resolved {
        slot: answer.slot_id,
        revision: answer.revision,
        value: answer.value,
    });
    let deposited = slot::resolve(&mut tx, &actor, task, answers.collect()).await?;
    let items: Vec<Value> = ids.into_iter().zip(deposited).map(|(id, deposited)| done(id, deposited)).collect();
    finish(tx, &actor, key, StatusCode::OK, json!({ "items": items })).await
}

impl From<NotResolved> for Problem {
    fn from(failed: NotResolved) -> Self {
        let at = failed.at.map(|at| format!("/answers/{at}"));
        match (failed.refusal, at) {
            // These point into the request already.
            (Refusal::InvalidAnswer(errors), _) => Self::invalid_answers(errors),
            (refusal @ Refusal::Fault(_), _) | (refusal, None) => refusal.into(),
            (refusal, Some(at)) => {
                let error = FieldError::new(at, refusal.to_string());
                Self::from(refusal).with(vec![error])
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    reason: String,
}

pub(super) async fn cancel(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    needs_one(&actor, &["ask", "answer", "manage"])?;
    let id = slot_id(&id)?;
    let CancelBody { reason } = body::read(&headers, &body)?;
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/slots/{id}/cancel"), &body).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    slot::cancel(&mut tx, &actor, id, &reason).await?;
    finish(tx, &actor, key, StatusCode::OK, json!({ "id": id, "status": "cancelled" })).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReassignBody {
    to: String,
    reason: String,
}

pub(super) async fn reassign(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    needs_one(&actor, &["answer", "manage"])?;
    let id = slot_id(&id)?;
    let ReassignBody { to, reason } = body::read(&headers, &body)?;
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/slots/{id}/reassign"), &body).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    slot::reassign(&mut tx, &actor, id, &to, &reason).await?;
    finish(tx, &actor, key, StatusCode::OK, json!({ "id": id, "status": "waiting", "asked": [to.trim()] })).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DueBody {
    expires_at: Option<DateTime<Utc>>,
    due_at: Option<DateTime<Utc>>,
    reason: String,
}

pub(super) async fn due(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    needs_one(&actor, &["ask", "manage", "answer"])?;
    let id = slot_id(&id)?;
    let moved = body::read::<DueBody>(&headers, &body)?;
    let to = match (moved.due_at, moved.expires_at) {
        (Some(at), None) => Moved::Due(at),
        (None, Some(at)) => Moved::Expires(at),
        _ => return Err(Problem::field("/due_at", "Say one of the two: due_at or expires_at.")),
    };
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/slots/{id}/due"), &body).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    slot::move_due(&mut tx, &actor, id, to, &moved.reason).await?;
    let at = moved.due_at.or(moved.expires_at).map(time);
    let name = if moved.due_at.is_some() { "due_at" } else { "expires_at" };
    finish(tx, &actor, key, StatusCode::OK, json!({ "id": id, "status": "waiting", name: at })).await
}

/// Hands the secret out, once. An Idempotency-Key changes nothing here: a reply that could be given again would have to
/// be kept, and a secret that was taken is kept nowhere.
pub(super) async fn secret(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let Actor::Agent(agent) = &actor else {
        return Err(Problem::simple(403, "forbidden", "Only the agent that asked takes the secret."));
    };
    needs(&actor, "ask")?;
    let mut tx = http.engine.begin().await?;
    let secret = slot::secret::take(&mut tx, agent, slot_id(&id)?).await?;
    tx.commit().await?;
    Ok(Json(json!({ "value": slot::secret::reveal(&secret) })).into_response())
}
