//! The database that a command works on: the one of `DATABASE_URL`, or the private one.

use std::{str::FromStr, sync::Arc, time::Duration};

use engine::{Engine, agent, clock::DatabaseClock, seal::Keyring, settings};
use sqlx::{
    Connection, Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    cli::{DatabaseAt, Failure, sentences},
    keys,
    postgres::Private,
};

const OLDEST: i32 = 150_000;

/// An instance that is stopped, or cut off, in the middle of a transaction must not keep its rows from the others. Said by SET,
/// not when connecting: poolers refuse that.
const LET_GO_OF_THE_STILL: &str = "set idle_in_transaction_session_timeout = '5s'";
const LET_GO_OF_THE_CUT_OFF: &str = "set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 2; set tcp_user_timeout = '9s'";

/// An open database; the private server, if this command started it, ends with [`Database::close`].
pub struct Database {
    pub pool: PgPool,
    private: Option<Private>,
}

impl Database {
    pub async fn open(at: &DatabaseAt, connections: u32) -> Result<Self, Failure> {
        let (options, private) = match &at.database_url {
            Some(url) => {
                let options = PgConnectOptions::from_str(url).map_err(|_| {
                    "DATABASE_URL is not the address of a Postgres: write postgres://user:password@host:5432/database."
                        .to_owned()
                })?;
                (options, None)
            }
            None => {
                let private = Private::start(at.data.as_deref()).await?;
                (private.options(), Some(private))
            }
        };
        match connect(options, connections, private.is_some()).await {
            Ok(pool) => Ok(Self { pool, private }),
            Err(failure) => {
                if let Some(private) = private {
                    private.stop().await;
                }
                Err(failure)
            }
        }
    }

    /// The engine over a migrated schema; several instances that start at once migrate one after the other.
    pub async fn engine(&self, keys: Keyring) -> Result<Engine, Failure> {
        engine::MIGRATIONS.run(&self.pool).await.map_err(|error| {
            format!("The database's schema could not be brought up to date: {error}. Nothing was started.")
        })?;
        let clock = DatabaseClock::new(&self.pool)
            .await
            .map_err(|error| format!("The database's clock could not be read: {error}."))?;
        let clock = Arc::new(clock);
        let (measured, pool) = (clock.clone(), self.pool.clone());
        tokio::spawn(async move {
            while !pool.is_closed() {
                tokio::time::sleep(Duration::from_secs(60)).await;
                // A missed measurement keeps the last one; the next is a minute away.
                let _ = measured.measure(&pool).await;
            }
        });
        let engine = Engine::new(self.pool.clone(), clock, keys);
        // Once before anybody asks: from then on there is always something to go on with.
        settings::settings(&engine).await.map_err(|refusal| sentences(&refusal))?;
        agent::ensure_built_in(&engine).await.map_err(|refusal| sentences(&refusal))?;
        Ok(engine)
    }

    /// The private server ends with this process, whoever started it.
    pub fn adopt(&mut self) {
        if let Some(private) = &mut self.private {
            private.adopt();
        }
    }

    pub async fn close(self) {
        // What still holds a connection loses it: the commit decided, and the log is the only state.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.pool.close()).await;
        if let Some(private) = self.private {
            private.stop().await;
        }
    }
}

async fn connect(options: PgConnectOptions, connections: u32, private: bool) -> Result<PgPool, Failure> {
    let place = format!("{}:{}", options.get_host(), options.get_port());
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(5))
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(LET_GO_OF_THE_STILL).await?;
                // Not every system's Postgres has all of these.
                if let Err(error) = connection.execute(LET_GO_OF_THE_CUT_OFF).await {
                    tracing::debug!(%error, "Postgres keeps its own time for connections that are cut off");
                }
                Ok(())
            })
        })
        // A connection that has rested may have died with a restarted server; asking one that was just in use would
        // cost a round trip for every query.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > Duration::from_secs(1) {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_with(options)
        .await
        .map_err(|error| match private {
            true => format!("The private Postgres does not answer: {error}."),
            false => format!("The Postgres of DATABASE_URL at {place} does not let us in: {error}. Check the address, the user and the password."),
        })?;
    let version: i32 = sqlx::query_scalar("select current_setting('server_version_num')::int")
        .fetch_one(&pool)
        .await
        .map_err(|error| format!("The version of Postgres could not be read: {error}."))?;
    if version < OLDEST {
        return Err(format!("This Postgres is version {}; Layby needs 15 or newer.", version / 10_000));
    }
    Ok(pool)
}

/// Checks what Layby needs, a line each.
pub async fn doctor(at: &DatabaseAt) -> Result<(), Failure> {
    let database = Database::open(at, 2).await?;
    println!("✓ Postgres answers and is 15 or newer");
    let keys = keys::ring_if_any(at);
    match &keys {
        Ok(_) => println!("✓ The key that seals secrets can be read"),
        Err(failure) => println!("✗ {failure}"),
    }
    let engine = match keys {
        Ok(keys) => database.engine(keys).await,
        Err(failure) => Err(failure),
    };
    match &engine {
        Ok(_) => println!("✓ The schema is up to date"),
        Err(failure) => println!("✗ {failure}"),
    }
    if let Ok(engine) = &engine {
        match engine::person::setup::needed(engine).await {
            Ok(true) => println!(
                "✗ There is no administrator yet: start `layby serve` and use the code that it prints at /setup"
            ),
            Ok(false) => println!("✓ There is an administrator"),
            Err(refusal) => println!("✗ {}", sentences(&refusal)),
        }
    }
    database.close().await;
    engine.map(|_| ())
}
