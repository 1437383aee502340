//! A slot as `api.md` writes it.

use chrono::{DateTime, SecondsFormat, Utc};
use engine::{
    Engine, Refusal,
    file::{self, File},
    ids::SlotId,
    slot::{Kind, Slot, Status},
};
use serde_json::{Value, json};

pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The slot with its files, read for this one.
pub(super) async fn with_files(engine: &Engine, slot: &Slot) -> Result<Value, Refusal> {
    Ok(with(slot, &file::of_slots(engine, &[slot.id]).await?))
}

/// The slot with those of `files` that are its own.
pub(super) fn with(slot: &Slot, files: &[(SlotId, File)]) -> Value {
    let own = files.iter().filter(|(id, _)| *id == slot.id).map(|(_, file)| file);
    let (attached, handed_in): (Vec<&File>, Vec<&File>) = own.partition(|file| file.from_asker);
    let list = |files: Vec<&File>| files.into_iter().map(one_file).collect::<Vec<_>>();
    let mut shown = shown(slot);
    shown["attachments"] = json!(list(attached));
    if !handed_in.is_empty() {
        shown["answer"]["files"] = json!(list(handed_in));
    }
    shown
}

pub(super) fn one_file(file: &File) -> Value {
    json!({ "id": file.id, "name": file.name, "media_type": file.media_type, "size": file.size })
}

/// The slot without its files.
pub(super) fn shown(slot: &Slot) -> Value {
    let answer = match slot.status {
        Status::Answered if slot.secret => json!({ "value": null, "secret": true }),
        Status::Answered => json!({
            "value": slot.answer,
            "note": slot.note,
            // Of a rejection nothing runs.
            "arguments": slot.arguments().filter(|_| slot.kind == Kind::Approval && slot.is_approved()),
            "edited": slot.edited.is_some() && slot.is_approved(),
        }),
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
    let action = slot.action.as_ref().map(|action| {
        json!({ "tool": action.tool, "arguments": slot.arguments(), "editable": action.editable, "schema": action.schema })
    });
    let votes: Vec<Value> =
        slot.votes.iter().map(|vote| json!({ "by": vote.email, "at": time(vote.at), "note": vote.note })).collect();
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
        "action": action,
        "digest": slot.digest,
        "revision": slot.revision,
        "asked": slot.asked,
        "needs": slot.needs,
        "votes": votes,
        "priority": slot.priority.as_str(),
        "status": slot.status,
        "opened_at": time(slot.opened_at),
        "target_at": slot.target_at.map(time),
        "due_at": slot.due_at.map(time),
        "expires_at": slot.expires_at.map(time),
        "on_expiry": slot.on_expiry,
        "alarm": slot.alarm,
        "answer": answer,
        "outcome": outcome,
    })
}
