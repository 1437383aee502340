//! Who is calling. An `Actor` comes from a session or a token and nowhere else.

use chrono_tz::Tz;

use crate::{
    ids::{AgentId, PersonId},
    person::Role,
};

/// A signed-in person, or an agent with its token, as they stand at this request.
#[derive(Clone, Debug)]
pub enum Actor {
    Person(PersonActor),
    Agent(AgentActor),
}

/// A person at this request: their roles and groups were read for it, so a changed right counts at once.
#[derive(Clone, Debug)]
pub struct PersonActor {
    pub(crate) id: PersonId,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) time_zone: String,
    pub(crate) roles: Vec<Role>,
    /// "person:<id>", "group:<id>" and "role:<role>": the keys under which this person can have been asked.
    pub(crate) keys: Vec<String>,
    /// Only for a token: what it was limited to. A session may all that its person may.
    pub(crate) scopes: Option<Vec<String>>,
}

/// An agent that presented its token.
#[derive(Clone, Debug)]
pub struct AgentActor {
    pub(crate) id: AgentId,
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
}

impl PersonActor {
    pub fn id(&self) -> PersonId {
        self.id
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn email(&self) -> &str {
        &self.email
    }
    pub fn time_zone(&self) -> &str {
        &self.time_zone
    }

    /// The same as a zone to reckon in.
    pub fn zone(&self) -> Tz {
        self.time_zone.parse().unwrap_or(Tz::UTC)
    }
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Supervises agents: sees all work, answers for others, stops work.
    pub fn is_manager(&self) -> bool {
        self.roles.contains(&Role::Manager)
    }

    pub fn is_admin(&self) -> bool {
        self.roles.contains(&Role::Admin)
    }

    /// Whether the token's scopes allow `scope`; a session's always do.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.iter().any(|own| own == scope))
    }

    /// May see every task and claim.
    pub fn sees_all(&self) -> bool {
        self.is_manager() || self.is_admin()
    }
}

impl AgentActor {
    pub fn id(&self) -> AgentId {
        self.id
    }
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Actor {
    /// "person:<id>" or "agent:<id>", for the audit.
    pub fn key(&self) -> String {
        match self {
            Self::Person(person) => format!("person:{}", person.id),
            Self::Agent(agent) => format!("agent:{}", agent.id),
        }
    }

    /// Whether the token's scopes allow `scope`; a session's always do.
    pub fn has_scope(&self, scope: &str) -> bool {
        match self {
            Self::Person(person) => person.has_scope(scope),
            Self::Agent(agent) => agent.scopes.iter().any(|s| s == scope),
        }
    }
}
