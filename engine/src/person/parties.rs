//! Whom a question can be handed to, for a form that offers them.

use crate::{Engine, Refusal};

/// A person, a group or a role.
#[derive(Clone, Debug)]
pub struct Party {
    /// As `api.md` writes it: e-mail, "group:<name>", "role:manager".
    pub name: String,
    pub words: String,
    pub is_person: bool,
}

/// Active people by name (the first 500), groups, and the roles that answer.
pub async fn parties(engine: &Engine) -> Result<Vec<Party>, Refusal> {
    let rows = sqlx::query!(
        r#"(select email as "name!", name as "words!", true as "person!" from person
            where disabled_at is null order by name, email limit 500)
           union all
           (select 'group:' || name, 'The group ' || name, false from people_group order by name limit 500)
           union all
           values ('role:manager', 'Any manager', false), ('role:admin', 'Any administrator', false)"#
    )
    .fetch_all(&engine.pool)
    .await?;
    Ok(rows.into_iter().map(|row| Party { name: row.name, words: row.words, is_person: row.person }).collect())
}
