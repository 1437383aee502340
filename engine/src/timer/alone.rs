//! Timers that change more than a line: expiry, and escalation that hands a question on. Also those of a batch that failed,
//! so that one of them does not hold up the rest.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::StreamExt;

use super::{Claimed, TRIES, batch};
use crate::{
    Engine, Refusal, Tx, fault,
    ids::{SlotId, TaskId},
    policy::clocks::Timer,
    settings,
    slot::{self, Slot},
};

/// Transactions that one instance has open for this at a time.
const AT_ONCE: usize = 4;
/// Timers of one transaction; when one of them fails, each is tried by itself.
const HANDFUL: i64 = 32;

/// Fires about `most` timers at most: those that stand alone, or all kinds. Answers how many it claimed, and how many took
/// effect.
pub(super) async fn fire_each(engine: &Engine, most: usize, all: bool) -> Result<(usize, usize), Refusal> {
    let (claimed, effective) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let hands = futures::stream::iter(0..AT_ONCE).map(|_| async {
        while claimed.load(Ordering::Relaxed) < most {
            let (some, took_effect) = fire_some(engine, all, HANDFUL).await?;
            if some == 0 {
                break;
            }
            claimed.fetch_add(some, Ordering::Relaxed);
            effective.fetch_add(took_effect, Ordering::Relaxed);
        }
        Ok::<_, Refusal>(())
    });
    let done: Vec<Result<(), Refusal>> = hands.buffer_unordered(AT_ONCE).collect().await;
    done.into_iter().collect::<Result<(), Refusal>>()?;
    Ok((claimed.into_inner(), effective.into_inner()))
}

/// Claims and fires up to `most` in one transaction. When that fails, they are tried one by one; the failure of one is kept
/// with it, and it is tried again later.
async fn fire_some(engine: &Engine, all: bool, most: i64) -> Result<(usize, usize), Refusal> {
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let mut claimed = sqlx::query_as!(
        Claimed,
        r#"
        -- Materialised, so that it runs once: as a plain subquery it may be run again for each row, each time past those that
        -- are gone already, and then more are deleted than are fired.
        with due as materialized (
            select id, slot_id from timer where not failed and (alone or $2) and run_at <= $1
            order by run_at, id limit $3 for update skip locked
        ), also as materialized (
            -- What else fell due of the same questions goes before: one that expires was late first.
            select id from timer where $3 > 1 and not failed and run_at <= $1 and slot_id in (select slot_id from due)
            for update skip locked
        ), ours as materialized (
            select id from due union select id from also
        ), left_alone as materialized (
            -- Another instance or lane is firing something of the same question: not before that is done, else an expiry ends
            -- what was late first and its breach is never stamped. When they are tried one by one, nothing waits for a failure.
            select due.id from due where $3 > 1 and exists (
                select 1 from timer other where other.slot_id = due.slot_id and not other.failed and other.run_at <= $1
                  and other.id not in (select id from ours))
        )
        delete from timer where id in (select id from ours except select id from left_alone)
        returning timer.id, slot_id as "slot_id: SlotId", kind as "kind: Timer", due_at, nth
        "#,
        now,
        all,
        most
    )
    .fetch_all(tx.conn())
    .await?;
    if claimed.is_empty() {
        return Ok((0, 0));
    }
    // The record tells it in the order in which it fell due.
    claimed.sort_by_key(|timer| (timer.due_at, timer.id));
    match (fire_all(&mut tx, &claimed).await, claimed.as_slice()) {
        (Ok(effective), _) => {
            fault::point("timer.before_commit");
            tx.commit().await?;
            Ok((claimed.len(), effective))
        }
        (Err(refusal), [timer]) => {
            tx.roll_back().await;
            put_off(engine, timer, &refusal).await?;
            Ok((1, 0))
        }
        (Err(_), several) => {
            tx.roll_back().await;
            let (mut count, mut effective) = (0, 0);
            for _ in several {
                let (one, took_effect) = Box::pin(fire_some(engine, all, 1)).await?;
                count += one;
                effective += took_effect;
            }
            Ok((count, effective))
        }
    }
}

/// Does what these timers are for; answers how many took effect.
async fn fire_all(tx: &mut Tx, claimed: &[Claimed]) -> Result<usize, Refusal> {
    let settings = settings::within(tx).await?;
    let mut effective = 0;
    // Whole tasks, in the order of everything that locks several: what follows may end them or hand questions on.
    let ids: Vec<SlotId> = claimed.iter().map(|timer| timer.slot_id).collect();
    let slots: HashMap<SlotId, Slot> =
        slot::lock_all(tx, &ids).await?.into_iter().map(|slot| (slot.id, slot)).collect();
    let mut touched: HashSet<TaskId> = HashSet::new();
    let (ends, clocks): (Vec<&Claimed>, Vec<&Claimed>) = claimed.iter().partition(|timer| timer.kind == Timer::Expire);
    if !clocks.is_empty() {
        let facts = batch::facts(tx, &clocks).await?;
        let firings = batch::firings(&clocks, &facts, &settings, tx.now());
        batch::write(tx, &firings).await?;
        effective += firings.len();
        for firing in firings {
            // A reminder or a warning that is fired alone hands nothing on: it is not late yet.
            let rung = match firing.kind {
                Timer::Breach => Some(1),
                Timer::Managers => Some(2),
                _ => None,
            };
            if let Some((slot, rung)) = slots.get(&firing.slot).filter(|slot| slot.reassigns_late).zip(rung) {
                let again = read_again(tx, slot, &mut touched).await?;
                slot::expire::late(tx, again.as_ref().unwrap_or(slot), rung, &firing.tell).await?;
            }
        }
    }
    for timer in ends {
        let Some(slot) = slots.get(&timer.slot_id) else { continue };
        let again = read_again(tx, slot, &mut touched).await?;
        effective += usize::from(slot::expire::expire(tx, again.as_ref().unwrap_or(slot)).await?);
    }
    Ok(effective)
}

/// The slot as another timer of the same task, fired just now, has left it; None when there was none.
async fn read_again(tx: &mut Tx, slot: &Slot, touched: &mut HashSet<TaskId>) -> Result<Option<Slot>, Refusal> {
    if touched.insert(slot.task_id) { Ok(None) } else { slot::lock(tx, slot.id).await }
}

/// Tried again after a pause that doubles, to an hour; given up after a day, and then for an administrator to start again.
async fn put_off(engine: &Engine, timer: &Claimed, refusal: &Refusal) -> Result<(), Refusal> {
    let cause = std::error::Error::source(refusal).map(|cause| format!(" ({cause})")).unwrap_or_default();
    let problem: String = format!("{refusal}{cause}").chars().take(500).collect();
    tracing::warn!(timer = timer.id, slot = %timer.slot_id, %problem, "a timer failed");
    sqlx::query!(
        "update timer set tries = tries + 1, problem = $2, failed = tries + 1 >= $4::smallint,
                          run_at = $3::timestamptz + interval '1 second' * least(2 * power(2, tries), 3600)
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
