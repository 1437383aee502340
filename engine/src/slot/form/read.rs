//! From a form's fields, as a browser sends them, to the answer's value.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;
use serde_json::{Map, Number, Value, json};

use super::{Field, FormShape, Input, Item, Part, shape};
use crate::{
    FieldError, pointer,
    slot::{Slot, answer::CHOOSE},
};

/// The value that the form's fields say (pairs of name and text). Times without a zone are in `zone`, the reader's. Err
/// says what cannot be read; whether the value fits is the deposit's to say.
pub fn from_form(slot: &Slot, typed: &[(String, String)], zone: Tz) -> Result<Value, Vec<FieldError>> {
    let typed = Typed { fields: typed, zone };
    match shape(slot) {
        FormShape::Text => Ok(Value::String(typed.text("answer"))),
        // Not a letter of it is changed.
        FormShape::Secret => Ok(Value::String(typed.get("answer").unwrap_or_default().to_owned())),
        FormShape::Options(_) => {
            let text = typed.get("answer").ok_or_else(|| one("", CHOOSE))?;
            serde_json::from_str(text).map_err(|_| one("", CHOOSE))
        }
        FormShape::One(field) => Ok(typed.read(&field)?.unwrap_or(Value::Null)),
        FormShape::Many(parts) => typed.object(&parts),
        FormShape::Json => serde_json::from_str(&typed.text("answer"))
            .map_err(|error| one("", format!("This is not JSON yet: {error}."))),
        FormShape::Decision { editable, .. } => typed.decision(slot, &editable),
        FormShape::Takeover => match typed.get("act") {
            Some("result") => Ok(json!({ "result": typed.text("result") })),
            Some("back") => Ok(json!({ "messages": [typed.text("message")] })),
            _ => Err(one("", "Hand in the result, or write to the agent and give the work back.")),
        },
    }
}

struct Typed<'a> {
    fields: &'a [(String, String)],
    zone: Tz,
}

