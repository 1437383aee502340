//! Request bodies: JSON, no unknown field, no guess.

use axum::{
    body::Bytes,
    http::{HeaderMap, header},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Problem;

/// Reads a body. Not JSON: 400; another type: 415; a field that is unknown, missing or of the wrong type: 422.
pub(super) fn read<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(Problem::simple(415, "unsupported_media_type", "Send JSON, with Content-Type: application/json."));
    }
    // Rare enough to look twice: Postgres cannot keep this character.
    if body.windows(6).any(|part| part == b"\\u0000") && serde_json::from_slice(body).is_ok_and(|value| has_nul(&value))
    {
        return Err(Problem::field("", "A text cannot contain the character U+0000."));
    }
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            let text = error.to_string();
            // serde names the field between backticks; what it points at is worth more than its line and column.
            let field = text.split('`').nth(1).filter(|_| text.contains("field"));
            let pointer = field.map_or_else(String::new, |field| format!("/{field}"));
            let detail = text.split(" at line ").next().unwrap_or(&text);
            Problem::field(pointer, format!("{}.", capitalised(detail)))
        } else {
            Problem::simple(400, "malformed", format!("The body is not JSON: {error}."))
        }
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(name, field)| name.contains('\0') || has_nul(field)),
        _ => false,
    }
}
