//! The server's side of a session: who it is, whether it still holds, and ending it.

use chrono::{DateTime, Duration, Utc};

use super::PersonRow;
use crate::{
    Engine, Refusal,
    actor::PersonActor,
    audit,
    ids::{PersonId, SignInId},
};

/// A session ends after this long unused, and after [`longest`] in any case.
fn idle() -> Duration {
    Duration::days(14)
}

fn longest() -> Duration {
    Duration::days(90)
}

pub struct SignIn {
    pub id: SignInId,
    pub user_agent: String,
    pub created_at: DateTime<Utc>,
    pub seen_at: DateTime<Utc>,
}

/// Who this sign-in is, with the roles and groups of this moment. None when it ended, was unused for too long, or the
/// person was disabled.
pub async fn session(engine: &Engine, id: SignInId) -> Result<Option<PersonActor>, Refusal> {
    let now = engine.clock.now();
    let row = sqlx::query!(
        r#"
        select p.id as "id!: PersonId", p.name as "name!", p.email as "email!", p.time_zone as "time_zone!",
               p.keys as "keys!", s.seen_at
        from sign_in s join acting_person p on p.id = s.person_id
        where s.id = $1 and s.ended_at is null and s.seen_at > $2 and s.created_at > $3
        "#,
        id.0,
        now - idle(),
        now - longest(),
    )
    .fetch_optional(&engine.pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    // Once in a while is enough for "last seen", and spares a write on every page.
    if now - row.seen_at > Duration::minutes(5) {
        sqlx::query!("update sign_in set seen_at = $2 where id = $1 and ended_at is null", id.0, now)
            .execute(&engine.pool)
            .await?;
    }
    let row = PersonRow { id: row.id, name: row.name, email: row.email, time_zone: row.time_zone, keys: row.keys };
    Ok(Some(row.actor(None)))
}

/// A person's live sessions, the newest first.
pub async fn sign_ins(engine: &Engine, person: &PersonActor) -> Result<Vec<SignIn>, Refusal> {
    let now = engine.clock.now();
    Ok(sqlx::query_as!(
        SignIn,
        r#"select id as "id: SignInId", user_agent, created_at, seen_at from sign_in
           where person_id = $1 and ended_at is null and seen_at > $2 and created_at > $3
           order by created_at desc limit 50"#,
        person.id.0,
        now - idle(),
        now - longest(),
    )
    .fetch_all(&engine.pool)
    .await?)
}

/// Ends this sign-in; ending it twice is no fault.
pub async fn sign_out(engine: &Engine, id: SignInId) -> Result<(), Refusal> {
    sqlx::query!("update sign_in set ended_at = $2 where id = $1 and ended_at is null", id.0, engine.clock.now())
        .execute(&engine.pool)
        .await?;
    Ok(())
}

/// Ends one of the person's own sessions. Refuses with `not_found` when it is not theirs or has ended.
pub async fn end_sign_in(engine: &Engine, person: &PersonActor, id: SignInId) -> Result<(), Refusal> {
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let ended = sqlx::query!(
        "update sign_in set ended_at = $3 where id = $1 and person_id = $2 and ended_at is null",
        id.0,
        person.id.0,
        now,
    )
    .execute(tx.conn())
    .await?;
    if ended.rows_affected() != 1 {
        return Err(Refusal::NotFound);
    }
    audit::write(&mut tx, &format!("person:{}", person.id), "sign_in.ended", &format!("sign_in:{id}"), None).await?;
    tx.commit().await
}
