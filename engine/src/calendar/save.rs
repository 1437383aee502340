//! Reading and changing a calendar.

use std::collections::HashSet;

use chrono::{Datelike, NaiveDate};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{Calendar, Holiday, Owner, Span, only_admins, parse_spans};
use crate::{Engine, FieldError, Refusal, Tx, actor::PersonActor, audit, ids::PersonId, settings::Change};

const MOST_HOLIDAYS: usize = 1_000;
const YEARS: std::ops::RangeInclusive<i32> = 1900..=2999;

/// What somebody fills in: an IANA zone, the hours of each day from Monday ("9-12:30, 13:30-18"), and holidays, one to a
/// line: "2026-12-24 Christmas Eve", or "12-25 Christmas" for every year.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalendarForm {
    pub zone: String,
    pub week: [String; 7],
    pub holidays: String,
}

impl CalendarForm {
    pub fn of(calendar: &Calendar) -> Self {
        let lines = calendar.holidays.iter().map(|holiday| {
            let day = if holiday.yearly { holiday.day.format("%m-%d") } else { holiday.day.format("%Y-%m-%d") };
            format!("{day} {}", holiday.name).trim().to_owned()
        });
        Self {
            zone: calendar.zone.name().to_owned(),
            week: calendar.week.clone().map(|spans| super::spans_in_words(&spans)),
            holidays: lines.collect::<Vec<_>>().join("\n"),
        }
    }

    /// The calendar that it says. Pointers /zone, /week/<n>, /holidays.
    pub fn read(&self) -> Result<Calendar, Vec<FieldError>> {
        let mut errors = Vec::new();
        let zone: Tz = self.zone.trim().parse().unwrap_or_else(|_| {
            errors.push(FieldError::new("/zone", "Choose a time zone, for example Europe/Berlin."));
            chrono_tz::UTC
        });
        let mut week: [Vec<Span>; 7] = Default::default();
        for (at, text) in self.week.iter().enumerate() {
            match parse_spans(text) {
                Ok(spans) => week[at] = spans,
                Err(detail) => errors.push(FieldError::new(format!("/week/{at}"), detail)),
            }
        }
        if week.iter().all(Vec::is_empty) && errors.is_empty() {
            errors.push(FieldError::new(
                "/week/0",
                "Give at least one day its hours: without any, no time would ever pass.",
            ));
        }
        let mut holidays: Vec<Holiday> = Vec::new();
        let mut days = HashSet::new();
        for line in self.holidays.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some(found) = holiday(line) else {
                let line: String = line.chars().take(100).collect();
                let detail = format!(
                    "“{line}” is no holiday. Write 2026-12-24 Christmas Eve, or 12-25 Christmas for every year."
                );
                errors.push(FieldError::new("/holidays", detail));
                break;
            };
            if days.insert((found.day, found.yearly)) {
                holidays.push(found);
            }
            if holidays.len() > MOST_HOLIDAYS {
                errors.push(FieldError::new("/holidays", "A calendar has at most 1,000 holidays."));
                break;
            }
        }
        if errors.is_empty() { Ok(Calendar { zone, week, holidays }) } else { Err(errors) }
    }
}

