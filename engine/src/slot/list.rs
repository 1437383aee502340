//! Reading slots: one, a page of them, those of a task or a claim.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{Action, Choice, Kind, OnExpiry, Priority, Slot, Status, Taken, Vote};
use crate::{
    Engine, Refusal,
    actor::{Actor, AgentActor},
    ids::{AgentId, ClaimId, PersonId, SlotId, TaskId},
};

struct Row {
    id: SlotId,
    task_id: TaskId,
    task_title: String,
    agent_id: AgentId,
    agent: String,
    call_id: String,
    name: String,
    kind: Kind,
    message: String,
    context: String,
    options: Option<Json<Vec<Choice>>>,
    schema: Option<Value>,
    secret: bool,
    action: Option<Json<Action>>,
    digest: Option<String>,
    arguments: Option<Json<Map<String, Value>>>,
    edited_by: Option<String>,
    votes: Json<Vec<Vote>>,
    used_at: Option<DateTime<Utc>>,
    revision: i32,
    asked: Vec<String>,
    candidates: Vec<String>,
    assignee_id: Option<PersonId>,
    waiting_on: String,
    needs: i32,
    priority: i16,
    status: Status,
    opened_at: DateTime<Utc>,
    target_at: Option<DateTime<Utc>>,
    due_at: Option<DateTime<Utc>>,
    at_risk_at: Option<DateTime<Utc>>,
    warned_at: Option<DateTime<Utc>>,
    breached_at: Option<DateTime<Utc>>,
    business: bool,
    reminds: bool,
    reassigns_late: bool,
    waited_business: Option<i64>,
    expires_at: Option<DateTime<Utc>>,
    on_expiry: OnExpiry,
    default_value: Option<Value>,
    wait_seconds: Option<i64>,
    taken_by: Option<PersonId>,
    taken_name: Option<String>,
    taken_until: Option<DateTime<Utc>>,
    declined: Vec<PersonId>,
    handed: i32,
    rung: i16,
    alarm: Option<String>,
    answer: Option<Value>,
    note: Option<String>,
    answered_by: Option<String>,
    answered_by_email: Option<String>,
    on_behalf_of: Option<String>,
    on_behalf_of_email: Option<String>,
    reason: Option<String>,
    closed_at: Option<DateTime<Utc>>,
    sponsor_id: Option<PersonId>,
    for_id: Option<PersonId>,
    for_name: Option<String>,
    claim_id: Option<ClaimId>,
}

impl From<Row> for Slot {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            task_id: row.task_id,
            task_title: row.task_title,
            agent_id: row.agent_id,
            agent: row.agent,
            call_id: row.call_id,
            name: row.name,
            kind: row.kind,
            message: row.message,
            context: row.context,
            options: row.options.map(|Json(options)| options).unwrap_or_default(),
            schema: row.schema,
            secret: row.secret,
            action: row.action.map(|Json(action)| action),
            digest: row.digest,
            edited: row.arguments.map(|Json(arguments)| arguments),
            edited_by: row.edited_by,
            votes: row.votes.0,
            used_at: row.used_at,
            revision: row.revision,
            asked: row.asked,
            candidates: row.candidates,
            assignee_id: row.assignee_id,
            waiting_on: row.waiting_on,
            needs: row.needs,
            priority: Priority::from_rank(row.priority),
            status: row.status,
            opened_at: row.opened_at,
            target_at: row.target_at,
            due_at: row.due_at,
            at_risk_at: row.at_risk_at,
            warned_at: row.warned_at,
            breached_at: row.breached_at,
            business: row.business,
            reminds: row.reminds,
            reassigns_late: row.reassigns_late,
            waited_business: row.waited_business,
            expires_at: row.expires_at,
            on_expiry: row.on_expiry,
            default_value: row.default_value,
            wait_seconds: row.wait_seconds,
            taken: match (row.taken_by, row.taken_name, row.taken_until) {
                (Some(id), Some(name), Some(until)) => Some(Taken { id, name, until }),
                _ => None,
            },
            declined: row.declined,
            handed: row.handed,
            rung: row.rung,
            alarm: row.alarm,
            answer: row.answer,
            note: row.note,
            answered_by: row.answered_by,
            answered_by_email: row.answered_by_email,
            on_behalf_of: row.on_behalf_of,
            on_behalf_of_email: row.on_behalf_of_email,
            reason: row.reason,
            closed_at: row.closed_at,
            sponsor_id: row.sponsor_id,
            for_id: row.for_id,
            for_name: row.for_name,
            claim_id: row.claim_id,
        }
    }
}

