//! Reminders, warnings and breaches, many at a time: one transaction for a batch, a statement for each thing that is written.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use super::{BATCH, Claimed};
use crate::{
    Engine, Refusal, Tx,
    channel::Notice,
    duration, fault,
    ids::{Id, PersonId, SlotId, TaskId},
    policy::clocks::{self, Timer},
    settings::{Settings, settings},
    wake::Topic,
};

/// Up to so many timers at once, each question's own pages are refreshed too.
const FEW: usize = 50;
/// Reminders that an outage can have missed and that are stepped over one by one.
const MISSED: usize = 1_000;

/// What firing needs to know of a slot that still waits.
pub(super) struct Facts {
    pub slot: SlotId,
    pub task: TaskId,
    pub candidates: Vec<String>,
    /// Who has had their say: declined, or approved already.
    pub spent: Vec<String>,
    pub waiting_on: String,
    pub assignee: Option<PersonId>,
    pub sponsor: Option<PersonId>,
    pub sponsor_name: Option<String>,
    pub due_at: Option<DateTime<Utc>>,
    pub at_risk_at: Option<DateTime<Utc>>,
    pub breached_at: Option<DateTime<Utc>>,
    pub remind_business: bool,
    pub escalate_business: bool,
    pub remind_every: Option<i64>,
    pub remind_most: Option<i32>,
    pub escalate_after: Option<i64>,
}

impl Facts {
    /// Whom an answer is still waited for from.
    fn waited_for(&self) -> Vec<String> {
        self.candidates.iter().filter(|key| !self.spent.contains(key)).cloned().collect()
    }
}

/// What one timer comes to.
pub(super) struct Firing {
    pub slot: SlotId,
    pub task: TaskId,
    pub kind: Timer,
    pub due_at: DateTime<Utc>,
    pub line: &'static str,
    pub said: String,
    /// None for a step that is no event of its own.
    pub event: Option<&'static str>,
    pub tell: Vec<String>,
    /// The timer that follows: its kind, its time, the how-manieth.
    pub next: Option<(Timer, DateTime<Utc>, i32)>,
}

/// Claims and fires one batch. Answers how many timers it claimed, and how many took effect.
pub(super) async fn fire(engine: &Engine) -> Result<(usize, usize), Refusal> {
    let settings = settings(engine).await?;
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let mut claimed = sqlx::query_as!(
        Claimed,
        r#"
        with due as materialized (
            select id from timer where not failed and not alone and run_at <= $1
            order by run_at, id limit $2 for update skip locked
        )
        delete from timer using due where timer.id = due.id
        returning timer.id, slot_id as "slot_id: SlotId", kind as "kind: Timer", due_at, nth
        "#,
        now,
        BATCH
    )
    .fetch_all(tx.conn())
    .await?;
    if claimed.is_empty() {
        return Ok((0, 0));
    }
    // The record tells it in the order in which it fell due.
    claimed.sort_by_key(|timer| (timer.due_at, timer.id));
    let claimed: Vec<&Claimed> = claimed.iter().collect();
    match fire_all(&mut tx, &claimed, &settings).await {
        Ok(effective) => {
            fault::point("timers.before_commit");
            tx.commit().await?;
            fault::point("timers.after_commit");
            Ok((claimed.len(), effective))
        }
        Err(refusal) => {
            // Now, not some time later: they are to be tried one by one.
            tx.roll_back().await;
            Err(refusal)
        }
    }
}

async fn fire_all(tx: &mut Tx, claimed: &[&Claimed], settings: &Settings) -> Result<usize, Refusal> {
    let facts = facts(tx, claimed).await?;
    let firings = firings(claimed, &facts, settings, tx.now());
    write(tx, &firings).await?;
    Ok(firings.len())
}

