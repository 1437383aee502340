//! Money: integer micros (millionths) with a currency (ISO 4217).

use serde::{Deserialize, Serialize};

/// An amount; `Display` writes it for people: "1,204.77 USD", "5,480 JPY".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    pub micros: i64,
    pub currency: String,
}

impl Money {
    pub fn new(micros: i64, currency: impl Into<String>) -> Self {
        Self { micros, currency: currency.into() }
    }

    /// Digits after the point (ISO 4217): yen and a few others have none.
    fn decimals(&self) -> u32 {
        decimals(&self.currency)
    }

    /// "12.34", for programs and form fields: no thousands separators.
    pub fn amount(&self) -> String {
        let decimals = self.decimals();
        // Below the currency's own unit (a model's cost) nothing is rounded away.
        let unit = 10_i64.pow(6 - decimals);
        let (unit, decimals) = if self.micros % unit == 0 { (unit, decimals) } else { (1, 6) };
        let scaled = (self.micros / unit).unsigned_abs();
        let sign = if self.micros < 0 { "-" } else { "" };
        let power = 10_u64.pow(decimals);
        if decimals == 0 {
            format!("{sign}{scaled}")
        } else {
            format!("{sign}{}.{:0width$}", scaled / power, scaled % power, width = decimals as usize)
        }
    }
}

fn decimals(currency: &str) -> u32 {
    match currency {
        "JPY" | "KRW" | "CLP" | "ISK" | "VND" => 0,
        "BHD" | "KWD" | "OMR" | "TND" | "JOD" => 3,
        _ => 2,
    }
}

/// Reads what a person typed: `12.34`, `1,204.77`, `-350`. Err is a sentence.
pub fn parse(text: &str, currency: &str) -> Result<i64, String> {
    let cleaned: String = text.trim().chars().filter(|c| *c != ',' && *c != ' ').collect();
    let (sign, digits) = match cleaned.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, cleaned.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err("Write the amount as a number, for example 129.90.".to_owned());
    }
    // "1,20" would silently become 120: a comma separates thousands here and nothing else.
    let whole_typed = text.trim().trim_start_matches('-').split('.').next().unwrap_or("");
    let mut groups = whole_typed.split(',');
    groups.next();
    if groups.any(|group| group.trim().len() != 3) {
        return Err("Use a point before the cents, for example 129.90.".to_owned());
    }
    let places = decimals(currency) as usize;
    if fraction.len() > places {
        return Err(match places {
            0 => format!("{currency} has no decimals: write a whole amount."),
            _ => format!("{currency} has {places} decimals: {text} has more."),
        });
    }
    let micros: i64 = format!("{whole}{fraction:0<6}").parse().map_err(|_| "That amount is too large.".to_owned())?;
    if micros > 1_000_000_000_000_000 {
        return Err("That amount is too large.".to_owned());
    }
    Ok(sign * micros)
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let amount = self.amount();
        let (whole, rest) = amount.split_at(amount.find('.').unwrap_or(amount.len()));
        let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("−", rest));
        let mut grouped = String::new();
        for (at, digit) in whole.chars().enumerate() {
            if at > 0 && (whole.len() - at) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        write!(f, "{sign}{grouped}{rest} {}", self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_reads_back_what_it_writes() {
        for (text, currency, shown) in [
            ("1,204.77", "USD", "1,204.77 USD"),
            ("5,480", "JPY", "5,480 JPY"),
            ("-350.00", "EUR", "−350.00 EUR"),
            ("0.00", "USD", "0.00 USD"),
            ("7.3", "EUR", "7.30 EUR"),
        ] {
            let micros = parse(text, currency).unwrap();
            assert_eq!(Money::new(micros, currency).to_string(), shown);
            assert_eq!(parse(&Money::new(micros, currency).amount(), currency), Ok(micros));
        }
    }

    #[test]
    fn an_amount_that_could_be_misread_is_refused() {
        for wrong in ["", "12.345", "1,20", "1.204,50", "abc", "--1", "1e9", "99999999999999999999"] {
            assert!(parse(wrong, "EUR").is_err(), "{wrong}");
        }
        assert!(parse("12.5", "JPY").is_err());
    }
}
