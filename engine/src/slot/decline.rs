//! Declining: whoever was asked says that they will not answer. Others who were asked go on waiting; when nobody is left,
//! the question goes up the ladder.

use super::{
    Slot, Standing,
    asked::{self, Asked},
    cancel::checked_reason,
    ladder,
    reassign::{Handover, hand_to},
};
use crate::{
    Actor, Refusal, Tx,
    ids::{PersonId, SlotId},
};

/// Takes the person out of those who are asked, with a reason.
///
/// Refuses with `not_found`, `not_yours`, `invalid` (pointer /reason), `forbidden` when nobody would be left, or how the
/// slot ended.
pub async fn decline(tx: &mut Tx, actor: &Actor, id: SlotId, reason: &str) -> Result<(), Refusal> {
    let slot = super::lock(tx, id).await?.ok_or(Refusal::NotFound)?;
    let Actor::Person(person) = actor else { return Err(Refusal::NotFound) };
    if slot.standing(person) == Standing::Hidden {
        return Err(Refusal::NotFound);
    }
    if let Some(refusal) = slot.closed_refusal() {
        return Err(refusal);
    }
    if slot.standing(person) != Standing::Asked {
        return Err(Refusal::NotYours(format!(
            "This question is for {}: there is nothing to decline.",
            slot.asked_words()
        )));
    }
    let reason = checked_reason(reason)?;
    let mut declined = slot.declined.clone();
    declined.push(person.id);
    let (asked, rung) = left(tx, &slot, &person.email, &declined).await?;
    let said = match asked.keys == slot.candidates {
        true => format!("{} declined: {reason}", person.name),
        false => format!("{} declined: {reason} The question is now with {}.", person.name, asked.words),
    };
    let key = actor.key();
    // With the same parties as before, what was wrong with them still is.
    let alarm = slot.alarm.as_deref().filter(|_| asked.keys == slot.candidates);
    let handover =
        Handover { alarm, rung, declined: &declined, actor: &key, ..Handover::new(&slot, "declined", &said) };
    hand_to(tx, &slot, asked, handover).await
}

/// Who is asked when those of `declined` are not: the others, else the next rung that has somebody.
async fn left(tx: &mut Tx, slot: &Slot, email: &str, declined: &[PersonId]) -> Result<(Asked, i16), Refusal> {
    let without = super::spent(declined, &slot.votes);
    let names: Vec<String> = slot.asked.iter().filter(|name| *name != email).cloned().collect();
    let others = asked::named(tx, &names).await?;
    if ladder::is_enough(tx, slot, &others, &without).await? {
        return Ok((others, slot.rung));
    }
    ladder::from(tx, slot, slot.rung + 1, &without).await?.ok_or_else(|| {
        Refusal::Forbidden(
            "Nobody would be left who can answer. Hand it to somebody, or have the work stopped.".to_owned(),
        )
    })
}
