//! Reading claims: one, and a page of them, each with its newest review.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

use super::{Claim, Review, ReviewState};
use sqlx::PgConnection;

use crate::{
    Engine, Refusal,
    actor::PersonActor,
    ids::{ClaimId, PersonId, TaskId},
    money::Money,
    task,
};

struct Row {
    id: ClaimId,
    filer_id: PersonId,
    filer: String,
    spent_on: NaiveDate,
    merchant: String,
    amount_micros: i64,
    currency: String,
    category: String,
    explanation: String,
    created_at: DateTime<Utc>,
    task_id: Option<TaskId>,
    attempt: Option<i32>,
    status: Option<task::Status>,
    waiting_on: Option<String>,
    result: Option<Value>,
    problem: Option<String>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

impl From<Row> for Claim {
    fn from(row: Row) -> Self {
        let text = |key: &str| row.result.as_ref()?.get(key)?.as_str().map(str::to_owned);
        let review = match (row.task_id, row.attempt, row.status, row.started_at) {
            (Some(task_id), Some(attempt), Some(status), Some(started_at)) => Some(Review {
                task_id,
                attempt,
                state: ReviewState::of(status),
                waiting_on: row.waiting_on,
                summary: text("summary").or(row.problem),
                verdict: text("verdict"),
                started_at,
                ended_at: row.finished_at,
            }),
            _ => None,
        };
        Self {
            id: row.id,
            filer_id: row.filer_id,
            filer: row.filer,
            spent_on: row.spent_on,
            merchant: row.merchant,
            amount: Money::new(row.amount_micros, row.currency),
            category: row.category,
            explanation: row.explanation,
            created_at: row.created_at,
            review,
        }
    }
}

/// Claims with their newest review; `$tail` is the rest of the statement after the joins.
macro_rules! claims {
    ($tail:tt $(, $arg:expr)* $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"
            select c.id as "id: ClaimId", c.filer_id as "filer_id: PersonId", p.name as filer, c.spent_on, c.merchant,
                   c.amount_micros, c.currency, c.category, c.explanation, c.created_at,
                   r.task_id as "task_id?: TaskId", r.attempt as "attempt?", t.status as "status?: task::Status",
                   oldest.waiting_on as "waiting_on?", t.result as "result?", t.problem as "problem?",
                   r.started_at as "started_at?", t.finished_at as "finished_at?"
            from claim c
            join person p on p.id = c.filer_id
            left join lateral (
                select task_id, attempt, started_at from process
                where claim_id = c.id and kind = 'review_claim' order by attempt desc limit 1
            ) r on true
            left join task t on t.id = r.task_id
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

/// One claim. Refuses with `not_found` when the person may not see it.
pub async fn get(engine: &Engine, person: &PersonActor, id: ClaimId) -> Result<Claim, Refusal> {
    let mut conn = engine.pool.acquire().await?;
    seen(&mut conn, person, id).await
}

/// The same within a unit of work, on its own connection.
pub(super) async fn seen(conn: &mut PgConnection, person: &PersonActor, id: ClaimId) -> Result<Claim, Refusal> {
    let row = claims!("where c.id = $1", id.0).fetch_optional(conn).await?;
    let claim = row.map(Claim::from).ok_or(Refusal::NotFound)?;
    if claim.is_seen_by(person) { Ok(claim) } else { Err(Refusal::NotFound) }
}

/// A page of claims, the newest first: all of them for managers and admins, their own for others.
pub async fn list(
    engine: &Engine,
    person: &PersonActor,
    before: Option<ClaimId>,
    limit: i64,
) -> Result<Vec<Claim>, Refusal> {
    let before = before.map(|id| id.0);
    let limit = limit.clamp(1, 201);
    let rows = if person.sees_all() {
        claims!("where ($1::uuid is null or c.id < $1) order by c.id desc limit $2", before, limit)
            .fetch_all(&engine.pool)
            .await?
    } else {
        claims!(
            "where c.filer_id = $3 and ($1::uuid is null or c.id < $1) order by c.id desc limit $2",
            before,
            limit,
            person.id.0
        )
        .fetch_all(&engine.pool)
        .await?
    };
    Ok(rows.into_iter().map(Claim::from).collect())
}
