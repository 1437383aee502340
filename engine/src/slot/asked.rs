//! Who is asked: the names that an asker gives, resolved to keys that authority compares (design section 4).

use crate::{
    FieldError, Refusal, Tx,
    ids::{AgentId, PersonId},
};

/// More parties than this is a mailing list, not a question.
const MOST: usize = 20;

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
}

struct Party {
    name: String,
    key: String,
    words: String,
    person: Option<PersonId>,
}

/// Resolves what the asker named. Refuses with `invalid` (pointers /ask/<n>) for a name that is nobody.
pub(super) async fn named(tx: &mut Tx, names: &[String]) -> Result<Asked, Refusal> {
    if names.len() > MOST {
        return Err(Refusal::invalid(
            "/ask",
            format!("Ask at most {MOST} people, groups and roles; a group reaches many."),
        ));
    }
    let names: Vec<String> = names.iter().map(|name| name.trim().to_lowercase()).collect();
    let groups: Vec<String> = names.iter().filter_map(|name| Some(name.strip_prefix("group:")?.to_owned())).collect();
    let known = sqlx::query!(
        r#"select email as "name!", id as "id!", name as "words!", true as "person!" from person
           -- The detour through a subquery lets Postgres keep the plan.
           where email = any(array(select unnest($1::text[]))) and disabled_at is null
           union all
           select 'group:' || name, id, 'the group ' || name, false from people_group
           where name = any(array(select unnest($2::text[])))"#,
        &names,
        &groups,
    )
    .fetch_all(tx.conn())
    .await?;
    let mut parties: Vec<Party> = Vec::new();
    let mut errors = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let party = match name.as_str() {
            "role:manager" => Some(("a manager".to_owned(), name.clone(), None)),
            "role:admin" => Some(("an administrator".to_owned(), name.clone(), None)),
            "role:person" => Some(("anybody".to_owned(), name.clone(), None)),
            _ => known.iter().find(|row| row.name == *name).map(|row| match row.person {
                true => (row.words.clone(), format!("person:{}", row.id), Some(PersonId(row.id))),
                false => (row.words.clone(), format!("group:{}", row.id), None),
            }),
        };
        match party {
            Some((words, key, person)) if !parties.iter().any(|party| party.key == key) => {
                parties.push(Party { name: name.clone(), key, words, person });
            }
            Some(_) => {}
            None => errors.push(FieldError::new(
                format!("/ask/{at}"),
                format!("“{name}” is nobody here. Name a person's e-mail address, group:<name> or role:manager."),
            )),
        }
    }
    if errors.is_empty() { Ok(asked(parties)) } else { Err(Refusal::Invalid(errors)) }
}

/// Whom an agent asks that names nobody: the person the work is for, else the agent's sponsor.
pub(super) async fn by_default(tx: &mut Tx, agent: AgentId, whom: Option<PersonId>) -> Result<Asked, Refusal> {
    let found = sqlx::query!(
        r#"select id, email, name from person
           where id = coalesce($2, (select sponsor_id from agent where id = $1)) and disabled_at is null"#,
        agent.0,
        whom.map(|id| id.0),
    )
    .fetch_optional(tx.conn())
    .await?;
    Ok(match found {
        Some(row) => asked(vec![Party {
            name: row.email,
            key: format!("person:{}", row.id),
            words: row.name,
            person: Some(PersonId(row.id)),
        }]),
        // Nobody to turn to: whoever supervises agents, rather than a wait that nobody sees.
        None => asked(vec![Party {
            name: "role:manager".to_owned(),
            key: "role:manager".to_owned(),
            words: "a manager".to_owned(),
            person: None,
        }]),
    })
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
        keys: parties.into_iter().map(|party| party.key).collect(),
        words,
    }
}
