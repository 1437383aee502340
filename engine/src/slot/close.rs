//! The one closing step. Answering, cancelling and expiring all end here; nothing else closes a slot (design section 1).

use serde_json::{Map, Value, json};
use sqlx::types::Json;

use super::{Slot, Status, deposit::Behalf, list};
use crate::{
    Refusal, Tx,
    actor::PersonActor,
    ids::{PersonId, TaskId},
    seal::Sealed,
    settings,
    wake::Topic,
};

/// How a slot ends.
pub(crate) struct Ending<'a> {
    pub status: Status,
    /// The revision that the answerer saw; a slot that changed since is left alone.
    pub revision: Option<i32>,
    pub answer: Option<&'a Value>,
    /// The answer of a secret slot, sealed.
    pub sealed: Option<&'a Sealed>,
    /// What an approval leaves: the votes it was decided by, and the arguments when they were edited.
    pub approved: Option<Approved<'a>>,
    pub note: Option<&'a str>,
    /// Who answered, and for whom. Their authority is decided again by the statement that writes.
    pub answered_by: Option<PersonId>,
    pub on_behalf_of: Option<PersonId>,
    pub reason: Option<&'a str>,
    /// What the agent gets as the result of the call that asked; None when the loop goes on to run what was approved.
    pub result: Option<Value>,
    /// The line of the record.
    pub said: &'a str,
    /// The audit's key of who did it.
    pub actor: String,
}

pub(crate) struct Approved<'a> {
    /// How many votes there were when it was read: another since, and this is decided anew.
    pub votes_seen: usize,
    pub votes: Value,
    pub arguments: Option<(&'a Map<String, Value>, &'a str)>,
}

impl<'a> Ending<'a> {
    /// A person's answer to the slot as they saw it.
    pub(super) fn by(person: &PersonActor, behalf: Option<&Behalf>, slot: &Slot, note: Option<&'a str>) -> Self {
        Self {
            revision: Some(slot.revision),
            note,
            answered_by: Some(person.id),
            on_behalf_of: behalf.and_then(|behalf| behalf.of),
            actor: format!("person:{}", person.id),
            ..Self::new(Status::Answered)
        }
    }

    /// An end without an answer.
    pub(crate) fn new(status: Status) -> Self {
        Self {
            status,
            revision: None,
            answer: None,
            sealed: None,
            approved: None,
            note: None,
            answered_by: None,
            on_behalf_of: None,
            reason: None,
            result: None,
            said: "",
            actor: "system".to_owned(),
        }
    }
}

