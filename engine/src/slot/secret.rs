//! Secrets: handed to the asker that asked, once, then wiped (design section 4).

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::Status;
use crate::{
    Engine, FieldError, Refusal, Tx,
    actor::AgentActor,
    audit,
    ids::SlotId,
    seal::{Keyring, Sealed},
};

/// The longest secret: a key file, not a document.
const LONGEST: usize = 10_000;

/// The secret in an answer's value: words, whatever the schema says of them.
pub(super) fn read(value: Value) -> Result<SecretString, Vec<FieldError>> {
    match value {
        Value::String(text) if text.is_empty() => Err(vec![FieldError::new("", "Please fill this in.")]),
        Value::String(text) if text.chars().count() > LONGEST => {
            Err(vec![FieldError::new("", "A secret has at most 10,000 characters.")])
        }
        Value::String(text) => Ok(SecretString::from(text)),
        _ => Err(vec![FieldError::new("", "A secret is a text.")]),
    }
}

/// Hands the secret to the agent that asked for it and wipes it, in one transaction: a second reading finds nothing.
///
/// Refuses with `not_found`, `invalid` (no secret, or not answered yet), `already_taken`, or how the slot ended.
pub async fn take(tx: &mut Tx, agent: &AgentActor, id: SlotId) -> Result<SecretString, Refusal> {
    let slot = super::lock(tx, id).await?.filter(|slot| slot.agent_id == agent.id).ok_or(Refusal::NotFound)?;
    if !slot.secret {
        return Err(Refusal::invalid("", "This question asks for no secret; its answer stands in the slot."));
    }
    match slot.status {
        Status::Waiting => return Err(Refusal::invalid("", "Nobody has answered yet, so there is no secret to take.")),
        Status::Answered => {}
        Status::Cancelled | Status::Expired => return Err(slot.closed_refusal().unwrap_or(Refusal::NotFound)),
    }
    let row = sqlx::query!("delete from sealed_secret where slot_id = $1 returning key_id, sealed", id.0)
        .fetch_optional(tx.conn())
        .await?;
    let Some(row) = row else {
        return Err(Refusal::AlreadyTaken(
            "This secret was handed out already, and wiped. Ask for it again.".to_owned(),
        ));
    };
    let secret = tx.engine.keys.open(id, &Sealed { key_id: row.key_id, bytes: row.sealed })?;
    let now = tx.now();
    sqlx::query!("update slot set used_at = $2 where id = $1", id.0, now).execute(tx.conn()).await?;
    let said = format!("{} took the secret; it is wiped.", agent.name);
    super::reassign::said_of(tx, &slot, "secret_taken", &said).await?;
    audit::write(tx, &format!("agent:{}", agent.id), "slot.secret_taken", &format!("slot:{id}"), None).await?;
    Ok(secret)
}

/// Seals what still waits to be taken with the newest key; answers how many. After that the older keys can go.
pub async fn reseal(engine: &Engine, keys: &Keyring) -> Result<usize, Refusal> {
    let mut tx = engine.begin().await?;
    let rows = sqlx::query!(
        r#"select slot_id as "slot_id: SlotId", key_id, sealed from sealed_secret where key_id <> $1 for update"#,
        keys.newest()
    )
    .fetch_all(tx.conn())
    .await?;
    let count = rows.len();
    for row in rows {
        let secret = keys.open(row.slot_id, &Sealed { key_id: row.key_id, bytes: row.sealed })?;
        let sealed = keys.seal(row.slot_id, &secret)?;
        sqlx::query!(
            "update sealed_secret set key_id = $2, sealed = $3 where slot_id = $1",
            row.slot_id.0,
            sealed.key_id,
            sealed.bytes
        )
        .execute(tx.conn())
        .await?;
    }
    audit::write(&mut tx, "system", "key.rotated", &format!("key:{}", keys.newest()), None).await?;
    tx.commit().await?;
    Ok(count)
}

/// Which of these slots ask for a secret.
pub async fn asked_by(engine: &Engine, slots: &[SlotId]) -> Result<Vec<SlotId>, Refusal> {
    let ids: Vec<_> = slots.iter().map(|id| id.0).collect();
    let secret = sqlx::query_scalar!(r#"select id as "id: SlotId" from slot where id = any($1) and secret"#, &ids);
    Ok(secret.fetch_all(&engine.pool).await?)
}

/// The secret's words, for the one answer that carries them.
pub fn reveal(secret: &SecretString) -> &str {
    secret.expose_secret()
}
