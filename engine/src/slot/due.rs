//! Moving a due date: with a reason, recorded, and what is pending follows (design section 7).

use chrono::{DateTime, Duration, Utc};
use serde_json::json;

use super::{Standing, close, reassign::said_of};
use crate::{
    Actor, Refusal, Tx, audit,
    ids::SlotId,
    policy::{self, clocks, clocks::Timer},
    settings,
    slot::cancel::checked_reason,
    timer,
};

/// What is moved, and to when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moved {
    Due(DateTime<Utc>),
    Expires(DateTime<Utc>),
}

/// Moves when an answer is due, or when the question expires: a manager, or the asking agent for its own slot.
///
/// Refuses with `not_found`, `not_yours`, `invalid` (pointers /due_at, /expires_at, /reason) or how the slot ended.
pub async fn move_due(tx: &mut Tx, actor: &Actor, id: SlotId, to: Moved, reason: &str) -> Result<(), Refusal> {
    let slot = super::lock(tx, id).await?.ok_or(Refusal::NotFound)?;
    let name = match actor {
        Actor::Agent(agent) if agent.id == slot.agent_id => &agent.name,
        Actor::Agent(_) => return Err(Refusal::NotFound),
        Actor::Person(person) if slot.standing(person) == Standing::Hidden => return Err(Refusal::NotFound),
        Actor::Person(person) if person.is_manager() => &person.name,
        Actor::Person(_) => {
            return Err(Refusal::NotYours("Only a manager, or the agent that asked, moves a due date.".to_owned()));
        }
    };
    if let Some(refusal) = slot.closed_refusal() {
        return Err(refusal);
    }
    let reason = checked_reason(reason)?;
    let now = tx.now();
    let (pointer, at) = match to {
        Moved::Due(at) => ("/due_at", at),
        Moved::Expires(at) => ("/expires_at", at),
    };
    if at <= now || at > now + Duration::days(3_650) {
        return Err(Refusal::invalid(pointer, "Choose a time that is still to come, within ten years."));
    }
    let before = match to {
        Moved::Due(_) => slot.due_at,
        Moved::Expires(_) => slot.expires_at,
    };
    let said = format!(
        "{name} moved {} to {}: {reason}",
        if pointer == "/due_at" { "the due date" } else { "the time it expires" },
        at.format("%-d %B %Y, %H:%M UTC")
    );
    match to {
        Moved::Expires(at) => {
            sqlx::query!("update slot set expires_at = $2 where id = $1", id.0, at).execute(tx.conn()).await?;
            timer::drop_of(tx, id, &[Timer::Expire]).await?;
            timer::set(tx, id, &[(Timer::Expire, at)], false).await?;
        }
        Moved::Due(at) => {
            let settings = settings::within(tx).await?;
            let policy = policy::deciding(&settings.policies, slot.agent_id, slot.kind, slot.priority);
            let calendar = settings.calendar(slot.assignee_id);
            let percent = policy.map_or(75, |policy| policy.at_risk_percent);
            let whole = if slot.business { calendar.between(slot.opened_at, at) } else { at - slot.opened_at };
            let part = Duration::seconds(whole.num_seconds() * i64::from(percent) / 100);
            // A warning that would have been due before now would warn of nothing new.
            let at_risk =
                clocks::after(calendar, slot.business, slot.opened_at, part).filter(|risk| *risk > now && *risk < at);
            sqlx::query!(
                "update slot set due_at = $2, at_risk_at = $3, warned_at = null, breached_at = null where id = $1",
                id.0,
                at,
                at_risk
            )
            .execute(tx.conn())
            .await?;
            sqlx::query!("update slot_candidate set due_at = $2 where slot_id = $1", id.0, at)
                .execute(tx.conn())
                .await?;
            timer::drop_of(tx, id, &[Timer::AtRisk, Timer::Breach, Timer::Managers]).await?;
            let mut timers = vec![(Timer::Breach, at)];
            timers.extend(at_risk.map(|risk| (Timer::AtRisk, risk)));
            timer::set(tx, id, &timers, slot.reassigns_late).await?;
        }
    }
    said_of(tx, &slot, "due_moved", &said).await?;
    let detail = json!({ "what": pointer.trim_start_matches('/'), "from": before, "to": at, "reason": reason });
    audit::write(tx, &actor.key(), "slot.due_moved", &format!("slot:{id}"), Some(detail)).await?;
    close::announce(tx, &slot);
    Ok(())
}
