//! Expiry: the system's act, never a person's "no" (design section 4). A timer brings it about ([`crate::timer`]).

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    OnExpiry, Slot, Status, close,
    close::Ending,
    ladder,
    reassign::{Handover, hand_to},
};
use crate::{Refusal, Tx, channel::Notice, duration, task};

/// Expires one locked slot if it still waits: compare-and-set, so against a deposit exactly one of the two wins.
pub(crate) async fn expire(tx: &mut Tx, slot: &Slot) -> Result<bool, Refusal> {
    // Its clock may have been moved since the timer was set.
    let Some(expired) = slot.expires_at.filter(|at| *at <= tx.now() && slot.status == Status::Waiting) else {
        return Ok(false);
    };
    // Up to the deadline that held in the end: it may have been moved.
    let after = duration::words(expired - slot.opened_at);
    let said = format!("Nobody answered within {after}.");
    // Whom nobody can follow, ends like any other.
    if slot.on_expiry == OnExpiry::Escalate {
        let expires_at = slot.wait_seconds.map(|seconds| tx.now() + chrono::Duration::seconds(seconds));
        if up(tx, slot, slot.rung + 1, expires_at, &said, &[]).await? {
            return Ok(false);
        }
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
    let closed = close::close(tx, slot, ending).await?;
    if closed && slot.on_expiry == OnExpiry::Fail {
        fail_task(tx, slot, &after).await?;
    }
    Ok(closed)
}

/// Hands a locked slot that is late to the sponsor, or to the managers; whoever is among `told` has heard of it. Its deadline
/// stays; so does the slot, when nobody there can answer.
pub(crate) async fn late(tx: &mut Tx, slot: &Slot, rung: i16, told: &[String]) -> Result<(), Refusal> {
    if slot.rung < rung && slot.status == Status::Waiting {
        up(tx, slot, rung, slot.expires_at, "The due date passed without an answer.", told).await?;
    }
    Ok(())
}

/// Hands a locked slot up the ladder, to `rung` or the next above on which somebody can answer. False: there is none.
async fn up(
    tx: &mut Tx,
    slot: &Slot,
    rung: i16,
    expires_at: Option<DateTime<Utc>>,
    said: &str,
    told: &[String],
) -> Result<bool, Refusal> {
    let Some((asked, rung)) = ladder::from(tx, slot, rung, &slot.spent()).await? else { return Ok(false) };
    let said = format!("{said} The question went to {}.", asked.words);
    let due_at = tx.now();
    let notice = |key: &String| Notice { key: key.clone(), slot: slot.id, kind: "escalated", due_at };
    let news: Vec<Notice> = asked.keys.iter().filter(|key| !told.contains(key)).map(notice).collect();
    let handover = Handover { rung, expires_at, ..Handover::new(slot, "escalated", &said) };
    hand_to(tx, slot, asked, handover).await?;
    tx.engine.channel.clone().deliver(tx, &news).await?;
    Ok(true)
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
