//! What Layby is: slots, tasks, the agent loop, claims, people. Owns all SQL; knows no HTTP and no HTML.
//!
//! One noun is one module (`slot`, `task`, `agent`, …) with its SQL beside it: `mod.rs` is the noun (types and reading),
//! every other file is one verb. The words are those of the design, section 2.

pub mod actor;
pub mod agent;
mod audit;
pub mod calendar;
pub mod channel;
pub mod claim;
pub mod clock;
pub mod demo;
pub mod duration;
pub mod fault;
pub mod file;
mod hex;
pub mod idempotency;
pub mod ids;
pub mod money;
pub mod person;
pub mod pointer;
pub mod policy;
pub mod refusal;
pub mod seal;
pub mod settings;
pub mod slot;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timer;
mod tx;
pub mod unseen;
pub mod wake;

use std::sync::Arc;

use sqlx::PgPool;

pub use actor::Actor;
pub use hex::hex;
pub use refusal::{FieldError, Refusal};
pub use tx::Tx;

use channel::Channel;
use clock::{Clock, Ids};
use seal::Keyring;
use wake::Wakes;

/// The schema, applied on start under a lock.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// What every verb needs: the database, the time, new ids, and who is to be woken. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub pool: PgPool,
    pub clock: Arc<dyn Clock>,
    pub ids: Ids,
    pub wakes: Wakes,
    /// Seals secrets.
    pub keys: Keyring,
    /// Calendars and policies, as they were read last.
    pub settings: settings::Kept,
    /// How people hear of what timers do.
    pub channel: Arc<dyn Channel>,
}

impl Engine {
    pub fn new(pool: PgPool, clock: Arc<dyn Clock>, keys: Keyring) -> Self {
        let ids = Ids::new(clock.clone());
        Self {
            pool,
            clock,
            ids,
            wakes: Wakes::default(),
            keys,
            settings: settings::Kept::default(),
            channel: Arc::new(channel::InboxChannel),
        }
    }

    /// A connection on which each statement stands for itself. For verbs that are one statement.
    pub async fn single(&self) -> Result<Tx, Refusal> {
        Tx::single(self.clone()).await
    }

    /// A transaction. Nothing is announced before [`Tx::commit`].
    pub async fn begin(&self) -> Result<Tx, Refusal> {
        Tx::begin(self.clone()).await
    }
}
