//! Whether an answer fits what was asked: its options, its schema (JSON Schema, draft 2020-12), or just words.

use std::collections::HashMap;

use serde_json::Value;

use jsonschema::ValidationError as Finding;

use super::{Choice, Kind, Slot};
use crate::{FieldError, pointer};

const LONGEST: usize = 20_000;
const LARGEST_SCHEMA: usize = 64 * 1024;
const MOST_REFERENCES: usize = 16;
const MOST_PATTERNS: usize = 20;
const MOST_UNEVALUATED: usize = 4;
/// Parts of a schema times parts of a value, to be checked at all, and to be told what is wrong.
const MOST_WORK: u64 = 5_000_000;
const MOST_TOLD: u64 = 200_000;
/// Patterns of a schema times bytes of text in a value: with the largest patterns some seconds at the very worst.
const MOST_MATCHING: u64 = 256 * 1024;
const MOST_ERRORS: usize = 20;
/// Bytes of a compiled pattern.
const LARGEST_PATTERN: usize = 256 * 1024;

pub(super) const CHOOSE: &str = "Choose one of the answers that are offered.";

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
        return one(CHOOSE);
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

/// What there is to check in a schema: its parts and its patterns, those behind references as often as they are referred
/// to.
#[derive(Clone, Copy)]
struct Size {
    parts: u64,
    patterns: u64,
}

impl Size {
    const ONE: Self = Self { parts: 1, patterns: 0 };

    fn plus(self, more: Self) -> Self {
        Self { parts: self.parts.saturating_add(more.parts), patterns: self.patterns.saturating_add(more.patterns) }
    }
}

/// Refuses (a sentence) what nobody could check in bounded time: too many references or patterns, and references that come
/// back to where they are, with which an answer of a few kilobytes could keep an instance busy for ever.
fn cost(schema: &Value) -> Result<Size, String> {
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

/// The size of `part`; `known` are the references met so far, with None while they are followed.
fn expanded<'a>(root: &'a Value, part: &'a Value, known: &mut HashMap<&'a str, Option<Size>>) -> Result<Size, String> {
    match part {
        Value::Array(items) => {
            items.iter().try_fold(Size::ONE, |so_far, item| Ok(so_far.plus(expanded(root, item, known)?)))
        }
        Value::Object(fields) => {
            let by_name = fields.get("patternProperties").and_then(Value::as_object).map_or(0, |names| names.len());
            let patterns = by_name as u64 + u64::from(fields.contains_key("pattern"));
            let mut size = Size { parts: 1, patterns };
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let behind = match known.get(reference) {
                    Some(Some(size)) => *size,
                    Some(None) => return Err("A schema cannot refer to itself.".to_owned()),
                    None => {
                        // A percent sign reads differently to whoever checks the answer.
                        let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'));
                        let target = pointer.and_then(|pointer| root.pointer(pointer));
                        let target = target.ok_or_else(|| {
                            format!("“{reference}” leads nowhere: a $ref is # and a JSON pointer into the same schema.")
                        })?;
                        known.insert(reference, None);
                        let behind = expanded(root, target, known)?;
                        known.insert(reference, Some(behind));
                        behind
                    }
                };
                size = size.plus(behind);
            }
            fields.values().try_fold(size, |so_far, field| Ok(so_far.plus(expanded(root, field, known)?)))
        }
        _ => Ok(Size::ONE),
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

/// How many parts there are to check in a value (long texts count more), and how many bytes of text.
fn weight(value: &Value) -> (u64, u64) {
    let sum = |(parts, bytes): (u64, u64), (more, text): (u64, u64)| (parts + more, bytes + text);
    match value {
        Value::String(text) => (1 + text.len() as u64 / 64, text.len() as u64),
        Value::Array(items) => items.iter().map(weight).fold((1, 0), sum),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| sum((1, name.len() as u64), weight(field))).fold((1, 0), sum)
        }
        _ => (1, 0),
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
    let size = cost(schema).map_err(unusable)?;
    let (parts, bytes) = weight(value);
    let work = size.parts.saturating_mul(parts);
    let matching = size.patterns.saturating_mul(bytes);
    if work > MOST_WORK || matching > MOST_MATCHING {
        return Err(vec![FieldError::new("", "This is too large to be checked against the agent's schema.")]);
    }
    let validator = validator(schema).map_err(unusable)?;
    if validator.is_valid(value) {
        return Ok(());
    }
    // To say where takes far more than to say whether.
    if work > MOST_TOLD || matching > MOST_MATCHING / 4 {
        return Err(vec![FieldError::new("", "This does not fit the agent's schema, and is too large to say where.")]);
    }
    let mut errors: Vec<FieldError> = Vec::new();
    for error in validator.iter_errors(value).take(MOST_ERRORS) {
        for found in in_words(&error) {
            if errors.len() < MOST_ERRORS && !errors.contains(&found) {
                errors.push(found);
            }
        }
    }
    Err(errors)
}

/// The library's finding in words for somebody who never saw a schema.
fn in_words(error: &Finding<'_>) -> Vec<FieldError> {
    use jsonschema::error::ValidationErrorKind as Kind;
    let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else {
        return vec![one_in_words(error)];
    };
    let here = |inner: &Finding<'_>| inner.instance_path() == error.instance_path();
    let constants =
        |inner: &Finding<'_>| here(inner) && matches!(inner.kind(), Kind::Constant { .. } | Kind::Enum { .. });
    if context.iter().all(|branch| branch.iter().any(constants)) {
        return vec![FieldError::new(error.instance_path().to_string(), CHOOSE)];
    }
    // "Or null" is not what somebody meant who wrote something; and who wrote a text did not mean the number.
    let null =
        |inner: &Finding<'_>| matches!(inner.kind(), Kind::Type { kind } if format!("{kind:?}").contains("Null"));
    let kind = |inner: &Finding<'_>| here(inner) && matches!(inner.kind(), Kind::Type { .. });
    let without = |refused: &dyn Fn(&Finding<'static>) -> bool| {
        let mut meant = context.iter().filter(|branch| !branch.iter().any(refused));
        meant.next().filter(|_| meant.next().is_none())
    };
    match without(&null).or_else(|| without(&kind)) {
        Some(branch) => branch.iter().flat_map(in_words).collect(),
        None => {
            vec![FieldError::new(error.instance_path().to_string(), "This fits none of the forms that are asked for.")]
        }
    }
}

fn one_in_words(error: &Finding<'_>) -> FieldError {
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
        Kind::MinItems { limit } => format!("At least {limit} are asked for."),
        Kind::MaxItems { limit } => format!("At most {limit} are asked for."),
        Kind::UniqueItems => "Each may be there once only.".to_owned(),
        Kind::MultipleOf { multiple_of } => format!("Must be a multiple of {multiple_of}."),
        Kind::Enum { .. } | Kind::Constant { .. } => CHOOSE.to_owned(),
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
