//! A unit of work: a connection, the moment it happens at, and who is to be woken once it is committed.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, Postgres, pool::PoolConnection};

use crate::{Engine, Refusal, ids::Id, wake::Topic};

enum Conn {
    Single(PoolConnection<Postgres>),
    Transaction(sqlx::Transaction<'static, Postgres>),
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
        }
    }

    /// Wakes whoever waits for `topic`, after the commit: a NOTIFY inside the transaction would serialise commits.
    pub(crate) fn wake(&mut self, topic: Topic) {
        self.topics.push(topic);
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
