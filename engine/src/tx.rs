//! A unit of work: a connection, the moment it happens at, and who is to be woken once it is committed.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, pool::PoolConnection};

use crate::{Engine, Refusal, ids::Id, wake::Topic};

enum Conn {
    Single(PoolConnection<Postgres>),
    Transaction(sqlx::Transaction<'static, Postgres>),
    /// Given back while a transaction is begun; when that fails, the unit of work is over.
    None,
}

/// See [`Engine::single`] and [`Engine::begin`]. Dropped without [`Tx::commit`], a transaction is rolled back.
pub struct Tx {
    conn: Conn,
    now: DateTime<Utc>,
    topics: Vec<Topic>,
    pub engine: Engine,
}

impl Tx {
    pub(crate) async fn single(engine: Engine) -> Result<Self, Refusal> {
        let conn = Conn::Single(engine.pool.acquire().await?);
        Ok(Self { conn, now: engine.clock.now(), topics: Vec::new(), engine })
    }

    pub(crate) async fn begin(engine: Engine) -> Result<Self, Refusal> {
        let conn = Conn::Transaction(engine.pool.begin().await?);
        Ok(Self { conn, now: engine.clock.now(), topics: Vec::new(), engine })
    }

    /// From here on one transaction, if it was not one before: for verbs that find out on the way that they need several
    /// statements. What a single connection wrote before is durable already.
    pub(crate) async fn transaction(&mut self) -> Result<(), Refusal> {
        if let Conn::Single(_) = self.conn {
            // The one connection goes back first: if everybody held one and waited for a second, none would ever be free.
            self.conn = Conn::None;
            self.conn = Conn::Transaction(self.engine.pool.begin().await?);
        }
        Ok(())
    }

    /// A place to go back to within a transaction; nothing on a single connection, where each statement stands alone.
    pub(crate) async fn savepoint(&mut self) -> Result<(), Refusal> {
        if let Conn::Transaction(tx) = &mut self.conn {
            sqlx::query("savepoint before").execute(&mut **tx).await?;
        }
        Ok(())
    }

    /// Undoes what failed since [`Tx::savepoint`], so that the transaction can go on.
    pub(crate) async fn back_to_savepoint(&mut self) -> Result<(), Refusal> {
        if let Conn::Transaction(tx) = &mut self.conn {
            sqlx::query("rollback to savepoint before").execute(&mut **tx).await?;
        }
        Ok(())
    }

    /// The moment this unit of work happens at (UTC): one for all its rows.
    pub fn now(&self) -> DateTime<Utc> {
        self.now
    }

    pub fn new_id<T: Id>(&self) -> T {
        T::from_uuid(self.engine.ids.next())
    }

    pub(crate) fn conn(&mut self) -> &mut PgConnection {
        match &mut self.conn {
            Conn::Single(conn) => conn,
            Conn::Transaction(tx) => tx,
            Conn::None => unreachable!("a unit of work goes on although its transaction could not begin"),
        }
    }

    /// Wakes whoever waits for `topic`, after the commit: a NOTIFY inside the transaction would serialise commits.
    pub(crate) fn wake(&mut self, topic: Topic) {
        self.topics.push(topic);
    }

    /// Undoes the work at once, so that its locks are gone when this returns. Dropping does so a little later.
    pub(crate) async fn roll_back(self) {
        if let Conn::Transaction(tx) = self.conn
            && let Err(error) = tx.rollback().await
        {
            tracing::warn!(%error, "a transaction could not be rolled back; its connection is gone");
        }
    }

    /// Makes the work durable, then wakes whoever it concerns. A crash in between loses only the wake-up, which the
    /// polls catch.
    pub async fn commit(self) -> Result<(), Refusal> {
        if let Conn::Transaction(tx) = self.conn {
            tx.commit().await?;
        }
        self.engine.wakes.announce(self.topics);
        Ok(())
    }
}
