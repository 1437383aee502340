//! Holidays from an .ics file (RFC 5545): whole-day events, those of every year on the same date as such, others that come
//! back every year for the years ahead.

use std::collections::HashSet;

use chrono::{Datelike, NaiveDate};
use icalendar::{CalendarComponent, Component, DatePerhapsTime, Event};
use rrule::RRuleSet;

use super::Holiday;

/// Bytes of the largest file.
pub const LARGEST: usize = 1_000_000;
/// An event that takes longer is no holiday.
const LONGEST: i64 = 31;
/// For so many years ahead, days that move (the fourth Thursday) are worked out.
const YEARS_AHEAD: i32 = 5;
/// So deep do components lie in one another: a calendar, an event, an alarm. The library follows each with its own stack.
const DEEPEST: usize = 5;
/// More days than a calendar takes.
const MOST: usize = 5_000;

/// The holidays of a file as of `today`, and how many of its events were none: at an hour, too long, without a date, or coming
/// back in another way than every year. Err is a sentence.
pub fn holidays(text: &str, today: NaiveDate) -> Result<(Vec<Holiday>, usize), String> {
    if text.len() > LARGEST {
        return Err("This file is too large: at most 1 MB.".to_owned());
    }
    let calendars = calendars(text)?;
    if calendars.is_empty() {
        return Err("This is no calendar: choose a file that ends in .ics.".to_owned());
    }
    let mut holidays: Vec<Holiday> = Vec::new();
    let mut known = HashSet::new();
    let mut others = 0;
    for text in calendars {
        let calendar: icalendar::Calendar =
            text.parse().map_err(|_| "This calendar cannot be read: it is not as RFC 5545 has it.".to_owned())?;
        for component in &calendar.components {
            let CalendarComponent::Event(event) = component else { continue };
            if event.property_value("STATUS").is_some_and(|status| status.eq_ignore_ascii_case("CANCELLED")) {
                continue;
            }
            let Some(days) = days(event, today) else {
                others += 1;
                continue;
            };
            let name: String = event.get_summary().unwrap_or_default().trim().chars().take(200).collect();
            for (day, yearly) in days {
                if known.insert((day, yearly)) {
                    holidays.push(Holiday { day, yearly, name: name.replace('\0', "") });
                }
            }
            if holidays.len() > MOST {
                return Err("This file has more days than a calendar takes: at most 1,000.".to_owned());
            }
        }
    }
    holidays.sort_by_key(|holiday: &Holiday| (holiday.yearly, holiday.day));
    Ok((holidays, others))
}

/// The calendars of a file, one after the other, with long lines put together and names in capitals, as the library wants
/// them.
fn calendars(text: &str) -> Result<Vec<String>, String> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "");
    let mut calendars = Vec::new();
    let mut calendar = String::new();
    let mut depth = 0_usize;
    for line in text.lines() {
        let (name, rest) = line.split_at(line.find([':', ';']).unwrap_or(line.len()));
        let name = name.to_ascii_uppercase();
        let rest = if name == "BEGIN" || name == "END" { rest.trim().to_ascii_uppercase() } else { rest.to_owned() };
        match name.as_str() {
            "BEGIN" => depth += 1,
            "END" => depth = depth.saturating_sub(1),
            _ if depth == 0 => continue,
            _ => {}
        }
        if depth > DEEPEST {
            return Err("This calendar cannot be read: its parts lie too deep in one another.".to_owned());
        }
        calendar.extend([&name, rest.as_str(), "\r\n"]);
        if name == "END" && depth == 0 {
            calendars.push(std::mem::take(&mut calendar));
        }
    }
    calendars.retain(|calendar| calendar.starts_with("BEGIN:VCALENDAR"));
    Ok(calendars)
}

