//! Policies: how long an answer may take, and who hears what when (design section 7).

pub mod clocks;
pub mod save;

use chrono::{DateTime, Duration, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    Refusal,
    calendar::Calendar,
    ids::AgentId,
    slot::{Kind, Priority},
};

pub use clocks::{Clocks, clocks};
pub use save::{PolicyForm, remove, save};

/// When somebody is reminded: after, then every, at most so often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remind {
    pub after: Duration,
    pub every: Option<Duration>,
    pub most: i32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub id: Uuid,
    /// None: of any agent, any kind, any priority.
    pub agent: Option<AgentId>,
    pub agent_name: Option<String>,
    pub kind: Option<Kind>,
    pub priority: Option<Priority>,
    pub target: Option<Duration>,
    /// Target, reminders and escalation are counted in business time.
    pub business: bool,
    /// At which part of the target somebody is warned, in percent.
    pub at_risk_percent: i32,
    pub remind: Option<Remind>,
    /// So long after the breach, the managers hear of it.
    pub escalate_after: Option<Duration>,
    /// The question itself goes to the sponsor, then to the managers.
    pub reassign: bool,
}

impl Policy {
    fn fits(&self, agent: AgentId, kind: Kind, priority: Priority) -> bool {
        self.agent.is_none_or(|own| own == agent)
            && self.kind.is_none_or(|own| own == kind)
            && self.priority.is_none_or(|own| own == priority)
    }

    /// An agent says more than a kind, a kind more than a priority.
    fn specific(&self) -> u8 {
        u8::from(self.agent.is_some()) * 4 + u8::from(self.kind.is_some()) * 2 + u8::from(self.priority.is_some())
    }
}

/// "due Monday 7 December, 11:40; at risk at …; reminders at …": what a policy means for a question asked at `now`.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    pub due_at: Option<DateTime<Utc>>,
    pub at_risk_at: Option<DateTime<Utc>>,
    pub reminders: Vec<DateTime<Utc>>,
    pub managers_at: Option<DateTime<Utc>>,
}

/// What `policy` means by `calendar` for a question asked at `now` that nobody answers.
pub fn preview(policy: &Policy, calendar: &Calendar, now: DateTime<Utc>) -> Preview {
    let clocks = clocks(now, calendar, Some(policy), None, None, None);
    let later = |from, so_much| clocks::after(calendar, policy.business, from, so_much);
    let mut reminders = Vec::new();
    if let Some(remind) = policy.remind.filter(|remind| remind.most > 0) {
        let mut next = later(now, remind.after);
        while let Some(at) = next.filter(|_| reminders.len() < remind.most as usize) {
            reminders.push(at);
            next = remind.every.and_then(|every| later(at, every));
        }
    }
    let managers_at = clocks.due_at.zip(policy.escalate_after).and_then(|(due, after)| later(due, after));
    Preview { due_at: clocks.due_at, at_risk_at: clocks.at_risk_at, reminders, managers_at }
}

/// The most specific policy that fits.
pub fn deciding(policies: &[Policy], agent: AgentId, kind: Kind, priority: Priority) -> Option<&Policy> {
    policies.iter().filter(|policy| policy.fits(agent, kind, priority)).max_by_key(|policy| policy.specific())
}

/// All policies, the general ones first.
pub async fn load(conn: &mut PgConnection) -> Result<Vec<Policy>, Refusal> {
    let rows = sqlx::query!(
        r#"select p.id, p.agent_id as "agent_id: AgentId", a.name as "agent_name?", p.kind as "kind: Kind", p.priority,
                  p.target_seconds, p.business, p.at_risk_percent, p.remind_after, p.remind_every, p.remind_most,
                  p.escalate_after, p.reassign
           from policy p left join agent a on a.id = p.agent_id"#
    )
    .fetch_all(conn)
    .await?;
    let seconds = |seconds: Option<i64>| seconds.map(Duration::seconds);
    let mut policies: Vec<Policy> = rows
        .into_iter()
        .map(|row| Policy {
            id: row.id,
            agent: row.agent_id,
            agent_name: row.agent_name,
            kind: row.kind,
            priority: row.priority.map(Priority::from_rank),
            target: seconds(row.target_seconds),
            business: row.business,
            at_risk_percent: row.at_risk_percent.into(),
            remind: seconds(row.remind_after).map(|after| Remind {
                after,
                every: seconds(row.remind_every),
                most: row.remind_most,
            }),
            escalate_after: seconds(row.escalate_after),
            reassign: row.reassign,
        })
        .collect();
    policies.sort_by_key(|policy| (policy.specific(), policy.id));
    Ok(policies)
}
