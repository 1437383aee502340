//! Taking somebody's access away.

use crate::{Refusal, Tx, audit, ids::PersonId, slot};

/// Takes somebody's access away: their sessions and tokens end, and questions that nobody else can answer raise the alarm.
///
/// Refuses with `not_found`, or `invalid` when they are disabled already.
pub async fn disable(tx: &mut Tx, by: &str, email: &str) -> Result<PersonId, Refusal> {
    tx.transaction().await?;
    let now = tx.now();
    let email = email.trim().to_lowercase();
    let row = sqlx::query!(
        r#"select p.id as "id!: PersonId", p.keys as "keys!" from acting_person p where p.email = $1"#,
        email
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(row) = row else {
        return Err(Refusal::invalid("/email", format!("“{email}” is nobody who is active here.")));
    };
    sqlx::query!("update person set disabled_at = $2 where id = $1", row.id.0, now).execute(tx.conn()).await?;
    sqlx::query!("update sign_in set ended_at = $2 where person_id = $1 and ended_at is null", row.id.0, now)
        .execute(tx.conn())
        .await?;
    sqlx::query!("update token set revoked_at = $2 where person_id = $1 and revoked_at is null", row.id.0, now)
        .execute(tx.conn())
        .await?;
    let key = format!("person:{}", row.id);
    audit::write(tx, by, "person.disabled", &key, None).await?;
    slot::raise_alarms(tx, &row.keys).await?;
    Ok(row.id)
}
