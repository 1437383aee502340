//! Tokens: how a program says who it is. Kept as SHA-256 only; shown once.

use sha2::{Digest, Sha256};

use crate::{
    Actor, Engine, FieldError, Refusal, Tx,
    actor::AgentActor,
    audit, clock,
    ids::{AgentId, PersonId, TokenId},
    person::PersonRow,
};

const AGENT_PREFIX: &str = "lby_a";
const PERSON_PREFIX: &str = "lby_p";
const AGENT_SCOPES: [&str; 2] = ["ask", "read"];
/// A person's scopes and the role that each needs.
const PERSON_SCOPES: [(&str, &str); 4] =
    [("answer", "person"), ("read", "person"), ("manage", "manager"), ("admin", "admin")];

pub enum TokenOwner {
    /// An outside agent, by name.
    Agent(String),
    /// A person, by e-mail address.
    Person(String),
}

/// Makes a token and answers it; only its hash is kept, so this is the one time it can be read.
///
/// Refuses with `invalid` (pointers /agent, /person, /scope).
pub async fn create(tx: &mut Tx, by: &str, owner: TokenOwner, scopes: Vec<String>) -> Result<String, Refusal> {
    let (agent, person) = match owner {
        TokenOwner::Agent(name) => (Some(agent_for_token(tx, &name, &scopes).await?), None),
        TokenOwner::Person(email) => (None, Some(person_for_token(tx, &email, &scopes).await?)),
    };
    if scopes.is_empty() {
        return Err(Refusal::invalid("/scope", "Say what the token may do, for example --scope ask --scope read."));
    }
    let token = format!("{}{}", if agent.is_some() { AGENT_PREFIX } else { PERSON_PREFIX }, clock::random_hex(32));
    let id: TokenId = tx.new_id();
    let now = tx.now();
    sqlx::query!(
        "insert into token (id, hash, agent_id, person_id, scopes, created_at) values ($1, $2, $3, $4, $5, $6)",
        id.0,
        hash(&token),
        agent.map(|id| id.0),
        person.map(|id| id.0),
        &scopes,
        now,
    )
    .execute(tx.conn())
    .await?;
    audit::write(tx, by, "token.created", &format!("token:{id}"), Some(serde_json::json!({ "scopes": scopes })))
        .await?;
    Ok(token)
}

async fn agent_for_token(tx: &mut Tx, name: &str, scopes: &[String]) -> Result<AgentId, Refusal> {
    let found = sqlx::query!(
        r#"select id as "id: AgentId", inside from agent where lower(name) = lower($1) and disabled_at is null"#,
        name.trim()
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(agent) = found.filter(|agent| !agent.inside) else {
        let detail = format!("There is no outside agent “{}”; add it with `layby agent add`.", name.trim());
        return Err(Refusal::invalid("/agent", detail));
    };
    let wrong = scopes.iter().filter(|scope| !AGENT_SCOPES.contains(&scope.as_str()));
    let errors: Vec<_> = wrong
        .map(|scope| {
            FieldError::new("/scope", format!("An agent's token cannot have the scope “{scope}”: it has ask and read."))
        })
        .collect();
    if errors.is_empty() { Ok(agent.id) } else { Err(Refusal::Invalid(errors)) }
}

async fn person_for_token(tx: &mut Tx, email: &str, scopes: &[String]) -> Result<PersonId, Refusal> {
    let found = sqlx::query!(
        r#"select id as "id!: PersonId", keys as "keys!" from acting_person where email = $1"#,
        email.trim().to_lowercase(),
    )
    .fetch_optional(tx.conn())
    .await?;
    let Some(person) = found else {
        return Err(Refusal::invalid("/person", format!("“{}” is nobody here; add the person first.", email.trim())));
    };
    let mut errors = Vec::new();
    for scope in scopes {
        match PERSON_SCOPES.iter().find(|(name, _)| name == scope) {
            None => errors.push(FieldError::new(
                "/scope",
                format!("There is no scope “{scope}” for a person: answer, read, manage, admin."),
            )),
            Some((_, "person")) => {}
            Some((_, role)) if person.keys.iter().any(|key| key.strip_prefix("role:") == Some(role)) => {}
            Some((_, role)) => {
                errors.push(FieldError::new("/scope", format!("The scope “{scope}” needs the role {role}.")))
            }
        }
    }
    if errors.is_empty() { Ok(person.id) } else { Err(Refusal::Invalid(errors)) }
}

/// Whose token this is, as they stand now; None for a token that is unknown or revoked, or whose owner is disabled.
pub async fn actor(engine: &Engine, token: &str) -> Result<Option<Actor>, Refusal> {
    // The letter after the prefix only says which table to look in first; the row decides.
    if token.starts_with(AGENT_PREFIX) {
        let row = sqlx::query!(
            r#"select t.scopes, a.id as "id: AgentId", a.name from token t join agent a on a.id = t.agent_id
               where t.hash = $1 and t.revoked_at is null and a.disabled_at is null"#,
            hash(token),
        )
        .fetch_optional(&engine.pool)
        .await?;
        return Ok(row.map(|row| Actor::Agent(AgentActor { id: row.id, name: row.name, scopes: row.scopes })));
    }
    if !token.starts_with(PERSON_PREFIX) {
        return Ok(None);
    }
    let row = sqlx::query!(
        r#"select t.scopes, p.id as "id!: PersonId", p.name as "name!", p.email as "email!", p.time_zone as "time_zone!",
                  p.keys as "keys!"
           from token t join acting_person p on p.id = t.person_id
           where t.hash = $1 and t.revoked_at is null"#,
        hash(token),
    )
    .fetch_optional(&engine.pool)
    .await?;
    Ok(row.map(|row| {
        let person =
            PersonRow { id: row.id, name: row.name, email: row.email, time_zone: row.time_zone, keys: row.keys };
        Actor::Person(person.actor(Some(row.scopes)))
    }))
}

fn hash(token: &str) -> Vec<u8> {
    Sha256::digest(token).to_vec()
}
