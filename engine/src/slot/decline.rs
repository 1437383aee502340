//! Declining: whoever was asked says that they will not answer. Others who were asked go on waiting; when nobody is left,
//! the question goes up the ladder.

use super::{
    Kind, Slot, Standing, alarm,
    asked::{self, Asked},
    cancel::checked_reason,
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
    let handover = Handover {
        rung,
        expires_at: slot.expires_at,
        declined: &declined,
        alarm: None,
        line: "declined",
        said: &said,
        actor: &actor.key(),
    };
    hand_to(tx, &slot, asked, handover).await
}

/// Who is asked when those of `declined` are not: the others, else the next rung that has somebody.
async fn left(tx: &mut Tx, slot: &Slot, email: &str, declined: &[PersonId]) -> Result<(Asked, i16), Refusal> {
    let without: Vec<_> = declined.iter().copied().chain(slot.votes.iter().map(|vote| vote.id)).collect();
    let except = slot.for_id.filter(|_| slot.kind == Kind::Approval);
    for step in slot.rung..=3 {
        let (asked, rung) = match step {
            step if step == slot.rung => {
                let names: Vec<String> = slot.asked.iter().filter(|name| *name != email).cloned().collect();
                (asked::named(tx, &names).await?, slot.rung)
            }
            1 => asked::rung(tx, slot.agent_id, except, &without).await?,
            _ => (asked::named(tx, &["role:manager".to_owned()]).await?, 2),
        };
        let reach = alarm::Reach {
            kind: slot.kind,
            keys: &asked.keys,
            for_id: slot.for_id,
            without: &without,
            needs: i64::from(slot.needs) - slot.votes.len() as i64,
        };
        if alarm::reachable(tx, &reach).await? >= reach.needs {
            return Ok((asked, rung));
        }
    }
    Err(Refusal::Forbidden(
        "Nobody would be left who can answer. Hand it to somebody, or have the work stopped.".to_owned(),
    ))
}
