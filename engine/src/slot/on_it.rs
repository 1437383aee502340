//! "I'm on it": a claim on a question, shown to others, over by itself. Nobody is kept from answering by it.

use chrono::Duration;

use super::{Slot, Standing, Taken, close, reassign::said_of};
use crate::{Actor, Refusal, Tx, actor::PersonActor, audit, ids::SlotId};

/// How long "I'm on it" holds.
pub const HOLDS: Duration = Duration::minutes(30);

/// Says that the person is on it, for [`HOLDS`]; said again, it holds longer.
///
/// Refuses with `not_found`, `not_yours`, `taken` when somebody else is, or how the slot ended.
pub async fn take(tx: &mut Tx, actor: &Actor, id: SlotId) -> Result<Taken, Refusal> {
    let (slot, person) = mine(tx, actor, id).await?;
    let now = tx.now();
    if let Some(taken) = slot.taken_at(now)
        && taken.id != person.id
    {
        return Err(Refusal::TakenBySomebody { by: taken.name.clone(), until: taken.until });
    }
    let until = now + HOLDS;
    set(tx, &slot, Some((person, until))).await?;
    said_of(tx, &slot, "taken", &format!("{} is on it.", person.name)).await?;
    audit::write(tx, &actor.key(), "slot.taken", &format!("slot:{id}"), None).await?;
    Ok(Taken { id: person.id, name: person.name.clone(), until })
}

/// Gives the question back before the time is over. Refuses as [`take`].
pub async fn let_go(tx: &mut Tx, actor: &Actor, id: SlotId) -> Result<(), Refusal> {
    let (slot, person) = mine(tx, actor, id).await?;
    let now = tx.now();
    match slot.taken_at(now) {
        Some(taken) if taken.id != person.id => {
            Err(Refusal::TakenBySomebody { by: taken.name.clone(), until: taken.until })
        }
        None => Ok(()),
        Some(_) => {
            set(tx, &slot, None).await?;
            said_of(tx, &slot, "let_go", &format!("{} is no longer on it.", person.name)).await?;
            audit::write(tx, &actor.key(), "slot.let_go", &format!("slot:{id}"), None).await?;
            Ok(())
        }
    }
}

/// The locked slot, when the person may answer it.
async fn mine<'a>(tx: &mut Tx, actor: &'a Actor, id: SlotId) -> Result<(Slot, &'a PersonActor), Refusal> {
    let slot = super::lock(tx, id).await?.ok_or(Refusal::NotFound)?;
    let Actor::Person(person) = actor else { return Err(Refusal::NotFound) };
    match slot.standing(person) {
        Standing::Hidden => return Err(Refusal::NotFound),
        _ if slot.closed_refusal().is_some() => {}
        Standing::MayOnlySee(sentence) => return Err(Refusal::NotYours(sentence)),
        Standing::Asked | Standing::OnBehalf => {}
    }
    match slot.closed_refusal() {
        Some(refusal) => Err(refusal),
        None => Ok((slot, person)),
    }
}

async fn set(
    tx: &mut Tx,
    slot: &Slot,
    taken: Option<(&PersonActor, chrono::DateTime<chrono::Utc>)>,
) -> Result<(), Refusal> {
    let changed = sqlx::query!(
        "update slot set taken_by = $2, taken_until = $3 where id = $1 and status = 'waiting'",
        slot.id.0,
        taken.map(|(person, _)| person.id.0),
        taken.map(|(_, until)| until),
    )
    .execute(tx.conn())
    .await?;
    if changed.rows_affected() != 1 {
        return Err(Refusal::fault("a locked slot was not waiting"));
    }
    close::announce(tx, slot);
    Ok(())
}
