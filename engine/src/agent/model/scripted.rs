//! A model that says what a script tells it: for tests and measurements.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;

use super::{Model, ModelError, Reply, Request};
use crate::{agent::conversation::TurnKind, ids::TaskId};

/// The nth reply of a conversation is the nth of the script; past its end, the last one again. It keeps no state, as no
/// model may, but remembers what it was asked.
#[derive(Clone, Default)]
pub struct Scripted {
    replies: Vec<Reply>,
    /// Each call is also appended to this file, as a line "<task> <seq>", before it is answered.
    log: Option<PathBuf>,
    asked: Arc<Mutex<Vec<(TaskId, i32)>>>,
}

impl Scripted {
    pub fn new(replies: Vec<Reply>) -> Self {
        Self { replies, ..Self::default() }
    }

    /// A JSON list of replies: `[{"calls": [{"name": "ask_person", "arguments": {"question": "Why?"}}]}, …]`. Calls are
    /// logged to the file that `LAYBY_SCRIPT_LOG` names.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("The script cannot be read: {error}."))?;
        let replies =
            serde_json::from_str(&text).map_err(|error| format!("The script is not a list of replies: {error}."))?;
        let log = std::env::var_os("LAYBY_SCRIPT_LOG").map(PathBuf::from);
        Ok(Self { replies, log, ..Self::default() })
    }

    /// How often it was asked, over all conversations.
    pub fn times_asked(&self) -> usize {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Model for Scripted {
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((request.task, request.seq));
            if let Some(log) = &self.log {
                let line = format!("{} {}\n", request.task, request.seq);
                std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(log)
                    .and_then(|mut file| file.write_all(line.as_bytes()))
                    .map_err(|error| ModelError(format!("the script's log cannot be written: {error}")))?;
            }
            let said = request.turns.iter().filter(|turn| turn.kind == TurnKind::Reply).count();
            self.replies
                .get(said.min(self.replies.len().saturating_sub(1)))
                .cloned()
                .ok_or_else(|| ModelError("the script is empty".to_owned()))
        })
    }
}
