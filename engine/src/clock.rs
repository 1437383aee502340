//! Time and randomness come from here and nowhere else; `clippy.toml` bans the direct calls.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, Duration, SubsecRound, Utc};
use rand::RngCore;
use sqlx::PgPool;
use uuid::Uuid;

use crate::hex;

/// Says what time it is (UTC, whole microseconds, as Postgres keeps them).
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> DateTime<Utc>;
}

/// The database's clock: this machine's, corrected by the last measured difference. What is due must not depend on
/// which instance looks, and an instance's clock may be an hour off.
pub struct DatabaseClock {
    ahead_micros: AtomicI64,
}

impl DatabaseClock {
    /// Measures once; call [`DatabaseClock::measure`] now and then.
    pub async fn new(pool: &PgPool) -> Result<Self, sqlx::Error> {
        let clock = Self { ahead_micros: AtomicI64::new(0) };
        clock.measure(pool).await?;
        Ok(clock)
    }

    pub async fn measure(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let before = machine_now();
        let there: DateTime<Utc> = sqlx::query_scalar("select clock_timestamp()").fetch_one(pool).await?;
        let after = machine_now();
        let ahead = there - (before + (after - before) / 2);
        // Under the width of a round trip the difference is noise, and time must not run backwards for it.
        if ahead.abs() > (after - before).max(Duration::milliseconds(5))
            || self.ahead_micros.load(Ordering::Relaxed) != 0
        {
            self.ahead_micros.store(ahead.num_microseconds().unwrap_or(0), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
fn machine_now() -> DateTime<Utc> {
    Utc::now()
}

impl Clock for DatabaseClock {
    fn now(&self) -> DateTime<Utc> {
        (machine_now() + Duration::microseconds(self.ahead_micros.load(Ordering::Relaxed))).trunc_subsecs(6)
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