/// The slots of these timers that still wait, in order of their ids. Their tasks are held first, in the order of everything
/// that changes a task and its slots, so none of them ends before the transaction does.
pub(super) async fn facts(tx: &mut Tx, timers: &[&Claimed]) -> Result<Vec<Facts>, Refusal> {
    let mut slots: Vec<_> = timers.iter().map(|timer| timer.slot_id.uuid()).collect();
    slots.sort_unstable();
    slots.dedup();
    sqlx::query!(
        "select id from task where id in (select task_id from slot where id = any($1)) order by id for key share",
        &slots
    )
    .fetch_all(tx.conn())
    .await?;
    Ok(sqlx::query_as!(
        Facts,
        r#"select s.id as "slot: SlotId", s.task_id as "task: TaskId", s.candidates, s.waiting_on,
                  array(select 'person:' || id from unnest(s.declined) id
                        union all select 'person:' || voter from jsonb_array_elements(s.votes) vote,
                                         unnest(array[vote ->> 'id', vote ->> 'covers']) voter where voter is not null) as "spent!",
                  s.assignee_id as "assignee: PersonId", p.id as "sponsor?: PersonId", p.name as "sponsor_name?",
                  s.due_at, s.at_risk_at, s.breached_at, s.remind_business, s.escalate_business,
                  s.remind_every, s.remind_most, s.escalate_after
           from slot s join agent a on a.id = s.agent_id
           left join person p on p.id = a.sponsor_id and p.disabled_at is null
           where s.id = any($1) and s.status = 'waiting'
           order by s.id"#,
        &slots
    )
    .fetch_all(tx.conn())
    .await?)
}

/// What these timers come to, without those that are out of date. `facts` are in order of their slots.
pub(super) fn firings(timers: &[&Claimed], facts: &[Facts], settings: &Settings, now: DateTime<Utc>) -> Vec<Firing> {
    let facts_of = |timer: &Claimed| facts.binary_search_by_key(&timer.slot_id, |facts| facts.slot).ok();
    timers.iter().filter_map(|timer| firing(timer, &facts[facts_of(timer)?], settings, now)).collect()
}

/// What a timer comes to; None when it is out of date.
fn firing(timer: &Claimed, facts: &Facts, settings: &Settings, now: DateTime<Utc>) -> Option<Firing> {
    let whom = facts.waiting_on.split_once(" from ").map_or(facts.waiting_on.as_str(), |(_, words)| words);
    let calendar = settings.calendar(facts.assignee);
    let later = |business: bool, seconds: i64, from: DateTime<Utc>| {
        clocks::after(calendar, business, from, chrono::Duration::seconds(seconds))
    };
    let (line, event, said, tell, next) = match timer.kind {
        Timer::Remind => {
            let most = facts.remind_most.unwrap_or(1);
            let said = format!("{whom} was reminded ({} of {most}).", timer.nth);
            // After an outage one reminder catches up for all that were missed.
            let next = facts.remind_every.filter(|_| timer.nth < most).and_then(|every| {
                let step = |from| later(facts.remind_business, every, from);
                let mut steps = std::iter::successors(step(timer.due_at), |at| step(*at)).take(MISSED);
                steps.find(|at| *at > now).or_else(|| step(now))
            });
            let next = next.map(|at| (Timer::Remind, at, timer.nth + 1));
            ("reminded", Some("slot.reminded"), said, facts.waited_for(), next)
        }
        Timer::AtRisk => {
            // Moved since: another timer is set for the new time.
            let due = facts.due_at.filter(|_| facts.at_risk_at == Some(timer.due_at))?;
            let left = if due > now { format!("due in {}", duration::words(due - now)) } else { "overdue".to_owned() };
            ("at_risk", Some("slot.at_risk"), format!("At risk: {left}. {whom} was told."), facts.waited_for(), None)
        }
        Timer::Breach => {
            if facts.due_at != Some(timer.due_at) {
                return None;
            }
            let sponsor = facts.sponsor.zip(facts.sponsor_name.as_ref()).filter(|(id, _)| facts.assignee != Some(*id));
            let said = "The due date passed without an answer.";
            match sponsor {
                Some((id, name)) => {
                    let next = facts
                        .escalate_after
                        .and_then(|after| later(facts.escalate_business, after, timer.due_at))
                        .map(|at| (Timer::Managers, at, 1));
                    let said = format!("{said} {name}, the sponsor, was told.");
                    ("breached", Some("slot.breached"), said, vec![format!("person:{id}")], next)
                }
                // A sponsor who was asked knows: the managers are next.
                None => {
                    let said = format!("{said} The managers were told.");
                    ("breached", Some("slot.breached"), said, vec!["role:manager".to_owned()], None)
                }
            }
        }
        Timer::Managers => {
            // The due date was moved since: it is not late any more.
            facts.breached_at?;
            let said = "Still without an answer after the due date. The managers were told.".to_owned();
            ("escalated", None, said, vec!["role:manager".to_owned()], None)
        }
        Timer::Expire => return None,
    };
    Some(Firing {
        slot: facts.slot,
        task: facts.task,
        kind: timer.kind,
        due_at: timer.due_at,
        line,
        said,
        event,
        tell,
        next,
    })
}

