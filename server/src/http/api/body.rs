//! Request bodies (JSON, no unknown field, no guess), queries, and names in addresses.

use axum::{
    body::Bytes,
    extract::{FromRequestParts, Query},
    http::{HeaderMap, header, request::Parts},
};
use engine::Refusal;
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

/// What stands behind the question mark; what does not fit is 422.
pub(super) struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(Problem::field("", format!("The query does not fit: {}.", error.body_text()))),
        }
    }
}

/// The name in the address; one that is no text at all names nothing (404).
pub(super) struct Path(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Path {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        Ok(Self(path.map_err(|_| Refusal::NotFound)?.0))
    }
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
