//! The claim: the expense that the built-in agents work on. Filing one starts its review (design section 6).

pub mod file;
pub mod list;
pub mod review;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    actor::PersonActor,
    ids::{ClaimId, PersonId, TaskId},
    money::Money,
};

pub use file::{ClaimForm, file};
pub use list::{get, list};
pub use review::restart_review;

/// The categories a claim can be filed under, in the order that a form offers them.
pub const CATEGORIES: [&str; 11] = [
    "travel",
    "lodging",
    "meals",
    "transport",
    "equipment",
    "software",
    "supplies",
    "phone",
    "events",
    "gifts",
    "other",
];

/// Currencies a form offers first; any three-letter code (ISO 4217) is taken.
pub const CURRENCIES: [&str; 6] = ["EUR", "USD", "GBP", "CHF", "JPY", "SEK"];

/// Where the review stands: a reading of its task's status (design section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewState {
    Running,
    Waiting,
    Completed,
    Failed,
}

/// The newest review of a claim.
#[derive(Clone, Debug)]
pub struct Review {
    pub task_id: TaskId,
    pub attempt: i32,
    pub state: ReviewState,
    /// "an answer from Mia"
    pub waiting_on: Option<String>,
    /// The Auditor's words when completed; why not, when failed.
    pub summary: Option<String>,
    /// "approve" or "query", when completed.
    pub verdict: Option<String>,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub id: ClaimId,
    pub filer_id: PersonId,
    pub filer: String,
    pub spent_on: NaiveDate,
    pub merchant: String,
    pub amount: Money,
    pub category: String,
    pub explanation: String,
    pub created_at: DateTime<Utc>,
    pub review: Option<Review>,
}

impl Claim {
    /// Its filer, and whoever supervises agents or reads receipts.
    pub fn is_seen_by(&self, person: &PersonActor) -> bool {
        person.sees_all() || self.filer_id == person.id
    }
}
