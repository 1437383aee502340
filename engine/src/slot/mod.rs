//! The slot: one wait for a person (design section 4). Here the noun and its reading; each other file is one verb.

pub mod answer;
mod asked;
pub mod cancel;
mod close;
pub mod deposit;
pub mod expire;
pub mod form;
pub mod inbox;
pub mod list;
pub mod open;

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Engine, Refusal,
    actor::{Actor, PersonActor},
    ids::{AgentId, ClaimId, PersonId, SlotId, TaskId},
};

pub use cancel::cancel;
pub(crate) use close::close_all;
pub use deposit::{Deposited, deposit};
pub use inbox::{InboxLine, inbox};
pub use list::{ListOfSlots, list};
pub use open::{Asker, NewSlot, Opened, open};

/// What was shown when somebody answered: raised by every change of what is asked.
pub type Revision = i32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Kind {
    Question,
    Approval,
    SignIn,
    ClientTool,
    Human,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Status {
    Waiting,
    Answered,
    Cancelled,
    Expired,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Approval => "approval",
            Self::SignIn => "sign_in",
            Self::ClientTool => "client_tool",
            Self::Human => "human",
        }
    }
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Answered => "answered",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// What happens when nobody answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum OnExpiry {
    Tell,
    Fail,
    Default,
    Escalate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[repr(i16)]
pub enum Priority {
    Low = 0,
    Normal = 1,
    High = 2,
    Urgent = 3,
}

impl OnExpiry {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tell => "tell",
            Self::Fail => "fail",
            Self::Default => "default",
            Self::Escalate => "escalate",
        }
    }
}

impl Priority {
    /// From the column's number; what is out of range was refused by the database.
    pub(crate) fn from_rank(rank: i16) -> Self {
        match rank {
            0 => Self::Low,
            2 => Self::High,
            3 => Self::Urgent,
            _ => Self::Normal,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }
}

/// One of the answers that a question offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub value: Value,
    pub label: String,
}

/// A slot with what a page or a program shows of it. Times are UTC.
#[derive(Clone, Debug)]
pub struct Slot {
    pub id: SlotId,
    pub task_id: TaskId,
    pub task_title: String,
    pub agent_id: AgentId,
    pub agent: String,
    pub call_id: String,
    pub name: String,
    pub kind: Kind,
    pub message: String,
    /// Markdown, from the agent: hostile until sanitised.
    pub context: String,
    pub options: Vec<Choice>,
    pub schema: Option<Value>,
    pub secret: bool,
    pub revision: Revision,
    /// E-mail addresses, "group:<name>" and "role:<role>", as `api.md` writes them.
    pub asked: Vec<String>,
    pub candidates: Vec<String>,
    pub assignee_id: Option<PersonId>,
    /// "an answer from Mia"
    pub waiting_on: String,
    pub needs: i32,
    pub priority: Priority,
    pub status: Status,
    pub opened_at: DateTime<Utc>,
    pub target_at: Option<DateTime<Utc>>,
    pub due_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub on_expiry: OnExpiry,
    pub default_value: Option<Value>,
    pub answer: Option<Value>,
    pub note: Option<String>,
    pub answered_by: Option<String>,
    pub answered_by_email: Option<String>,
    pub on_behalf_of: Option<String>,
    pub on_behalf_of_email: Option<String>,
    /// Why it was cancelled.
    pub reason: Option<String>,
    pub closed_at: Option<DateTime<Utc>>,
    /// Whom the work is for, and the claim it is about.
    pub for_id: Option<PersonId>,
    pub for_name: Option<String>,
    pub claim_id: Option<ClaimId>,
}

/// Whether somebody may answer a slot, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They, a group or a role of theirs were asked.
    Asked,
    /// They supervise agents: the answer is recorded as on behalf of whoever was asked first.
    OnBehalf,
    /// They may see it, not answer it; the sentence says who may.
    MayOnlySee(String),
    /// As far as they may know, it does not exist.
    Hidden,
}

impl Slot {
    /// How long it waited, or has waited by `now`.
    pub fn waited(&self, now: DateTime<Utc>) -> Duration {
        self.closed_at.unwrap_or(now) - self.opened_at
    }

    pub fn is_overdue(&self, now: DateTime<Utc>) -> bool {
        self.status == Status::Waiting && self.due_at.is_some_and(|due| due < now)
    }

    /// Authority, from the person's rights at this request and the slot's state (design section 4, who is asked).
    pub fn standing(&self, person: &PersonActor) -> Standing {
        if self.candidates.iter().any(|key| person.keys.contains(key)) {
            return Standing::Asked;
        }
        if person.is_manager() {
            return Standing::OnBehalf;
        }
        if person.sees_all() || self.for_id == Some(person.id) {
            return Standing::MayOnlySee(format!(
                "This question is for {}: you can read it here, but only they or a manager can answer it.",
                self.asked_words()
            ));
        }
        Standing::Hidden
    }

    /// "Mia", "the group finance", "any manager": whoever was asked, in words.
    pub fn asked_words(&self) -> &str {
        self.waiting_on.strip_prefix("an answer from ").unwrap_or(&self.waiting_on)
    }

    /// Why no answer is taken any more; None while it waits.
    pub fn closed_refusal(&self) -> Option<Refusal> {
        let at = self.closed_at?;
        Some(match self.status {
            Status::Waiting => return None,
            Status::Answered => {
                Refusal::AlreadyAnswered { by: self.answered_by.clone().unwrap_or_else(|| "Somebody".to_owned()), at }
            }
            Status::Expired => Refusal::Expired { at },
            Status::Cancelled => Refusal::Cancelled {
                at,
                reason: self.reason.clone().unwrap_or_else(|| "the work was stopped.".to_owned()),
            },
        })
    }
}

/// The slot, if `actor` may see it. Refuses with `not_found` otherwise: no difference is shown.
pub async fn get(engine: &Engine, actor: &Actor, id: SlotId) -> Result<Slot, Refusal> {
    let mut conn = engine.pool.acquire().await?;
    let slot = list::read(&mut conn, id).await?.ok_or(Refusal::NotFound)?;
    let seen = match actor {
        Actor::Agent(agent) => slot.agent_id == agent.id,
        Actor::Person(person) => slot.standing(person) != Standing::Hidden,
    };
    if seen { Ok(slot) } else { Err(Refusal::NotFound) }
}
