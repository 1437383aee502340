//! The lease: one instance works on a task at a time, fenced by an epoch (design section 5).

use std::time::Duration;

use uuid::Uuid;

use crate::{Engine, Refusal, fault, ids::TaskId};

/// A dead instance's work is taken over after this long; within the ten seconds that are promised, the poll included.
pub(super) const HOLDS: Duration = Duration::from_secs(7);
/// How often a living instance renews it.
pub(super) const RENEWED: Duration = Duration::from_secs(2);

/// The right to write for one task, until another claims it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub task: TaskId,
    pub epoch: i64,
}

/// Why the loop stopped working on a task without ending it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    /// Another instance has it, or the task was stopped: nothing more may be written.
    #[error("the lease was lost")]
    Lease,
    #[error(transparent)]
    Fault(#[from] Refusal),
}

impl From<sqlx::Error> for Lost {
    fn from(error: sqlx::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Claims at most `most` tasks that are ready and that nobody works on.
pub(super) async fn claim(engine: &Engine, owner: Uuid, most: i64) -> Result<Vec<Lease>, Refusal> {
    let now = engine.clock.now();
    let claimed = sqlx::query_as!(
        Lease,
        r#"
        -- Materialised, so that it runs once: as a plain subquery it may be run again for each row, and then more is claimed
        -- than there are hands for.
        with ready as materialized (
            select id from task
            where ready_at <= $3 and status = 'working' and (lease_until is null or lease_until < $3)
            order by ready_at
            limit $4
            for update skip locked
        )
        update task
        set epoch = epoch + 1, leased_by = $1, lease_until = $2
        from ready
        where task.id = ready.id
        returning task.id as "task: TaskId", epoch
        "#,
        owner,
        now + HOLDS,
        now,
        most,
    )
    .fetch_all(&engine.pool)
    .await?;
    if !claimed.is_empty() {
        fault::point("lease.after_commit");
    }
    Ok(claimed)
}

/// Renews the lease; false when it is another's by now, or the task waits or has ended.
pub(super) async fn renew(engine: &Engine, lease: Lease) -> Result<bool, Refusal> {
    let renewed = sqlx::query!(
        "update task set lease_until = $3 where id = $1 and epoch = $2 and status = 'working'",
        lease.task.0,
        lease.epoch,
        engine.clock.now() + HOLDS,
    )
    .execute(&engine.pool)
    .await?;
    Ok(renewed.rows_affected() == 1)
}

/// Gives the work back so that another instance need not wait for the lease to end.
pub(super) async fn release(engine: &Engine, owner: Uuid) -> Result<(), Refusal> {
    sqlx::query!(
        "update task set leased_by = null, lease_until = null where leased_by = $1 and status = 'working'",
        owner
    )
    .execute(&engine.pool)
    .await?;
    Ok(())
}
