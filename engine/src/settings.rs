//! The site's settings as every instance reads them: calendars and policies, kept for a moment, since every question needs
//! them and they change seldom.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    Engine, Refusal,
    calendar::{self, Calendar, Owner},
    ids::PersonId,
    policy::{self, Policy},
};

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

    /// What was read last, and whether it can still be trusted.
    fn last(&self) -> Option<(Arc<Settings>, bool)> {
        let read = self.0.read.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = |at: &Instant| at.elapsed() < KEPT && !self.0.changed.load(Ordering::SeqCst);
        read.as_ref().map(|(at, settings)| (settings.clone(), fresh(at)))
    }
}

/// The settings, at most a moment old. While one reads them anew the others go on with the former: whoever asks holds a
/// connection already, and if all of them waited for a second one, none would ever be free.
pub async fn settings(engine: &Engine) -> Result<Arc<Settings>, Refusal> {
    let kept = &engine.settings;
    match kept.last() {
        Some((settings, true)) => return Ok(settings),
        Some((settings, false)) if kept.0.reading.swap(true, Ordering::SeqCst) => return Ok(settings),
        _ => {}
    }
    let _reading = Reading(&kept.0.reading);
    kept.0.changed.store(false, Ordering::SeqCst);
    let settings = read(engine).await?;
    *kept.0.read.write().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), settings.clone()));
    Ok(settings)
}

/// Lets the next one read when this one is done, failed or was dropped where it stood.
struct Reading<'a>(&'a AtomicBool);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

async fn read(engine: &Engine) -> Result<Arc<Settings>, Refusal> {
    let mut conn = engine.pool.acquire().await?;
    let site = calendar::load(&mut conn, Owner::Site).await?.unwrap_or_default();
    let owners =
        sqlx::query_scalar!(r#"select person_id as "id!: PersonId" from calendar where person_id is not null"#)
            .fetch_all(&mut *conn)
            .await?;
    let mut people = Vec::new();
    for owner in owners {
        if let Some(calendar) = calendar::load(&mut conn, Owner::Person(owner)).await? {
            people.push((owner, calendar));
        }
    }
    let policies = policy::load(&mut conn).await?;
    Ok(Arc::new(Settings { site, people, policies }))
}
