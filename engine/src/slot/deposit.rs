//! The one door: every answer, from a page, the API or anywhere else, comes in here (design section 4).

use serde_json::{Value, json};

use super::{Revision, Slot, Standing, Status, answer, close, close::Ending, list};
use crate::{Actor, Refusal, Tx, actor::PersonActor, duration, fault, ids::SlotId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deposited {
    pub on_behalf: bool,
}

/// Hands `value` to the slot: authority, still waiting, the revision the person saw, the answer fits; then closes the
/// slot and makes the work ready, in one statement.
///
/// Refuses with `not_found`, `not_yours`, `already_answered`, `expired`, `cancelled`, `stale` or `invalid_answer`, and
/// then has done nothing. `revision` None means "whatever is asked now" (allowed for questions only, by the callers).
pub async fn deposit(
    tx: &mut Tx,
    actor: &Actor,
    id: SlotId,
    revision: Option<Revision>,
    value: Value,
    note: Option<String>,
) -> Result<Deposited, Refusal> {
    let slot = list::lean(tx.conn(), id).await?.ok_or(Refusal::NotFound)?;
    let person = match actor {
        Actor::Person(person) => person,
        Actor::Agent(agent) if agent.id == slot.agent_id => {
            return Err(Refusal::NotYours("An agent can ask, read and cancel, but never answer.".to_owned()));
        }
        Actor::Agent(_) => return Err(Refusal::NotFound),
    };
    let on_behalf = may_answer(&slot, person)?;
    if slot.status != Status::Waiting {
        return Err(ended(tx, id, revision).await?);
    }
    if revision.is_some_and(|seen| seen != slot.revision) {
        return Err(Refusal::Stale { revision: slot.revision });
    }
    let value = answer::check(&slot, value).map_err(Refusal::InvalidAnswer)?;
    let note = note.filter(|note| !note.trim().is_empty());
    if note.as_ref().is_some_and(|note| note.chars().count() > 4_000) {
        return Err(Refusal::invalid("/note", "A note has at most 4,000 characters."));
    }

    let said = said(tx, &slot, person, on_behalf);
    fault::point("deposit.before_commit");
    let closed = close::close(
        tx,
        &slot,
        Ending {
            status: Status::Answered,
            revision: Some(slot.revision),
            answer: Some(&value),
            note: note.as_deref(),
            answered_by: Some(person.id),
            on_behalf_of: if on_behalf { slot.assignee_id } else { None },
            reason: None,
            result: json!({ "answer": value, "note": note, "said": said }),
            said: &said,
            actor: &actor.key(),
        },
    )
    .await?;
    fault::point("deposit.after_commit");
    if closed {
        return Ok(Deposited { on_behalf });
    }
    // Somebody was first, or something changed, between reading and writing.
    Err(ended(tx, id, revision).await?)
}

/// Why the slot, as it stands now, takes no answer: with who was first and when.
async fn ended(tx: &mut Tx, id: SlotId, revision: Option<Revision>) -> Result<Refusal, Refusal> {
    let slot = list::read(tx.conn(), id).await?.ok_or(Refusal::NotFound)?;
    Ok(match slot.closed_refusal() {
        Some(refusal) => refusal,
        None if revision.is_some_and(|seen| seen != slot.revision) => Refusal::Stale { revision: slot.revision },
        None => Refusal::NotYours("You may no longer answer this question.".to_owned()),
    })
}

/// Whether the answer is on somebody's behalf; or the refusal.
fn may_answer(slot: &Slot, person: &PersonActor) -> Result<bool, Refusal> {
    match slot.standing(person) {
        Standing::Asked => Ok(false),
        Standing::OnBehalf => Ok(true),
        Standing::MayOnlySee(sentence) => Err(Refusal::NotYours(sentence)),
        Standing::Hidden => Err(Refusal::NotFound),
    }
}

/// "Mia answered after 30 days."
fn said(tx: &Tx, slot: &Slot, person: &PersonActor, on_behalf: bool) -> String {
    let after = duration::words(slot.waited(tx.now()));
    match on_behalf {
        true => format!("{} answered on behalf of {} after {after}.", person.name, slot.asked_words()),
        false => format!("{} answered after {after}.", person.name),
    }
}
