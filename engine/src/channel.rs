//! Channels: how people hear of what a timer did. The inbox's list is the first; mail is another.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;

use crate::{Engine, Refusal, Tx, actor::PersonActor, ids::SlotId};

/// What whoever stands behind a key should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// "person:<id>", "group:<id>" or "role:<role>".
    pub key: String,
    pub slot: SlotId,
    /// reminded, at_risk, breached, escalated
    pub kind: &'static str,
    pub due_at: DateTime<Utc>,
}

/// Delivers notices, in the transaction of what they tell. A channel that speaks to the outside keeps them there and sends
/// after the commit.
pub trait Channel: Send + Sync + 'static {
    fn deliver<'a>(&'a self, tx: &'a mut Tx, notices: &'a [Notice]) -> BoxFuture<'a, Result<(), Refusal>>;
}

/// The list beside the inbox.
pub struct InboxChannel;

impl Channel for InboxChannel {
    fn deliver<'a>(&'a self, tx: &'a mut Tx, notices: &'a [Notice]) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let keys: Vec<_> = notices.iter().map(|notice| notice.key.clone()).collect();
            let slots: Vec<_> = notices.iter().map(|notice| notice.slot.0).collect();
            let kinds: Vec<_> = notices.iter().map(|notice| notice.kind.to_owned()).collect();
            let due: Vec<_> = notices.iter().map(|notice| notice.due_at).collect();
            let now = tx.now();
            sqlx::query!(
                "insert into notification (key, slot_id, kind, due_at, at)
                 select key, slot_id, kind, due_at, $5
                 from unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[]) as n (key, slot_id, kind, due_at)",
                &keys,
                &slots,
                &kinds,
                &due,
                now
            )
            .execute(tx.conn())
            .await?;
            Ok(())
        })
    }
}

/// News for somebody.
#[derive(Clone, Debug)]
pub struct News {
    pub id: i64,
    pub slot: SlotId,
    pub message: String,
    pub kind: String,
    pub due_at: DateTime<Utc>,
    pub at: DateTime<Utc>,
    /// Since they looked last.
    pub fresh: bool,
    /// The question still waits.
    pub waits: bool,
}

/// Pieces of news that are shown at a time.
pub const MOST_NEWS: usize = 50;

/// The newest news for the person, their groups and roles: each once, and no reminder of what they have had their say on.
pub async fn news(engine: &Engine, person: &PersonActor) -> Result<Vec<News>, Refusal> {
    Ok(sqlx::query_as!(
        News,
        r#"
        with top as (
            select distinct on (n.slot_id, n.kind, n.due_at) n.* from unnest($1::text[]) key
            cross join lateral (
                select id, slot_id, kind, due_at, at from notification where notification.key = key.key
                order by id desc limit $3
            ) n
            order by n.slot_id, n.kind, n.due_at, n.id desc
        )
        select top.id, s.id as "slot: SlotId", left(s.message, 200) as "message!", top.kind, top.due_at, top.at,
               (top.id > p.notified_id) as "fresh!", (s.status = 'waiting') as "waits!"
        from top join slot s on s.id = top.slot_id join person p on p.id = $2
        where top.kind not in ('reminded', 'at_risk')
           or not (p.id = any(s.declined) or s.votes @> jsonb_build_array(jsonb_build_object('id', p.id))
                   or s.votes @> jsonb_build_array(jsonb_build_object('covers', p.id)))
        order by top.id desc limit $3
        "#,
        &person.keys,
        person.id.0,
        MOST_NEWS as i64,
    )
    .fetch_all(&engine.pool)
    .await?)
}

/// The person has seen their news up to this one.
pub async fn seen(engine: &Engine, person: &PersonActor, newest: i64) -> Result<(), Refusal> {
    sqlx::query!("update person set notified_id = greatest(notified_id, $2) where id = $1", person.id.0, newest)
        .execute(&engine.pool)
        .await?;
    Ok(())
}
