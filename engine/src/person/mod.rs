//! People who sign in: who they are and what they may do (design sections 2 and 10).

pub mod add;
pub mod away;
pub mod disable;
pub mod parties;
mod password;
pub mod profile;
pub mod session;
pub mod setup;
pub mod sign_in;
pub mod store;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{Refusal, actor::PersonActor, ids::PersonId};

pub use add::{NewPerson, add};
pub use disable::disable;
pub use parties::{Party, parties};
pub use profile::{change_password, update_profile};
pub use session::{SignIn, end_sign_in, session, sign_ins, sign_out};
pub use sign_in::{SignInRefusal, SignedIn, sign_in};

/// What a person may do; somebody may hold several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Answers questions and files claims.
    Person,
    /// Supervises agents: sees all work, answers for others, stops work.
    Manager,
    /// People, agents, receipts, SLA reports, audit.
    Admin,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Person, Self::Manager, Self::Admin];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Manager => "manager",
            Self::Admin => "admin",
        }
    }
}

/// A person's row with roles and groups, as every way in reads it.
pub(crate) struct PersonRow {
    pub id: PersonId,
    pub name: String,
    pub email: String,
    pub time_zone: String,
    pub keys: Vec<String>,
}

impl PersonRow {
    pub(crate) fn actor(self, scopes: Option<Vec<String>>) -> PersonActor {
        let roles = self.keys.iter().filter_map(|key| Role::parse(key.strip_prefix("role:")?)).collect();
        PersonActor {
            id: self.id,
            name: self.name,
            email: self.email,
            time_zone: self.time_zone,
            roles,
            keys: self.keys,
            scopes,
        }
    }
}

/// The person with this id as they may act now; None when there is none or they are disabled.
pub(crate) async fn acting(conn: &mut PgConnection, id: PersonId) -> Result<Option<PersonActor>, Refusal> {
    let row = sqlx::query_as!(
        PersonRow,
        r#"
        select id as "id!: PersonId", name as "name!", email as "email!", time_zone as "time_zone!", keys as "keys!"
        from acting_person where id = $1
        "#,
        id.0,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| row.actor(None)))
}
