//! `/slots`: ask, read, wait, answer.

use std::time::Duration;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, SecondsFormat, Utc};
use engine::{
    Actor, Tx, duration, idempotency,
    ids::{SlotId, TaskId},
    slot::{self, Asker, Choice, Kind, ListOfSlots, NewSlot, OnExpiry, Priority, Slot, Status},
    wake::Topic,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    super::Http,
    Problem,
    auth::needs,
    body::{self, Body},
};

const LONGEST_WAIT: chrono::Duration = chrono::Duration::seconds(60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenBody {
    task_id: Option<TaskId>,
    name: Option<String>,
    kind: Kind,
    message: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    options: Vec<Choice>,
    schema: Option<Value>,
    #[serde(default)]
    secret: bool,
    action: Option<Value>,
    #[serde(default)]
    ask: Vec<String>,
    needs: Option<i32>,
    priority: Option<Priority>,
    expires_in: Option<String>,
    on_expiry: Option<OnExpiry>,
    default: Option<Value>,
    target: Option<String>,
    remind: Option<Value>,
}

impl OpenBody {
    fn checked(self) -> Result<NewSlot, Problem> {
        // Accepting what is not done yet would be a deadline or an approval that nobody keeps.
        let later = |pointer: &str| Problem::field(pointer, "This version of Layby does not offer this yet.");
        let not_yet = [
            ("/kind", self.kind != Kind::Question),
            ("/secret", self.secret),
            ("/action", self.action.is_some()),
            ("/needs", self.needs.is_some_and(|needs| needs != 1)),
            ("/on_expiry", self.on_expiry == Some(OnExpiry::Escalate)),
            ("/remind", self.remind.is_some()),
        ];
        if let Some((pointer, _)) = not_yet.into_iter().find(|(_, asked)| *asked) {
            return Err(later(pointer));
        }
        let span = |pointer: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) => duration::parse(&text)
                .map(Some)
                .ok_or_else(|| Problem::field(pointer, "Write a duration like 90s, 15m, 2d or 1h 30m.")),
        };
        Ok(NewSlot {
            task_id: self.task_id,
            name: self.name,
            kind: self.kind,
            message: self.message,
            context: self.context,
            options: self.options,
            schema: self.schema,
            ask: self.ask,
            priority: self.priority.unwrap_or(Priority::Normal),
            expires_in: span("/expires_in", self.expires_in)?,
            on_expiry: self.on_expiry.unwrap_or(OnExpiry::Tell),
            default_value: self.default,
            target: span("/target", self.target)?,
        })
    }
}

