//! What a person changes about themselves.

use super::password;
use crate::{Engine, FieldError, Refusal, actor::PersonActor, audit, ids::SignInId};

/// Changes the password and ends every other session of theirs; `keep` goes on. Pointers /old and /new.
pub async fn change_password(
    engine: &Engine,
    person: &PersonActor,
    keep: SignInId,
    old: &str,
    new: &str,
) -> Result<(), Refusal> {
    let hash = sqlx::query_scalar!("select password_hash from person where id = $1", person.id.0)
        .fetch_one(&engine.pool)
        .await?;
    let mut errors = Vec::new();
    if !password::verify(old, hash).await? {
        errors.push(FieldError::new("/old", "This is not your present password."));
    }
    if let Err(error) = password::check(new, "/new", &[&person.email, &person.name]) {
        errors.push(error);
    }
    if !errors.is_empty() {
        return Err(Refusal::Invalid(errors));
    }
    let hash = password::hash(new).await?;
    let mut tx = engine.begin().await?;
    let now = tx.now();
    sqlx::query!("update person set password_hash = $2 where id = $1", person.id.0, hash).execute(tx.conn()).await?;
    sqlx::query!(
        "update sign_in set ended_at = $3 where person_id = $1 and id <> $2 and ended_at is null",
        person.id.0,
        keep.0,
        now,
    )
    .execute(tx.conn())
    .await?;
    let key = format!("person:{}", person.id);
    audit::write(&mut tx, &key, "person.password_changed", &key, None).await?;
    tx.commit().await
}

/// Changes the name and the time zone (an IANA name). Pointers /name and /time_zone.
pub async fn update_profile(engine: &Engine, person: &PersonActor, name: &str, time_zone: &str) -> Result<(), Refusal> {
    let name = name.trim();
    let mut errors = Vec::new();
    if name.is_empty() || name.chars().count() > 200 {
        errors.push(FieldError::new("/name", "Write your name, at most 200 characters."));
    }
    if time_zone.parse::<chrono_tz::Tz>().is_err() {
        errors.push(FieldError::new("/time_zone", "Choose a time zone, for example Europe/Berlin."));
    }
    if !errors.is_empty() {
        return Err(Refusal::Invalid(errors));
    }
    let mut tx = engine.begin().await?;
    sqlx::query!("update person set name = $2, time_zone = $3 where id = $1", person.id.0, name, time_zone)
        .execute(tx.conn())
        .await?;
    let key = format!("person:{}", person.id);
    audit::write(&mut tx, &key, "person.profile_changed", &key, None).await?;
    tx.commit().await
}
