//! Expiry: the system's act, never a person's "no" (design section 4). A timer brings it about ([`crate::timer`]).

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    Kind, OnExpiry, Slot, Status, asked, close,
    close::Ending,
    reassign::{Handover, hand_to},
};
use crate::{Refusal, Tx, duration, ids::SlotId, task};

/// Expires one slot if it still waits: compare-and-set, so against a deposit exactly one of the two wins.
pub(crate) async fn expire(tx: &mut Tx, id: SlotId) -> Result<bool, Refusal> {
    // Locked, so that nothing changes between looking and closing: the timer is used up by this.
    let Some(slot) = super::lock(tx, id).await?.filter(|slot| slot.status == Status::Waiting) else { return Ok(false) };
    // Its clock may have been moved since it was found.
    if slot.expires_at.is_none_or(|at| at > tx.now()) {
        return Ok(false);
    }
    let since = slot.wait_seconds.map(chrono::Duration::seconds);
    let after = duration::words(since.unwrap_or(slot.expires_at.unwrap_or(slot.opened_at) - slot.opened_at));
    let said = format!("Nobody answered within {after}.");
    if slot.on_expiry == OnExpiry::Escalate && slot.rung < 2 {
        return escalate(tx, &slot, &said).await;
    }
    let default = match slot.on_expiry {
        OnExpiry::Default => slot.default_value.clone(),
        _ => None,
    };
    let result = match &default {
        Some(value) => json!({ "answer": value, "defaulted": true, "said": format!("{said} This is the default.") }),
        None => json!({ "expired": true, "said": said }),
    };
    let ending = Ending { answer: default.as_ref(), result: Some(result), said: &said, ..Ending::new(Status::Expired) };
    let closed = close::close(tx, &slot, ending).await?;
    if closed && slot.on_expiry == OnExpiry::Fail {
        fail_task(tx, &slot, &after).await?;
    }
    Ok(closed)
}

/// Hands a slot that nobody answered to the next rung, with a new deadline. Answers false: nothing has ended.
async fn escalate(tx: &mut Tx, slot: &Slot, said: &str) -> Result<bool, Refusal> {
    let now = tx.now();
    let expires_at = slot.wait_seconds.map(|seconds| now + chrono::Duration::seconds(seconds));
    to_next_rung(tx, slot, slot.rung >= 1, expires_at, said).await?;
    Ok(false)
}

/// Hands a locked slot that is late to the sponsor, or to the managers. Its deadline stays.
pub(crate) async fn late(tx: &mut Tx, slot: &Slot, managers: bool) -> Result<(), Refusal> {
    let rung = if managers { 2 } else { 1 };
    match slot.rung < rung && slot.status == Status::Waiting {
        true => to_next_rung(tx, slot, managers, slot.expires_at, "The due date passed without an answer.").await,
        false => Ok(()),
    }
}

async fn to_next_rung(
    tx: &mut Tx,
    slot: &Slot,
    managers: bool,
    expires_at: Option<DateTime<Utc>>,
    said: &str,
) -> Result<(), Refusal> {
    let except = slot.for_id.filter(|_| slot.kind == Kind::Approval);
    let (asked, rung) = match managers {
        // The sponsor who was asked in the first place has let it pass.
        false => asked::rung(tx, slot.agent_id, except, &slot.assignee_id.into_iter().collect::<Vec<_>>()).await?,
        true => (asked::named(tx, &["role:manager".to_owned()]).await?, 2),
    };
    let said = format!("{said} The question went to {}.", asked.words);
    let handover = Handover {
        rung,
        expires_at,
        declined: &slot.declined,
        alarm: None,
        line: "escalated",
        said: &said,
        actor: "system",
    };
    hand_to(tx, slot, asked, handover).await
}

async fn fail_task(tx: &mut Tx, slot: &Slot, after: &str) -> Result<(), Refusal> {
    let problem = match slot.claim_id {
        Some(_) => format!("The review could not be completed: nobody answered within {after}."),
        None => format!("The work could not be completed: nobody answered within {after}."),
    };
    task::stop::end(
        tx,
        slot.task_id,
        task::stop::Ending {
            status: task::Status::Failed,
            result: None,
            problem: Some(&problem),
            said: &problem,
            slots: "the work failed.",
            actor: "system",
            epoch: None,
        },
    )
    .await?;
    Ok(())
}
