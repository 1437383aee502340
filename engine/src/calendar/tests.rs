use chrono::{DateTime, Datelike, Duration, NaiveDate, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// Whether the minute that begins at `at` is business time: by looking at the local clock, nothing else.
fn is_business(calendar: &Calendar, at: DateTime<Utc>) -> bool {
    let local = at.with_timezone(&calendar.zone);
    let day = local.date_naive();
    let minute = (local.hour() * 60 + local.minute()) as u16;
    let off = calendar.holidays.iter().any(|holiday| {
        if holiday.yearly {
            (holiday.day.month(), holiday.day.day()) == (day.month(), day.day())
        } else {
            holiday.day == day
        }
    });
    !off && calendar.week[day.weekday().num_days_from_monday() as usize]
        .iter()
        .any(|span| (span.from..span.to).contains(&minute))
}

/// Slow and obvious: a minute at a time.
fn slow_between(calendar: &Calendar, start: DateTime<Utc>, end: DateTime<Utc>) -> i64 {
    let mut at = start;
    let mut count = 0;
    while at < end {
        count += i64::from(is_business(calendar, at));
        at += Duration::minutes(1);
    }
    count
}

fn slow_after(calendar: &Calendar, start: DateTime<Utc>, minutes: i64, within: Duration) -> Option<DateTime<Utc>> {
    let (mut at, mut left) = (start, minutes);
    while at < start + within {
        left -= i64::from(is_business(calendar, at));
        at += Duration::minutes(1);
        if left == 0 {
            return Some(at);
        }
    }
    None
}

fn calendars() -> impl Strategy<Value = Calendar> {
    let zones = vec![
        chrono_tz::UTC,
        chrono_tz::Europe::Berlin,
        chrono_tz::America::New_York,
        chrono_tz::America::Sao_Paulo,
        chrono_tz::Asia::Kathmandu,
        chrono_tz::Australia::Lord_Howe,
        chrono_tz::Africa::Casablanca,
        chrono_tz::Pacific::Apia,
    ];
    let cuts = vec(0_u16..=1440, 0..5).prop_map(|mut cuts| {
        cuts.sort_unstable();
        cuts.dedup();
        cuts.chunks_exact(2).map(|two| Span { from: two[0], to: two[1] }).collect::<Vec<_>>()
    });
    let holidays = vec((0_u64..366 * 3, any::<bool>()), 0..6).prop_map(|list| {
        let first = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap();
        list.into_iter()
            .map(|(day, yearly)| Holiday { day: first + chrono::Days::new(day), yearly, name: String::new() })
            .collect()
    });
    (select(zones), vec(cuts, 7), holidays).prop_map(|(zone, week, holidays)| Calendar {
        zone,
        week: week.try_into().unwrap(),
        holidays,
    })
}

/// Moments near a change of the clocks or of the year, and others.
fn moments() -> impl Strategy<Value = DateTime<Utc>> {
    let near = select(vec![
        "2024-03-31T00:00:00Z",
        "2024-10-27T00:00:00Z",
        "2024-03-10T06:00:00Z",
        "2024-11-03T05:00:00Z",
        "2024-04-06T14:00:00Z",
        "2024-10-05T15:00:00Z",
        "2024-12-31T12:00:00Z",
        "2025-12-31T20:00:00Z",
        "2024-02-28T12:00:00Z",
        "2011-12-29T12:00:00Z",
    ]);
    let near = (near, -3_000_i64..3_000)
        .prop_map(|(text, minutes)| text.parse::<DateTime<Utc>>().unwrap() + Duration::minutes(minutes));
    let any = (0_i64..366 * 3 * 1440)
        .prop_map(|minutes| Utc.with_ymd_and_hms(2024, 1, 1, 0, 0, 0).unwrap() + Duration::minutes(minutes));
    prop_oneof![3 => near, 1 => any]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn business_time_between_two_moments_is_what_a_count_of_minutes_says(calendar in calendars(), start in moments(), minutes in 0_i64..12_000) {
        let end = start + Duration::minutes(minutes);
        prop_assert_eq!(calendar.between(start, end).num_minutes(), slow_between(&calendar, start, end));
    }

    #[test]
    fn a_due_date_is_what_a_count_of_minutes_says(calendar in calendars(), start in moments(), minutes in 1_i64..4_000) {
        let slow = slow_after(&calendar, start, minutes, Duration::days(12));
        let fast = calendar.after(start, Duration::minutes(minutes));
        match slow {
            Some(slow) => prop_assert_eq!(fast, Some(slow)),
            None => prop_assert!(fast.is_none_or(|fast| fast > start + Duration::days(12))),
        }
    }

    #[test]
    fn hours_are_read_as_they_are_written(cuts in vec(0_u16..=1440, 0..9)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        cuts.dedup();
        let spans: Vec<_> = cuts.chunks_exact(2).map(|two| Span { from: two[0], to: two[1] }).collect();
        prop_assert_eq!(parse_spans(&spans_in_words(&spans)).unwrap(), spans);
    }
}

#[test]
fn asked_on_friday_afternoon_four_hours_are_over_on_monday() {
    let calendar = Calendar { zone: chrono_tz::Europe::Berlin, ..Calendar::default() };
    let at = |text: &str| text.parse::<DateTime<chrono::FixedOffset>>().unwrap().with_timezone(&Utc);
    let asked = at("2026-12-04T16:40:00+01:00");
    assert_eq!(calendar.after(asked, Duration::hours(4)), Some(at("2026-12-07T11:40:00+01:00")));
    assert_eq!(calendar.between(asked, at("2026-12-07T11:40:00+01:00")), Duration::hours(4));
    // Christmas is no work, nor is the weekend after it.
    let holiday = |day: &str, yearly| Holiday { day: day.parse().unwrap(), yearly, name: String::new() };
    let calendar = Calendar { holidays: vec![holiday("1999-12-25", true), holiday("2026-12-24", false)], ..calendar };
    assert_eq!(
        calendar.after(at("2026-12-23T17:00:00+01:00"), Duration::hours(2)),
        Some(at("2026-12-28T10:00:00+01:00"))
    );
    let never = Calendar { week: Default::default(), ..Calendar::default() };
    assert_eq!(never.after(asked, Duration::minutes(1)), None);
    let _: Tz = chrono_tz::UTC;
}

#[test]
fn hours_that_are_none_are_refused_with_how_to_write_them() {
    for wrong in ["9", "9-25", "9-12, 11-13", "9-65535", "9-24:01", "9:60-10", "nine-ten"] {
        assert!(parse_spans(wrong).unwrap_err().contains("13:30"), "{wrong}");
    }
    for wrong in ["18-9", "9-9"] {
        assert!(parse_spans(wrong).unwrap_err().contains("on the next day"), "{wrong}");
    }
    assert_eq!(parse_spans(" ").unwrap(), Vec::new());
}
