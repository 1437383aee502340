//! The clocks of one question: when it is at risk, due, reminded of, and expires.

use chrono::{DateTime, Duration, Utc};

use super::{Policy, Remind};
use crate::calendar::Calendar;

/// A timer that a question begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Timer {
    Remind,
    AtRisk,
    Breach,
    /// So long after the breach: the managers.
    Managers,
    Expire,
}

impl Timer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remind => "remind",
            Self::AtRisk => "at_risk",
            Self::Breach => "breach",
            Self::Managers => "managers",
            Self::Expire => "expire",
        }
    }
}

/// What a question follows: its own words before the policy's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    pub target: Option<Duration>,
    /// The target counts business time; reminders and escalation say so for themselves.
    pub business: bool,
    pub remind_business: bool,
    pub escalate_business: bool,
    pub at_risk_at: Option<DateTime<Utc>>,
    pub due_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub remind: Option<Remind>,
    pub escalate_after: Option<Duration>,
    pub reassign: bool,
    pub timers: Vec<(Timer, DateTime<Utc>)>,
}

/// `so_much` after `start`, by the calendar or by the plain clock. Where the calendar never comes so far (nobody's hours, a
/// holiday for ever), the plain clock counts: a clock that stands still would silence everybody's reminders.
pub fn after(calendar: &Calendar, business: bool, start: DateTime<Utc>, so_much: Duration) -> Option<DateTime<Utc>> {
    let by_calendar = if business { calendar.after(start, so_much) } else { None };
    by_calendar.or_else(|| start.checked_add_signed(so_much))
}

/// The clocks of a question asked at `now`. What the asker says of target and reminders is plain time; a policy's is business
/// time when it says so. Expiry is always plain time.
pub fn clocks(
    now: DateTime<Utc>,
    calendar: &Calendar,
    policy: Option<&Policy>,
    target: Option<Duration>,
    remind: Option<Remind>,
    expires_in: Option<Duration>,
) -> Clocks {
    let of_policy = policy.filter(|policy| policy.business);
    let (target, business) = match target {
        Some(own) => (Some(own), false),
        None => (policy.and_then(|policy| policy.target), of_policy.is_some()),
    };
    let due_at = target.and_then(|target| after(calendar, business, now, target));
    let percent = policy.map_or(75, |policy| policy.at_risk_percent);
    let at_risk_at = target.filter(|_| due_at.is_some()).and_then(|target| {
        after(calendar, business, now, Duration::seconds(target.num_seconds() * i64::from(percent) / 100))
    });
    let (remind, remind_business) = match remind {
        Some(own) => (Some(own), false),
        None => (policy.and_then(|policy| policy.remind), of_policy.is_some()),
    };
    let remind = remind.filter(|remind| remind.most > 0);
    let first = remind.and_then(|remind| after(calendar, remind_business, now, remind.after));
    let expires_at = expires_in.map(|wait| now + wait);
    let timers =
        [(Timer::Remind, first), (Timer::AtRisk, at_risk_at), (Timer::Breach, due_at), (Timer::Expire, expires_at)];
    Clocks {
        target,
        business,
        remind_business,
        escalate_business: of_policy.is_some(),
        at_risk_at,
        due_at,
        expires_at,
        remind,
        // Where no policy says whether and when, as long again as the answer may take.
        escalate_after: policy.map_or(target, |policy| policy.escalate_after),
        reassign: policy.is_some_and(|policy| policy.reassign),
        timers: timers.into_iter().filter_map(|(timer, at)| Some((timer, at?))).collect(),
    }
}