/// Closes `slot` and makes its task ready when no other slot of it is open: one statement, so all of it or nothing.
/// Answers false when it was no longer as it was read: not waiting, another revision, handed on, or the answerer without
/// the right. Whoever calls reads again.
pub(crate) async fn close(tx: &mut Tx, slot: &Slot, ending: Ending<'_>) -> Result<bool, Refusal> {
    let now = tx.now();
    let settings = settings::within(tx).await?;
    // The other clock: how much of the wait was business time.
    let business = settings.calendar(slot.assignee_id).between(slot.opened_at, now).num_seconds();
    let (arguments, digest) = ending.approved.as_ref().and_then(|approved| approved.arguments).unzip();
    let kind = ending.status.as_str();
    let closed = sqlx::query!(
        r#"
        -- Everything that changes a task and its slots takes the task's row first: no deadlocks, and the counters of
        -- the row decide which of two closings was the last. Rows are named by the parameters, not by joins: with joins
        -- Postgres sometimes kept a plan that read whole tables.
        with locked as (
            select id from task where id = $2 for update
        ), closed as (
            update slot s
            set status = $3, answer = $4, note = $5, answered_by = $6, on_behalf_of = $7, reason = $8, closed_at = $9,
                votes = coalesce($14, s.votes), arguments = coalesce($15, s.arguments),
                waited_business = $22, digest = coalesce($16, s.digest), edited_by = case when $15 is null then s.edited_by else $6 end
            from locked
            where s.id = $1 and s.task_id = $2 and s.status = 'waiting'
              and ($10::int is null or s.revision = $10)
              -- Handed on since it was read: whose inboxes to clear has changed, and this snapshot does not see it.
              and s.handed = $21
              -- Who may answer is decided from the state of this moment, not of when the page was loaded.
              and ($6::uuid is null or exists (
                  select 1 from acting_person p
                  where p.id = $6
                    and p.keys && case s.kind when 'human' then array['role:manager', 'role:admin']
                                  else s.candidates || 'role:manager'::text end
                    -- Nobody decides what is for themselves.
                    and p.id is distinct from $17
                    and (s.kind = 'human' or p.id <> all(s.declined) or 'role:manager' = any(p.keys))
              ))
              and ($18::int is null or jsonb_array_length(s.votes) = $18)
            returning s.id, s.task_id, s.call_id
        ), withdrawn as (
            delete from slot_candidate c using closed where c.slot_id = $1
        ), dropped as (
            -- One that somebody is firing at this moment is left: it will find the slot closed. Waiting for it here, with the
            -- task's row held, would be a deadlock.
            delete from timer where id in (
                select timer.id from timer, closed where $23 and timer.slot_id = $1 for update of timer skip locked)
        ), moved as (
            update task t
            set waited = t.waited + case when t.open_slots = 1 then coalesce($9 - t.waiting_since, '0') else '0' end,
                waiting_since = case when t.open_slots = 1 then null else t.waiting_since end, open_slots = t.open_slots - 1,
                status = case when t.open_slots = 1 then 'working' else t.status end,
                -- Only our own loop asks within a call; an outside agent goes on by itself.
                ready_at = case when t.open_slots = 1 and closed.call_id <> '' then $9 end,
                turns = t.turns + case when closed.call_id = '' or $11::jsonb is null then 0 else 1 end,
                updated_at = $9
            from closed
            -- A task that was stopped stays as it ended.
            where t.id = $2 and t.status = 'waiting'
            returning t.id, t.turns, t.ready_at
        ), result as (
            insert into turn (task_id, seq, kind, call_id, body, created_at)
            select moved.id, moved.turns,
                   -- Words that no call of the model asked for are advice before the next turn, not a result.
                   case when closed.call_id like '%:%' then 'advice' else 'result' end,
                   closed.call_id, $11, $9
            from closed, moved where closed.call_id <> '' and $11::jsonb is not null
        ), sealed as (
            insert into sealed_secret (slot_id, key_id, sealed) select id, $19, $20 from closed where $20::bytea is not null
        ), line as (
            insert into record_line (task_id, slot_id, at, kind, text) select task_id, id, $9, $3, $12 from closed
        ), audited as (
            insert into audit (at, actor, action, object) select $9, $13, 'slot.' || $3, 'slot:' || id from closed
        ), event as (
            insert into outbox (at, type, task_id, slot_id) select $9, 'slot.' || $3, task_id, id from closed
        )
        select (moved.ready_at is not null) as "ready?" from closed left join moved on true
        "#,
        slot.id.0,
        slot.task_id.0,
        kind,
        ending.answer,
        ending.note,
        ending.answered_by.map(|id| id.0),
        ending.on_behalf_of.map(|id| id.0),
        ending.reason,
        now,
        ending.revision,
        ending.result,
        ending.said,
        ending.actor,
        ending.approved.as_ref().map(|approved| &approved.votes),
        arguments.map(Json) as _,
        digest,
        slot.barred().map(|id| id.0),
        ending.approved.as_ref().map(|approved| approved.votes_seen as i32),
        ending.sealed.map(|sealed| sealed.key_id.as_str()),
        ending.sealed.map(|sealed| sealed.bytes.as_slice()),
        slot.handed,
        business,
        slot.has_timers(),
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(closed) = closed else { return Ok(false) };
    if closed.ready == Some(true) {
        tx.wake(Topic::Work);
    }
    announce(tx, slot);
    Ok(true)
}

/// Wakes whoever looks at the slot or at what it belongs to.
pub(super) fn announce(tx: &mut Tx, slot: &Slot) {
    tx.wake(Topic::Slot(slot.id));
    tx.wake(Topic::Task(slot.task_id));
    tx.wake(Topic::AnyTask);
    if let Some(claim) = slot.claim_id {
        tx.wake(Topic::Claim(claim));
    }
    for key in &slot.candidates {
        tx.wake(Topic::Inbox(key.clone()));
    }
}

/// Cancels every slot of a task that just ended, in its transaction.
pub(crate) async fn close_all(tx: &mut Tx, task: TaskId, reason: &str, actor: &str) -> Result<(), Refusal> {
    for slot in list::waiting_of(tx.conn(), task).await? {
        let ending = Ending {
            reason: Some(reason),
            result: Some(json!({ "cancelled": true, "said": reason })),
            said: &format!("The question was withdrawn: {reason}"),
            actor: actor.to_owned(),
            ..Ending::new(Status::Cancelled)
        };
        close(tx, &slot, ending).await?;
    }
    Ok(())
}
