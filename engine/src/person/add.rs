//! Adding a person.

use super::{Role, password};
use crate::{FieldError, Refusal, Tx, audit, ids::PersonId};

pub struct NewPerson {
    pub email: String,
    pub name: String,
    pub roles: Vec<Role>,
    /// Names of groups; one that does not exist yet is made.
    pub groups: Vec<String>,
    pub password: Option<String>,
}

/// Adds a person. `by` is the audit's key of who does it ("person:<id>", "system").
///
/// Refuses with `invalid` (pointers /email, /name, /groups, /password); an address that is taken is one of them.
pub async fn add(tx: &mut Tx, by: &str, new: NewPerson) -> Result<PersonId, Refusal> {
    let email = new.email.trim().to_lowercase();
    let name = new.name.trim().to_owned();
    let mut errors = Vec::new();
    if !looks_like_email(&email) {
        errors.push(FieldError::new("/email", "Write an e-mail address, for example mia@example.com."));
    }
    if name.is_empty() || name.chars().count() > 200 {
        errors.push(FieldError::new("/name", "Write the name, at most 200 characters."));
    }
    if new.groups.iter().any(|group| !is_group_name(group)) {
        errors.push(FieldError::new(
            "/groups",
            "A group's name has small letters, digits and hyphens, for example finance.",
        ));
    }
    if let Some(password) = &new.password
        && let Err(error) = password::check(password, "/password", &[&email, &name])
    {
        errors.push(error);
    }
    if !errors.is_empty() {
        return Err(Refusal::Invalid(errors));
    }
    let hash = match &new.password {
        Some(password) => Some(password::hash(password).await?),
        None => None,
    };
    insert(tx, by, &email, &name, &new.roles, &new.groups, hash.as_deref()).await
}

/// The hash of a password that is published, and so needs no check.
pub(crate) async fn hash_known(password: &str) -> Result<String, Refusal> {
    password::hash(password).await
}

/// The rows of a person whose particulars have been checked.
pub(crate) async fn insert(
    tx: &mut Tx,
    by: &str,
    email: &str,
    name: &str,
    roles: &[Role],
    groups: &[String],
    hash: Option<&str>,
) -> Result<PersonId, Refusal> {
    let id: PersonId = tx.new_id();
    let now = tx.now();
    let inserted = sqlx::query!(
        "insert into person (id, email, name, password_hash, created_at) values ($1, $2, $3, $4, $5)
         on conflict (email) do nothing",
        id.0,
        email,
        name,
        hash,
        now,
    )
    .execute(tx.conn())
    .await?;
    if inserted.rows_affected() == 0 {
        return Err(Refusal::invalid("/email", "Somebody with this address is here already."));
    }
    let roles: Vec<String> = roles.iter().map(|role| role.as_str().to_owned()).collect();
    sqlx::query!("insert into person_role (person_id, role) select $1, unnest($2::text[])", id.0, &roles)
        .execute(tx.conn())
        .await?;
    for group in groups {
        let new_group = tx.engine.ids.next();
        sqlx::query!(
            "insert into people_group (id, name) values ($1, $2) on conflict (name) do nothing",
            new_group,
            group
        )
        .execute(tx.conn())
        .await?;
        sqlx::query!(
            "insert into group_member (group_id, person_id) select id, $1 from people_group where name = $2",
            id.0,
            group,
        )
        .execute(tx.conn())
        .await?;
    }
    audit::write(tx, by, "person.added", &format!("person:{id}"), None).await?;
    Ok(id)
}

fn looks_like_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    !local.is_empty()
        && !domain.is_empty()
        && !domain.contains('@')
        && text.len() <= 254
        && text.chars().all(|c| !c.is_whitespace() && !c.is_control())
}

fn is_group_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
