//! The form of a question: what a page shows for its options and schema, and back from the form's fields to the value.
//! The check that counts is [`super::answer::check`]; here only strings become numbers, booleans and objects.

use serde_json::{Map, Number, Value};

use super::{Choice, Slot};
use crate::FieldError;

/// What to show.
#[derive(Clone, Debug, PartialEq)]
pub enum FormShape {
    /// Free text.
    Text,
    /// One of the options.
    Options(Vec<Choice>),
    /// One value of a schema; the field is named `answer`.
    One(Field),
    /// An object of scalars; the fields are named `answer.<property>`.
    Many(Vec<Field>),
    /// A schema that has no form: JSON in a text area named `answer.json`.
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The form field's name.
    pub name: String,
    /// Where a [`FieldError`] points: "" or "/<property>".
    pub pointer: String,
    pub label: String,
    pub help: String,
    pub required: bool,
    pub input: Input,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// `kind` is an HTML input type: text, email, url, date.
    Text {
        kind: &'static str,
        min: Option<u64>,
        max: Option<u64>,
        pattern: Option<String>,
    },
    LongText {
        min: Option<u64>,
        max: Option<u64>,
    },
    /// `step` is "1" for whole numbers, "any" otherwise.
    Number {
        min: Option<f64>,
        max: Option<f64>,
        step: &'static str,
    },
    /// Yes or no.
    Check,
    Choice(Vec<Choice>),
}

/// What the page shows for this slot.
pub fn fields(slot: &Slot) -> FormShape {
    if !slot.options.is_empty() {
        return FormShape::Options(slot.options.clone());
    }
    let Some(schema) = &slot.schema else { return FormShape::Text };
    if let Some(input) = input(schema) {
        return FormShape::One(field("answer".to_owned(), String::new(), "Your answer", schema, true, input));
    }
    many(schema).map_or(FormShape::Json, FormShape::Many)
}

/// An object whose properties are all scalars has a form; anything else does not.
fn many(schema: &Value) -> Option<Vec<Field>> {
    const KNOWN: [&str; 9] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "title",
        "description",
        "$schema",
        "$comment",
        "examples",
    ];
    let schema = schema.as_object()?;
    if schema.get("type")?.as_str()? != "object" || schema.keys().any(|key| !KNOWN.contains(&key.as_str())) {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() || properties.len() > 50 {
        return None;
    }
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|list| list.iter().any(|item| item == name))
    };
    let fields = properties.iter().map(|(name, property)| {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        Some(field(format!("answer.{name}"), pointer, name, property, required(name), input(property)?))
    });
    fields.collect()
}

fn field(name: String, pointer: String, label: &str, schema: &Value, required: bool, input: Input) -> Field {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    let label = text("title").unwrap_or_else(|| {
        let words = label.replace('_', " ");
        let mut letters = words.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    });
    Field { name, pointer, label, help: text("description").unwrap_or_default(), required, input }
}

/// The input of a scalar schema; None for what is not one.
fn input(schema: &Value) -> Option<Input> {
    let fields = schema.as_object()?;
    if ["$ref", "anyOf", "oneOf", "allOf", "not", "if"].iter().any(|key| fields.contains_key(*key)) {
        return None;
    }
    if let Some(values) = fields.get("enum").and_then(Value::as_array) {
        let label = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let choice = |value: &Value| Choice { value: value.clone(), label: label(value) };
        return Some(Input::Choice(values.iter().map(choice).collect()));
    }
    let number = |key: &str| fields.get(key).and_then(Value::as_f64);
    let count = |key: &str| fields.get(key).and_then(Value::as_u64);
    match fields.get("type")?.as_str()? {
        "boolean" => Some(Input::Check),
        "integer" => Some(Input::Number { min: number("minimum"), max: number("maximum"), step: "1" }),
        "number" => Some(Input::Number { min: number("minimum"), max: number("maximum"), step: "any" }),
        "string" => {
            let (min, max) = (count("minLength"), count("maxLength"));
            let pattern = fields.get("pattern").and_then(Value::as_str).map(str::to_owned);
            let kind = match fields.get("format").and_then(Value::as_str) {
                Some("email") => "email",
                Some("uri") => "url",
                Some("date") => "date",
                _ => "text",
            };
            let long = kind == "text" && pattern.is_none() && max.is_none_or(|max| max > 200);
            Some(if long { Input::LongText { min, max } } else { Input::Text { kind, min, max, pattern } })
        }
        _ => None,
    }
}

/// The value that the form's fields say (pairs of name and text, as a browser sends them). Err says what cannot be
/// read; whether the value fits is [`super::answer::check`]'s to say.
pub fn from_form(slot: &Slot, typed: &[(String, String)]) -> Result<Value, Vec<FieldError>> {
    let get = |name: &str| typed.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str());
    match fields(slot) {
        FormShape::Text => Ok(Value::String(get("answer").unwrap_or_default().to_owned())),
        FormShape::Options(_) => {
            let text = get("answer").ok_or_else(|| one("", "Choose one of the answers that are offered."))?;
            serde_json::from_str(text).map_err(|_| one("", "Choose one of the answers that are offered."))
        }
        FormShape::One(field) => Ok(read(&field, get(&field.name))?.unwrap_or(Value::Null)),
        FormShape::Many(fields) => {
            let mut object = Map::new();
            let mut errors = Vec::new();
            for field in &fields {
                match read(field, get(&field.name)) {
                    Ok(Some(value)) => {
                        object.insert(field.name["answer.".len()..].to_owned(), value);
                    }
                    Ok(None) => {}
                    Err(found) => errors.extend(found),
                }
            }
            if errors.is_empty() { Ok(Value::Object(object)) } else { Err(errors) }
        }
        FormShape::Json => serde_json::from_str(get("answer.json").unwrap_or_default())
            .map_err(|error| one("", format!("This is not JSON yet: {error}."))),
    }
}

/// One field's value; None when it was left empty and need not be there.
fn read(field: &Field, text: Option<&str>) -> Result<Option<Value>, Vec<FieldError>> {
    if let Input::Check = field.input {
        return Ok(Some(Value::Bool(matches!(text, Some("true" | "on")))));
    }
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return if field.required { Err(one(&field.pointer, "Please fill this in.")) } else { Ok(None) };
    }
    Ok(Some(match &field.input {
        Input::Check => return Ok(None),
        Input::Text { .. } | Input::LongText { .. } => Value::String(text.to_owned()),
        Input::Number { .. } => {
            number(text).ok_or_else(|| one(&field.pointer, "Write a number, for example 12.50."))?
        }
        Input::Choice(_) => serde_json::from_str(text)
            .map_err(|_| one(&field.pointer, "Choose one of the answers that are offered."))?,
    }))
}

/// A number as it was typed: whole ones stay whole, and nothing that is not finite gets in.
fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::Number(whole.into()));
    }
    let number: f64 = text.parse().ok()?;
    Number::from_f64(number).map(Value::Number)
}

fn one(pointer: &str, detail: impl Into<String>) -> Vec<FieldError> {
    vec![FieldError::new(pointer, detail)]
}
