//! The site's settings as every instance reads them: calendars and policies, kept for a moment, since every question needs
//! them and they change seldom.

mod undo;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::PgConnection;
use tokio::time::Instant;

use crate::{
    Engine, Refusal, Tx,
    calendar::{self, Calendar},
    ids::PersonId,
    policy::{self, Policy},
};

pub use undo::{Change, undo};

/// How long another instance may go on with what was changed.
const KEPT: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct Settings {
    pub site: Calendar,
    /// Those of people who have their own.
    pub people: Vec<(PersonId, Calendar)>,
    pub policies: Vec<Policy>,
}

impl Settings {
    /// The calendar that decides for whoever was asked first: their own, else the site's.
    pub fn calendar(&self, asked: Option<PersonId>) -> &Calendar {
        let own = asked.and_then(|asked| self.people.iter().find(|(person, _)| *person == asked));
        own.map_or(&self.site, |(_, calendar)| calendar)
    }
}

/// The settings that were read last, and when.
#[derive(Clone, Default)]
pub struct Kept(Arc<Last>);

#[derive(Default)]
struct Last {
    read: RwLock<Option<ReadAt>>,
    /// Changed here: not to be trusted, however young.
    changed: AtomicBool,
    /// Somebody reads them anew.
    reading: AtomicBool,
}

type ReadAt = (Instant, Arc<Settings>);

impl Kept {
    /// Reads anew next time.
    pub(crate) fn forget(&self) {
        self.0.changed.store(true, Ordering::SeqCst);
    }

    /// What was read last, while it is young or somebody is reading it anew; None for whoever is to read it.
    fn to_go_on_with(&self) -> Option<Arc<Settings>> {
        let read = self.0.read.read().unwrap_or_else(PoisonError::into_inner);
        let (at, settings) = read.as_ref()?;
        let fresh = at.elapsed() < KEPT && !self.0.changed.load(Ordering::SeqCst);
        (fresh || self.0.reading.swap(true, Ordering::SeqCst)).then(|| settings.clone())
    }
}

/// The settings, at most a moment old.
pub async fn settings(engine: &Engine) -> Result<Arc<Settings>, Refusal> {
    match engine.settings.to_go_on_with() {
        Some(settings) => Ok(settings),
        None => read(&engine.settings, &mut *engine.pool.acquire().await?).await,
    }
}

/// The same within a unit of work, on its own connection: whoever holds one must not wait for a second.
pub(crate) async fn within(tx: &mut Tx) -> Result<Arc<Settings>, Refusal> {
    match tx.engine.settings.to_go_on_with() {
        Some(settings) => Ok(settings),
        None => {
            let kept = tx.engine.settings.clone();
            read(&kept, tx.conn()).await
        }
    }
}

/// Lets the next one read when this one is done, failed or was dropped where it stood.
struct Reading<'a>(&'a AtomicBool);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

async fn read(kept: &Kept, conn: &mut PgConnection) -> Result<Arc<Settings>, Refusal> {
    let _reading = Reading(&kept.0.reading);
    kept.0.changed.store(false, Ordering::SeqCst);
    let mut site = Calendar::default();
    let mut people = Vec::new();
    for (owner, calendar) in calendar::load_all(conn).await? {
        match owner {
            None => site = calendar,
            Some(person) => people.push((person, calendar)),
        }
    }
    let policies = policy::load(conn).await?;
    let settings = Arc::new(Settings { site, people, policies });
    *kept.0.read.write().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), settings.clone()));
    Ok(settings)
}
