//! Whether an answer fits what was asked: its options, its schema (JSON Schema, draft 2020-12), or just words.

use std::collections::HashMap;

use serde_json::Value;

use super::{Choice, Kind, Slot};
use crate::{FieldError, pointer};

const LONGEST: usize = 20_000;
const LARGEST_SCHEMA: usize = 64 * 1024;
const MOST_REFERENCES: usize = 16;
const MOST_PATTERNS: usize = 20;
const MOST_UNEVALUATED: usize = 4;
/// Parts of a schema times parts of a value: some seconds at the very worst.
const MOST_WORK: u64 = 50_000_000;
const LARGEST_PATTERN: usize = 1 << 20;

/// The value as it will be kept; or what does not fit, field by field.
pub fn check(slot: &Slot, value: Value) -> Result<Value, Vec<FieldError>> {
    fits(slot.kind, &slot.options, slot.schema.as_ref(), &value)?;
    Ok(value)
}

pub(super) fn fits(
    kind: Kind,
    options: &[Choice],
    schema: Option<&Value>,
    value: &Value,
) -> Result<(), Vec<FieldError>> {
    let one = |detail: &str| Err(vec![FieldError::new("", detail)]);
    if contains_nul(value) {
        return one("The answer contains a character that cannot be kept (U+0000).");
    }
    if value.to_string().len() > 256 * 1024 {
        return one("The answer is too long: at most 256 KiB.");
    }
    if !options.is_empty() && !options.iter().any(|option| option.value == *value) {
        return one("Choose one of the answers that are offered.");
    }
    match schema {
        Some(schema) => fits_schema(schema, value),
        None if !options.is_empty() => Ok(()),
        // The output of a program is whatever it is.
        None if kind == Kind::ClientTool => Ok(()),
        None => match value.as_str() {
            None => one("Answer in words: the answer must be a text."),
            Some(text) if text.trim().is_empty() => one("Write an answer."),
            Some(text) if text.chars().count() > LONGEST => one("The answer is too long: at most 20,000 characters."),
            Some(_) => Ok(()),
        },
    }
}

/// Whether `value` fits a schema of our own.
pub(crate) fn matches(schema: &Value, value: &Value) -> bool {
    fits_schema(schema, value).is_ok()
}

fn contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(contains_nul),
        Value::Object(fields) => fields.iter().any(|(name, field)| name.contains('\0') || contains_nul(field)),
        _ => false,
    }
}

/// Refuses what is not a JSON Schema, or would fetch another document. Err is a sentence.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    if schema.to_string().len() > LARGEST_SCHEMA {
        return Err("A schema has at most 64 KiB.".to_owned());
    }
    if !schema.is_object() {
        return Err("A schema is a JSON object.".to_owned());
    }
    if contains_nul(schema) {
        return Err("A text cannot contain the character U+0000.".to_owned());
    }
    cost(schema)?;
    validator(schema).map(|_| ()).map_err(|error| format!("This is not a usable JSON Schema: {error}"))
}

/// Whether every field of the format "file" is where [`super::form::files`] finds it, so that none is taken for a mere text.
pub(super) fn files_are_found(schema: &Value) -> bool {
    fn found(schema: &Value) -> usize {
        let here = usize::from(schema.get("format").and_then(Value::as_str) == Some("file"));
        let properties = schema.get("properties").and_then(Value::as_object);
        let inside: usize = properties.into_iter().flat_map(|properties| properties.values()).map(found).sum();
        here + inside + schema.get("items").map_or(0, found)
    }
    fn all(schema: &Value) -> usize {
        match schema {
            Value::Array(items) => items.iter().map(all).sum(),
            Value::Object(fields) => {
                let here = usize::from(fields.get("format").and_then(Value::as_str) == Some("file"));
                here + fields.values().map(all).sum::<usize>()
            }
            _ => 0,
        }
    }
    found(schema) == all(schema)
}

/// How much work it is to check a value against a schema: the schema's parts, those behind references as often as they
/// are referred to. Refuses (a sentence) what nobody could check in bounded time: too many references or patterns, and
/// references that come back to where they are, with which an answer of a few kilobytes could keep an instance busy for
/// ever.
fn cost(schema: &Value) -> Result<u64, String> {
    let count = |names: &[&str]| count(schema, names);
    if count(&["$ref"]) > MOST_REFERENCES {
        return Err(format!("A schema has at most {MOST_REFERENCES} references."));
    }
    if count(&["$dynamicRef", "$recursiveRef"]) > 0 {
        return Err("A schema refers to its parts with $ref only.".to_owned());
    }
    if count(&["$id"]) > usize::from(schema.get("$id").is_some()) {
        return Err("Only the schema as a whole has an $id.".to_owned());
    }
    if count(&["pattern", "patternProperties"]) > MOST_PATTERNS {
        return Err(format!("A schema has at most {MOST_PATTERNS} patterns."));
    }
    // Each looks again at all that its neighbours looked at.
    if count(&["unevaluatedItems", "unevaluatedProperties"]) > MOST_UNEVALUATED {
        return Err(format!("A schema says at most {MOST_UNEVALUATED} times what becomes of the unevaluated."));
    }
    expanded(schema, schema, &mut HashMap::new())
}

