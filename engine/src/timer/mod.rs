//! The scheduler: timers are rows that every instance claims when they are due (design section 7). Whoever claims one does
//! what it is for and deletes it in the same transaction, so it takes effect once, however many instances run.

mod alone;
mod batch;
pub mod failed;

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::{Engine, Refusal, Tx, ids::SlotId, person, policy::clocks::Timer, slot, wake::Topic};

/// How long a lost wake-up can delay a timer.
const POLL: Duration = Duration::from_secs(1);
/// How often questions without timers, or without anybody to answer them, are looked for, in polls.
const SWEPT_EVERY: u64 = 60;
/// Timers that are claimed at a time.
const BATCH: i64 = 1_000;
/// The pause when what is due is in the hands of another instance, which may have stopped with it.
const IN_OTHER_HANDS: Duration = Duration::from_millis(200);
/// Tries before an administrator is asked to look; the pauses between them double from two seconds to an hour, so what is down
/// for a day comes back by itself.
const TRIES: i16 = 32;

/// Fires what is due, until `shutdown`: sleeps until the next due time, is woken for an earlier one. What goes in batches does
/// not wait for what goes alone.
pub async fn run(engine: Engine, shutdown: watch::Receiver<bool>) {
    tokio::join!(
        lane(&engine, shutdown.clone(), Lane::Batches),
        lane(&engine, shutdown.clone(), Lane::Alone),
        others(&engine, shutdown)
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Batches,
    Alone,
}

async fn lane(engine: &Engine, mut shutdown: watch::Receiver<bool>, lane: Lane) {
    let clock = engine.wakes.subscribe([Topic::Clock]);
    while !*shutdown.borrow() {
        let fired = async {
            let mut claimed = false;
            while fire(engine, lane).await?.0 > 0 {
                claimed = true;
            }
            until_next(engine, lane, claimed).await
        };
        let pause = fired.await.unwrap_or_else(|error| {
            tracing::error!(%error, cause = ?std::error::Error::source(&error), "timers were interrupted and will be tried again");
            POLL
        });
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = clock.woken() => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// What is looked for now and then: absences that begin and end, and questions without timers or without anybody who can
/// answer.
async fn others(engine: &Engine, mut shutdown: watch::Receiver<bool>) {
    let mut seconds = 0_u64;
    while !*shutdown.borrow() {
        let done = async {
            if seconds.is_multiple_of(SWEPT_EVERY) {
                adopt(engine).await?;
                slot::sweep_alarms(engine).await?;
            }
            person::away::due(engine).await
        };
        if let Err(error) = done.await {
            tracing::error!(%error, cause = ?std::error::Error::source(&error), "absences and questions without timers will be looked for again");
        }
        seconds += 1;
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// Sets the timers of questions that an older version asked while this one was already migrating: it knows of expiry and of
/// due dates, but not of timers. One instance at a time.
async fn adopt(engine: &Engine) -> Result<(), Refusal> {
    let mut tx = engine.pool.begin().await?;
    let adopted = sqlx::query!(
        "with mine as materialized (select pg_try_advisory_xact_lock(7120434) as mine)
         insert into timer (slot_id, kind, due_at, run_at, alone)
         select s.id, wanted.kind, wanted.at, wanted.at, wanted.kind = 'expire' or s.reassign_late
         from mine, slot s,
              lateral (values ('expire', s.expires_at), ('breach', case when s.breached_at is null then s.due_at end)) wanted (kind, at)
         where mine.mine and s.status = 'waiting' and wanted.at is not null
           and not exists (select 1 from timer t where t.slot_id = s.id and t.kind = wanted.kind)"
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    if adopted.rows_affected() > 0 {
        tracing::info!(count = adopted.rows_affected(), "questions of an older version got their timers");
    }
    Ok(())
}

/// How long until the lane's next timer, at most the poll's bound.
async fn until_next(engine: &Engine, lane: Lane, claimed: bool) -> Result<Duration, Refusal> {
    let alone = lane == Lane::Alone;
    let next = sqlx::query_scalar!(
        r#"select run_at from timer where not failed and alone = $1 order by run_at limit 1"#,
        alone
    )
    .fetch_optional(&engine.pool)
    .await?;
    let wait = next.map_or(POLL, |next| (next - engine.clock.now()).to_std().unwrap_or(Duration::ZERO));
    // Due, and yet there was nothing to claim.
    let least = if wait.is_zero() && !claimed { IN_OTHER_HANDS } else { Duration::from_millis(5) };
    Ok(wait.clamp(least, POLL))
}

/// Fires some of what is due now. Answers how many timers were claimed, and how many took effect.
async fn fire(engine: &Engine, lane: Lane) -> Result<(usize, usize), Refusal> {
    if lane == Lane::Alone {
        return alone::fire_each(engine, BATCH as usize, false).await;
    }
    match batch::fire(engine).await {
        Ok(done) => Ok(done),
        // One that fails must not keep the others of its batch from firing: they are tried one by one.
        Err(refusal) => {
            tracing::warn!(%refusal, cause = ?std::error::Error::source(&refusal), "a batch of timers failed; they are tried one by one");
            alone::fire_each(engine, BATCH as usize, true).await
        }
    }
}

/// Fires every timer that is due now; answers how many took effect. Instances that do this at once share the work.
pub async fn due(engine: &Engine) -> Result<usize, Refusal> {
    let mut fired = 0;
    loop {
        let (claimed, effective) = fire(engine, Lane::Batches).await?;
        let (alone, ended) = fire(engine, Lane::Alone).await?;
        fired += effective + ended;
        if claimed == 0 && alone == 0 {
            return Ok(fired);
        }
    }
}

/// A timer as it was claimed.
#[derive(Clone, Debug)]
struct Claimed {
    id: i64,
    slot_id: SlotId,
    kind: Timer,
    due_at: DateTime<Utc>,
    nth: i32,
}

/// Sets timers of a slot, and wakes the schedulers for them.
pub(crate) async fn set(
    tx: &mut Tx,
    slot: SlotId,
    timers: &[(Timer, DateTime<Utc>)],
    reassigns: bool,
) -> Result<(), Refusal> {
    let kinds: Vec<_> = timers.iter().map(|(timer, _)| timer.as_str().to_owned()).collect();
    let times: Vec<_> = timers.iter().map(|(_, at)| *at).collect();
    sqlx::query!(
        "insert into timer (slot_id, kind, due_at, run_at, alone)
         select $1, kind, at, at, kind = 'expire' or ($4 and kind in ('breach', 'managers'))
         from unnest($2::text[], $3::timestamptz[]) as t (kind, at)",
        slot.0,
        &kinds,
        &times,
        reassigns
    )
    .execute(tx.conn())
    .await?;
    tx.wake(Topic::Clock);
    Ok(())
}

/// Drops timers of these kinds. One that somebody is firing at this moment is left: it will find that it is out of date.
pub(crate) async fn drop_of(tx: &mut Tx, slot: SlotId, kinds: &[Timer]) -> Result<(), Refusal> {
    let kinds: Vec<_> = kinds.iter().map(|timer| timer.as_str().to_owned()).collect();
    sqlx::query!(
        "delete from timer where id in (
             select id from timer where slot_id = $1 and kind = any($2) for update skip locked)",
        slot.0,
        &kinds
    )
    .execute(tx.conn())
    .await?;
    Ok(())
}