/// One slot without the names of people, which a waiting one hardly has: what the deposit reads. Half the work for the
/// database.
pub(crate) async fn lean(conn: &mut PgConnection, id: SlotId) -> Result<Option<Slot>, Refusal> {
    let row = sqlx::query_as!(
        Row,
        r#"
        select s.id as "id: SlotId", s.task_id as "task_id: TaskId", t.title as task_title,
               s.agent_id as "agent_id: AgentId", '' as "agent!", s.call_id, s.name, s.kind as "kind: Kind",
               s.message, s.context, s.options as "options: Json<Vec<Choice>>", s.schema, s.secret,
               s.action as "action: Json<Action>", s.digest, s.arguments as "arguments: Json<Map<String, Value>>",
               null as edited_by, s.votes as "votes: Json<Vec<Vote>>", s.used_at, s.revision,
               s.asked, s.candidates, s.assignee_id as "assignee_id: PersonId", s.waiting_on, s.needs, s.priority,
               s.status as "status: Status", s.opened_at, s.target_at, s.due_at, s.expires_at,
                   s.at_risk_at, s.warned_at, s.breached_at, s.business, (s.remind_most is not null) as "reminds!",
                   s.reassign_late as reassigns_late, s.waited_business,
               s.on_expiry as "on_expiry: OnExpiry", s.default_value, s.wait_seconds,
               null as "taken_by: PersonId", null as taken_name, null as "taken_until: DateTime<Utc>",
               s.declined as "declined: Vec<PersonId>", s.handed, s.rung, s.alarm, s.answer, s.note,
               null as answered_by, null as answered_by_email, null as on_behalf_of, null as on_behalf_of_email,
               s.reason, s.closed_at,
               (select sponsor_id from agent where id = s.agent_id) as "sponsor_id: PersonId",
               t.for_id as "for_id: PersonId", null as for_name,
               t.claim_id as "claim_id: ClaimId"
        from slot s join task t on t.id = s.task_id
        where s.id = $1
        "#,
        id.0
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Slot::from))
}

/// Whether an agent's own slot still waits; None when it has no such slot.
pub async fn own_waits(engine: &Engine, agent: &AgentActor, id: SlotId) -> Result<Option<bool>, Refusal> {
    Ok(sqlx::query_scalar!(
        r#"select (status = 'waiting') as "waits!" from slot where id = $1 and agent_id = $2"#,
        id.0,
        agent.id.0
    )
    .fetch_optional(&engine.pool)
    .await?)
}

/// Slots with all that is shown of them; `$tail` is the rest of the statement after the joins.
macro_rules! slots {
    ($tail:tt $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"
            select s.id as "id: SlotId", s.task_id as "task_id: TaskId", t.title as task_title,
                   s.agent_id as "agent_id: AgentId", a.name as agent, s.call_id, s.name, s.kind as "kind: Kind",
                   s.message, s.context, s.options as "options: Json<Vec<Choice>>", s.schema, s.secret,
                   s.action as "action: Json<Action>", s.digest, s.arguments as "arguments: Json<Map<String, Value>>",
                   editor.name as "edited_by?", s.votes as "votes: Json<Vec<Vote>>", s.used_at, s.revision,
                   s.asked, s.candidates, s.assignee_id as "assignee_id: PersonId", s.waiting_on, s.needs, s.priority,
                   s.status as "status: Status", s.opened_at, s.target_at, s.due_at, s.expires_at,
                   s.at_risk_at, s.warned_at, s.breached_at, s.business, (s.remind_most is not null) as "reminds!",
                   s.reassign_late as reassigns_late, s.waited_business,
                   s.on_expiry as "on_expiry: OnExpiry", s.default_value, s.wait_seconds,
                   s.taken_by as "taken_by: PersonId", taker.name as "taken_name?", s.taken_until,
                   s.declined as "declined: Vec<PersonId>", s.handed, s.rung, s.alarm, s.answer, s.note,
                   who.name as "answered_by?", who.email as "answered_by_email?",
                   instead.name as "on_behalf_of?", instead.email as "on_behalf_of_email?", s.reason, s.closed_at,
                   a.sponsor_id as "sponsor_id: PersonId", t.for_id as "for_id: PersonId", whom.name as "for_name?", t.claim_id as "claim_id: ClaimId"
            from slot s
            join task t on t.id = s.task_id
            join agent a on a.id = s.agent_id
            left join person who on who.id = s.answered_by
            left join person instead on instead.id = s.on_behalf_of
            left join person whom on whom.id = t.for_id
            left join person editor on editor.id = s.edited_by
            left join person taker on taker.id = s.taken_by
            "# + $tail
            $(, $arg)*
        )
    };
}

/// One slot, whoever may see it.
pub(crate) async fn read(conn: &mut PgConnection, id: SlotId) -> Result<Option<Slot>, Refusal> {
    Ok(slots!("where s.id = $1", id.0).fetch_optional(conn).await?.map(Slot::from))
}