/// The days of an event, and whether each comes back every year on its date; None when it is no holiday.
fn days(event: &Event, today: NaiveDate) -> Option<Vec<(NaiveDate, bool)>> {
    let Some(DatePerhapsTime::Date(first)) = event.get_start() else { return None };
    // The end of a whole day is the day after it.
    let length = match event.get_end() {
        Some(DatePerhapsTime::Date(end)) if end > first => (end - first).num_days(),
        _ => event.property_value("DURATION").and_then(in_days).unwrap_or(1),
    };
    if !(1..=LONGEST).contains(&length) {
        return None;
    }
    let rule = event.property_value("RRULE").unwrap_or_default().to_ascii_uppercase();
    let yearly = is_every_year(&rule);
    let mut starts = match rule.as_str() {
        "" => vec![first],
        _ if yearly => vec![first],
        rule => years_ahead(first, rule, today)?,
    };
    starts.extend(dates(event, "RDATE"));
    let without: HashSet<NaiveDate> = dates(event, "EXDATE").collect();
    let days = starts.into_iter().filter(|start| !without.contains(start));
    let days = days.flat_map(|start| start.iter_days().take(length as usize));
    // A leap year, so that the 29th of February can be one.
    Some(days.filter_map(|day| Some((if yearly { day.with_year(2000)? } else { day }, yearly))).collect())
}

/// When an event comes back, from last year on; None for a rule that is not of whole years, or cannot be read.
fn years_ahead(first: NaiveDate, rule: &str, today: NaiveDate) -> Option<Vec<NaiveDate>> {
    if !rule.split(';').any(|part| part == "FREQ=YEARLY") {
        return None;
    }
    // An end that is a day means that whole day.
    let parts = rule.split(';').map(|part| match part.strip_prefix("UNTIL=") {
        Some(day) if day.len() == 8 => format!("UNTIL={day}T235959Z"),
        _ => part.to_owned(),
    });
    let rule = parts.collect::<Vec<_>>().join(";");
    let set: RRuleSet = format!("DTSTART:{}T000000Z\nRRULE:{rule}", first.format("%Y%m%d")).parse().ok()?;
    let (from, to) = (today.year() - 1, today.year() + YEARS_AHEAD);
    let starts = set.limit().into_iter().map(|at| at.date_naive()).take_while(|day| day.year() <= to).take(MOST);
    Some(starts.filter(|day| day.year() >= from).collect())
}

/// The days that a property lists.
fn dates(event: &Event, name: &str) -> impl Iterator<Item = NaiveDate> {
    let single = event.property_value(name).map(str::to_owned);
    let several = event.multi_properties().get(name).cloned().unwrap_or_default();
    let values = single.into_iter().chain(several.into_iter().map(|property| property.value().to_owned()));
    let days = values.flat_map(|value| value.split(',').map(str::to_owned).collect::<Vec<_>>());
    days.filter_map(|day| NaiveDate::parse_from_str(day.get(..8)?, "%Y%m%d").ok())
}

/// "P3D" and "P1W" as days.
fn in_days(duration: &str) -> Option<i64> {
    let (number, unit) = duration.trim().strip_prefix('P')?.split_at_checked(duration.trim().len() - 2)?;
    let number: i64 = number.parse().ok()?;
    match unit {
        "D" => Some(number),
        "W" => number.checked_mul(7),
        _ => None,
    }
}

