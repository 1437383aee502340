//! Changing policies: an administrator's.

use chrono::Duration;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{Policy, Remind, load};
use crate::{
    Engine, FieldError, Refusal, Tx,
    actor::PersonActor,
    audit,
    calendar::only_admins,
    duration,
    ids::AgentId,
    settings::Change,
    slot::{Kind, Priority},
};

/// What somebody fills in: durations as "4h" or "1h 30m", "" for none; agent by name, "" for any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyForm {
    pub agent: String,
    pub kind: String,
    pub priority: String,
    pub target: String,
    pub business: bool,
    pub at_risk_percent: String,
    pub remind_after: String,
    pub remind_every: String,
    pub remind_most: String,
    pub escalate_after: String,
    pub reassign: bool,
}

impl PolicyForm {
    pub fn of(policy: &Policy) -> Self {
        let text = |duration: Option<Duration>| duration.map(duration::text).unwrap_or_default();
        Self {
            agent: policy.agent_name.clone().unwrap_or_default(),
            kind: policy.kind.map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
            priority: policy.priority.map(|priority| priority.as_str().to_owned()).unwrap_or_default(),
            target: text(policy.target),
            business: policy.business,
            at_risk_percent: policy.at_risk_percent.to_string(),
            remind_after: text(policy.remind.map(|remind| remind.after)),
            remind_every: text(policy.remind.and_then(|remind| remind.every)),
            remind_most: policy.remind.map_or(3, |remind| remind.most).to_string(),
            escalate_after: text(policy.escalate_after),
            reassign: policy.reassign,
        }
    }

    pub(crate) fn is_for_the_same(&self, other: &Self) -> bool {
        (&self.agent, &self.kind, &self.priority) == (&other.agent, &other.kind, &other.priority)
    }

    /// The policy that it says, without its agent. Pointers are the fields' names.
    pub fn read(&self) -> Result<Policy, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut wrong = |pointer: &str, detail: &str| errors.push(FieldError::new(pointer, detail));
        let mut span = |pointer: &str, text: &str| match text.trim() {
            "" => None,
            text => duration::parse(text).or_else(|| {
                wrong(pointer, "Write a duration like 90s, 15m, 4h, 2d or 1h 30m.");
                None
            }),
        };
        let target = span("/target", &self.target);
        let after = span("/remind_after", &self.remind_after);
        let every = span("/remind_every", &self.remind_every);
        let escalate_after = span("/escalate_after", &self.escalate_after);
        let mut number = |pointer: &str, text: &str, from: i32, to: i32, default: i32| match text.trim() {
            "" => default,
            text => text.parse().ok().filter(|number| (from..=to).contains(number)).unwrap_or_else(|| {
                wrong(pointer, &format!("Write a whole number from {from} to {to}."));
                default
            }),
        };
        let at_risk_percent = number("/at_risk_percent", &self.at_risk_percent, 1, 99, 75);
        let most = number("/remind_most", &self.remind_most, 0, 100, 3);
        let kind = match self.kind.as_str() {
            "" => None,
            text => [Kind::Question, Kind::Approval, Kind::ClientTool, Kind::Human]
                .into_iter()
                .find(|kind| kind.as_str() == text),
        };
        let priorities = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];
        let priority = priorities.into_iter().find(|priority| priority.as_str() == self.priority);
        if kind.is_none() && !self.kind.is_empty() {
            wrong("/kind", "Choose a kind.");
        }
        if priority.is_none() && !self.priority.is_empty() {
            wrong("/priority", "Choose a priority.");
        }
        if target.is_none() && after.is_none() && self.target.trim().is_empty() && self.remind_after.trim().is_empty() {
            wrong("/target", "Say how long an answer may take, or when somebody is reminded.");
        }
        if every.is_some() && after.is_none() && self.remind_after.trim().is_empty() {
            wrong("/remind_after", "Say when the first reminder is sent.");
        }
        if escalate_after.is_some() && target.is_none() && self.target.trim().is_empty() {
            wrong("/escalate_after", "Without a target nothing is late.");
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Policy {
            id: Uuid::nil(),
            agent: None,
            agent_name: None,
            kind,
            priority,
            target,
            business: self.business,
            at_risk_percent,
            remind: after.map(|after| Remind { after, every, most }),
            escalate_after,
            reassign: self.reassign,
        })
    }
}

