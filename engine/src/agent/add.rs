//! Adding an outside agent.

use crate::{
    FieldError, Refusal, Tx, audit,
    ids::{AgentId, PersonId},
};

pub struct NewAgent {
    pub name: String,
    pub purpose: String,
    /// Whom its questions go to when it names nobody.
    pub sponsor_email: String,
}

/// Adds an outside agent. Refuses with `invalid` (pointers /name, /purpose, /sponsor).
pub async fn add(tx: &mut Tx, by: &str, new: NewAgent) -> Result<AgentId, Refusal> {
    let name = new.name.trim().to_owned();
    let mut errors = Vec::new();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        errors.push(FieldError::new("/name", "Write the agent's name, at most 100 characters."));
    }
    if new.purpose.chars().count() > 2_000 {
        errors.push(FieldError::new("/purpose", "Say its purpose in at most 2,000 characters."));
    }
    let sponsor = sqlx::query_scalar!(
        r#"select id as "id: PersonId" from person where email = $1 and disabled_at is null"#,
        new.sponsor_email.trim().to_lowercase(),
    )
    .fetch_optional(tx.conn())
    .await?;
    if sponsor.is_none() {
        errors.push(FieldError::new(
            "/sponsor",
            format!("“{}” is nobody here; add the person first.", new.sponsor_email.trim()),
        ));
    }
    let (Some(sponsor), true) = (sponsor, errors.is_empty()) else { return Err(Refusal::Invalid(errors)) };
    let id: AgentId = tx.new_id();
    let now = tx.now();
    let added = sqlx::query!(
        "insert into agent (id, name, inside, purpose, sponsor_id, created_at) values ($1, $2, false, $3, $4, $5)
         on conflict (lower(name)) do nothing",
        id.0,
        name,
        new.purpose,
        sponsor.0,
        now,
    )
    .execute(tx.conn())
    .await?;
    if added.rows_affected() != 1 {
        return Err(Refusal::invalid("/name", "There is an agent of this name already."));
    }
    audit::write(tx, by, "agent.added", &format!("agent:{id}"), None).await?;
    Ok(id)
}
