//! Expiry: the system's act, never a person's "no" (design section 4). Rows decide what is due; any instance may do it.

use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use super::{
    Kind, OnExpiry, Slot, Status, asked, close,
    close::Ending,
    list,
    reassign::{Handover, hand_to},
};
use crate::{Engine, Refusal, Tx, duration, ids::SlotId, person, task, wake::Topic};

/// How long a lost wake-up can delay an expiry.
const POLL: Duration = Duration::from_secs(5);

/// Expires what is due, until `shutdown`: sleeps until the next time in the table, is woken for an earlier one.
pub async fn run(engine: Engine, mut shutdown: watch::Receiver<bool>) {
    let clock = engine.wakes.subscribe([Topic::Clock]);
    while !*shutdown.borrow() {
        // Absences begin and end on the day: within the poll is soon enough.
        let ended = match person::away::due(&engine).await {
            Ok(_) => due(&engine).await,
            Err(refusal) => Err(refusal),
        };
        let pause = match ended {
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
    let since = slot.wait_seconds.map(chrono::Duration::seconds);
    let after = duration::words(since.unwrap_or(slot.expires_at.unwrap_or(slot.opened_at) - slot.opened_at));
    let said = format!("Nobody answered within {after}.");
    if slot.on_expiry == OnExpiry::Escalate && slot.rung < 2 {
        return escalate(tx, id, &said).await;
    }
    let default = match slot.on_expiry {
        OnExpiry::Default => slot.default_value.clone(),
        _ => None,
    };
    let result = match &default {
        Some(value) => json!({ "answer": value, "defaulted": true, "said": format!("{said} This is the default.") }),
        None => json!({ "expired": true, "said": said }),
    };
    let ending = Ending { answer: default.as_ref(), result: Some(result), said: &said, ..Ending::new(Status::Expired) };
    let closed = close::close(tx, &slot, ending).await?;
    if closed && slot.on_expiry == OnExpiry::Fail {
        fail_task(tx, &slot, &after).await?;
    }
    Ok(closed)
}

/// Hands a slot that nobody answered to the next rung, with a new deadline. Answers false: nothing has ended.
async fn escalate(tx: &mut Tx, id: SlotId, said: &str) -> Result<bool, Refusal> {
    let Some(slot) = super::lock(tx, id).await? else { return Ok(false) };
    let now = tx.now();
    if slot.status != Status::Waiting || slot.expires_at.is_none_or(|at| at > now) {
        return Ok(false);
    }
    let except = slot.for_id.filter(|_| slot.kind == Kind::Approval);
    let (asked, rung) = match slot.rung {
        // The sponsor who was asked in the first place has let it pass.
        0 => asked::rung(tx, slot.agent_id, except, &slot.assignee_id.into_iter().collect::<Vec<_>>()).await?,
        _ => (asked::named(tx, &["role:manager".to_owned()]).await?, 2),
    };
    let said = format!("{said} The question went to {}.", asked.words);
    let handover = Handover {
        rung,
        expires_at: slot.wait_seconds.map(|seconds| now + chrono::Duration::seconds(seconds)),
        declined: &slot.declined,
        alarm: None,
        line: "escalated",
        said: &said,
        actor: "system",
    };
    hand_to(tx, &slot, asked, handover).await?;
    Ok(false)
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
