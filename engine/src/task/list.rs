//! Reading receipts: one, and a page of them.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use super::{Status, Task};
use crate::{
    Engine, Refusal,
    actor::PersonActor,
    ids::{AgentId, ClaimId, PersonId, TaskId},
    money::Money,
};

struct Row {
    id: TaskId,
    agent_id: AgentId,
    agent: String,
    inside: bool,
    title: String,
    about_kind: Option<String>,
    about_title: Option<String>,
    about_url: Option<String>,
    claim_id: Option<ClaimId>,
    for_id: Option<PersonId>,
    for_name: Option<String>,
    for_email: Option<String>,
    status: Status,
    waiting_on: Option<String>,
    waiting_since: Option<DateTime<Utc>>,
    waited_seconds: f64,
    model_calls: i32,
    input_tokens: i64,
    output_tokens: i64,
    cost_micros: i64,
    budget_micros: Option<i64>,
    currency: String,
    questions: i32,
    result: Option<Value>,
    problem: Option<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl From<Row> for Task {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            agent_id: row.agent_id,
            agent: row.agent,
            inside: row.inside,
            title: row.title,
            about_kind: row.about_kind,
            about_title: row.about_title,
            about_url: row.about_url,
            claim_id: row.claim_id,
            for_id: row.for_id,
            for_name: row.for_name,
            for_email: row.for_email,
            status: row.status,
            waiting_on: row.waiting_on,
            waiting_since: row.waiting_since,
            waited: chrono::Duration::milliseconds((row.waited_seconds * 1000.0) as i64),
            model_calls: row.model_calls,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            cost: Money::new(row.cost_micros, row.currency.clone()),
            budget: row.budget_micros.map(|micros| Money::new(micros, row.currency)),
            questions: row.questions,
            result: row.result,
            problem: row.problem,
            created_at: row.created_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
        }
    }
}

/// Receipts with what they wait on; `$tail` is the rest of the statement after the joins.
macro_rules! tasks {
    ($tail:tt $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"
            select t.id as "id: TaskId", t.agent_id as "agent_id: AgentId", a.name as agent, a.inside, t.title, t.about_kind,
                   t.about_title, t.about_url, t.claim_id as "claim_id: ClaimId", t.for_id as "for_id: PersonId",
                   p.name as "for_name?", p.email as "for_email?", t.status as "status: Status",
                   oldest.waiting_on as "waiting_on?", t.waiting_since,
                   extract(epoch from t.waited)::float8 as "waited_seconds!", t.model_calls,
                   t.input_tokens, t.output_tokens, t.cost_micros, t.budget_micros, t.currency, t.questions, t.result,
                   t.problem, t.created_at, t.updated_at, t.finished_at
            from task t
            join agent a on a.id = t.agent_id
            left join person p on p.id = t.for_id
            left join lateral (
                select waiting_on from slot
                where slot.task_id = t.id and slot.status = 'waiting' and t.status = 'waiting'
                order by slot.id limit 1
            ) oldest on true
            "# + $tail
            $(, $arg)*
        )
    };
}

/// One receipt. Refuses with `not_found` when the person may not see it.
pub async fn get(engine: &Engine, person: &PersonActor, id: TaskId) -> Result<Task, Refusal> {
    let mut conn = engine.pool.acquire().await?;
    seen(&mut conn, person, id).await
}

/// The same within a unit of work, on its own connection.
pub(super) async fn seen(conn: &mut PgConnection, person: &PersonActor, id: TaskId) -> Result<Task, Refusal> {
    let row = tasks!("where t.id = $1", id.0).fetch_optional(conn).await?;
    let task = row.map(Task::from).ok_or(Refusal::NotFound)?;
    if task.is_seen_by(person) { Ok(task) } else { Err(Refusal::NotFound) }
}

/// Which receipts are asked for.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    pub status: Option<Status>,
    /// Those older than this one.
    pub before: Option<TaskId>,
    pub limit: i64,
}

/// A page of receipts, the newest first: all of them for managers and admins, for others the work that is for them.
pub async fn list(engine: &Engine, person: &PersonActor, filter: TaskFilter) -> Result<Vec<Task>, Refusal> {
    let status = filter.status.map(Status::as_str);
    let before = filter.before.map(|id| id.0);
    let limit = filter.limit.clamp(1, 201);
    let rows = if person.sees_all() {
        tasks!(
            "where ($1::text is null or t.status = $1) and ($2::uuid is null or t.id < $2) order by t.id desc limit $3",
            status,
            before,
            limit
        )
        .fetch_all(&engine.pool)
        .await?
    } else {
        tasks!(
            "where t.for_id = $4 and ($1::text is null or t.status = $1) and ($2::uuid is null or t.id < $2)
             order by t.id desc limit $3",
            status,
            before,
            limit,
            person.id.0,
        )
        .fetch_all(&engine.pool)
        .await?
    };
    Ok(rows.into_iter().map(Task::from).collect())
}
