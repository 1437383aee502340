//! Signing in, throttled over all instances.

use chrono::Duration;

use super::{acting, password};
use crate::{
    Engine, Refusal, Tx,
    actor::PersonActor,
    audit,
    ids::{PersonId, SignInId},
};

/// Failures from one network for one address, and from one network in all, within [`window`].
const TRIES_PER_ADDRESS: i64 = 8;
const TRIES_PER_NETWORK: i64 = 100;

fn window() -> Duration {
    Duration::minutes(15)
}

pub struct SignedIn {
    pub sign_in: SignInId,
    pub person: PersonActor,
}

#[derive(Debug, thiserror::Error)]
pub enum SignInRefusal {
    /// The same words whether nobody has that address, the password is wrong, or the person is disabled.
    #[error("That address and password do not go together. Check both and try again.")]
    Wrong,
    #[error("Too many tries from here. Please wait {} and try again.", crate::duration::words(*.wait))]
    TooMany { wait: Duration },
    #[error("{0}")]
    Fault(#[from] Refusal),
}

impl From<sqlx::Error> for SignInRefusal {
    fn from(error: sqlx::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Signs somebody in. `network` is where the try comes from (an IP address); `user_agent` is kept for the person's own
/// list of sessions.
pub async fn sign_in(
    engine: &Engine,
    email: &str,
    password: &str,
    network: &str,
    user_agent: &str,
) -> Result<SignedIn, SignInRefusal> {
    let email: String = email.trim().to_lowercase().chars().take(254).collect();
    let keys = [format!("email:{email}|{network}"), format!("network:{network}")];
    let now = engine.clock.now();
    if is_throttled(engine, &keys).await? {
        return Err(SignInRefusal::TooMany { wait: window() });
    }
    // Counted before the password is looked at, so that a hundred tries at once are a hundred tries.
    let mut tx = engine.begin().await?;
    count_try(&mut tx, &keys).await?;
    tx.commit().await?;
    if is_throttled(engine, &keys).await? {
        return Err(SignInRefusal::TooMany { wait: window() });
    }

    let known = sqlx::query!(
        r#"select id as "id: PersonId", password_hash from person where email = $1 and disabled_at is null"#,
        email
    )
    .fetch_optional(&engine.pool)
    .await?;
    let (id, hash) = known.map_or((None, None), |row| (Some(row.id), row.password_hash));
    let fits = password::verify(password, hash).await?;

    let mut tx = engine.begin().await?;
    let person = match id {
        Some(id) if fits => acting(tx.conn(), id).await?,
        _ => None,
    };
    let Some(person) = person else {
        let object = id.map_or_else(|| "person:unknown".to_owned(), |id| format!("person:{id}"));
        audit::write(&mut tx, "system", "sign_in.refused", &object, None).await?;
        tx.commit().await?;
        return Err(SignInRefusal::Wrong);
    };
    let sign_in: SignInId = tx.new_id();
    let user_agent: String = user_agent.chars().take(200).collect();
    sqlx::query!(
        "insert into sign_in (id, person_id, user_agent, created_at, seen_at) values ($1, $2, $3, $4, $4)",
        sign_in.0,
        person.id.0,
        user_agent,
        now,
    )
    .execute(tx.conn())
    .await?;
    // The tries for this address are forgiven, and this one for the network: it was not a failure.
    sqlx::query!(
        "delete from sign_in_failure
         where key = $1 or at < $2 or id = (select max(id) from sign_in_failure where key = $3)",
        keys[0],
        now - window() * 4,
        keys[1],
    )
    .execute(tx.conn())
    .await?;
    audit::write(&mut tx, &format!("person:{}", person.id), "sign_in.accepted", &format!("sign_in:{sign_in}"), None)
        .await?;
    tx.commit().await?;
    Ok(SignedIn { sign_in, person })
}

/// Whether more tries have failed, or are under way, than are let through.
async fn is_throttled(engine: &Engine, keys: &[String; 2]) -> Result<bool, Refusal> {
    let tries = sqlx::query!(
        r#"select count(*) filter (where key = $1) as "address!", count(*) filter (where key = $2) as "network!"
           from sign_in_failure where key in ($1, $2) and at > $3"#,
        keys[0],
        keys[1],
        engine.clock.now() - window(),
    )
    .fetch_one(&engine.pool)
    .await?;
    let throttled = tries.address > TRIES_PER_ADDRESS || tries.network > TRIES_PER_NETWORK;
    if throttled {
        tracing::info!(network = keys[1], "a sign-in was throttled");
    }
    Ok(throttled)
}

async fn count_try(tx: &mut Tx, keys: &[String]) -> Result<(), Refusal> {
    let now = tx.now();
    sqlx::query!("insert into sign_in_failure (key, at) select unnest($1::text[]), $2", keys, now)
        .execute(tx.conn())
        .await?;
    Ok(())
}