impl Typed<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, text)| text.as_str())
    }

    /// Words as they were typed: a browser sends every line break as two letters.
    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().replace("\r\n", "\n")
    }

    fn object(&self, parts: &[Part]) -> Result<Value, Vec<FieldError>> {
        let mut object = Map::new();
        let mut errors = Vec::new();
        for part in parts {
            match part {
                Part::Field(field) => match self.read(field) {
                    Ok(value) => object.extend(pointer::names(&field.pointer).last().zip(value)),
                    Err(found) => errors.extend(found),
                },
                Part::Group { name, required, nullable, fields, .. } => match self.group(fields, *required) {
                    Ok(Some(value)) => drop(object.insert(name.clone(), value)),
                    Ok(None) if *nullable => drop(object.insert(name.clone(), Value::Null)),
                    Ok(None) => {}
                    Err(found) => errors.extend(found),
                },
            }
        }
        if errors.is_empty() { Ok(Value::Object(object)) } else { Err(errors) }
    }

    /// A nested object; one that need not be there and in which nothing was typed is not.
    fn group(&self, fields: &[Field], required: bool) -> Result<Option<Value>, Vec<FieldError>> {
        let touched = |field: &Field| match field.input {
            Input::Check { .. } => self.get(&field.name).is_some(),
            _ => self.all(&field.name).any(|text| !text.is_empty()),
        };
        if !required && !fields.iter().any(touched) {
            return Ok(None);
        }
        let parts: Vec<Part> = fields.iter().cloned().map(Part::Field).collect();
        self.object(&parts).map(Some)
    }

    /// One field's value; none when it was left empty and need not be there.
    fn read(&self, field: &Field) -> Result<Option<Value>, Vec<FieldError>> {
        let wrong = |detail: &str| one(&field.pointer, detail);
        match &field.input {
            Input::Check { must } => {
                let yes = matches!(self.get(&field.name), Some("true" | "on"));
                return match (*must && !yes, field.required) {
                    (true, true) => Err(wrong("Please tick this.")),
                    (true, false) => Ok(None),
                    (false, _) => Ok(Some(Value::Bool(yes))),
                };
            }
            Input::Several(_) => {
                let chosen = self.all(&field.name).filter(|text| !text.is_empty()).map(serde_json::from_str::<Value>);
                let chosen: Vec<Value> = chosen.collect::<Result<_, _>>().map_err(|_| wrong(CHOOSE))?;
                return match (chosen.is_empty(), field.nullable, field.required) {
                    (true, true, _) => Ok(Some(Value::Null)),
                    (true, _, false) => Ok(None),
                    _ => Ok(Some(Value::Array(chosen))),
                };
            }
            _ => {}
        }
        let text = self.text(&field.name);
        if text.is_empty() {
            return match (field.nullable, field.required, &field.input) {
                (true, ..) => Ok(Some(Value::Null)),
                // An empty list is a list.
                (_, true, Input::Lines(_)) => Ok(Some(json!([]))),
                (_, true, _) => Err(wrong("Please fill this in.")),
                (_, false, _) => Ok(None),
            };
        }
        let value = match &field.input {
            Input::Text { .. } | Input::LongText { .. } | Input::File { .. } => Value::String(text),
            Input::Number { .. } => number(&text).map_err(|detail| wrong(&detail))?,
            Input::DateTime => moment(&text, self.zone)
                .map(|at| Value::String(at.to_rfc3339_opts(SecondsFormat::AutoSi, true)))
                .ok_or_else(|| wrong("Write a date and a time, for example 2026-12-24T18:00."))?,
            Input::Choice(_) => serde_json::from_str(&text).map_err(|_| wrong(CHOOSE))?,
            Input::Lines(item) => Value::Array(lines(&text, *item).map_err(|detail| wrong(&detail))?),
            Input::Json => {
                serde_json::from_str(&text).map_err(|error| wrong(&format!("This is not JSON yet: {error}.")))?
            }
            Input::Check { .. } | Input::Several(_) => return Ok(None),
        };
        Ok(Some(value))
    }

    fn decision(&self, slot: &Slot, editable: &[Field]) -> Result<Value, Vec<FieldError>> {
        match self.get("decision") {
            Some("reject") => return Ok(json!({ "decision": "reject", "reason": self.text("reason") })),
            Some("approve") => {}
            _ => return Err(one("/decision", "Decide: approve or reject.")),
        }
        let Some(current) = slot.arguments() else { return Ok(json!({ "decision": "approve" })) };
        let mut arguments = Value::Object(current.clone());
        let mut errors = Vec::new();
        for field in editable {
            // Once: an argument may be called so itself.
            let place = field.pointer.strip_prefix("/arguments").and_then(|pointer| arguments.pointer_mut(pointer));
            let Some(place) = place else {
                errors.extend(one(&field.pointer, "This argument is no longer there."));
                continue;
            };
            // A field that did not come back (a form without it) changes nothing; an unticked box never comes.
            let Some(text) = self.get(&field.name).or(place.is_boolean().then_some("")) else { continue };
            if field
                .default
                .as_ref()
                .is_some_and(|shown| !place.is_boolean() && sent_back(field, shown) == sent_back(field, text))
            {
                continue;
            }
            match self.read(field) {
                Ok(Some(value)) => *place = value,
                Ok(None) => *place = Value::String(String::new()),
                Err(found) => errors.extend(found),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(match arguments.as_object() == Some(current) {
            true => json!({ "decision": "approve" }),
            false => json!({ "decision": "approve", "arguments": arguments }),
        })
    }
}

/// What a browser sends of a text that nobody touched: with other line breaks, or none, and without spaces around an
/// address. Nobody has edited that.
fn sent_back(field: &Field, text: &str) -> String {
    match &field.input {
        Input::Text { kind: "email" | "url", .. } => text.replace(['\r', '\n'], "").trim().to_owned(),
        Input::LongText { .. } | Input::Json => text.replace("\r\n", "\n").replace('\r', "\n"),
        _ => text.replace(['\r', '\n'], ""),
    }
}

/// A number as it was typed: whole ones stay whole, nothing that is not finite gets in, and nothing that would be kept as
/// another number. Err is a sentence.
fn number(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(Value::Number(whole.into()));
    }
    let number = text.parse().ok().and_then(Number::from_f64);
    let number = number.ok_or_else(|| format!("“{text}” is not a number. Write one, for example 12.50."))?;
    let kept = number.to_string();
    if digits(text) == digits(&kept) {
        return Ok(Value::Number(number));
    }
    Err(format!("“{text}” has more digits than a number keeps: it would become {kept}."))
}

/// The digits that count, without where the point stands.
fn digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

fn lines(text: &str, item: Item) -> Result<Vec<Value>, String> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| match item {
            Item::Text => Ok(Value::String(line.to_owned())),
            Item::Number => number(line),
        })
        .collect()
}

/// A moment, from a browser's local date and time in `zone`, or as it is when it has a zone already.
pub fn moment(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.with_timezone(&Utc));
    }
    let local = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())?;
    // An hour that comes twice is meant the first time; one that is skipped is no time at all.
    let at = zone.from_local_datetime(&local).earliest()?;
    Some(at.with_timezone(&Utc))
}

fn one(pointer: &str, detail: impl Into<String>) -> Vec<FieldError> {
    vec![FieldError::new(pointer, detail)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_kept_as_it_was_typed_or_not_at_all() {
        for kept in ["0", "-3", "12.50", "0.1", "1e3", "-0.000", "9007199254740993", "1.7976931348623157e308"] {
            assert!(number(kept).is_ok(), "{kept}");
        }
        for lost in
            ["0.1234567890123456789", "99999999999999999999", "1e400", "1e-400", "NaN", "inf", "12,5", "", "0x1"]
        {
            assert!(number(lost).is_err(), "{lost}");
        }
    }
}
