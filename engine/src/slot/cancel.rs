//! Withdrawing a question.

use serde_json::json;

use super::{Status, close, close::Ending};
use crate::{Actor, Refusal, Tx, ids::SlotId};

/// Cancels a waiting slot: the asking agent, or whoever may stop the task.
///
/// Refuses with `not_found`, `not_yours`, `invalid` (pointer /reason) or how the slot ended.
pub async fn cancel(tx: &mut Tx, actor: &Actor, id: SlotId, reason: &str) -> Result<(), Refusal> {
    let slot = super::lock(tx, id).await?.ok_or(Refusal::NotFound)?;
    let (name, may) = match actor {
        Actor::Agent(agent) if agent.id == slot.agent_id => (&agent.name, true),
        Actor::Agent(_) => return Err(Refusal::NotFound),
        Actor::Person(person) if slot.standing(person) == super::Standing::Hidden => return Err(Refusal::NotFound),
        Actor::Person(person) => {
            (&person.name, (person.sees_all() && person.has_scope("manage")) || slot.for_id == Some(person.id))
        }
    };
    if !may {
        return Err(Refusal::NotYours(
            "Only a manager, or the person the work is for, can withdraw this question.".to_owned(),
        ));
    }
    let reason = checked_reason(reason)?;
    if let Some(refusal) = slot.closed_refusal() {
        return Err(refusal);
    }
    let said = format!("{name} withdrew the question: {reason}");
    let ending = Ending {
        reason: Some(&reason),
        result: Some(json!({ "cancelled": true, "said": said })),
        said: &said,
        actor: actor.key(),
        ..Ending::new(Status::Cancelled)
    };
    match close::close(tx, &slot, ending).await? {
        true => Ok(()),
        false => Err(Refusal::fault("a locked slot could not be closed")),
    }
}

/// A reason that people will read: not empty, at most 1,000 characters.
pub(crate) fn checked_reason(reason: &str) -> Result<String, Refusal> {
    let reason = reason.trim();
    match reason.chars().count() {
        0 => Err(Refusal::invalid("/reason", "Say why, in a few words: whoever waits for this will read it.")),
        1..=1_000 => Ok(reason.to_owned()),
        _ => Err(Refusal::invalid("/reason", "A reason has at most 1,000 characters.")),
    }
}