fn holiday(line: &str) -> Option<Holiday> {
    let (day, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let yearly = day.len() == 5;
    // A leap year, so that the 29th of February can be one.
    let day: NaiveDate = if yearly { format!("2000-{day}").parse().ok()? } else { day.parse().ok()? };
    let name: String = name.trim().chars().take(200).collect();
    (!name.contains('\0') && YEARS.contains(&day.year())).then_some(Holiday { day, yearly, name })
}

/// The calendar of `owner`; None when there is none (a person's: the site's counts; the site's: the default).
pub async fn load(conn: &mut PgConnection, owner: Owner) -> Result<Option<Calendar>, Refusal> {
    let mut found = loaded(conn, false, owner.person()).await?;
    Ok(found.pop().map(|(_, calendar)| calendar))
}

/// All calendars with whose they are; None: the site's.
pub async fn load_all(conn: &mut PgConnection) -> Result<Vec<(Option<PersonId>, Calendar)>, Refusal> {
    loaded(conn, true, None).await
}

async fn loaded(
    conn: &mut PgConnection,
    all: bool,
    owner: Option<PersonId>,
) -> Result<Vec<(Option<PersonId>, Calendar)>, Refusal> {
    let rows = sqlx::query!(
        r#"select id, person_id as "person_id: PersonId", zone, week as "week: Json<[Vec<Span>; 7]>"
           from calendar where $1 or person_id is not distinct from $2 order by id"#,
        all,
        owner.map(|id| id.0)
    )
    .fetch_all(&mut *conn)
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let holidays = sqlx::query!(
        "select calendar_id, day, yearly, name from holiday where calendar_id = any($1) order by yearly, day",
        &ids
    )
    .fetch_all(conn)
    .await?;
    let mut calendars: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let zone = row.zone.parse().unwrap_or(chrono_tz::UTC);
            (row.person_id, Calendar { zone, week: row.week.0, holidays: Vec::new() })
        })
        .collect();
    for row in holidays {
        if let Ok(at) = ids.binary_search(&row.calendar_id) {
            calendars[at].1.holidays.push(Holiday { day: row.day, yearly: row.yearly, name: row.name });
        }
    }
    Ok(calendars)
}

/// A person's own calendar, if they have one.
pub async fn of_person(engine: &Engine, person: PersonId) -> Result<Option<Calendar>, Refusal> {
    let mut conn = engine.pool.acquire().await?;
    load(&mut conn, Owner::Person(person)).await
}

/// Saves the calendar as a whole: the site's by an admin, a person's by themselves; None takes a person's own away. What
/// is asked from then on follows it; what waits keeps its due date. Refuses with `forbidden`.
pub async fn save(
    engine: &Engine,
    person: &PersonActor,
    owner: Owner,
    calendar: Option<&Calendar>,
) -> Result<Change, Refusal> {
    match owner {
        Owner::Site => only_admins(person)?,
        Owner::Person(id) if id == person.id => {}
        Owner::Person(_) => return Err(Refusal::NotFound),
    }
    let mut tx: Tx = engine.begin().await?;
    // One after the other: of two at once, the second replaces what the first saved.
    sqlx::query!("lock table calendar in share row exclusive mode").execute(tx.conn()).await?;
    let old = load(tx.conn(), owner).await?;
    sqlx::query!("delete from calendar where person_id is not distinct from $1", owner.person().map(|id| id.0))
        .execute(tx.conn())
        .await?;
    if let Some(calendar) = calendar {
        let id: Uuid = tx.engine.ids.next();
        sqlx::query!(
            "insert into calendar (id, person_id, zone, week) values ($1, $2, $3, $4)",
            id,
            owner.person().map(|id| id.0),
            calendar.zone.name(),
            Json(&calendar.week) as _
        )
        .execute(tx.conn())
        .await?;
        let days: Vec<_> = calendar.holidays.iter().map(|holiday| holiday.day).collect();
        let yearly: Vec<_> = calendar.holidays.iter().map(|holiday| holiday.yearly).collect();
        let names: Vec<_> = calendar.holidays.iter().map(|holiday| holiday.name.clone()).collect();
        sqlx::query!(
            "insert into holiday (calendar_id, day, yearly, name)
             select $1, day, yearly, name from unnest($2::date[], $3::bool[], $4::text[]) as h (day, yearly, name)",
            id,
            &days,
            &yearly,
            &names
        )
        .execute(tx.conn())
        .await?;
    }
    // The former stands in the audit, so that a change can be undone.
    let detail = json!({ "before": old.as_ref().map(CalendarForm::of), "after": calendar.map(CalendarForm::of) });
    let key = format!("person:{}", person.id);
    let object = if owner == Owner::Site { "calendar:site" } else { key.as_str() };
    let change = audit::write(&mut tx, &key, "calendar.changed", object, Some(detail)).await?;
    tx.commit().await?;
    engine.settings.forget();
    Ok(change)
}
