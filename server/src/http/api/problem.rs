//! Errors as RFC 9457 problem details.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use engine::{FieldError, Refusal};
use serde_json::json;

/// An error of the API.
pub(super) struct Problem {
    status: u16,
    code: &'static str,
    detail: String,
    errors: Vec<FieldError>,
}

impl Problem {
    pub(super) fn simple(status: u16, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), errors: Vec::new() }
    }

    /// Answers that do not fit, with pointers into the request.
    pub(super) fn invalid_answers(errors: Vec<FieldError>) -> Self {
        let refusal = Refusal::InvalidAnswer(errors);
        let errors = refusal.errors().to_vec();
        Self { status: refusal.status(), code: refusal.code(), detail: refusal.to_string(), errors }
    }

    pub(super) fn with(self, errors: Vec<FieldError>) -> Self {
        Self { errors, ..self }
    }

    pub(super) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Refusal::Invalid(vec![FieldError::new(pointer, detail)]).into()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::Fault(cause) = &refusal {
            tracing::error!(%cause, "a call of the API failed");
        }
        // An answer's pointers are within the answer; the request has it under /value.
        let within = if matches!(refusal, Refusal::InvalidAnswer(_)) { "/value" } else { "" };
        let errors =
            refusal.errors().iter().map(|error| FieldError::new(format!("{within}{}", error.pointer), &error.detail));
        Self { status: refusal.status(), code: refusal.code(), detail: refusal.to_string(), errors: errors.collect() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        });
        if !self.errors.is_empty() {
            body["errors"] = json!(self.errors);
        }
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response();
        let extra = match self.status {
            401 => Some((header::WWW_AUTHENTICATE, "Bearer")),
            429 => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, http::HeaderValue::from_static(value));
        }
        response
    }
}
