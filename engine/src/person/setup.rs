//! The first administrator, with a one-time code from the log.

use sha2::{Digest, Sha256};

use super::{NewPerson, Role, add};
use crate::{Engine, Refusal, clock, ids::PersonId};

/// Whether nobody can administer this installation yet.
pub async fn needed(engine: &Engine) -> Result<bool, Refusal> {
    Ok(sqlx::query_scalar!(
        r#"select not exists (
               select 1 from person_role r join person p on p.id = r.person_id
               where r.role = 'admin' and p.disabled_at is null
           ) as "needed!""#
    )
    .fetch_one(&engine.pool)
    .await?)
}

/// A new code when one is needed, to be written to the log; the one before stops working.
pub async fn new_code(engine: &Engine) -> Result<Option<String>, Refusal> {
    if !needed(engine).await? {
        return Ok(None);
    }
    let code = clock::random_hex(12);
    sqlx::query!(
        "insert into setup_code (hash, created_at) values ($1, $2)
         on conflict (only_one) do update set hash = excluded.hash, created_at = excluded.created_at",
        hash(&code),
        engine.clock.now(),
    )
    .execute(&engine.pool)
    .await?;
    Ok(Some(code))
}

/// Makes the first administrator, once. Refuses with `invalid` (pointer /code when the code is wrong or used; the
/// pointers of [`add`] otherwise, and then the code still works).
pub async fn set_up(engine: &Engine, code: &str, mut new: NewPerson) -> Result<PersonId, Refusal> {
    let mut tx = engine.begin().await?;
    // Deleting takes the row lock: two at once with the right code make one administrator.
    let used = sqlx::query!("delete from setup_code where hash = $1", hash(code.trim())).execute(tx.conn()).await?;
    if used.rows_affected() != 1 {
        return Err(Refusal::invalid(
            "/code",
            "This code is not the one in the log of the server, or it was used. Start the server again for a new one.",
        ));
    }
    new.roles = vec![Role::Person, Role::Manager, Role::Admin];
    if new.password.is_none() {
        return Err(Refusal::invalid("/password", "Choose a password."));
    }
    let id = add(&mut tx, "system", new).await?;
    // Built-in agents need somebody to turn to.
    sqlx::query!("update agent set sponsor_id = $1 where sponsor_id is null", id.0).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(id)
}

fn hash(code: &str) -> Vec<u8> {
    Sha256::digest(code).to_vec()
}