/// Every year on the same date, for ever.
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

    fn today() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 12, 1).unwrap()
    }

    const FILE: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n\
        BEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20251225\r\nDTEND;VALUE=DATE:20251227\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:2\r\nDTSTART;VALUE=DATE:20260403\r\nSUMMARY:Good Friday\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:3\r\nDTSTART;VALUE=DATE:20261126\r\nRRULE:FREQ=YEARLY;BYDAY=4TH;BYMONTH=11\r\nSUMMARY:Thanksgiving\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:4\r\nDTSTART:20260403T100000Z\r\nSUMMARY:A meeting\r\nEND:VEVENT\r\n\
        END:VCALENDAR\r\n";

    #[test]
    fn whole_days_are_holidays_and_meetings_are_not() {
        let (found, others) = holidays(FILE, today()).unwrap();
        let told: Vec<_> =
            found.iter().map(|holiday| format!("{} {} {}", holiday.day, holiday.yearly, holiday.name)).collect();
        assert_eq!(
            told,
            [
                "2026-04-03 false Good Friday",
                "2026-11-26 false Thanksgiving",
                "2027-11-25 false Thanksgiving",
                "2028-11-23 false Thanksgiving",
                "2029-11-22 false Thanksgiving",
                "2030-11-28 false Thanksgiving",
                "2031-11-27 false Thanksgiving",
                "2000-12-25 true Christmas",
                "2000-12-26 true Christmas"
            ]
        );
        assert_eq!(others, 1);
    }

    fn told(events: &str) -> (Vec<String>, usize) {
        let file = format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n{events}END:VCALENDAR\r\n");
        let (found, others) = holidays(&file, today()).unwrap();
        (
            found.iter().map(|holiday| format!("{}{}", holiday.day, if holiday.yearly { "*" } else { "" })).collect(),
            others,
        )
    }

    fn event(lines: &str) -> String {
        format!("BEGIN:VEVENT\r\nUID:1\r\n{lines}\r\nSUMMARY:A day\r\nEND:VEVENT\r\n")
    }

    #[test]
    fn days_that_move_are_worked_out_for_the_years_ahead_and_none_is_lost_without_a_word() {
        let thanksgiving = event("DTSTART;VALUE=DATE:20101125\r\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH");
        let days = ["2025-11-27", "2026-11-26", "2027-11-25", "2028-11-23", "2029-11-22", "2030-11-28", "2031-11-27"];
        assert_eq!(told(&thanksgiving).0, days);
        let ends = event("DTSTART;VALUE=DATE:20241003\r\nRRULE:FREQ=YEARLY;UNTIL=20271003");
        assert_eq!(told(&ends).0, ["2025-10-03", "2026-10-03", "2027-10-03"]);
        assert_eq!(
            told(&event("DTSTART;VALUE=DATE:20260801\r\nDURATION:P3D")).0,
            ["2026-08-01", "2026-08-02", "2026-08-03"]
        );
        let listed = event("DTSTART;VALUE=DATE:20260801\r\nRDATE;VALUE=DATE:20260901,20261001");
        assert_eq!(told(&listed).0, ["2026-08-01", "2026-09-01", "2026-10-01"]);
        assert_eq!(told(&event("DTSTART;VALUE=DATE:20260801\r\nSTATUS:CANCELLED")), (Vec::new(), 0));
        assert_eq!(told(&event("DTSTART;VALUE=DATE:20260801\r\nRRULE:FREQ=WEEKLY")), (Vec::new(), 1));
        assert_eq!(told(&event("DTSTART;VALUE=DATE:20260801\r\nRRULE:FREQ=YEARLY;BYDAY=9XX")), (Vec::new(), 1));
    }

    #[test]
    fn a_file_may_have_a_byte_order_mark_small_letters_and_several_calendars() {
        let one = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20260801\r\nSUMMARY:One\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        let two = one.replace("20260801", "20260802").replace("BEGIN", "begin").replace("DTSTART", "dtstart");
        let (found, _) = holidays(&format!("\u{feff}{one}{two}"), today()).unwrap();
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_hostile_file_is_refused_and_costs_nothing() {
        let deep = "BEGIN:VCALENDAR\n".repeat(60_000);
        assert!(holidays(&deep, today()).is_err());
        let folded = "BEG\r\n IN:VCALENDAR\r\n".repeat(30_000);
        assert!(holidays(&folded, today()).is_err());
        let events: String =
            (0..9_000).map(|n| event(&format!("DTSTART;VALUE=DATE:{}0101\r\nDURATION:P31D", 1000 + n))).collect();
        assert!(holidays(&format!("BEGIN:VCALENDAR\r\n{events}END:VCALENDAR\r\n"), today()).is_err());
    }

    #[test]
    fn what_is_no_calendar_is_refused_with_a_sentence() {
        for wrong in ["", "<html>", &"x".repeat(LARGEST + 1)] {
            assert!(holidays(wrong, today()).is_err());
        }
    }
}
