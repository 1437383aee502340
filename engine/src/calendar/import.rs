//! Holidays from an .ics file (RFC 5545): whole-day events, those of every year as such.

use chrono::Datelike;
use icalendar::{CalendarComponent, Component, DatePerhapsTime};

use super::Holiday;

/// Bytes of the largest file.
pub const LARGEST: usize = 1_000_000;
/// An event that takes longer is no holiday.
const LONGEST: i64 = 31;

/// The holidays of a file, and how many of its events were none (at an hour, too long, or without a date). Err is a
/// sentence.
pub fn holidays(text: &str) -> Result<(Vec<Holiday>, usize), String> {
    if text.len() > LARGEST {
        return Err("This file is too large: at most 1 MB.".to_owned());
    }
    if !text.contains("BEGIN:VCALENDAR") {
        return Err("This is no calendar: choose a file that ends in .ics.".to_owned());
    }
    let calendar: icalendar::Calendar =
        text.parse().map_err(|_| "This calendar cannot be read: it is not as RFC 5545 has it.".to_owned())?;
    let mut holidays: Vec<Holiday> = Vec::new();
    let mut others = 0;
    for component in &calendar.components {
        let CalendarComponent::Event(event) = component else { continue };
        let Some(DatePerhapsTime::Date(first)) = event.get_start() else {
            others += 1;
            continue;
        };
        // The end of a whole day is the day after it.
        let end = match event.get_end() {
            Some(DatePerhapsTime::Date(end)) if end > first => end,
            _ => first + chrono::Days::new(1),
        };
        if (end - first).num_days() > LONGEST {
            others += 1;
            continue;
        }
        let name: String = event.get_summary().unwrap_or_default().trim().chars().take(200).collect();
        let rule = event.property_value("RRULE").unwrap_or_default();
        for day in first.iter_days().take_while(|day| *day < end) {
            let yearly = is_every_year(rule);
            let day = if yearly { day.with_year(2000).unwrap_or(day) } else { day };
            if !holidays.iter().any(|other| (other.day, other.yearly) == (day, yearly)) {
                holidays.push(Holiday { day, yearly, name: name.replace('\0', "") });
            }
        }
    }
    holidays.sort_by_key(|holiday: &Holiday| (holiday.yearly, holiday.day));
    Ok((holidays, others))
}

/// Every year on the same date, for ever; "the fourth Thursday" is another date each year and counts for its own only.
fn is_every_year(rule: &str) -> bool {
    let parts: Vec<&str> = rule.split(';').collect();
    let has = |name: &str| parts.iter().any(|part| part.starts_with(name));
    parts.contains(&"FREQ=YEARLY")
        && !["BYDAY", "BYSETPOS", "BYWEEKNO", "BYYEARDAY", "COUNT", "UNTIL"].iter().any(|part| has(part))
        && parts.iter().all(|part| !part.starts_with("INTERVAL=") || *part == "INTERVAL=1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n\
        BEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20251225\r\nDTEND;VALUE=DATE:20251227\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:2\r\nDTSTART;VALUE=DATE:20260403\r\nSUMMARY:Good Friday\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:3\r\nDTSTART;VALUE=DATE:20261126\r\nRRULE:FREQ=YEARLY;BYDAY=4TH;BYMONTH=11\r\nSUMMARY:Thanksgiving\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:4\r\nDTSTART:20260403T100000Z\r\nSUMMARY:A meeting\r\nEND:VEVENT\r\n\
        END:VCALENDAR\r\n";

    #[test]
    fn whole_days_are_holidays_and_meetings_are_not() {
        let (found, others) = holidays(FILE).unwrap();
        let told: Vec<_> =
            found.iter().map(|holiday| format!("{} {} {}", holiday.day, holiday.yearly, holiday.name)).collect();
        assert_eq!(
            told,
            [
                "2026-04-03 false Good Friday",
                "2026-11-26 false Thanksgiving",
                "2000-12-25 true Christmas",
                "2000-12-26 true Christmas"
            ]
        );
        assert_eq!(others, 1);
    }

    #[test]
    fn what_is_no_calendar_is_refused_with_a_sentence() {
        for wrong in ["", "<html>", &"x".repeat(LARGEST + 1)] {
            assert!(holidays(wrong).is_err());
        }
    }
}
