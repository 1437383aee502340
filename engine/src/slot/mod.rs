//! The slot: one wait for a person (design section 4). Here the noun and its reading; each other file is one verb.

pub mod action;
mod alarm;
pub mod answer;
mod approve;
mod asked;
pub mod cancel;
mod close;
pub mod decline;
pub mod deposit;
pub mod due;
pub mod expire;
pub mod form;
pub mod history;
mod human;
pub mod inbox;
mod ladder;
pub mod list;
mod new;
pub mod on_it;
pub mod open;
pub mod reassign;
pub mod resolve;
pub mod secret;

use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::PgConnection;

use crate::{
    Engine, Refusal,
    actor::{Actor, PersonActor},
    ids::{AgentId, ClaimId, PersonId, SlotId, TaskId},
};

pub use action::{Action, Edit};
pub(crate) use alarm::raise as raise_alarms;
pub use alarm::sweep as sweep_alarms;
pub use cancel::cancel;
pub(crate) use close::close_all;
pub use decline::decline;
pub use deposit::{Deposited, deposit};
pub use due::{Moved, move_due};
pub use history::history;
pub use inbox::{InboxLine, inbox};
pub use list::{ListOfSlots, list};
pub use new::NewSlot;
pub use on_it::{let_go, take};
pub use open::{Asker, Opened, open};
pub use reassign::reassign;
pub use resolve::{NotResolved, Resolved, resolve};

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
    /// Whom the work is for has no say in it: nobody approves what is for themselves, or finishes the review of it.
    pub(crate) fn is_for_others(self) -> bool {
        matches!(self, Self::Approval | Self::Human)
    }

    /// What is waited for, before the words for whom: "an answer from Mia".
    pub(crate) fn waits_for(self) -> &'static str {
        match self {
            Self::Question => "an answer from",
            Self::Approval => "a decision from",
            Self::SignIn => "a sign-in from",
            Self::ClientTool => "an output from",
            Self::Human => "a takeover from",
        }
    }

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