/// The parts of `part`; `known` are the references met so far, with None while they are followed.
fn expanded<'a>(root: &'a Value, part: &'a Value, known: &mut HashMap<&'a str, Option<u64>>) -> Result<u64, String> {
    let sum = |sum: u64, more: u64| sum.saturating_add(more);
    match part {
        Value::Array(items) => items.iter().try_fold(1, |so_far, item| Ok(sum(so_far, expanded(root, item, known)?))),
        Value::Object(fields) => {
            let mut parts = 1;
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let behind = match known.get(reference) {
                    Some(Some(parts)) => *parts,
                    Some(None) => return Err("A schema cannot refer to itself.".to_owned()),
                    None => {
                        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
                        let target = target.ok_or_else(|| {
                            format!("“{reference}” leads nowhere: a $ref is # and a JSON pointer into the same schema.")
                        })?;
                        known.insert(reference, None);
                        let parts = expanded(root, target, known)?;
                        known.insert(reference, Some(parts));
                        parts
                    }
                };
                parts = sum(parts, behind);
            }
            fields.values().try_fold(parts, |so_far, field| Ok(sum(so_far, expanded(root, field, known)?)))
        }
        _ => Ok(1),
    }
}

/// How often these keywords occur; one with an object counts for each of its entries.
fn count(schema: &Value, keywords: &[&str]) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(|item| count(item, keywords)).sum(),
        Value::Object(fields) => {
            let of = |(name, field): (&String, &Value)| {
                let here = match field {
                    _ if !keywords.contains(&name.as_str()) => 0,
                    Value::Object(entries) => entries.len(),
                    _ => 1,
                };
                here + count(field, keywords)
            };
            fields.iter().map(of).sum()
        }
        _ => 0,
    }
}

/// How much there is to check in a value; long texts count more.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(|field| 1 + size(field)).sum::<u64>(),
        _ => 1,
    }
}

/// Without the library's resolvers (its features are off) no `$ref` leaves the document.
fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        // Linear time whatever the pattern: the schema is an agent's.
        .with_pattern_options(
            jsonschema::PatternOptions::regex().size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN),
        )
        .build(schema)
        .map_err(|error| error.to_string())
}

pub(super) fn fits_schema(schema: &Value, value: &Value) -> Result<(), Vec<FieldError>> {
    let unusable = |detail| {
        vec![FieldError::new("", format!("The agent's schema cannot be used, so no answer can fit: {detail}"))]
    };
    // A slot of an older version may have a schema that is refused today.
    if cost(schema).map_err(unusable)?.saturating_mul(size(value)) > MOST_WORK {
        return Err(vec![FieldError::new("", "This is too large to be checked against the agent's schema.")]);
    }
    let validator = validator(schema).map_err(unusable)?;
    let mut errors: Vec<FieldError> = Vec::new();
    for error in validator.iter_errors(value).take(20) {
        let found = in_words(&error);
        if !errors.contains(&found) {
            errors.push(found);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The library's finding in words for somebody who never saw a schema.
fn in_words(error: &jsonschema::ValidationError<'_>) -> FieldError {
    use jsonschema::error::ValidationErrorKind as Kind;
    let pointer = error.instance_path().to_string();
    let detail = match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            return FieldError::new(pointer::child(&pointer, name), "Please fill this in.");
        }
        Kind::Type { kind } => match format!("{kind:?}").to_lowercase() {
            kind if kind.contains("integer") => "Write a whole number.".to_owned(),
            kind if kind.contains("number") => "Write a number.".to_owned(),
            kind if kind.contains("boolean") => "Answer yes or no.".to_owned(),
            kind if kind.contains("string") => "Write a text.".to_owned(),
            _ => format!("This has the wrong form: {error}."),
        },
        Kind::Minimum { limit } => format!("Must be {limit} or more."),
        Kind::Maximum { limit } => format!("Must be {limit} or less."),
        Kind::ExclusiveMinimum { limit } => format!("Must be more than {limit}."),
        Kind::ExclusiveMaximum { limit } => format!("Must be less than {limit}."),
        Kind::MinLength { limit: 1 } => "Please fill this in.".to_owned(),
        Kind::MinLength { limit } => format!("Write at least {limit} characters."),
        Kind::MaxLength { limit } => format!("Write at most {limit} characters."),
        Kind::MinItems { limit } => format!("Choose at least {limit}."),
        Kind::MaxItems { limit } => format!("Choose at most {limit}."),
        Kind::MultipleOf { multiple_of } => format!("Must be a multiple of {multiple_of}."),
        Kind::Enum { .. } | Kind::Constant { .. } => "Choose one of the answers that are offered.".to_owned(),
        Kind::Pattern { pattern } => format!("Does not have the form that is asked for ({pattern})."),
        Kind::Format { format } => match format.as_str() {
            "date" => "Write a date, for example 2026-12-24.".to_owned(),
            "date-time" => "Write a date and time, for example 2026-12-24T18:00:00Z.".to_owned(),
            "time" => "Write a time, for example 18:00:00Z.".to_owned(),
            "email" => "Write an e-mail address.".to_owned(),
            "uri" => "Write a web address, for example https://example.com/.".to_owned(),
            other => format!("Is not a valid {other}."),
        },
        Kind::AdditionalProperties { unexpected } => format!("Nobody asked for: {}.", unexpected.join(", ")),
        _ => format!("This does not fit: {error}."),
    };
    FieldError::new(pointer, detail)
}