/// A unit of work with the caller's Idempotency-Key, if there is one; or what was answered before.
async fn begin(
    http: &Http,
    actor: &Actor,
    headers: &HeaderMap,
    path: &str,
    body: &Bytes,
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
async fn finish(
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

pub(super) async fn open(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    let Actor::Agent(agent) = &actor else {
        return Err(Problem::simple(403, "forbidden", "Only an agent asks; this token is a person's."));
    };
    needs(&actor, "ask")?;
    let new = body::read::<OpenBody>(&headers, &body)?.checked()?;
    let (mut tx, key, again) = begin(&http, &actor, &headers, "/slots", &body).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    let opened = slot::open(&mut tx, Asker::Agent(agent), new).await?;
    let status = if opened.fresh { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = finish(tx, &actor, key, status, shown(&opened.slot)).await?;
    if let Ok(location) = format!("/api/v1/slots/{}", opened.slot.id).parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    status: Option<Status>,
    kind: Option<Kind>,
    task_id: Option<TaskId>,
    #[serde(default)]
    mine: bool,
    limit: Option<i64>,
    cursor: Option<SlotId>,
}

pub(super) async fn list(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    needs(&actor, "read")?;
    let Query(query) =
        query.map_err(|error| Problem::field("", format!("The query does not fit: {}.", error.body_text())))?;
    let limit = query.limit.unwrap_or(50);
    if !(1..=200).contains(&limit) {
        return Err(Problem::field("/limit", "A limit is between 1 and 200."));
    }
    let filter = ListOfSlots {
        status: query.status,
        kind: query.kind,
        task_id: query.task_id,
        mine: query.mine,
        after: query.cursor,
        limit: limit + 1,
    };
    let mut slots = slot::list(&http.engine, &actor, filter).await?;
    let more = slots.len() as i64 > limit;
    slots.truncate(limit as usize);
    let next = slots.last().filter(|_| more).map(|slot| slot.id);
    Ok(Json(json!({ "items": slots.iter().map(shown).collect::<Vec<_>>(), "next_cursor": next })).into_response())
}

#[derive(Deserialize)]
pub(super) struct WaitQuery {
    wait: Option<String>,
}

/// One slot; with `wait`, when it no longer waits or the time is over. Holds no database connection meanwhile.
pub(super) async fn get(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<Response, Problem> {
    needs(&actor, "read")?;
    let id = slot_id(&id)?;
    let wait = match query.wait {
        None => None,
        Some(text) => Some(
            duration::parse(&text)
                .filter(|wait| *wait <= LONGEST_WAIT)
                .ok_or_else(|| Problem::field("/wait", "Wait for 1s to 60s, for example wait=55s."))?,
        ),
    };
    let Some(wait) = wait else { return Ok(Json(shown(&slot::get(&http.engine, &actor, id).await?)).into_response()) };
    // Before reading, so that an answer in between wakes us.
    let changed = http.engine.wakes.subscribe([Topic::Slot(id)]);
    let mut shutdown = http.shutdown.clone();
    let over = tokio::time::sleep(wait.to_std().unwrap_or(Duration::ZERO));
    tokio::pin!(over);
    if !waits(&http, &actor, id).await? {
        return Ok(Json(shown(&slot::get(&http.engine, &actor, id).await?)).into_response());
    }
    loop {
        tokio::select! {
            () = changed.woken() => {}
            () = &mut over => break,
            _ = shutdown.wait_for(|stop| *stop) => break,
        }
        // Woken, it has most likely ended.
        let slot = slot::get(&http.engine, &actor, id).await?;
        if slot.status != Status::Waiting {
            return Ok(Json(shown(&slot)).into_response());
        }
    }
    Ok(Json(shown(&slot::get(&http.engine, &actor, id).await?)).into_response())
}

/// Whether the slot still waits; `not_found` when the caller may not see it.
async fn waits(http: &Http, actor: &Actor, id: SlotId) -> Result<bool, Problem> {
    match actor {
        // The one who waits most is the agent that asked: for it one row is enough.
        Actor::Agent(agent) => {
            Ok(slot::list::own_waits(&http.engine, agent, id).await?.ok_or(engine::Refusal::NotFound)?)
        }
        Actor::Person(_) => Ok(slot::get(&http.engine, actor, id).await?.status == Status::Waiting),
    }
}

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
    let (mut tx, key, again) = begin(&http, &actor, &headers, &format!("/slots/{id}/answer"), &body).await?;
    if let Some(again) = again {
        return Ok(again);
    }
    slot::deposit(&mut tx, &actor, id, answer.revision, answer.value, answer.note).await?;
    finish(tx, &actor, key, StatusCode::OK, json!({ "id": id, "status": "answered" })).await
}

fn slot_id(text: &str) -> Result<SlotId, Problem> {
    text.parse().map_err(|_| engine::Refusal::NotFound.into())
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A slot as `api.md` writes it.
fn shown(slot: &Slot) -> Value {
    let answer = match slot.status {
        Status::Answered => {
            json!({ "value": slot.answer, "note": slot.note, "arguments": null, "edited": false })
        }
        Status::Expired if slot.answer.is_some() => json!({ "value": slot.answer, "defaulted": true }),
        _ => Value::Null,
    };
    let outcome = slot.closed_at.map(|at| {
        json!({
            "by": slot.answered_by_email,
            "on_behalf_of": slot.on_behalf_of_email,
            "at": time(at),
            "waited_seconds": (at - slot.opened_at).num_seconds(),
            "reason": slot.reason,
        })
    });
    json!({
        "id": slot.id,
        "task_id": slot.task_id,
        "agent": slot.agent,
        "name": slot.name,
        "kind": slot.kind,
        "message": slot.message,
        "context": slot.context,
        "options": slot.options,
        "schema": slot.schema,
        "secret": slot.secret,
        "action": null,
        "digest": null,
        "revision": slot.revision,
        "asked": slot.asked,
        "needs": slot.needs,
        "priority": slot.priority.as_str(),
        "status": slot.status,
        "opened_at": time(slot.opened_at),
        "target_at": slot.target_at.map(time),
        "due_at": slot.due_at.map(time),
        "expires_at": slot.expires_at.map(time),
        "on_expiry": slot.on_expiry,
        "answer": answer,
        "outcome": outcome,
    })
}