/// Writes what the timers came to: stamps, lines of the record, events, news, and the timers that follow.
pub(super) async fn write(tx: &mut Tx, firings: &[Firing]) -> Result<(), Refusal> {
    if firings.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    // Those that are stamped, in one order, so that two batches never wait for each other.
    let stamped = firings.iter().filter(|firing| matches!(firing.kind, Timer::AtRisk | Timer::Breach));
    let mut stamped: Vec<_> = stamped.map(|firing| firing.slot.0).collect();
    if !stamped.is_empty() {
        stamped.sort_unstable();
        sqlx::query!("select id from slot where id = any($1) order by id for no key update", &stamped)
            .fetch_all(tx.conn())
            .await?;
    }
    let slots: Vec<_> = firings.iter().map(|firing| firing.slot.0).collect();
    let tasks: Vec<_> = firings.iter().map(|firing| firing.task.0).collect();
    let kinds: Vec<_> = firings.iter().map(|firing| firing.kind.as_str().to_owned()).collect();
    let due: Vec<_> = firings.iter().map(|firing| firing.due_at).collect();
    let lines: Vec<_> = firings.iter().map(|firing| firing.line.to_owned()).collect();
    let said: Vec<_> = firings.iter().map(|firing| firing.said.clone()).collect();
    let events: Vec<_> = firings.iter().map(|firing| firing.event.unwrap_or_default().to_owned()).collect();
    let next: Vec<_> = firings.iter().filter_map(|firing| Some((firing.slot, firing.next?))).collect();
    let next: Vec<_> = next
        .iter()
        .map(|(slot, (timer, at, nth))| serde_json::json!({ "slot_id": slot, "kind": timer.as_str(), "at": at, "nth": nth }))
        .collect();
    // Stamped with the time they fell due, not when somebody noticed.
    sqlx::query!(
        r#"
        with fired as (
            select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::text[])
                as f (slot_id, task_id, kind, due_at, line, said, event)
        ), stamped as (
            update slot s
            set warned_at = coalesce(f.warned_at, s.warned_at), breached_at = coalesce(f.breached_at, s.breached_at)
            -- A row for each slot: after an outage both can fire at once.
            from (select slot_id, max(due_at) filter (where kind = 'at_risk') as warned_at,
                         max(due_at) filter (where kind = 'breach') as breached_at
                  from fired where kind in ('at_risk', 'breach') group by slot_id) f
            where s.id = f.slot_id
        ), line as (
            insert into record_line (task_id, slot_id, at, kind, text, due_at)
            select task_id, slot_id, $8, line, said, due_at from fired
        ), event as (
            insert into outbox (at, type, task_id, slot_id, due_at) select $8, event, task_id, slot_id, due_at from fired where event <> ''
        )
        insert into timer (slot_id, kind, due_at, run_at, nth, alone)
        select n.slot_id, n.kind, n.at, n.at, n.nth, n.kind = 'managers' and s.reassign_late
        from jsonb_to_recordset($9) as n (slot_id uuid, kind text, at timestamptz, nth int) join slot s on s.id = n.slot_id
        "#,
        &slots,
        &tasks,
        &kinds,
        &due,
        &lines,
        &said,
        &events,
        now,
        Json(next) as _,
    )
    .execute(tx.conn())
    .await?;
    let notices: Vec<Notice> = firings
        .iter()
        .flat_map(|firing| firing.tell.iter().map(move |key| (firing, key)))
        .map(|(firing, key)| Notice { key: key.clone(), slot: firing.slot, kind: firing.line, due_at: firing.due_at })
        .collect();
    let channel = tx.engine.channel.clone();
    channel.deliver(tx, &notices).await?;
    let told: HashSet<&String> = firings.iter().flat_map(|firing| &firing.tell).collect();
    told.into_iter().for_each(|key| tx.wake(Topic::Inbox(key.clone())));
    // In a burst, telling every page of every question would cost more than the timers themselves.
    if firings.len() <= FEW {
        for firing in firings {
            tx.wake(Topic::Slot(firing.slot));
            tx.wake(Topic::Task(firing.task));
        }
    }
    Ok(())
}
