//! Time and randomness come from here and nowhere else; `clippy.toml` bans the direct calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use rand::RngCore;
use sqlx::PgPool;
use uuid::Uuid;

use crate::hex;

/// Says what time it is (UTC, whole microseconds, as Postgres keeps them).
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> DateTime<Utc>;
}

/// The database's clock: as it was measured last, and what has passed since by a clock that nobody sets. What is due must not
/// depend on which instance looks, and a machine's own clock may be an hour off, or be put so while the program runs.
pub struct DatabaseClock {
    began: Instant,
    /// What the database's clock showed when the program's began, in microseconds since 1970.
    micros_at_begin: AtomicI64,
}

/// A difference under this is noise of the measurement, and time must not run backwards for it.
const NOISE: i64 = 5_000;

impl DatabaseClock {
    /// Measures once; call [`DatabaseClock::measure`] now and then.
    pub async fn new(pool: &PgPool) -> Result<Self, sqlx::Error> {
        let clock = Self { began: Instant::now(), micros_at_begin: AtomicI64::new(i64::MIN) };
        clock.measure(pool).await?;
        Ok(clock)
    }

    pub async fn measure(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        // Waiting for a connection is no part of the way to the database.
        let mut conn = pool.acquire().await?;
        let before = self.began.elapsed();
        let there: DateTime<Utc> = sqlx::query_scalar("select clock_timestamp()").fetch_one(&mut *conn).await?;
        self.set(before, there, self.began.elapsed());
        Ok(())
    }

    /// The database's clock showed `there` some time between `before` and `after`.
    fn set(&self, before: Duration, there: DateTime<Utc>, after: Duration) {
        let width = (after - before).as_micros() as i64;
        let measured = there.timestamp_micros() - (before + (after - before) / 2).as_micros() as i64;
        let known = self.micros_at_begin.load(Ordering::Relaxed);
        if known == i64::MIN || (measured - known).abs() > width.max(NOISE) {
            self.micros_at_begin.store(measured, Ordering::Relaxed);
        }
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> DateTime<Utc> {
        let micros = self.micros_at_begin.load(Ordering::Relaxed) + self.began.elapsed().as_micros() as i64;
        DateTime::from_timestamp_micros(micros).unwrap_or_default()
    }
}

/// Makes UUIDv7s from the clock and the operating system's generator. Clones share one monotonic counter.
#[derive(Clone)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    last: Arc<AtomicI64>,
}

impl Ids {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: Arc::new(AtomicI64::new(0)) }
    }

    /// A new id, greater than every one before it from this generator: lists are in order of id.
    pub fn next(&self) -> Uuid {
        let now = self.clock.now().timestamp_micros();
        let micros = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)))
            .map_or(now, |last| now.max(last + 1));
        // 48 bits of milliseconds, then the microseconds within it in `rand_a` (RFC 9562, section 6.2, method 3).
        let mut random = [0; 10];
        random_bytes(&mut random);
        let sub = ((micros % 1000) * 4096 / 1000) as u16;
        random[0] = (sub >> 8) as u8;
        random[1] = sub as u8;
        uuid::Builder::from_unix_timestamp_millis((micros / 1000) as u64, &random).into_uuid()
    }
}

/// Fills `bytes` from the operating system's generator.
pub fn random_bytes(bytes: &mut [u8]) {
    rand::rng().fill_bytes(bytes);
}

/// A new unguessable value: `bytes` random bytes as lower-case hex.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    random_bytes(&mut buffer);
    hex(&buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_the_database_and_no_noise_of_the_measurement() {
        let clock = DatabaseClock { began: Instant::now(), micros_at_begin: AtomicI64::new(i64::MIN) };
        let at = |micros: i64| DateTime::from_timestamp_micros(micros).unwrap();
        let (before, after) = (Duration::from_millis(100), Duration::from_millis(140));
        let begin = || clock.micros_at_begin.load(Ordering::Relaxed);
        clock.set(before, at(1_000_120_000), after);
        assert_eq!(begin(), 1_000_000_000);
        // Within the width of the measurement nothing is learned.
        clock.set(before, at(1_000_150_000), after);
        assert_eq!(begin(), 1_000_000_000);
        // The database's clock was put forward by an hour.
        clock.set(before, at(4_600_120_000), after);
        assert_eq!(begin(), 4_600_000_000);
        assert!(clock.now() >= at(4_600_000_000) && clock.now() < at(4_660_000_000));
    }
}
