//! The action that an approval is about, with its exact arguments: canonical, digested, and edited only where the permit
//! allows (design section 4). What is shown is what runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::answer;
use crate::{FieldError, hex};

/// Largest whole number that survives every program's JSON (RFC 7493, section 2.2).
const LARGEST_WHOLE: u64 = 1 << 53;
const LARGEST_ARGUMENTS: usize = 64 * 1024;
const MOST_EDITABLE: usize = 50;

/// What is to be done, as the asker named it. `editable`: pointers (RFC 6901) into the arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    #[serde(default)]
    pub editable: Vec<String>,
    /// What the arguments must be (JSON Schema), checked again when a person edits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// One argument that a person changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    pub pointer: String,
    pub before: Value,
    pub after: Value,
}

/// SHA-256 of the canonical form (RFC 8785) of tool and arguments, as hex: the same for the same action, however it was
/// written and wherever it was kept.
pub fn digest(tool: &str, arguments: &Map<String, Value>) -> String {
    // Values that were checked always have a canonical form.
    let canonical = serde_json_canonicalizer::to_vec(&json!([tool, arguments])).unwrap_or_default();
    hex(&Sha256::digest(canonical))
}

/// Refuses what has no canonical form or cannot be shown whole. Pointers into the request.
pub(super) fn check(action: &Action) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut wrong = |pointer: String, detail: &str| errors.push(FieldError::new(pointer, detail));
    if action.tool.trim().is_empty() || action.tool.chars().count() > 200 || action.tool.contains('\0') {
        wrong("/action/tool".to_owned(), "A tool's name has 1 to 200 characters.");
    }
    let arguments = Value::Object(action.arguments.clone());
    if arguments.to_string().len() > LARGEST_ARGUMENTS {
        wrong("/action/arguments".to_owned(), "Arguments have at most 64 KiB: more, nobody can read and approve.");
    }
    if let Some(detail) = unfit(&arguments, 0) {
        wrong("/action/arguments".to_owned(), detail);
    }
    if let Some(schema) = &action.schema {
        match answer::check_schema(schema) {
            Err(detail) => wrong("/action/schema".to_owned(), &detail),
            Ok(()) => {
                if let Err(found) = answer::fits_schema(schema, &arguments) {
                    wrong(format!("/action/arguments{}", found[0].pointer), &found[0].detail);
                }
            }
        }
    }
    if action.editable.len() > MOST_EDITABLE {
        wrong("/action/editable".to_owned(), "At most 50 arguments can be editable.");
    }
    for (at, pointer) in action.editable.iter().enumerate() {
        if pointer.is_empty() || arguments.pointer(pointer).is_none() {
            wrong(
                format!("/action/editable/{at}"),
                "This points at no argument. Write a JSON pointer such as /amount to one that is there.",
            );
        }
    }
    errors
}

fn unfit(value: &Value, depth: usize) -> Option<&'static str> {
    match value {
        _ if depth > 20 => Some("Arguments are at most 20 levels deep."),
        Value::Number(number) => {
            let whole = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            // Written with a point or an exponent it is a float, and as much rounded.
            let rounded = number.is_f64() && number.as_f64().is_some_and(|float| float.abs() > LARGEST_WHOLE as f64);
            (rounded || whole.is_some_and(|whole| whole > LARGEST_WHOLE))
                .then_some("A whole number above 2^53 reads differently in different programs: write it as a text.")
        }
        Value::String(text) if text.contains('\0') => Some("A text cannot contain the character U+0000."),
        Value::Array(items) => items.iter().find_map(|item| unfit(item, depth + 1)),
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            if name.contains('\0') {
                Some("A name cannot contain the character U+0000.")
            } else {
                unfit(field, depth + 1)
            }
        }),
        _ => None,
    }
}

