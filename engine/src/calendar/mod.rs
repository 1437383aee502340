//! Calendars: a time zone, the hours of a week, and holidays; the site's and people's own (design section 7).

mod business;
pub mod import;
pub mod save;

use chrono::NaiveDate;
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::{Refusal, ids::PersonId};

pub use save::{CalendarForm, of_person, save};
pub(crate) use save::{load, load_all};

/// Part of a local day: minutes from its midnight, `to` not included. 0 to 1440.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub from: u16,
    pub to: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holiday {
    pub day: NaiveDate,
    /// Every year on the same day of the same month.
    pub yearly: bool,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Calendar {
    pub zone: Tz,
    /// Monday first.
    pub week: [Vec<Span>; 7],
    pub holidays: Vec<Holiday>,
}

impl Default for Calendar {
    /// Monday to Friday, 9 to 18, UTC: until an admin says otherwise.
    fn default() -> Self {
        let day = vec![Span { from: 9 * 60, to: 18 * 60 }];
        Self {
            zone: chrono_tz::UTC,
            week: [day.clone(), day.clone(), day.clone(), day.clone(), day, Vec::new(), Vec::new()],
            holidays: Vec::new(),
        }
    }
}

/// Whose calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Site,
    Person(PersonId),
}

impl Owner {
    pub(crate) fn person(self) -> Option<PersonId> {
        match self {
            Self::Site => None,
            Self::Person(id) => Some(id),
        }
    }
}

/// Spans as people write them: "9-12:30, 13:30-18"; "" for a day off. Err is a sentence.
pub fn parse_spans(text: &str) -> Result<Vec<Span>, String> {
    let wrong = || format!("“{}” are no hours. Write them like 9-12:30, 13:30-18; leave a day off empty.", text.trim());
    let minute = |text: &str| -> Option<u16> {
        let (hour, minute) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60 || hour == 24 && minute == 0).then(|| hour * 60 + minute)
    };
    let mut spans = Vec::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (from, to) = part.split_once(['-', '–']).ok_or_else(wrong)?;
        let (Some(from), Some(to)) = (minute(from), minute(to)) else { return Err(wrong()) };
        if from >= to {
            return Err(format!(
                "“{}” does not end after it begins. Past midnight, write 22-24 here and 0-6 on the next day.",
                part.trim()
            ));
        }
        spans.push(Span { from, to });
    }
    spans.sort_unstable_by_key(|span| span.from);
    match spans.windows(2).any(|two| two[0].to > two[1].from) || spans.len() > 10 {
        true => Err(wrong()),
        false => Ok(spans),
    }
}

/// The other way round.
pub fn spans_in_words(spans: &[Span]) -> String {
    let clock = |minute: u16| match (minute / 60, minute % 60) {
        (hour, 0) => hour.to_string(),
        (hour, minute) => format!("{hour}:{minute:02}"),
    };
    spans.iter().map(|span| format!("{}-{}", clock(span.from), clock(span.to))).collect::<Vec<_>>().join(", ")
}

/// What must be true to see or change a site's settings.
pub fn only_admins(person: &crate::actor::PersonActor) -> Result<(), Refusal> {
    match person.is_admin() {
        true => Ok(()),
        false => Err(Refusal::Forbidden("Only an administrator changes the site's settings.".to_owned())),
    }
}

#[cfg(test)]
mod tests;
