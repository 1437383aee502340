//! Business time: how much of it lies between two moments, and when so much of it will have passed. A moment is business
//! time when the local clock of the calendar's zone shows an hour that the week has, on no holiday; so an hour that comes
//! twice in autumn counts twice, and one that is skipped in spring does not count (design section 7).

use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use super::{Calendar, Span};

/// Longer than this without an end, a calendar has no business time to speak of.
const DAYS: i64 = 366 * 5;

impl Calendar {
    /// When `work` of business time will have passed since `start`: the first such moment. None when there is not that
    /// much within five years.
    pub fn after(&self, start: DateTime<Utc>, work: Duration) -> Option<DateTime<Utc>> {
        if work <= Duration::zero() {
            return Some(start);
        }
        let mut left = work;
        for day in self.days(start).take(DAYS as usize) {
            for (from, to) in self.spans_of(day) {
                let from = from.max(start);
                if to <= from {
                    continue;
                }
                if to - from >= left {
                    return Some(from + left);
                }
                left -= to - from;
            }
        }
        None
    }

    /// How much business time lies between `start` and `end`.
    pub fn between(&self, start: DateTime<Utc>, end: DateTime<Utc>) -> Duration {
        if end <= start {
            return Duration::zero();
        }
        let last = end.with_timezone(&self.zone).date_naive() + Duration::days(1);
        let days = self.days(start).take_while(|day| *day <= last);
        days.flat_map(|day| self.spans_of(day))
            .map(|(from, to)| (to.min(end) - from.max(start)).max(Duration::zero()))
            .fold(Duration::zero(), |sum, part| sum + part)
    }

    /// The days from just before `start`: a zone can be a day ahead of another.
    fn days(&self, start: DateTime<Utc>) -> impl Iterator<Item = NaiveDate> + use<> {
        (start.with_timezone(&self.zone).date_naive() - Duration::days(1)).iter_days()
    }

    fn is_holiday(&self, day: NaiveDate) -> bool {
        self.holidays.iter().any(|holiday| match holiday.yearly {
            true => (holiday.day.month(), holiday.day.day()) == (day.month(), day.day()),
            false => holiday.day == day,
        })
    }

    /// The business spans of a local day, as moments, in order.
    fn spans_of(&self, day: NaiveDate) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
        let week = &self.week[day.weekday().num_days_from_monday() as usize];
        if week.is_empty() || self.is_holiday(day) {
            return Vec::new();
        }
        let pieces = offsets(self.zone, day);
        let mut spans: Vec<_> =
            week.iter().flat_map(|span| pieces.iter().filter_map(move |piece| piece.part(day, *span))).collect();
        spans.sort_unstable();
        spans
    }
}

/// A stretch of time in which the zone is as far from UTC.
struct Piece {
    from: NaiveDateTime,
    to: NaiveDateTime,
    ahead: Duration,
}

impl Piece {
    /// The part of a local day's span that lies in this stretch.
    fn part(&self, day: NaiveDate, span: Span) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let midnight = day.and_time(NaiveTime::MIN) - self.ahead;
        let from = (midnight + Duration::minutes(span.from.into())).max(self.from);
        let to = (midnight + Duration::minutes(span.to.into())).min(self.to);
        (from < to).then(|| (from.and_utc(), to.and_utc()))
    }
}

/// The stretches that can touch a local day; more than one only around a change of the clocks.
fn offsets(zone: Tz, day: NaiveDate) -> Vec<Piece> {
    let ahead =
        |at: NaiveDateTime| Duration::seconds(zone.offset_from_utc_datetime(&at).fix().local_minus_utc().into());
    let noon = day.and_time(NaiveTime::MIN);
    // Every local day lies within these, in every zone.
    let (first, last) = (noon - Duration::hours(15), noon + Duration::hours(24 + 13));
    let mut pieces = Vec::new();
    let (mut from, mut now) = (first, ahead(first));
    let mut at = first;
    while at < last {
        let next = (at + Duration::hours(1)).min(last);
        if ahead(next) != now {
            // The change lies in this hour: to the second.
            let (mut low, mut high) = (at, next);
            while high - low > Duration::seconds(1) {
                let middle = low + (high - low) / 2;
                let middle = middle - Duration::nanoseconds(i64::from(middle.and_utc().timestamp_subsec_nanos()));
                if ahead(middle) == now { low = middle } else { high = middle }
            }
            pieces.push(Piece { from, to: high, ahead: now });
            (from, now) = (high, ahead(high));
        }
        at = next;
    }
    pieces.push(Piece { from, to: last, ahead: now });
    pieces
}
