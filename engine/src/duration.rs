//! Durations as text, both ways: `"1h 30m"` for programs (`api.md`), "30 days" for people.

use chrono::Duration;

/// Reads `"90s"`, `"15m"`, `"2d"`, `"1h 30m"`. None for anything else, for zero and for more than ten years.
pub fn parse(text: &str) -> Option<Duration> {
    let mut seconds = 0_i64;
    let mut parts = 0;
    for part in text.split_whitespace() {
        let (number, unit) = part.split_at(part.len().checked_sub(1).filter(|at| part.is_char_boundary(*at))?);
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        seconds = seconds.checked_add(number.parse::<i64>().ok()?.checked_mul(unit)?)?;
        parts += 1;
    }
    (parts > 0 && (1..=3_650 * 86_400).contains(&seconds)).then(|| Duration::seconds(seconds))
}

/// As [`parse`] reads it: "1h 30m".
pub fn text(duration: Duration) -> String {
    let mut seconds = duration.num_seconds().max(0);
    let mut parts = Vec::new();
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")] {
        if seconds >= unit {
            parts.push(format!("{}{name}", seconds / unit));
            seconds %= unit;
        }
    }
    parts.join(" ")
}

/// "less than a minute", "5 minutes", "47 hours", "30 days": the largest unit of which there are two or more (one of a
/// minute or an hour), rounded down.
pub fn words(duration: Duration) -> String {
    let seconds = duration.num_seconds().max(0);
    let (count, unit) = match seconds {
        0..60 => return "less than a minute".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        // "1 day" would hide whether it is 24 hours or 47.
        3_600..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_the_contract_writes_them() {
        assert_eq!(parse("90s"), Some(Duration::seconds(90)));
        assert_eq!(parse("1h 30m"), Some(Duration::minutes(90)));
        assert_eq!(parse("2d"), Some(Duration::days(2)));
        for seconds in [1, 59, 60, 3_661, 86_400, 90_061] {
            assert_eq!(parse(&text(Duration::seconds(seconds))), Some(Duration::seconds(seconds)));
        }
        for wrong in
            ["", " ", "1", "h", "-1h", "1.5h", "1w", "1h30m", "0s", "99999999999999999999d", "4000d", "1é", "٣h"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn waits_are_told_in_their_largest_unit() {
        assert_eq!(words(Duration::seconds(59)), "less than a minute");
        assert_eq!(words(Duration::seconds(60)), "1 minute");
        assert_eq!(words(Duration::hours(47)), "47 hours");
        assert_eq!(words(Duration::hours(48)), "2 days");
        assert_eq!(words(Duration::days(30)), "30 days");
    }
}
