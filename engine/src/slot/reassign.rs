//! Handing a question to somebody else.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    Kind, Slot, Standing,
    asked::{self, Asked},
    cancel::checked_reason,
    close, ladder,
};
use crate::{
    Actor, Refusal, Tx, audit,
    ids::{Id, PersonId, SlotId},
    policy::clocks::Timer,
    timer,
    wake::Topic,
};

/// How a slot's parties change.
pub(super) struct Handover<'a> {
    pub rung: i16,
    pub expires_at: Option<DateTime<Utc>>,
    pub declined: &'a [PersonId],
    pub alarm: Option<&'a str>,
    /// The kind of the record's line, and of the audit: reassigned, declined, escalated, alarm.
    pub line: &'a str,
    pub said: &'a str,
    /// The audit's key of who did it.
    pub actor: &'a str,
}

impl<'a> Handover<'a> {
    /// By the system; rung, deadline and who declined as they are.
    pub(super) fn new(slot: &'a Slot, line: &'a str, said: &'a str) -> Self {
        let (rung, expires_at) = (slot.rung, slot.expires_at);
        Self { rung, expires_at, declined: &slot.declined, alarm: None, line, said, actor: "system" }
    }
}

/// Hands a waiting slot to `to` (an e-mail address, "group:<name>" or "role:<role>"), with a reason: whoever was asked, or
/// a manager. What is asked stays the same, so the revision does too; who may answer is decided at the deposit.
///
/// Refuses with `not_found`, `not_yours`, `invalid` (pointers /to, /reason) or how the slot ended.
pub async fn reassign(tx: &mut Tx, actor: &Actor, id: SlotId, to: &str, reason: &str) -> Result<(), Refusal> {
    let slot = super::lock(tx, id).await?.ok_or(Refusal::NotFound)?;
    let person = match actor {
        Actor::Person(person) => person,
        Actor::Agent(agent) if agent.id == slot.agent_id => {
            return Err(Refusal::NotYours("An agent asks whom it asks; only a person hands a question on.".to_owned()));
        }
        Actor::Agent(_) => return Err(Refusal::NotFound),
    };
    if slot.standing(person) == Standing::Hidden {
        return Err(Refusal::NotFound);
    }
    if let Some(refusal) = slot.closed_refusal() {
        return Err(refusal);
    }
    if !slot.may_be_handed_over_by(person) {
        return Err(Refusal::NotYours(format!(
            "This question is for {}: only they or a manager can hand it on.",
            slot.asked_words()
        )));
    }
    let to = to.trim();
    if to.is_empty() {
        return Err(Refusal::invalid("/to", "Say who is to answer: an e-mail address, group:<name> or role:manager."));
    }
    let reason = checked_reason(reason)?;
    let asked = asked::named(tx, &[to.to_owned()]).await.map_err(|refusal| match refusal {
        Refusal::Invalid(errors) => Refusal::invalid("/to", errors[0].detail.clone()),
        other => other,
    })?;
    if asked.keys == slot.candidates {
        return Err(Refusal::invalid("/to", format!("This question is with {} already.", asked.words)));
    }
    // Handing it to somebody who declined is a new request to them.
    let declined: Vec<PersonId> = slot.declined.iter().copied().filter(|id| asked.assignee != Some(*id)).collect();
    let without = super::spent(&declined, &slot.votes);
    if !ladder::is_enough(tx, &slot, &asked, &without).await? {
        let why = match (slot.kind, slot.still_needs()) {
            (Kind::Human, _) => "taking work over is for managers and administrators".to_owned(),
            (Kind::Approval, 1) => "nobody there may approve it".to_owned(),
            (Kind::Approval, more) => format!("it needs {more} who may approve it"),
            _ => "nobody there can answer".to_owned(),
        };
        return Err(Refusal::invalid("/to", format!("{} cannot take this: {why}.", asked.words)));
    }
    let said = format!("{} handed the question to {}: {reason}", person.name, asked.words);
    let key = actor.key();
    let handover = Handover { declined: &declined, actor: &key, ..Handover::new(&slot, "reassigned", &said) };
    hand_to(tx, &slot, asked, handover).await
}

/// Changes whom a waiting, locked slot asks, with its lines and everybody's inbox. Needs the transaction of
/// [`super::lock`].
pub(super) async fn hand_to(tx: &mut Tx, slot: &Slot, asked: Asked, to: Handover<'_>) -> Result<(), Refusal> {
    let now = tx.now();
    let waiting_on = format!("{} {}", slot.kind.waits_for(), asked.words);
    let declined: Vec<_> = to.declined.iter().map(|id| id.uuid()).collect();
    let hidden_from: Vec<_> = super::spent(to.declined, &slot.votes).iter().map(|id| id.uuid()).collect();
    let changed = sqlx::query!(
        "update slot set asked = $2, candidates = $3, assignee_id = $4, waiting_on = $5, rung = $6, expires_at = $7,
                         declined = $8, alarm = $9, handed = handed + 1, taken_by = null, taken_until = null
         where id = $1 and status = 'waiting'",
        slot.id.0,
        &asked.names,
        &asked.keys,
        asked.assignee.map(|id| id.0),
        waiting_on,
        to.rung,
        to.expires_at,
        &declined,
        to.alarm,
    )
    .execute(tx.conn())
    .await?;
    if changed.rows_affected() != 1 {
        return Err(Refusal::fault("a locked slot was not waiting"));
    }
    sqlx::query!("delete from slot_candidate where slot_id = $1", slot.id.0).execute(tx.conn()).await?;
    sqlx::query!(
        "insert into slot_candidate (slot_id, candidate, priority, due_at, opened_at, hidden_from)
         select $1, key, $3, coalesce($4, 'infinity'::timestamptz), $5, $6 from unnest($2::text[]) key",
        slot.id.0,
        &asked.keys,
        slot.priority as i16,
        slot.due_at,
        slot.opened_at,
        &hidden_from,
    )
    .execute(tx.conn())
    .await?;
    said_of(tx, slot, to.line, to.said).await?;
    let detail = json!({ "from": slot.asked, "to": asked.names });
    audit::write(tx, to.actor, &format!("slot.{}", to.line), &format!("slot:{}", slot.id), Some(detail)).await?;
    sqlx::query!(
        "insert into outbox (at, type, task_id, slot_id) values ($1, 'slot.reassigned', $2, $3)",
        now,
        slot.task_id.0,
        slot.id.0
    )
    .execute(tx.conn())
    .await?;
    close::announce(tx, slot);
    for key in asked.keys {
        tx.wake(Topic::Inbox(key));
    }
    if to.expires_at != slot.expires_at {
        timer::drop_of(tx, slot.id, &[Timer::Expire]).await?;
        if let Some(at) = to.expires_at {
            timer::set(tx, slot.id, &[(Timer::Expire, at)], false).await?;
        }
    }
    Ok(())
}

/// A line of the record that belongs to a slot's history.
pub(super) async fn said_of(tx: &mut Tx, slot: &Slot, kind: &str, said: &str) -> Result<(), Refusal> {
    let now = tx.now();
    sqlx::query!(
        "insert into record_line (task_id, slot_id, at, kind, text) values ($1, $2, $3, $4, $5)",
        slot.task_id.0,
        slot.id.0,
        now,
        kind,
        said
    )
    .execute(tx.conn())
    .await?;
    Ok(())
}
