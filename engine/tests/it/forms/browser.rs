//! What a browser does with a form: what it sends for what somebody types, and what it does not let through (HTML, section
//! 4.10.21, constraint validation).

use chrono_tz::Tz;
use engine::slot::form::{Field, FormShape, Input, Part};
use serde_json::Value;

/// What somebody types into the field to say `value`, as a browser sends it.
pub(super) fn typed(field: &Field, value: &Value, zone: Tz) -> Vec<(String, String)> {
    let one = |text: String| vec![(field.name.clone(), text)];
    match (&field.input, value) {
        (_, Value::Null) => Vec::new(),
        (Input::Check { .. }, Value::Bool(true)) => one("true".to_owned()),
        (Input::Check { .. }, _) => Vec::new(),
        (Input::Several(_), Value::Array(items)) => {
            items.iter().map(|item| (field.name.clone(), item.to_string())).collect()
        }
        (Input::Lines(_), Value::Array(items)) => {
            let lines: Vec<_> =
                items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect();
            one(lines.join("\r\n"))
        }
        (Input::Choice(_), value) => one(value.to_string()),
        (Input::DateTime, Value::String(text)) => {
            let at = chrono::DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&zone);
            one(at.format("%Y-%m-%dT%H:%M:%S").to_string())
        }
        (_, Value::String(text)) => one(text.clone()),
        (_, other) => one(other.to_string()),
    }
}

pub(super) fn all_typed(shape: &FormShape, value: &Value, zone: Tz) -> Vec<(String, String)> {
    let of = |field: &Field, value: &Value| typed(field, value, zone);
    match shape {
        FormShape::One(field) => of(field, value),
        FormShape::Many(parts) => fields(parts)
            .into_iter()
            .filter_map(|field| Some(of(field, value.pointer(&field.pointer)?)))
            .flatten()
            .collect(),
        other => panic!("no form: {other:?}"),
    }
}

pub(super) fn fields(parts: &[Part]) -> Vec<&Field> {
    parts
        .iter()
        .flat_map(|part| match part {
            Part::Field(field) => vec![field],
            Part::Group { fields, .. } => fields.iter().collect(),
        })
        .collect()
}

/// Whether a browser would let this through (HTML, constraint validation), for one field.
pub(super) fn page_takes(field: &Field, typed: &[(String, String)], required: bool) -> bool {
    let mine: Vec<&str> = typed.iter().filter(|(name, _)| *name == field.name).map(|(_, text)| text.as_str()).collect();
    let text = mine.first().copied().unwrap_or_default();
    if text.is_empty() {
        return match field.input {
            Input::Check { must } => !(must && required),
            Input::Several(_) | Input::Lines(_) => true,
            _ => !required,
        };
    }
    let length = text.replace("\r\n", "\n").encode_utf16().count() as u64;
    match &field.input {
        Input::Text { min, max, pattern, .. } => {
            min.is_none_or(|min| length >= min)
                && max.is_none_or(|max| length <= max)
                && pattern
                    .as_ref()
                    .is_none_or(|pattern| regex::Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(text))
        }
        Input::LongText { min, max } => min.is_none_or(|min| length >= min) && max.is_none_or(|max| length <= max),
        Input::Number { min, max, step } => text.parse::<f64>().is_ok_and(|number| {
            let steps = step.parse::<f64>().map_or(true, |step| ((number - min.unwrap_or(0.0)) / step).fract() == 0.0);
            min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max) && steps
        }),
        _ => true,
    }
}
