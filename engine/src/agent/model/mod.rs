//! Models: one small trait. The rule-based model needs no key and runs the demonstration; the scripted one runs tests.

mod rules;
pub mod scripted;

use std::{borrow::Cow, sync::Arc};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::Turn;
use crate::ids::TaskId;

pub use scripted::Scripted;

/// What a model is asked: the conversation so far and what it may call.
pub struct Request<'a> {
    pub task: TaskId,
    /// The number that the reply will have in the conversation.
    pub seq: i32,
    pub system: &'a str,
    pub turns: &'a [Turn],
    pub tools: &'a [ToolSpec],
}

/// A tool as the model is told of it. `arguments` is a JSON Schema.
pub struct ToolSpec {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    pub arguments: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<Call>,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// In micros of the agent's currency.
    pub cost_micros: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    /// The provider's id. Not unique: a model may say the same one twice.
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// Why there is no reply; the text is for the log and the receipt.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub String);

/// Answers a conversation. Implementations keep no state of it: the log is the only form there is.
pub trait Model: Send + Sync + 'static {
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// The models that agents name.
#[derive(Clone)]
pub struct Models {
    default: Arc<dyn Model>,
}

impl Models {
    /// The built-in rule-based model for every name.
    pub fn standard() -> Self {
        Self { default: Arc::new(rules::Rules) }
    }

    /// One model for every name, for tests.
    pub fn only(model: impl Model) -> Self {
        Self { default: Arc::new(model) }
    }

    /// The scripted model with the replies of a file (see [`Scripted::from_file`]).
    pub fn scripted(path: &std::path::Path) -> Result<Self, String> {
        Ok(Self::only(Scripted::from_file(path)?))
    }

    /// The model of this name; every name is the default one until others are configured.
    pub(super) fn get(&self, _name: &str) -> Arc<dyn Model> {
        self.default.clone()
    }
}