/// What `proposed` changes of `current`, in the order of `editable`. Refuses (pointers into the answer's value) what lies
/// outside the editable arguments, or turns one into another type.
pub(super) fn edits(
    editable: &[String],
    current: &Map<String, Value>,
    proposed: &Map<String, Value>,
) -> Result<Vec<Edit>, Vec<FieldError>> {
    let current = Value::Object(current.clone());
    let proposed = Value::Object(proposed.clone());
    let mut edits = Vec::new();
    let mut errors = Vec::new();
    let mut restored = proposed.clone();
    for pointer in editable {
        let Some(before) = current.pointer(pointer) else { continue };
        let at = format!("/arguments{pointer}");
        match proposed.pointer(pointer) {
            None => errors.push(FieldError::new(at, "This argument may be changed, not left out.")),
            Some(after) if same(before, after) => {
                // 40 and 40.0 are the same amount: what was asked stays.
                if let Some(place) = restored.pointer_mut(pointer) {
                    *place = before.clone();
                }
            }
            Some(after) => {
                if let Some(detail) = other_type(before, after).or(unfit(after, 0)) {
                    errors.push(FieldError::new(at, detail));
                }
                edits.push(Edit { pointer: pointer.clone(), before: before.clone(), after: after.clone() });
                if let Some(place) = restored.pointer_mut(pointer) {
                    *place = before.clone();
                }
            }
        }
    }
    if errors.is_empty() && !same(&restored, &current) {
        let allowed = match editable {
            [] => "none of them may be changed".to_owned(),
            some => format!("only {} may be changed", some.join(", ")),
        };
        errors.push(FieldError::new(
            "/arguments",
            format!("These are not the arguments that were asked for: {allowed}."),
        ));
    }
    if proposed.to_string().len() > LARGEST_ARGUMENTS {
        errors.push(FieldError::new("/arguments", "Arguments have at most 64 KiB."));
    }
    if errors.is_empty() { Ok(edits) } else { Err(errors) }
}

/// The same in canonical form: 1 and 1.0 are.
fn same(one: &Value, other: &Value) -> bool {
    one == other
        || matches!(
            (serde_json_canonicalizer::to_vec(one), serde_json_canonicalizer::to_vec(other)),
            (Ok(one), Ok(other)) if one == other
        )
}

fn other_type(before: &Value, after: &Value) -> Option<&'static str> {
    match (before, after) {
        (Value::Null, _) | (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => None,
        (Value::Number(_), Value::Number(_))
        | (Value::Array(_), Value::Array(_))
        | (Value::Object(_), Value::Object(_)) => None,
        (Value::Bool(_), _) => Some("Answer yes or no."),
        (Value::Number(_), _) => Some("Write a number."),
        (Value::String(_), _) => Some("Write a text."),
        (Value::Array(_), _) => Some("Write a JSON list."),
        (Value::Object(_), _) => Some("Write a JSON object."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn the_digest_is_of_what_is_meant_not_of_how_it_was_written() {
        let one: Value = serde_json::from_str(r#"{"b": 1.0, "a": "ü", "c": [1e2, {"y": 1, "x": null}]}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"c":[100,{"x":null,"y":1}],"a":"\u00fc","b":1}"#).unwrap();
        assert_eq!(digest("pay", &object(one.clone())), digest("pay", &object(other)));
        assert_ne!(digest("pay", &object(one.clone())), digest("refund", &object(one)));
        let (small, large) = (json!({ "n": 9007199254740991_u64 }), json!({ "n": 9007199254740990_u64 }));
        assert_ne!(digest("pay", &object(small)), digest("pay", &object(large)));
    }

    #[test]
    fn an_edit_stays_inside_what_may_be_edited_and_keeps_its_type() {
        let current = object(json!({ "order": "A-17", "amount": 40, "to": { "iban": "DE1" } }));
        let editable = ["/amount".to_owned(), "/to/iban".to_owned()];
        let edit = |proposed: Value| edits(&editable, &current, &object(proposed));
        assert_eq!(edit(json!({ "order": "A-17", "amount": 40.0, "to": { "iban": "DE1" } })), Ok(vec![]));
        let found = edit(json!({ "order": "A-17", "amount": 30, "to": { "iban": "DE2" } })).unwrap();
        assert_eq!(found.iter().map(|edit| edit.pointer.as_str()).collect::<Vec<_>>(), ["/amount", "/to/iban"]);
        for wrong in [
            json!({ "order": "A-18", "amount": 40, "to": { "iban": "DE1" } }),
            json!({ "order": "A-17", "amount": "40", "to": { "iban": "DE1" } }),
            json!({ "order": "A-17", "to": { "iban": "DE1" } }),
            json!({ "order": "A-17", "amount": 40, "to": { "iban": "DE1" }, "more": 1 }),
            json!({ "order": "A-17", "amount": 40, "to": { "iban": "DE1", "bic": "X" } }),
        ] {
            assert!(edit(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_number_that_programs_read_differently_is_refused_however_it_is_written() {
        assert!(unfit(&json!(9007199254740993_u64), 0).is_some());
        assert!(unfit(&json!({ "n": [1e300] }), 0).is_some());
        assert!(unfit(&json!([9007199254740992_u64, 12.5, -0.1]), 0).is_none());
    }
}
