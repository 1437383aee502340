//! Timers that change more than a line, each in a transaction of its own: expiry, and escalation that hands a question on.
//! Also those of a batch that failed, so that one of them does not hold up the rest.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;

use super::{Claimed, TRIES, batch};
use crate::{Engine, Refusal, Tx, fault, ids::SlotId, policy::clocks::Timer, settings, slot};

/// Transactions that one instance has open for this at a time.
const AT_ONCE: usize = 4;

/// Fires at most `most` timers, one by one: those that stand alone, or all kinds. Answers how many it claimed, and how many
/// took effect.
pub(super) async fn fire_each(engine: &Engine, most: usize, all: bool) -> Result<(usize, usize), Refusal> {
    let (claimed, effective) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let hands = futures::stream::iter(0..AT_ONCE).map(|_| async {
        while claimed.load(Ordering::Relaxed) < most {
            match fire_one(engine, all).await? {
                None => break,
                Some(took_effect) => {
                    claimed.fetch_add(1, Ordering::Relaxed);
                    effective.fetch_add(usize::from(took_effect), Ordering::Relaxed);
                }
            }
        }
        Ok::<_, Refusal>(())
    });
    let done: Vec<Result<(), Refusal>> = hands.buffer_unordered(AT_ONCE).collect().await;
    done.into_iter().collect::<Result<(), Refusal>>()?;
    Ok((claimed.into_inner(), effective.into_inner()))
}

/// Claims and fires one; None when there is none. A failure is kept with the timer, which is tried again later.
async fn fire_one(engine: &Engine, all: bool) -> Result<Option<bool>, Refusal> {
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let timer = sqlx::query_as!(
        Claimed,
        r#"
        -- Materialised, so that it runs once: as a plain subquery it may be run again for each row, each time past those that
        -- are gone already, and then more are deleted than are fired.
        with due as materialized (
            select id from timer where not failed and (alone or $2) and run_at <= $1
            order by run_at, id limit 1 for update skip locked
        )
        delete from timer using due where timer.id = due.id
        returning timer.id, slot_id as "slot_id: SlotId", kind as "kind: Timer", due_at, nth
        "#,
        now,
        all
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(timer) = timer else { return Ok(None) };
    let fired = async {
        let took_effect = fire(&mut tx, &timer).await?;
        fault::point("timer.before_commit");
        tx.commit().await?;
        Ok::<_, Refusal>(took_effect)
    };
    match fired.await {
        Ok(took_effect) => Ok(Some(took_effect)),
        Err(refusal) => {
            put_off(engine, &timer, &refusal).await?;
            Ok(Some(false))
        }
    }
}

async fn fire(tx: &mut Tx, timer: &Claimed) -> Result<bool, Refusal> {
    if timer.kind == Timer::Expire {
        return slot::expire::expire(tx, timer.slot_id).await;
    }
    let settings = settings::within(tx).await?;
    // The whole task: what follows may hand the question on.
    let Some(slot) = slot::lock(tx, timer.slot_id).await? else { return Ok(false) };
    let facts = batch::facts(tx, std::slice::from_ref(timer)).await?;
    let Some(firing) = facts.first().and_then(|facts| batch::firing(timer, facts, &settings, tx.now())) else {
        return Ok(false);
    };
    batch::write(tx, std::slice::from_ref(&firing)).await?;
    // A reminder or a warning that is fired alone hands nothing on: it is not late yet.
    let rung = match timer.kind {
        Timer::Breach => Some(1),
        Timer::Managers => Some(2),
        _ => None,
    };
    if let Some(rung) = rung.filter(|_| slot.reassigns_late) {
        slot::expire::late(tx, &slot, rung).await?;
    }
    Ok(true)
}

/// Tried again after a pause that doubles; given up after some tries, and then for an administrator to see.
async fn put_off(engine: &Engine, timer: &Claimed, refusal: &Refusal) -> Result<(), Refusal> {
    let cause = std::error::Error::source(refusal).map(|cause| format!(" ({cause})")).unwrap_or_default();
    let problem: String = format!("{refusal}{cause}").chars().take(500).collect();
    tracing::warn!(timer = timer.id, slot = %timer.slot_id, %problem, "a timer failed");
    sqlx::query!(
        "update timer set tries = tries + 1, problem = $2, failed = tries + 1 >= $4::smallint,
                          run_at = $3::timestamptz + interval '2 seconds' * power(2, tries)
         where id = $1",
        timer.id,
        problem,
        engine.clock.now(),
        TRIES
    )
    .execute(&engine.pool)
    .await?;
    Ok(())
}
