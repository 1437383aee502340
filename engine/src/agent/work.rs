//! An instance's share of the work: claims what is ready, works on some tasks at a time, renews the leases.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};
use uuid::Uuid;

use super::{
    advance,
    lease::{self, Lease, Lost},
    model::Models,
};
use crate::{Engine, Refusal, wake::Topic};

/// Tasks that one instance works on at a time; most of that time a model is thinking.
const AT_ONCE: usize = 16;
/// The bound within which work is found whose wake-up was lost or whose instance died.
const POLL: Duration = Duration::from_millis(1_500);
/// How long a shutdown waits for steps that are under way.
const GRACE: Duration = Duration::from_secs(5);

/// Works until `shutdown` turns true; then finishes or gives back what it holds.
pub async fn run(engine: Engine, models: Models, mut shutdown: watch::Receiver<bool>) {
    let owner = engine.ids.next();
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let ready = engine.wakes.subscribe([Topic::Work]);
    let mut running = JoinSet::new();
    while !*shutdown.borrow() {
        // A free hand first, then the work: while all hands are busy there is no point in looking.
        let first = tokio::select! {
            permit = free.clone().acquire_owned() => permit,
            _ = shutdown.changed() => continue,
        };
        let Ok(first) = first else { break };
        while running.try_join_next().is_some() {}
        let most = 1 + free.available_permits();
        let claimed = lease::claim(&engine, owner, most as i64).await.unwrap_or_else(|error| {
            tracing::error!(%error, cause = ?std::error::Error::source(&error), "work could not be claimed and will be tried again");
            Vec::new()
        });
        let all_hands = claimed.len() == most;
        // Only this loop takes permits, so those counted are still there.
        let mut permits = std::iter::once(first).chain(std::iter::from_fn(|| free.clone().try_acquire_owned().ok()));
        for lease in claimed {
            let Some(permit) = permits.next() else { break };
            let (engine, models) = (engine.clone(), models.clone());
            running.spawn(async move {
                work(&engine, &models, lease).await;
                drop(permit);
            });
        }
        drop(permits);
        // There may be more than we had hands for.
        if all_hands {
            continue;
        }
        tokio::select! {
            () = ready.woken() => {}
            () = tokio::time::sleep(POLL) => {}
            _ = shutdown.changed() => {}
        }
    }
    let _ = tokio::time::timeout(GRACE, async { while running.join_next().await.is_some() {} }).await;
    running.shutdown().await;
    if let Err(error) = lease::release(&engine, owner).await {
        tracing::warn!(%error, "leases could not be given back; they end by themselves");
    }
}

/// Works on one task under its lease. A step whose lease is lost is dropped where it stands: it could write nothing.
async fn work(engine: &Engine, models: &Models, lease: Lease) {
    let renewing = async {
        loop {
            tokio::time::sleep(lease::RENEWED).await;
            match lease::renew(engine, lease).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(task = %lease.task, %error, "a lease could not be renewed"),
            }
        }
    };
    tokio::select! {
        done = advance::advance(engine, models, lease) => match done {
            Ok(()) | Err(Lost::Lease) => {}
            Err(error) => tracing::error!(task = %lease.task, %error, cause = ?std::error::Error::source(&error),
                "a step was interrupted; it is taken up again when the lease ends"),
        },
        () = renewing => tracing::info!(task = %lease.task, "the work is no longer this instance's"),
    }
}

/// Works, one task after the other, until nothing is ready. For tests and for whoever has no running instance.
pub async fn run_until_quiet(engine: &Engine, models: &Models) -> Result<(), Refusal> {
    let owner: Uuid = engine.ids.next();
    loop {
        let claimed = lease::claim(engine, owner, 10).await?;
        if claimed.is_empty() {
            return Ok(());
        }
        for lease in claimed {
            match advance::advance(engine, models, lease).await {
                Ok(()) | Err(Lost::Lease) => {}
                Err(Lost::Fault(refusal)) => return Err(refusal),
            }
        }
    }
}
