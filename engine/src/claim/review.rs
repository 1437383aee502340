//! The review of a claim: a process whose work is the Auditor's task (design section 6). Its state is read from the
//! task, so the two cannot disagree.

use chrono::Duration;

use super::ReviewState;
use crate::{
    Refusal, Tx,
    actor::PersonActor,
    ids::{AgentId, ClaimId, PersonId, ProcessId, TaskId},
    money::Money,
    task::{self, start::NewTask},
    wake::Topic,
};

/// The agent that reviews.
pub const AUDITOR: &str = "Auditor";

/// How long the review may take before it fails.
fn within() -> Duration {
    Duration::days(2)
}

impl ReviewState {
    pub(super) fn of(task: task::Status) -> Self {
        match task {
            task::Status::Working => Self::Running,
            task::Status::Waiting => Self::Waiting,
            task::Status::Done => Self::Completed,
            task::Status::Failed | task::Status::Stopped | task::Status::Cancelled => Self::Failed,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// Starts the `attempt`th review of a claim. Needs a transaction.
pub(super) async fn start(tx: &mut Tx, claim: ClaimId, attempt: i32, by: &str, said: &str) -> Result<TaskId, Refusal> {
    let about = sqlx::query!(
        r#"select c.filer_id as "filer_id: PersonId", c.merchant, c.amount_micros, c.currency, a.id as "agent: AgentId"
           from claim c join agent a on lower(a.name) = lower($2) and a.inside where c.id = $1"#,
        claim.0,
        AUDITOR,
    )
    .fetch_one(tx.conn())
    .await?;
    let amount = Money::new(about.amount_micros, about.currency);
    let task = task::start::start(
        tx,
        NewTask {
            agent_id: about.agent,
            title: &format!("Review the claim for {amount} at {}", about.merchant),
            instruction: "Review this claim.",
            claim_id: Some(claim),
            for_id: Some(about.filer_id),
            said,
            by,
        },
    )
    .await?;
    let process: ProcessId = tx.new_id();
    let now = tx.now();
    sqlx::query!(
        "insert into process (id, kind, claim_id, task_id, attempt, within_seconds, started_at)
         values ($1, 'review_claim', $2, $3, $4, $5, $6)",
        process.0,
        claim.0,
        task.0,
        attempt,
        within().num_seconds(),
        now,
    )
    .execute(tx.conn())
    .await?;
    tx.wake(Topic::Claim(claim));
    Ok(task)
}

/// Starts a failed review again, as a manager. Needs a transaction.
///
/// Refuses with `not_found`, `forbidden`, or `task_ended` when the newest review has not failed.
pub async fn restart_review(tx: &mut Tx, person: &PersonActor, claim: ClaimId) -> Result<TaskId, Refusal> {
    super::list::seen(tx.conn(), person, claim).await?;
    if !person.is_manager() {
        return Err(Refusal::Forbidden("Only a manager can start a review again.".to_owned()));
    }
    // The claim's row is the lock: two managers at once start one attempt.
    sqlx::query!("select id from claim where id = $1 for update", claim.0).fetch_one(tx.conn()).await?;
    let newest = sqlx::query!(
        r#"select p.attempt, t.status as "status: task::Status" from process p join task t on t.id = p.task_id
           where p.claim_id = $1 and p.kind = 'review_claim' order by p.attempt desc limit 1"#,
        claim.0,
    )
    .fetch_one(tx.conn())
    .await?;
    if ReviewState::of(newest.status) != ReviewState::Failed {
        return Err(Refusal::TaskEnded("This review has not failed, so there is nothing to start again.".to_owned()));
    }
    let by = format!("person:{}", person.id);
    let said = format!("{} started the review again.", person.name);
    start(tx, claim, newest.attempt + 1, &by, &said).await
}