/// One yes of the several that an approval needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    pub id: PersonId,
    pub name: String,
    pub email: String,
    pub at: DateTime<Utc>,
    /// Whose seat it took: that of somebody away, whom they cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<PersonId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Somebody who said "I'm on it", and until when.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    pub id: PersonId,
    pub name: String,
    pub until: DateTime<Utc>,
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
    /// As it was asked; [`Slot::arguments`] are those that run.
    pub action: Option<Action>,
    /// Of the arguments that run.
    pub digest: Option<String>,
    /// What an edit made of the arguments.
    pub edited: Option<Map<String, Value>>,
    pub edited_by: Option<String>,
    pub votes: Vec<Vote>,
    /// When the approved action ran, or the secret was handed out.
    pub used_at: Option<DateTime<Utc>>,
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
    pub at_risk_at: Option<DateTime<Utc>>,
    /// When it fell due to be at risk and late, once that has happened.
    pub warned_at: Option<DateTime<Utc>>,
    pub breached_at: Option<DateTime<Utc>>,
    /// Its clocks count business time.
    pub business: bool,
    /// Somebody is reminded of it.
    pub reminds: bool,
    /// Late, it goes to the sponsor and then to the managers itself.
    pub reassigns_late: bool,
    /// How much business time it waited, in seconds, by the calendar of whoever was asked; once it has ended.
    pub waited_business: Option<i64>,
    pub expires_at: Option<DateTime<Utc>>,
    pub on_expiry: OnExpiry,
    pub default_value: Option<Value>,
    /// How long the asker waits, in seconds; None for ever.
    pub wait_seconds: Option<i64>,
    pub taken: Option<Taken>,
    pub declined: Vec<PersonId>,
    /// How often it was handed on.
    pub handed: i32,
    pub rung: i16,
    /// Why whoever was asked cannot answer.
    pub alarm: Option<String>,
    pub answer: Option<Value>,
    pub note: Option<String>,
    pub answered_by: Option<String>,
    pub answered_by_email: Option<String>,
    pub on_behalf_of: Option<String>,
    pub on_behalf_of_email: Option<String>,
    /// Why it was cancelled.
    pub reason: Option<String>,
    pub closed_at: Option<DateTime<Utc>>,
    /// Whom the asking agent's sponsor is.
    pub sponsor_id: Option<PersonId>,
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

    /// The arguments that run when this is approved as it stands; None for what has no action.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        self.edited.as_ref().or(self.action.as_ref().map(|action| &action.arguments))
    }

    /// Answered, and the answer was yes.
    pub fn is_approved(&self) -> bool {
        self.status == Status::Answered
            && self.answer.as_ref().and_then(|answer| answer.get("decision")?.as_str()) == Some("approve")
    }

    /// What people changed of the action since it was asked.
    pub fn edits(&self) -> Vec<Edit> {
        match (&self.action, &self.edited) {
            (Some(action), Some(edited)) => {
                action::edits(&action.editable, &action.arguments, edited).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Who is on it at `now`.
    pub fn taken_at(&self, now: DateTime<Utc>) -> Option<&Taken> {
        self.taken.as_ref().filter(|taken| self.status == Status::Waiting && taken.until > now)
    }

    /// Authority, from the person's rights at this request and the slot's state (design section 4, who is asked). What
    /// the closing statement checks again ([`close`]) says the same in SQL.
    pub fn standing(&self, person: &PersonActor) -> Standing {
        let asked = self.candidates.iter().any(|key| person.keys.contains(key));
        // The sponsor hears of it when it is late, and can read what they hear of.
        let concerns = person.sees_all() || self.for_id == Some(person.id) || self.sponsor_id == Some(person.id);
        let only_see = |sentence: String| match asked || concerns {
            true => Standing::MayOnlySee(sentence),
            false => Standing::Hidden,
        };
        if self.kind == Kind::Human && !person.sees_all() {
            return only_see("Only a manager or an administrator can take work over.".to_owned());
        }
        if self.barred() == Some(person.id) {
            return only_see(
                "This is for you, and nobody approves what they asked for themselves. Somebody else decides."
                    .to_owned(),
            );
        }
        let voted = |vote: &&Vote| vote.id == person.id || vote.covers == Some(person.id);
        if let Some(vote) = self.votes.iter().find(voted).filter(|_| self.status == Status::Waiting) {
            let still = (self.needs as usize).saturating_sub(self.votes.len());
            let who = if vote.id == person.id { "You" } else { &vote.name };
            let whom = if vote.id == person.id { "" } else { " for you" };
            return only_see(format!(
                "{who} approved this{whom} on {}; it needs {still} more.",
                vote.at.format("%-d %B %Y at %H:%M UTC")
            ));
        }
        if self.seats_of(person).next().is_some() && !self.declined.contains(&person.id) {
            return Standing::Asked;
        }
        if person.is_manager() || (self.kind == Kind::Human && person.is_admin()) {
            return Standing::OnBehalf;
        }
        if self.declined.contains(&person.id) && asked {
            return only_see("You declined this question; it is with others now.".to_owned());
        }
        if asked {
            return only_see("Whom you cover for has no say in this any more: others decide.".to_owned());
        }
        only_see(format!(
            "This question is for {}: you can read it here, but only they or a manager can answer it.",
            self.asked_words()
        ))
    }

    /// The keys through which `person` was asked and may answer: their own and those of their groups and roles, an absent
    /// person's only while that person could answer themselves.
    fn seats_of<'a>(&'a self, person: &'a PersonActor) -> impl Iterator<Item = &'a String> {
        let free = |key: &str| match key.strip_prefix("person:").and_then(|id| id.parse().ok()) {
            Some(seat) if seat != person.id => self.barred() != Some(seat) && !self.spent().contains(&seat),
            _ => true,
        };
        self.candidates.iter().filter(move |key| person.keys.contains(key) && free(key))
    }

    /// Whether `person` may hand it to somebody else: whoever was asked, or a manager; not whom it must not be decided by,
    /// who would choose their own judge.
    pub fn may_be_handed_over_by(&self, person: &PersonActor) -> bool {
        let asked = self.seats_of(person).next().is_some();
        self.status == Status::Waiting
            && self.barred() != Some(person.id)
            && ((person.is_manager() && person.has_scope("manage")) || (asked && !self.declined.contains(&person.id)))
    }

    /// Who has no say in it, whatever their rights.
    pub(super) fn barred(&self) -> Option<PersonId> {
        self.for_id.filter(|_| self.kind.is_for_others())
    }

    /// Who has had their say: declined, or voted.
    pub(super) fn spent(&self) -> Vec<PersonId> {
        spent(&self.declined, &self.votes)
    }

    /// How many are still to decide it.
    pub(super) fn still_needs(&self) -> i64 {
        i64::from(self.needs) - self.votes.len() as i64
    }

    /// "Mia", "the group finance", "any manager": whoever was asked, in words.
    pub fn asked_words(&self) -> &str {
        self.waiting_on.split_once(" from ").map_or(&*self.waiting_on, |(_, words)| words)
    }

    /// Whether anything is to happen by itself while it waits.
    pub(crate) fn has_timers(&self) -> bool {
        self.due_at.is_some() || self.expires_at.is_some() || self.reminds
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

/// Who has had their say: whoever declined or voted, and for whom they voted.
fn spent(declined: &[PersonId], votes: &[Vote]) -> Vec<PersonId> {
    let voted = votes.iter().flat_map(|vote| std::iter::once(vote.id).chain(vote.covers));
    declined.iter().copied().chain(voted).collect()
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

/// The slot as it stands, with its task's row locked first (the order of everything that changes a task and its slots), so
/// that nothing changes it until the transaction ends. None when there is no such slot.
pub(crate) async fn lock(tx: &mut crate::Tx, id: SlotId) -> Result<Option<Slot>, Refusal> {
    tx.transaction().await?;
    lock_task_of(tx.conn(), id).await?;
    list::read(tx.conn(), id).await
}

/// Several at once, their tasks in the order in which everything locks more than one.
pub(crate) async fn lock_all(tx: &mut crate::Tx, ids: &[SlotId]) -> Result<Vec<Slot>, Refusal> {
    tx.transaction().await?;
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    sqlx::query!(
        "select id from task where id in (select task_id from slot where id = any($1)) order by id for update",
        &ids
    )
    .fetch_all(tx.conn())
    .await?;
    list::read_all(tx.conn(), &ids).await
}

async fn lock_task_of(conn: &mut PgConnection, id: SlotId) -> Result<(), Refusal> {
    sqlx::query!(r#"select id from task where id = (select task_id from slot where id = $1) for update"#, id.0)
        .fetch_optional(conn)
        .await?;
    Ok(())
}
