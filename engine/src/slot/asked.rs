//! Who is asked: the names that an asker gives, resolved to keys that authority compares (design section 4).

use super::Kind;
use crate::{
    FieldError, Refusal, Tx,
    ids::{AgentId, PersonId},
};

/// More parties than this that an asker names is a mailing list, not a question.
pub(super) const MOST: usize = 20;

/// Whoever a slot asks.
pub(super) struct Asked {
    /// As `api.md` writes them: e-mail, "group:<name>", "role:<role>".
    pub names: Vec<String>,
    /// "person:<id>", "group:<id>", "role:<role>".
    pub keys: Vec<String>,
    /// Asked first: the first person among them.
    pub assignee: Option<PersonId>,
    /// "Mia", "Mia or the group finance".
    pub words: String,
    /// Whether anybody among them is active.
    pub anybody: bool,
}

struct Party {
    name: String,
    key: String,
    words: String,
    person: Option<PersonId>,
    active: bool,
}

/// Resolves what the asker named. Refuses with `invalid` (pointers /ask/<n>) for a name that is nobody.
pub(super) async fn named(tx: &mut Tx, names: &[String]) -> Result<Asked, Refusal> {
    let names: Vec<String> = names.iter().map(|name| name.trim().to_lowercase()).collect();
    let mut known: Vec<Known> = sqlx::query_as!(
        Known,
        r#"select email as "name!", id as "id?", name as "words!", (disabled_at is null) as "active!" from person
           -- The detour through a subquery lets Postgres keep the plan.
           where email = any(array(select unnest($1::text[])))"#,
        &names,
    )
    .fetch_all(tx.conn())
    .await?;
    // Most questions go to people by name: they do not pay for groups and roles.
    if names.iter().any(|name| name.contains(':')) {
        known.extend(groups_and_roles(tx, &names).await?);
    }
    let mut parties: Vec<Party> = Vec::new();
    let mut errors = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let party = known.iter().find(|row| row.name == *name).map(|row| {
            let (words, key, person) = match (name.as_str(), row.id) {
                ("role:manager", _) => ("a manager".to_owned(), name.clone(), None),
                ("role:admin", _) => ("an administrator".to_owned(), name.clone(), None),
                (_, None) => ("anybody".to_owned(), name.clone(), None),
                (_, Some(id)) if name.starts_with("group:") => (row.words.clone(), format!("group:{id}"), None),
                (_, Some(id)) => (row.words.clone(), format!("person:{id}"), Some(PersonId(id))),
            };
            Party { name: name.clone(), key, words, person, active: row.active }
        });
        match party {
            Some(party) if !parties.iter().any(|other| other.key == party.key) => parties.push(party),
            Some(_) => {}
            None => errors.push(FieldError::new(
                format!("/ask/{at}"),
                format!("“{name}” is nobody here. Name a person's e-mail address, group:<name> or role:manager."),
            )),
        }
    }
    if errors.is_empty() { Ok(asked(parties)) } else { Err(Refusal::Invalid(errors)) }
}

/// A party that was named, as it stands.
struct Known {
    name: String,
    id: Option<uuid::Uuid>,
    words: String,
    active: bool,
}

async fn groups_and_roles(tx: &mut Tx, names: &[String]) -> Result<Vec<Known>, Refusal> {
    let of = |prefix: &str| -> Vec<String> {
        names.iter().filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned())).collect()
    };
    Ok(sqlx::query_as!(
        Known,
        r#"select 'group:' || name as "name!", id as "id?", 'the group ' || name as "words!",
                  exists (select 1 from group_member m join person p on p.id = m.person_id
                          where m.group_id = g.id and p.disabled_at is null) as "active!"
           from people_group g where name = any($1)
           union all
           select 'role:' || role, null, role,
                  exists (select 1 from person_role r join person p on p.id = r.person_id
                          where r.role = wanted.role and p.disabled_at is null)
           from unnest($2::text[]) wanted (role) where role in ('person', 'manager', 'admin')"#,
        &of("group:"),
        &of("role:"),
    )
    .fetch_all(tx.conn())
    .await?)
}

/// Whom an agent asks that names nobody: the person the work is for, else the agent's sponsor. Nobody approves what is for
/// themselves, so an approval goes to the sponsor; taking work over is a supervisor's.
pub(super) async fn by_default(
    tx: &mut Tx,
    agent: AgentId,
    whom: Option<PersonId>,
    kind: Kind,
) -> Result<Asked, Refusal> {
    match kind {
        Kind::Human => return named(tx, &["role:manager".to_owned(), "role:admin".to_owned()]).await,
        Kind::Approval => {
            let sponsor = sponsor(tx, agent).await?.filter(|sponsor| sponsor.assignee != whom);
            return match sponsor {
                Some(sponsor) => Ok(sponsor),
                None => managers(tx).await,
            };
        }
        _ => {}
    }
    let found = sqlx::query!(
        r#"select id as "id: PersonId", email, name, (disabled_at is null) as "active!" from person
           where id = coalesce($2, (select sponsor_id from agent where id = $1))"#,
        agent.0,
        whom.map(|id| id.0),
    )
    .fetch_optional(tx.conn())
    .await?;
    match found {
        Some(row) => Ok(asked(vec![person(row.id, row.email, row.name, row.active)])),
        // Nobody to turn to: whoever supervises agents, rather than a wait that nobody sees.
        None => managers(tx).await,
    }
}

/// The agent's sponsor, while they are active.
pub(super) async fn sponsor(tx: &mut Tx, agent: AgentId) -> Result<Option<Asked>, Refusal> {
    let sponsor = sqlx::query!(
        r#"select p.id as "id: PersonId", p.email, p.name from person p join agent a on a.sponsor_id = p.id
           where a.id = $1 and p.disabled_at is null"#,
        agent.0,
    )
    .fetch_optional(tx.conn())
    .await?;
    Ok(sponsor.map(|row| asked(vec![person(row.id, row.email, row.name, true)])))
}

/// Whoever supervises agents.
pub(super) async fn managers(tx: &mut Tx) -> Result<Asked, Refusal> {
    named(tx, &["role:manager".to_owned()]).await
}

fn person(id: PersonId, email: String, name: String, active: bool) -> Party {
    Party { name: email, key: format!("person:{id}"), words: name, person: Some(id), active }
}

fn asked(parties: Vec<Party>) -> Asked {
    let words = match parties.as_slice() {
        [] => String::new(),
        [one] => one.words.clone(),
        [one, two] => format!("{} or {}", one.words, two.words),
        [one, two, rest @ ..] => format!("{}, {} or {} more", one.words, two.words, rest.len()),
    };
    Asked {
        assignee: parties.iter().find_map(|party| party.person),
        names: parties.iter().map(|party| party.name.clone()).collect(),
        anybody: parties.iter().any(|party| party.active),
        keys: parties.into_iter().map(|party| party.key).collect(),
        words,
    }
}
