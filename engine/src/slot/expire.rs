//! Expiry: the system's act, never a person's "no" (design section 4). Rows decide what is due; any instance may do it.

use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use super::{OnExpiry, Slot, Status, close, close::Ending, list};
use crate::{Engine, Refusal, Tx, duration, ids::SlotId, task, wake::Topic};

/// How long a lost wake-up can delay an expiry.
const POLL: Duration = Duration::from_secs(5);

/// Expires what is due, until `shutdown`: sleeps until the next time in the table, is woken for an earlier one.
pub async fn run(engine: Engine, mut shutdown: watch::Receiver<bool>) {
    let clock = engine.wakes.subscribe([Topic::Clock]);
    while !*shutdown.borrow() {
        let pause = match due(&engine).await {
            Ok(_) => until_next(&engine).await.unwrap_or(POLL),
            Err(error) => {
                tracing::error!(%error, cause = ?std::error::Error::source(&error), "expiring was interrupted and will be tried again");
                POLL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = clock.woken() => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// How long until the next expiry, at most the poll's bound.
async fn until_next(engine: &Engine) -> Result<Duration, Refusal> {
    let next =
        sqlx::query_scalar!("select min(expires_at) from slot where status = 'waiting' and expires_at is not null")
            .fetch_one(&engine.pool)
            .await?;
    let wait = next.map_or(POLL, |next| (next - engine.clock.now()).to_std().unwrap_or(Duration::ZERO));
    Ok(wait.clamp(Duration::from_millis(5), POLL))
}

/// Expires every slot that is due now; answers how many. Instances that do this at once share the work.
pub async fn due(engine: &Engine) -> Result<usize, Refusal> {
    let mut expired = 0;
    loop {
        let ids = sqlx::query_scalar!(
            r#"select id as "id: SlotId" from slot
               where status = 'waiting' and expires_at <= $1
               order by expires_at limit 100"#,
            engine.clock.now(),
        )
        .fetch_all(&engine.pool)
        .await?;
        if ids.is_empty() {
            return Ok(expired);
        }
        for id in ids {
            let mut tx = engine.begin().await?;
            if expire(&mut tx, id).await? {
                expired += 1;
            }
            tx.commit().await?;
        }
    }
}

/// Expires one slot if it still waits: compare-and-set, so against a deposit exactly one of the two wins.
async fn expire(tx: &mut Tx, id: SlotId) -> Result<bool, Refusal> {
    let Some(slot) = list::read(tx.conn(), id).await? else { return Ok(false) };
    // Its clock may have been moved since it was found.
    if slot.expires_at.is_none_or(|at| at > tx.now()) {
        return Ok(false);
    }
    let after = duration::words(slot.expires_at.unwrap_or(slot.opened_at) - slot.opened_at);
    let said = format!("Nobody answered within {after}.");
    let default = match slot.on_expiry {
        OnExpiry::Default => slot.default_value.clone(),
        _ => None,
    };
    let result = match &default {
        Some(value) => json!({ "answer": value, "defaulted": true, "said": format!("{said} This is the default.") }),
        None => json!({ "expired": true, "said": said }),
    };
    let ending = Ending {
        status: Status::Expired,
        revision: None,
        answer: default.as_ref(),
        note: None,
        answered_by: None,
        on_behalf_of: None,
        reason: None,
        result,
        said: &said,
        actor: "system",
    };
    let closed = close::close(tx, &slot, ending).await?;
    if closed && slot.on_expiry == OnExpiry::Fail {
        fail_task(tx, &slot, &after).await?;
    }
    Ok(closed)
}

async fn fail_task(tx: &mut Tx, slot: &Slot, after: &str) -> Result<(), Refusal> {
    let problem = match slot.claim_id {
        Some(_) => format!("The review could not be completed: nobody answered within {after}."),
        None => format!("The work could not be completed: nobody answered within {after}."),
    };
    task::stop::end(
        tx,
        slot.task_id,
        task::stop::Ending {
            status: task::Status::Failed,
            result: None,
            problem: Some(&problem),
            said: &problem,
            slots: "the work failed.",
            actor: "system",
            epoch: None,
        },
    )
    .await?;
    Ok(())
}
