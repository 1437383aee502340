//! What ends a question, or moves it to somebody else: `answer`, `resolve`, `cancel`, `reassign`, and taking a secret.

use std::borrow::Cow;

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
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
    body::Path,
    idempotent::Post,
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

pub(super) async fn answer(Path(id): Path, post: Post) -> Result<Response, Problem> {
    needs(&post.actor, "answer")?;
    let id = slot_id(&id)?;
    let answer = post.read::<AnswerBody>()?;
    let known_by = known_by(&post, &[id], |known, _| known["value"] = Value::Null).await?;
    post.once_known_by(&known_by, async |tx| {
        let deposited = slot::deposit(tx, &post.actor, id, answer.revision, answer.value, answer.note).await?;
        Ok((StatusCode::OK, done(id, deposited)))
    })
    .await
}

/// By what an answer is known again under its key. What is kept for that must not let a secret be guessed from it, so each
/// secret in the body is forgotten (`forget`) first.
async fn known_by<'a>(
    post: &'a Post,
    slots: &[SlotId],
    forget: impl Fn(&mut Value, SlotId),
) -> Result<Cow<'a, [u8]>, Problem> {
    if !post.has_key() {
        return Ok(Cow::Borrowed(&post.body));
    }
    let secrets = slot::secret::asked_by(&post.http.engine, slots).await?;
    if secrets.is_empty() {
        return Ok(Cow::Borrowed(&post.body));
    }
    let mut known: Value = post.read()?;
    for secret in secrets {
        forget(&mut known, secret);
    }
    Ok(Cow::Owned(known.to_string().into_bytes()))
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

pub(super) async fn resolve(Path(id): Path, post: Post) -> Result<Response, Problem> {
    needs(&post.actor, "answer")?;
    let task: TaskId = id.parse().map_err(|_| Refusal::NotFound)?;
    let answers = post.read::<ResolveBody>()?.answers;
    let ids: Vec<SlotId> = answers.iter().map(|answer| answer.slot_id).collect();
    let forget = |known: &mut Value, secret: SlotId| {
        for answer in known["answers"].as_array_mut().into_iter().flatten() {
            if answer["slot_id"].as_str().and_then(|id| id.parse().ok()) == Some(secret) {
                answer["value"] = Value::Null;
            }
        }
    };
    let known_by = known_by(&post, &ids, forget).await?;
    post.once_known_by(&known_by, async |tx| {
        let answers = answers.into_iter().map(|answer| Resolved {
            slot: answer.slot_id,
            revision: answer.revision,
            value: answer.value,
        });
        let deposited = slot::resolve(tx, &post.actor, task, answers.collect()).await?;
        let items: Vec<Value> = ids.into_iter().zip(deposited).map(|(id, deposited)| done(id, deposited)).collect();
        Ok((StatusCode::OK, json!({ "items": items })))
    })
    .await
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

pub(super) async fn cancel(Path(id): Path, post: Post) -> Result<Response, Problem> {
    needs_one(&post.actor, &["ask", "answer", "manage"])?;
    let id = slot_id(&id)?;
    let CancelBody { reason } = post.read()?;
    post.once(async |tx| {
        slot::cancel(tx, &post.actor, id, &reason).await?;
        Ok((StatusCode::OK, json!({ "id": id, "status": "cancelled" })))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReassignBody {
    to: String,
    reason: String,
}

pub(super) async fn reassign(Path(id): Path, post: Post) -> Result<Response, Problem> {
    needs_one(&post.actor, &["answer", "manage"])?;
    let id = slot_id(&id)?;
    let ReassignBody { to, reason } = post.read()?;
    post.once(async |tx| {
        slot::reassign(tx, &post.actor, id, &to, &reason).await?;
        Ok((StatusCode::OK, json!({ "id": id, "status": "waiting", "asked": [to.trim()] })))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DueBody {
    expires_at: Option<DateTime<Utc>>,
    due_at: Option<DateTime<Utc>>,
    reason: String,
}

pub(super) async fn due(Path(id): Path, post: Post) -> Result<Response, Problem> {
    needs_one(&post.actor, &["ask", "manage"])?;
    let id = slot_id(&id)?;
    let moved = post.read::<DueBody>()?;
    let to = match (moved.due_at, moved.expires_at) {
        (Some(at), None) => Moved::Due(at),
        (None, Some(at)) => Moved::Expires(at),
        _ => return Err(Problem::field("/due_at", "Say one of the two: due_at or expires_at.")),
    };
    post.once(async |tx| {
        slot::move_due(tx, &post.actor, id, to, &moved.reason).await?;
        let at = moved.due_at.or(moved.expires_at).map(time);
        let name = if moved.due_at.is_some() { "due_at" } else { "expires_at" };
        Ok((StatusCode::OK, json!({ "id": id, "status": "waiting", name: at })))
    })
    .await
}

/// Hands the secret out, once. An Idempotency-Key changes nothing here: a reply that could be given again would have to
/// be kept, and a secret that was taken is kept nowhere.
pub(super) async fn secret(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path,
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