/// These slots, in no order.
pub(super) async fn read_all(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Slot>, Refusal> {
    Ok(slots!("where s.id = any($1)", ids).fetch_all(conn).await?.into_iter().map(Slot::from).collect())
}

/// The slot that a task asked under this call and name.
pub(crate) async fn asked(
    conn: &mut PgConnection,
    task: TaskId,
    call: &str,
    name: &str,
) -> Result<Option<Slot>, Refusal> {
    Ok(slots!("where s.task_id = $1 and s.call_id = $2 and s.name = $3", task.0, call, name)
        .fetch_optional(conn)
        .await?
        .map(Slot::from))
}

/// The waiting slots of a task.
pub(super) async fn waiting_of(conn: &mut PgConnection, task: TaskId) -> Result<Vec<Slot>, Refusal> {
    let rows = slots!("where s.task_id = $1 and s.status = 'waiting' order by s.id", task.0).fetch_all(conn).await?;
    Ok(rows.into_iter().map(Slot::from).collect())
}

/// All slots of a task, the oldest first.
pub async fn of_task(engine: &Engine, task: TaskId) -> Result<Vec<Slot>, Refusal> {
    let rows = slots!("where s.task_id = $1 order by s.id limit 500", task.0).fetch_all(&engine.pool).await?;
    Ok(rows.into_iter().map(Slot::from).collect())
}

/// All slots of the work on a claim, the newest first.
pub async fn of_claim(engine: &Engine, claim: ClaimId) -> Result<Vec<Slot>, Refusal> {
    let rows = slots!("where t.claim_id = $1 order by s.id desc limit 500", claim.0).fetch_all(&engine.pool).await?;
    Ok(rows.into_iter().map(Slot::from).collect())
}

/// Which slots a program asks for. The newest first.
#[derive(Clone, Debug, Default)]
pub struct ListOfSlots {
    pub status: Option<Status>,
    pub kind: Option<Kind>,
    pub task_id: Option<TaskId>,
    /// Only what the caller may answer because they were asked.
    pub mine: bool,
    /// Those after this one in the list.
    pub after: Option<SlotId>,
    pub limit: i64,
}

/// A page of the slots that `actor` may see: an agent its own, a person those they were asked or that concern their
/// work, whoever supervises all.
pub async fn list(engine: &Engine, actor: &Actor, filter: ListOfSlots) -> Result<Vec<Slot>, Refusal> {
    let status = filter.status.map(Status::as_str);
    let kind = filter.kind.map(Kind::as_str);
    let after = filter.after.map(|id| id.0);
    let task = filter.task_id.map(|id| id.0);
    let limit = filter.limit.clamp(1, 201);
    let rows = match actor {
        Actor::Agent(agent) => {
            if filter.mine {
                return Ok(Vec::new()); // an agent can answer nothing
            }
            slots!(
                "where s.agent_id = $1 and ($2::text is null or s.status = $2) and ($3::text is null or s.kind = $3)
                   and ($4::uuid is null or s.task_id = $4) and ($5::uuid is null or s.id < $5)
                 order by s.id desc limit $6",
                agent.id.0,
                status,
                kind,
                task,
                after,
                limit,
            )
            .fetch_all(&engine.pool)
            .await?
        }
        Actor::Person(person) => {
            slots!(
                "where ($1::text is null or s.status = $1) and ($2::text is null or s.kind = $2)
                   and ($3::uuid is null or s.task_id = $3) and ($4::uuid is null or s.id < $4)
                   and (case when $5 then s.candidates && $6 and $8 <> all(s.declined) and (s.kind not in ('approval', 'human') or t.for_id is distinct from $8)
                                 and not (s.votes @> jsonb_build_array(jsonb_build_object('id', $8::uuid)) and s.status = 'waiting')
                             else $7 or s.candidates && $6 or t.for_id = $8 or a.sponsor_id = $8 end)
                 order by s.id desc limit $9",
                status,
                kind,
                task,
                after,
                filter.mine,
                &person.keys,
                person.sees_all(),
                person.id.0,
                limit,
            )
            .fetch_all(&engine.pool)
            .await?
        }
    };
    Ok(rows.into_iter().map(Slot::from).collect())
}

/// Those of `slots` that no longer wait, for whoever may have missed the wake-up.
pub async fn ended_of(engine: &Engine, slots: &[SlotId]) -> Result<Vec<SlotId>, Refusal> {
    let ids: Vec<_> = slots.iter().map(|id| id.0).collect();
    Ok(sqlx::query_scalar!(r#"select id as "id: SlotId" from slot where id = any($1) and status <> 'waiting'"#, &ids)
        .fetch_all(&engine.pool)
        .await?)
}
