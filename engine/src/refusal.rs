//! Every way to be refused, as a sentence a person understands and a stable code for programs (design section 4).

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::slot::Revision;

/// What does not fit, and where (RFC 6901 pointer into the request or the answer).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub pointer: String,
    pub detail: String,
}

impl FieldError {
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }

    /// The same, pointing from further out.
    pub(crate) fn under(self, outer: &str) -> Self {
        Self { pointer: format!("{outer}{}", self.pointer), detail: self.detail }
    }
}

/// Why a verb did nothing. `Display` is the sentence.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("There is nothing here, or nothing that you may see.")]
    NotFound,
    /// May see it, may not do it. Says who may.
    #[error("{0}")]
    NotYours(String),
    #[error("{by} answered this first, on {}.", on(.at))]
    AlreadyAnswered { by: String, at: DateTime<Utc> },
    #[error("This question expired on {}: nobody had answered by then.", on(.at))]
    Expired { at: DateTime<Utc> },
    #[error("This question was cancelled on {}: {reason}", on(.at))]
    Cancelled { at: DateTime<Utc>, reason: String },
    #[error("What is asked has changed since you opened it. Please read it again before you answer.")]
    Stale { revision: Revision },
    #[error("{}", sentence(.0))]
    InvalidAnswer(Vec<FieldError>),
    /// A request that is not an answer does not fit.
    #[error("{}", sentence(.0))]
    Invalid(Vec<FieldError>),
    /// The same task already has another question under this name.
    #[error("This task has already asked something else under the name “{0}”. Use another name for another question.")]
    NameInUse(String),
    /// The task is not in a state that allows it.
    #[error("{0}")]
    TaskEnded(String),
    /// An approval is used up by one execution, a secret by one reading.
    #[error("{0}")]
    AlreadyTaken(String),
    /// Somebody else said that they are on it.
    #[error("{by} is on it until {}. You can still answer; or wait for them.", time_of(.until))]
    TakenBySomebody { by: String, until: DateTime<Utc> },
    /// The same Idempotency-Key came with another body.
    #[error("This Idempotency-Key was used for another request. Use a new key for a new request.")]
    IdempotencyMismatch,
    #[error("{0}")]
    Forbidden(String),
    #[error("Too many tries. Please wait {} and try again.", crate::duration::words(*.wait))]
    TooManyTries { wait: chrono::Duration },
    /// Something other than the caller is at fault: the cause belongs in the log, not on the page.
    #[error("Something went wrong on our side. Nothing was changed; please try again.")]
    Fault(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Refusal {
    /// The stable code of `api.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NotYours(_) => "not_yours",
            Self::AlreadyAnswered { .. } => "already_answered",
            Self::Expired { .. } => "expired",
            Self::Cancelled { .. } => "cancelled",
            Self::Stale { .. } => "stale",
            Self::InvalidAnswer(_) => "invalid_answer",
            Self::Invalid(_) => "invalid",
            Self::NameInUse(_) => "name_in_use",
            Self::TaskEnded(_) => "task_ended",
            Self::AlreadyTaken(_) => "already_taken",
            Self::TakenBySomebody { .. } => "taken",
            Self::IdempotencyMismatch => "idempotency_mismatch",
            Self::Forbidden(_) => "forbidden",
            Self::TooManyTries { .. } => "too_many_requests",
            Self::Fault(_) => "fault",
        }
    }

    /// The HTTP status that says the same (RFC 9110).
    pub fn status(&self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::NotYours(_) | Self::Forbidden(_) => 403,
            Self::AlreadyAnswered { .. }
            | Self::Expired { .. }
            | Self::Cancelled { .. }
            | Self::Stale { .. }
            | Self::NameInUse(_)
            | Self::TaskEnded(_)
            | Self::TakenBySomebody { .. }
            | Self::IdempotencyMismatch => 409,
            Self::AlreadyTaken(_) => 410,
            Self::InvalidAnswer(_) | Self::Invalid(_) => 422,
            Self::TooManyTries { .. } => 429,
            Self::Fault(_) => 500,
        }
    }

    /// What does not fit, field by field; empty for every other refusal.
    pub fn errors(&self) -> &[FieldError] {
        match self {
            Self::InvalidAnswer(errors) | Self::Invalid(errors) => errors,
            _ => &[],
        }
    }

    pub fn invalid(pointer: &str, detail: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(pointer, detail)])
    }

    pub(crate) fn fault(text: impl Into<String>) -> Self {
        Self::Fault(text.into().into())
    }
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        Self::Fault(Box::new(error))
    }
}

fn on(at: &DateTime<Utc>) -> String {
    at.format("%-d %B %Y at %H:%M UTC").to_string()
}

fn time_of(at: &DateTime<Utc>) -> String {
    at.format("%H:%M UTC").to_string()
}

fn sentence(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.detail.clone(),
        many => format!("{} things need another look.", many.len()),
    }
}
