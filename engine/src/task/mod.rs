//! The task: one piece of an agent's work, and its receipt. Here the noun and its reading; each other file is one verb.

pub mod list;
pub mod record;
pub mod start;
pub mod stop;
pub mod take_over;

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    actor::PersonActor,
    ids::{AgentId, ClaimId, PersonId, TaskId},
    money::Money,
};

pub use list::{TaskFilter, get, list};
pub use record::{RecordLine, record};
pub use stop::stop;
pub use take_over::take_over;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Status {
    Working,
    Waiting,
    Done,
    Failed,
    /// By a limit: budget, turns, kill switch.
    Stopped,
    /// Called off by a person.
    Cancelled,
}

impl Status {
    pub fn is_open(self) -> bool {
        matches!(self, Self::Working | Self::Waiting)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The receipt. Times are UTC.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    pub agent_id: AgentId,
    pub agent: String,
    /// Layby runs its loop.
    pub inside: bool,
    pub title: String,
    pub about_kind: Option<String>,
    pub about_title: Option<String>,
    pub about_url: Option<String>,
    pub claim_id: Option<ClaimId>,
    pub for_id: Option<PersonId>,
    pub for_name: Option<String>,
    pub for_email: Option<String>,
    pub status: Status,
    /// "an answer from Mia": the oldest open slot's; None when nothing is waited for.
    pub waiting_on: Option<String>,
    /// When that slot was opened.
    pub waiting_since: Option<DateTime<Utc>>,
    /// How long people were waited for, up to now.
    pub waited: Duration,
    pub model_calls: i32,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cost: Money,
    pub budget: Option<Money>,
    pub questions: i32,
    pub result: Option<Value>,
    pub problem: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl Task {
    /// Managers and admins see all work, a person the work that is for them.
    pub fn is_seen_by(&self, person: &PersonActor) -> bool {
        person.sees_all() || self.for_id == Some(person.id)
    }

    /// A manager, an admin, or the person it is for (design section 5, stop).
    pub fn may_be_stopped_by(&self, person: &PersonActor) -> bool {
        self.status.is_open() && self.is_seen_by(person)
    }
}