/// Adds a policy, or changes the one for the same agent, kind and priority. What is asked from then on follows it.
///
/// Refuses with `forbidden`, or `invalid` with a pointer per field.
pub async fn save(engine: &Engine, person: &PersonActor, form: &PolicyForm) -> Result<Change, Refusal> {
    only_admins(person)?;
    let policy = form.read().map_err(Refusal::Invalid)?;
    let mut tx = engine.begin().await?;
    let agent = match form.agent.trim() {
        "" => None,
        name => {
            let found =
                sqlx::query!(r#"select id as "id: AgentId", name from agent where lower(name) = lower($1)"#, name)
                    .fetch_optional(tx.conn())
                    .await?;
            Some(found.ok_or_else(|| Refusal::invalid("/agent", format!("There is no agent “{name}”.")))?)
        }
    };
    let (agent, agent_name) = agent.map(|agent| (agent.id, agent.name)).unzip();
    let after = PolicyForm::of(&Policy { agent_name, ..policy.clone() });
    let before = stand(&mut tx).await?.iter().map(PolicyForm::of).find(|form| form.is_for_the_same(&after));
    let seconds = |duration: Option<Duration>| duration.map(|duration| duration.num_seconds());
    let id: Uuid = tx.engine.ids.next();
    sqlx::query!(
        "insert into policy (id, agent_id, kind, priority, target_seconds, business, at_risk_percent, remind_after,
                             remind_every, remind_most, escalate_after, reassign)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         on conflict (coalesce(agent_id, '00000000-0000-0000-0000-000000000000'), coalesce(kind, ''),
                      coalesce(priority, -1::smallint))
         do update set target_seconds = excluded.target_seconds, business = excluded.business,
                       at_risk_percent = excluded.at_risk_percent, remind_after = excluded.remind_after,
                       remind_every = excluded.remind_every, remind_most = excluded.remind_most,
                       escalate_after = excluded.escalate_after, reassign = excluded.reassign",
        id,
        agent.map(|id| id.0),
        policy.kind.map(Kind::as_str),
        policy.priority.map(|priority| priority as i16),
        seconds(policy.target),
        policy.business,
        policy.at_risk_percent as i16,
        seconds(policy.remind.map(|remind| remind.after)),
        seconds(policy.remind.and_then(|remind| remind.every)),
        policy.remind.map_or(3, |remind| remind.most),
        seconds(policy.escalate_after),
        policy.reassign,
    )
    .execute(tx.conn())
    .await?;
    changed(tx, person, "policy.saved", before, Some(after)).await
}

/// Takes a policy away. Refuses with `forbidden` or `not_found`.
pub async fn remove(engine: &Engine, person: &PersonActor, id: Uuid) -> Result<Change, Refusal> {
    only_admins(person)?;
    let mut tx = engine.begin().await?;
    let removed = stand(&mut tx).await?.into_iter().find(|policy| policy.id == id).ok_or(Refusal::NotFound)?;
    sqlx::query!("delete from policy where id = $1", id).execute(tx.conn()).await?;
    changed(tx, person, "policy.removed", Some(PolicyForm::of(&removed)), None).await
}

/// The policies as they stand until this unit of work is over.
async fn stand(tx: &mut Tx) -> Result<Vec<Policy>, Refusal> {
    sqlx::query!("lock table policy in share row exclusive mode").execute(tx.conn()).await?;
    load(tx.conn()).await
}

/// Writes a change down so that it can be undone ([`crate::settings::undo`]), and makes it durable.
async fn changed(
    mut tx: Tx,
    person: &PersonActor,
    action: &str,
    before: Option<PolicyForm>,
    after: Option<PolicyForm>,
) -> Result<Change, Refusal> {
    let key = format!("person:{}", person.id);
    let detail = json!({ "before": before, "after": after });
    let change = audit::write(&mut tx, &key, action, &key, Some(detail)).await?;
    let settings = tx.engine.settings.clone();
    tx.commit().await?;
    settings.forget();
    Ok(change)
}
