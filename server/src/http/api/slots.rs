//! `/slots`: ask, read, wait.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use engine::{
    Actor, duration, file,
    ids::{FileId, SlotId, TaskId},
    policy::Remind,
    slot::{self, Action, Asker, Choice, Kind, ListOfSlots, NewSlot, OnExpiry, Priority, Status},
    wake::Topic,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::Http,
    Problem,
    auth::needs,
    body::{Asked, Path},
    idempotent::Post,
    shown::{shown, with_files},
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
    action: Option<Action>,
    #[serde(default)]
    attachments: Vec<FileId>,
    #[serde(default)]
    ask: Vec<String>,
    needs: Option<i32>,
    priority: Option<Priority>,
    expires_in: Option<String>,
    on_expiry: Option<OnExpiry>,
    default: Option<Value>,
    target: Option<String>,
    remind: Option<RemindBody>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemindBody {
    after: String,
    every: Option<String>,
    most: Option<i32>,
}

impl OpenBody {
    fn checked(self) -> Result<NewSlot, Problem> {
        let span = |pointer: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) => duration::parse(&text)
                .map(Some)
                .ok_or_else(|| Problem::field(pointer, "Write a duration like 90s, 15m, 2d or 1h 30m.")),
        };
        let remind = match self.remind {
            None => None,
            Some(remind) => span("/remind/after", Some(remind.after))?.map(|after| (after, remind.every, remind.most)),
        };
        let remind = match remind {
            None => None,
            Some((after, every, most)) => {
                let every = span("/remind/every", every)?;
                // Once, when it is not said how often.
                Some(Remind { after, every, most: most.unwrap_or(if every.is_some() { 3 } else { 1 }) })
            }
        };
        Ok(NewSlot {
            task_id: self.task_id,
            name: self.name,
            kind: self.kind,
            message: self.message,
            context: self.context,
            options: self.options,
            schema: self.schema,
            secret: self.secret,
            action: self.action,
            needs: self.needs.unwrap_or(1),
            attachments: self.attachments,
            ask: self.ask,
            priority: self.priority.unwrap_or(Priority::Normal),
            expires_in: span("/expires_in", self.expires_in)?,
            on_expiry: self.on_expiry.unwrap_or(OnExpiry::Tell),
            default_value: self.default,
            target: span("/target", self.target)?,
            remind,
        })
    }
}

pub(super) async fn open(post: Post) -> Result<Response, Problem> {
    let Actor::Agent(agent) = &post.actor else {
        return Err(Problem::simple(403, "forbidden", "Only an agent asks; this token is a person's."));
    };
    needs(&post.actor, "ask")?;
    let new = post.read::<OpenBody>()?.checked()?;
    let attachments: Vec<Value> = new.attachments.iter().map(|id| json!({ "id": id })).collect();
    let mut at = None;
    let mut response = post
        .once(async |tx| {
            let opened = slot::open(tx, Asker::Agent(agent), new).await?;
            let mut slot = shown(&opened.slot);
            at = format!("/api/v1/slots/{}", opened.slot.id).parse().ok();
            if !opened.fresh {
                return Ok((StatusCode::OK, slot));
            }
            slot["attachments"] = json!(attachments);
            Ok((StatusCode::CREATED, slot))
        })
        .await?;
    if let Some(at) = at {
        response.headers_mut().insert(header::LOCATION, at);
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
    Asked(query): Asked<ListQuery>,
) -> Result<Response, Problem> {
    needs(&actor, "read")?;
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
    let ids: Vec<_> = slots.iter().map(|slot| slot.id).collect();
    let files = file::of_slots(&http.engine, &ids).await?;
    let items: Vec<Value> = slots.iter().map(|slot| super::shown::with(slot, &files)).collect();
    Ok(Json(json!({ "items": items, "next_cursor": next })).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    wait: Option<String>,
}

/// One slot; with `wait`, when it no longer waits or the time is over. Holds no database connection meanwhile.
pub(super) async fn get(
    State(http): State<Http>,
    Extension(actor): Extension<Actor>,
    Path(id): Path,
    Asked(query): Asked<WaitQuery>,
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
    let Some(wait) = wait else { return one(&http, &actor, id).await };
    // Before reading, so that an answer in between wakes us.
    let changed = http.engine.wakes.subscribe([Topic::Slot(id)]);
    let mut shutdown = http.shutdown.clone();
    let over = tokio::time::sleep(wait.to_std().unwrap_or(Duration::ZERO));
    tokio::pin!(over);
    if !waits(&http, &actor, id).await? {
        return one(&http, &actor, id).await;
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
            return Ok(Json(with_files(&http.engine, &slot).await?).into_response());
        }
    }
    one(&http, &actor, id).await
}

async fn one(http: &Http, actor: &Actor, id: SlotId) -> Result<Response, Problem> {
    let slot = slot::get(&http.engine, actor, id).await?;
    Ok(Json(with_files(&http.engine, &slot).await?).into_response())
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

pub(super) fn slot_id(text: &str) -> Result<SlotId, Problem> {
    text.parse().map_err(|_| engine::Refusal::NotFound.into())
}
