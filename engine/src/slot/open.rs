//! Asking: a slot opens and its task parks, in one statement, so that no answer can come before the wait exists.

use serde_json::json;

use super::{Kind, NewSlot, Slot, action, alarm, asked, close, list, new};
use crate::{
    Actor, Refusal, Tx,
    actor::{AgentActor, PersonActor},
    fault, file,
    ids::{AgentId, ClaimId, PersonId, SlotId, TaskId},
    policy, settings,
    wake::Topic,
};

/// Who asks.
pub enum Asker<'a> {
    /// An outside agent, for its own work.
    Agent(&'a AgentActor),
    /// Layby's own loop, fenced by the epoch of its lease.
    Loop(LoopAsks<'a>),
    /// A supervisor who takes the work over: the slot is theirs, and whoever works on it writes no more.
    Supervisor { person: &'a PersonActor, by: LoopAsks<'a> },
}

pub struct LoopAsks<'a> {
    pub agent_id: AgentId,
    pub agent: &'a str,
    pub epoch: i64,
    pub call_id: &'a str,
    pub for_id: Option<PersonId>,
    pub claim_id: Option<ClaimId>,
}

pub struct Opened {
    pub slot: Slot,
    /// False when the same question stood already.
    pub fresh: bool,
}

/// Opens a slot and parks its task. Asked again under the same task, call and name it is the same slot, as it stands.
///
/// Refuses with `not_found` (the task is not the asker's), `invalid` (a pointer per field), `name_in_use`, `task_ended`.
pub async fn open(tx: &mut Tx, asker: Asker<'_>, new: NewSlot) -> Result<Opened, Refusal> {
    new::check(&new)?;
    let (agent_id, agent, call_id, epoch) = match &asker {
        Asker::Agent(agent) => (agent.id, agent.name.as_str(), "", None),
        Asker::Loop(by) | Asker::Supervisor { by, .. } => (by.agent_id, by.agent, by.call_id, Some(by.epoch)),
    };
    let takes_over = matches!(asker, Asker::Supervisor { .. });
    let name = new.name.clone().unwrap_or_else(|| new::digest(&new));
    let mut for_id = None;
    let mut claim_id = None;
    if let Some(task) = new.task_id {
        match &asker {
            Asker::Loop(by) | Asker::Supervisor { by, .. } => (for_id, claim_id) = (by.for_id, by.claim_id),
            Asker::Agent(_) => for_id = own_task(tx, agent_id, task).await?,
        }
        if let Some(slot) = list::asked(tx.conn(), task, call_id, &name).await? {
            return same(slot, &new, name);
        }
    }
    let asked = match new.ask.as_slice() {
        [] => asked::by_default(tx, agent_id, for_id, new.kind).await?,
        names => asked::named(tx, names).await?,
    };
    let (asked, alarm) = alarm::asked_enough(tx, agent_id, asked, new.kind, for_id, new.needs).await?;

    let now = tx.now();
    let id: SlotId = tx.new_id();
    let task_id = new.task_id.unwrap_or_else(|| tx.new_id());
    let title: String = new.message.chars().take(200).collect();
    let waiting_on = format!("{} {}", new.kind.waits_for(), asked.words);
    let digest = new.action.as_ref().map(|action| action::digest(&action.tool, &action.arguments));
    if !new.attachments.is_empty() {
        tx.transaction().await?;
    }
    let settings = settings::within(tx).await?;
    let policy = policy::deciding(&settings.policies, agent_id, new.kind, new.priority);
    let calendar = settings.calendar(asked.assignee);
    let clocks = policy::clocks(now, calendar, policy, new.target, new.remind, new.expires_in);
    let (expires_at, due_at) = (clocks.expires_at, clocks.due_at);
    let timers: Vec<String> = clocks.timers.iter().map(|(timer, _)| timer.as_str().to_owned()).collect();
    let timer_times: Vec<_> = clocks.timers.iter().map(|(_, at)| *at).collect();
    let mut asked_line = match &asker {
        Asker::Supervisor { person, .. } => format!("{} took this work over.", person.name),
        _ => format!("{agent} asked {}: {}", asked.words, title),
    };
    if let Some(alarm) = &alarm {
        asked_line = format!("{asked_line} ({alarm})");
    }
    let (lines, said, events): (&[&str], &[String], &[&str]) = match new.task_id {
        None => (
            &["started", "asked"],
            &[format!("{agent} opened this work."), asked_line],
            &["task.started", "slot.opened", "task.waiting"],
        ),
        Some(_) => (&["asked"], &[asked_line], &["slot.opened", "task.waiting"]),
    };
    let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    let events: Vec<String> = events.iter().map(|&event| event.to_owned()).collect();
    tx.savepoint().await?;
    fault::point("ask.before_commit");
    let opened = sqlx::query!(
        r#"
        with fresh as (
            insert into task (id, agent_id, title, status, questions, open_slots, created_at, updated_at, waiting_since)
            select $1, $2, $3, 'waiting', $28, 1, $4, $4, $4 where $5
            returning id
        ), parked as (
            update task
            set status = 'waiting', waiting_since = coalesce(waiting_since, $4), questions = questions + $28, epoch = epoch + $29, open_slots = open_slots + 1, updated_at = $4,
                ready_at = null, leased_by = null, lease_until = null
            where id = $1 and not $5 and agent_id = $2 and status in ('working', 'waiting')
              -- Our own loop writes only while it holds the lease it started with.
              and ($6::bigint is null or epoch = $6)
            returning id
        ), parent as (
            select id from fresh union all select id from parked
        ), opened as (
            insert into slot (id, task_id, agent_id, call_id, name, kind, message, context, options, schema, asked,
                              candidates, assignee_id, waiting_on, priority, opened_at, target_at, due_at, expires_at,
                              on_expiry, default_value, secret, action, digest, needs, wait_seconds, alarm,
                              target_seconds, business, at_risk_at, remind_every, remind_most, escalate_after,
                              reassign_late, remind_business, escalate_business)
            select $7, parent.id, $2, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $4, $20, $20, $21, $22, $23,
                   $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $45, $46
            from parent
            returning id, task_id
        ), candidate as (
            insert into slot_candidate (slot_id, candidate, priority, due_at, opened_at)
            select opened.id, key, $19, coalesce($20, 'infinity'), $4 from opened, unnest($16::text[]) key
        ), timed as (
            insert into timer (slot_id, kind, due_at, run_at, alone)
            select opened.id, kind, at, at, kind = 'expire' or ($42 and kind = 'breach')
            from opened, unnest($43::text[], $44::timestamptz[]) as t (kind, at)
        ), line as (
            insert into record_line (task_id, slot_id, at, kind, text)
            select opened.task_id, opened.id, $4, kind, text
            from opened, unnest($24::text[], $25::text[]) as said (kind, text)
        ), audited as (
            insert into audit (at, actor, action, object) select $4, $26, 'slot.opened', 'slot:' || id from opened
        ), event as (
            insert into outbox (at, type, task_id, slot_id)
            select $4, type, opened.task_id, opened.id from opened, unnest($27::text[]) type
        )
        select count(*) as "count!" from opened
        "#,
        task_id.0,
        agent_id.0,
        title,
        now,
        new.task_id.is_none(),
        epoch,
        id.0,
        call_id,
        name,
        new.kind.as_str(),
        new.message,
        new.context,
        (!new.options.is_empty()).then(|| json!(new.options)),
        new.schema,
        &asked.names,
        &asked.keys,
        asked.assignee.map(|id| id.0),
        waiting_on,
        new.priority as i16,
        due_at,
        expires_at,
        new.on_expiry.as_str(),
        new.default_value,
        &lines,
        said,
        match &asker {
            Asker::Supervisor { person, .. } => format!("person:{}", person.id),
            _ => format!("agent:{agent_id}"),
        },
        &events,
        // What was asked; that an action is proposed or the work taken over is no question.
        i32::from(matches!(new.kind, Kind::Question)),
        i64::from(takes_over),
        new.secret,
        new.action.as_ref().map(|action| json!(action)),
        digest,
        new.needs,
        new.expires_in.map(|wait| wait.num_seconds()),
        alarm,
        clocks.target.map(|target| target.num_seconds()),
        clocks.business,
        clocks.at_risk_at,
        clocks.remind.and_then(|remind| remind.every).map(|every| every.num_seconds()),
        clocks.remind.map(|remind| remind.most),
        clocks.escalate_after.map(|after| after.num_seconds()),
        clocks.reassign,
        &timers,
        &timer_times,
        clocks.remind_business,
        clocks.escalate_business,
    )
    .fetch_one(tx.conn())
    .await;
    let opened = match opened {
        Ok(row) => row.count,
        // Asked twice at once: the other one's slot is this one.
        Err(sqlx::Error::Database(error)) if error.constraint() == Some("slot_asked_once") && epoch.is_none() => {
            tx.back_to_savepoint().await?;
            return asked_at_once(tx, task_id, &new, name).await;
        }
        Err(error) => return Err(error.into()),
    };
    fault::point("ask.after_commit");
    if opened != 1 {
        return Err(Refusal::TaskEnded("This task has ended, so nothing more can be asked for it.".to_owned()));
    }
    if let (false, Asker::Agent(agent)) = (new.attachments.is_empty(), &asker)
        && !file::attach(tx, &Actor::Agent((*agent).clone()), id, &new.attachments).await?
    {
        return Err(Refusal::invalid("/attachments", "One of these files is not yours, or is used already."));
    }
    let slot = Slot {
        id,
        task_id,
        task_title: title,
        agent_id,
        agent: agent.to_owned(),
        call_id: call_id.to_owned(),
        name,
        asked: asked.names,
        candidates: asked.keys,
        assignee_id: asked.assignee,
        waiting_on,
        opened_at: now,
        target_at: due_at,
        due_at,
        at_risk_at: clocks.at_risk_at,
        business: clocks.business,
        reminds: clocks.remind.is_some(),
        reassigns_late: clocks.reassign,
        expires_at,
        alarm,
        for_id,
        claim_id,
        ..Slot::bare(new)
    };
    close::announce(tx, &slot);
    if !timers.is_empty() {
        tx.wake(Topic::Clock);
    }
    Ok(Opened { slot, fresh: true })
}

/// Whom an outside agent's own task is for.
async fn own_task(tx: &mut Tx, agent: AgentId, task: TaskId) -> Result<Option<PersonId>, Refusal> {
    let row = sqlx::query!(
        r#"select for_id as "for_id: PersonId" from task where id = $1 and agent_id = $2"#,
        task.0,
        agent.0
    )
    .fetch_optional(tx.conn())
    .await?;
    Ok(row.ok_or_else(|| Refusal::invalid("/task_id", "There is no such task of yours."))?.for_id)
}

async fn asked_at_once(tx: &mut Tx, task: TaskId, new: &NewSlot, name: String) -> Result<Opened, Refusal> {
    let slot = list::asked(tx.conn(), task, "", &name).await?;
    same(slot.ok_or_else(|| Refusal::fault("a question that stood already was not found"))?, new, name)
}

/// The slot that stands under this name, when it asks the same.
fn same(slot: Slot, new: &NewSlot, name: String) -> Result<Opened, Refusal> {
    // The same words about another action would be a yes to something else.
    if !new::asks_the_same(&slot, new) {
        return Err(Refusal::NameInUse(name));
    }
    Ok(Opened { slot, fresh: false })
}
