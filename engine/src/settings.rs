//! The site's settings as every instance reads them: calendars and policies, kept for a moment, since every question needs
//! them and they change seldom.

use std::{
    sync::{Arc, PoisonError, RwLock},
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
pub struct Kept(Arc<RwLock<Option<ReadAt>>>);

type ReadAt = (Instant, Arc<Settings>);

impl Kept {
    /// Reads anew next time.
    pub(crate) fn forget(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn fresh(&self) -> Option<Arc<Settings>> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(at, _)| at.elapsed() < KEPT).map(|(_, settings)| settings.clone())
    }
}

/// The settings, at most a moment old.
pub async fn settings(engine: &Engine) -> Result<Arc<Settings>, Refusal> {
    if let Some(settings) = engine.settings.fresh() {
        return Ok(settings);
    }
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
    let settings = Arc::new(Settings { site, people, policies });
    let mut kept = engine.settings.0.write().unwrap_or_else(PoisonError::into_inner);
    *kept = Some((Instant::now(), settings.clone()));
    Ok(settings)
}
