//! The scheduler: timers are rows that every instance claims when they are due (design section 7). Whoever claims one does
//! what it is for and deletes it in the same transaction, so it takes effect once, however many instances run.

mod alone;
mod batch;
pub mod failed;

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::{Engine, Refusal, Tx, ids::SlotId, person, policy::clocks::Timer, wake::Topic};

/// How long a lost wake-up can delay a timer.
const POLL: Duration = Duration::from_secs(1);
/// Timers that are claimed at a time.
const BATCH: i64 = 1_000;
/// Tries before an administrator is asked to look; the pauses between them double from two seconds.
const TRIES: i16 = 8;

/// Fires what is due, until `shutdown`: sleeps until the next due time, is woken for an earlier one.
pub async fn run(engine: Engine, mut shutdown: watch::Receiver<bool>) {
    let clock = engine.wakes.subscribe([Topic::Clock]);
    if let Err(error) = adopt(&engine).await {
        tracing::error!(%error, cause = ?std::error::Error::source(&error), "questions without timers could not be looked for");
    }
    while !*shutdown.borrow() {
        let fired = async {
            person::away::due(&engine).await?;
            due(&engine).await?;
            until_next(&engine).await
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

/// Sets the timers of questions that an older version asked while this one was already migrating. One that another instance
/// sets too does no harm: it finds the question ended.
async fn adopt(engine: &Engine) -> Result<(), Refusal> {
    let adopted = sqlx::query!(
        "insert into timer (slot_id, kind, due_at, run_at, alone)
         select id, 'expire', expires_at, expires_at, true from slot s
         where status = 'waiting' and expires_at is not null
           and not exists (select 1 from timer t where t.slot_id = s.id and t.kind = 'expire')"
    )
    .execute(&engine.pool)
    .await?;
    if adopted.rows_affected() > 0 {
        tracing::info!(count = adopted.rows_affected(), "questions of an older version got their timers");
    }
    Ok(())
}

/// How long until the next timer, at most the poll's bound.
async fn until_next(engine: &Engine) -> Result<Duration, Refusal> {
    let next = sqlx::query_scalar!(
        r#"select least((select min(run_at) from timer where not failed and alone),
                        (select min(run_at) from timer where not failed and not alone)) as next"#
    )
    .fetch_one(&engine.pool)
    .await?;
    let wait = next.map_or(POLL, |next| (next - engine.clock.now()).to_std().unwrap_or(Duration::ZERO));
    Ok(wait.clamp(Duration::from_millis(5), POLL))
}

/// Fires every timer that is due now; answers how many took effect. Instances that do this at once share the work.
pub async fn due(engine: &Engine) -> Result<usize, Refusal> {
    let mut fired = 0;
    loop {
        // One that fails must not keep the others of its batch from firing: they are tried one by one.
        let (claimed, effective) = match batch::fire(engine).await {
            Ok(done) => done,
            Err(refusal) => {
                tracing::warn!(%refusal, cause = ?std::error::Error::source(&refusal), "a batch of timers failed; they are tried one by one");
                alone::fire_each(engine, BATCH as usize, true).await?
            }
        };
        let (alone, ended) = alone::fire_each(engine, BATCH as usize, false).await?;
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
