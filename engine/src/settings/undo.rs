//! Taking a change of the site's settings back: what stood before stands in the audit.

use serde::Deserialize;
use serde_json::{Value, from_value};

use super::settings;
use crate::{
    Engine, Refusal,
    actor::PersonActor,
    calendar::{self, CalendarForm, Owner, only_admins},
    policy::{self, PolicyForm},
};

/// A change, by its line of the audit.
pub type Change = i64;

/// What a change of settings says of itself in the audit; None: there was, or is, none.
#[derive(Deserialize)]
struct Told {
    before: Option<Value>,
    after: Option<Value>,
}

/// Puts back what stood before `change`; the answer is this change, which can be undone likewise.
///
/// Refuses with `forbidden`, `not_found`, or `invalid` when it was changed again since.
pub async fn undo(engine: &Engine, person: &PersonActor, change: Change) -> Result<Change, Refusal> {
    only_admins(person)?;
    let line = sqlx::query!(
        "select action, detail from audit
         where id = $1 and (action in ('policy.saved', 'policy.removed') or action = 'calendar.changed' and object = 'calendar:site')",
        change
    )
    .fetch_optional(&engine.pool)
    .await?
    .ok_or(Refusal::NotFound)?;
    let told: Told = from_value(line.detail.unwrap_or_default()).map_err(|_| Refusal::NotFound)?;
    engine.settings.forget();
    match line.action.as_str() {
        "calendar.changed" => of_calendar(engine, person, told).await,
        _ => of_policy(engine, person, told).await,
    }
}

fn read<T: serde::de::DeserializeOwned>(form: Option<Value>) -> Result<Option<T>, Refusal> {
    // A line of an older version tells it in another way.
    form.map(from_value).transpose().map_err(|_| Refusal::NotFound)
}

fn since() -> Refusal {
    Refusal::invalid("", "This was changed again since, so it is not undone. Look at what stands now, and change that.")
}

async fn of_policy(engine: &Engine, person: &PersonActor, told: Told) -> Result<Change, Refusal> {
    let (before, after): (Option<PolicyForm>, Option<PolicyForm>) = (read(told.before)?, read(told.after)?);
    let scope = before.as_ref().or(after.as_ref()).ok_or(Refusal::NotFound)?;
    let settings = settings(engine).await?;
    let stands = settings.policies.iter().find(|policy| PolicyForm::of(policy).is_for_the_same(scope));
    if stands.map(PolicyForm::of) != after {
        return Err(since());
    }
    match (before, stands) {
        (Some(before), _) => policy::save(engine, person, &before).await,
        (None, Some(stands)) => policy::remove(engine, person, stands.id).await,
        (None, None) => Err(since()),
    }
}

async fn of_calendar(engine: &Engine, person: &PersonActor, told: Told) -> Result<Change, Refusal> {
    let (before, after): (Option<CalendarForm>, Option<CalendarForm>) = (read(told.before)?, read(told.after)?);
    let stands = calendar::load(&mut *engine.pool.acquire().await?, Owner::Site).await?;
    if stands.as_ref().map(CalendarForm::of) != after {
        return Err(since());
    }
    let before = before.map(|form| form.read().map_err(Refusal::Invalid)).transpose()?;
    calendar::save(engine, person, Owner::Site, before.as_ref()).await
}
