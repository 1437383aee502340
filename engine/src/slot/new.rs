//! What is asked, as it is put: [`NewSlot`], and whether it can be asked at all.

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Action, Choice, Kind, OnExpiry, Priority, Slot, Status, action, answer, asked};
use crate::{
    FieldError, Refusal, hex,
    ids::{AgentId, FileId, SlotId, TaskId},
    policy::Remind,
};

const MOST_OPTIONS: usize = 100;

/// A question as it is put.
#[derive(Clone, Debug)]
pub struct NewSlot {
    /// None opens a task of its own with the message as its title (an outside agent's only).
    pub task_id: Option<TaskId>,
    /// What tells two questions of one call apart; a digest of the question when None.
    pub name: Option<String>,
    pub kind: Kind,
    pub message: String,
    pub context: String,
    pub options: Vec<Choice>,
    pub schema: Option<Value>,
    /// Sealed from the deposit on, handed out once (kind question).
    pub secret: bool,
    /// What an approval is about, or what a client's tool is to do.
    pub action: Option<Action>,
    /// How many approvals.
    pub needs: i32,
    /// Files that the asker added before ([`crate::file::add`]).
    pub attachments: Vec<FileId>,
    /// E-mail addresses, "group:<name>", "role:<role>"; empty: the person the work is for, else the sponsor.
    pub ask: Vec<String>,
    pub priority: Priority,
    pub expires_in: Option<Duration>,
    pub on_expiry: OnExpiry,
    pub default_value: Option<Value>,
    pub target: Option<Duration>,
    /// Before the policy's.
    pub remind: Option<Remind>,
}

impl NewSlot {
    /// A question in free text to whoever is asked by default.
    pub fn question(message: impl Into<String>) -> Self {
        Self {
            task_id: None,
            name: None,
            kind: Kind::Question,
            message: message.into(),
            context: String::new(),
            options: Vec::new(),
            schema: None,
            secret: false,
            action: None,
            needs: 1,
            attachments: Vec::new(),
            ask: Vec::new(),
            priority: Priority::Normal,
            expires_in: None,
            on_expiry: OnExpiry::Tell,
            default_value: None,
            target: None,
            remind: None,
        }
    }
}

impl NewSlot {
    /// The same as part of a process that must be finished by then, else it fails.
    pub(crate) fn until(self, finish_by: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let left = (finish_by - now).max(Duration::seconds(1));
        Self { expires_in: Some(left), on_expiry: OnExpiry::Fail, ..self }
    }
}

impl Slot {
    /// What was said when it was asked: a waiting slot without agent, task, people and clock.
    pub fn bare(new: NewSlot) -> Self {
        let nil = Uuid::nil();
        Self {
            id: SlotId(nil),
            task_id: TaskId(nil),
            task_title: String::new(),
            agent_id: AgentId(nil),
            agent: String::new(),
            call_id: String::new(),
            name: String::new(),
            kind: new.kind,
            message: new.message,
            context: new.context,
            options: new.options,
            schema: new.schema,
            secret: new.secret,
            digest: new.action.as_ref().map(|action| action::digest(&action.tool, &action.arguments)),
            action: new.action,
            edited: None,
            edited_by: None,
            votes: Vec::new(),
            used_at: None,
            revision: 1,
            asked: Vec::new(),
            candidates: Vec::new(),
            assignee_id: None,
            waiting_on: String::new(),
            needs: new.needs,
            priority: new.priority,
            status: Status::Waiting,
            opened_at: DateTime::UNIX_EPOCH,
            target_at: None,
            due_at: None,
            at_risk_at: None,
            warned_at: None,
            breached_at: None,
            business: false,
            reminds: false,
            reassigns_late: false,
            waited_business: None,
            expires_at: None,
            on_expiry: new.on_expiry,
            default_value: new.default_value,
            wait_seconds: new.expires_in.map(|wait| wait.num_seconds()),
            taken: None,
            declined: Vec::new(),
            handed: 0,
            rung: 0,
            alarm: None,
            answer: None,
            note: None,
            answered_by: None,
            answered_by_email: None,
            on_behalf_of: None,
            on_behalf_of_email: None,
            reason: None,
            closed_at: None,
            sponsor_id: None,
            for_id: None,
            for_name: None,
            claim_id: None,
        }
    }
}

/// The name of a question that was given none: the same question has the same name.
pub(super) fn digest(new: &NewSlot) -> String {
    hex(&Sha256::digest(question(&Slot::bare(new.clone())))[..12])
}

/// Whether `slot` asks what `new` does, so that an answer to the one is an answer to the other.
pub(super) fn asks_the_same(slot: &Slot, new: &NewSlot) -> bool {
    question(slot) == question(&Slot::bare(new.clone()))
}

/// What is asked, in one canonical form, however its numbers were written.
fn question(slot: &Slot) -> Vec<u8> {
    let mut question = json!([slot.kind, slot.message, slot.options, slot.schema, slot.action]);
    // Only where it is not as ever: names that were given before these counted stay.
    if slot.secret || slot.needs != 1 {
        question = json!([question, slot.secret, slot.needs]);
    }
    serde_json_canonicalizer::to_vec(&question).unwrap_or_else(|_| question.to_string().into_bytes())
}

/// Whether it can be asked at all, whoever is asked.
pub(super) fn check(new: &NewSlot) -> Result<(), Refusal> {
    let mut errors = Vec::new();
    let mut wrong = |pointer: &str, detail: &str| errors.push(FieldError::new(pointer, detail));
    match new.message.trim().chars().count() {
        0 => wrong("/message", "Say what you want to know."),
        1..=10_000 => {}
        _ => wrong("/message", "A message has at most 10,000 characters; put the rest into the context."),
    }
    if new.message.contains('\0') || new.context.contains('\0') {
        wrong("/message", "A text cannot contain the character U+0000.");
    }
    if new.context.chars().count() > 100_000 {
        wrong("/context", "A context has at most 100,000 characters.");
    }
    if new.name.as_ref().is_some_and(|name| name.trim().is_empty() || name.chars().count() > 200 || name.contains('\0'))
    {
        wrong("/name", "A name has 1 to 200 characters.");
    }
    if new.options.len() > MOST_OPTIONS {
        wrong("/options", "Offer at most 100 options.");
    }
    // What is too many anyway is not compared with all the others.
    let options = &new.options[..new.options.len().min(MOST_OPTIONS)];
    for (at, option) in options.iter().enumerate() {
        if option.label.trim().is_empty() || option.label.chars().count() > 200 {
            wrong(&format!("/options/{at}/label"), "A label has 1 to 200 characters.");
        }
        if new.options[..at].iter().any(|other| other.value == option.value) {
            wrong(&format!("/options/{at}/value"), "Each option needs a value of its own.");
        }
    }
    if let Some(schema) = &new.schema
        && let Err(detail) = answer::check_schema(schema)
    {
        wrong("/schema", &detail);
    } else if let Some(schema) = &new.schema {
        if !answer::files_are_found(schema) {
            wrong("/schema", "A field of the format “file” stands under properties or items, nowhere else.");
        }
        for (at, option) in options.iter().enumerate() {
            if answer::fits_schema(schema, &option.value).is_err() {
                wrong(&format!("/options/{at}/value"), "Nobody could choose this: it does not fit the schema.");
            }
        }
    }
    if new.remind.is_some_and(|remind| !(0..=100).contains(&remind.most)) {
        wrong("/remind/most", "Remind at most 100 times.");
    }
    if new.ask.len() > asked::MOST {
        wrong("/ask", "Ask at most 20 people, groups and roles; a group reaches many.");
    }
    if new.attachments.len() > 20 {
        wrong("/attachments", "Attach at most 20 files.");
    }
    if new.on_expiry != OnExpiry::Tell && new.expires_in.is_none() {
        wrong("/expires_in", "Say after how long: without a limit nothing ever expires.");
    }
    match (new.on_expiry, &new.default_value) {
        (OnExpiry::Default, None) => wrong("/default", "Say which value is used when nobody answers."),
        (OnExpiry::Default, Some(value)) => {
            if let Err(found) = answer::fits(new.kind, &new.options, new.schema.as_ref(), value) {
                wrong("/default", &format!("The default does not fit: {}", found[0].detail));
            }
        }
        (_, Some(_)) => wrong("/default", "A default is used only with on_expiry \"default\"."),
        _ => {}
    }
    errors.extend(by_kind(new));
    if errors.is_empty() { Ok(()) } else { Err(Refusal::Invalid(errors)) }
}

/// What belongs to one kind only.
fn by_kind(new: &NewSlot) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut wrong = |when: bool, pointer: &str, detail: &str| {
        if when {
            errors.push(FieldError::new(pointer, detail));
        }
    };
    let (approval, tool) = (new.kind == Kind::Approval, new.kind == Kind::ClientTool);
    wrong(new.kind == Kind::SignIn, "/kind", "This version of Layby does not offer sign-ins to outside services yet.");
    wrong((approval || tool) && new.action.is_none(), "/action", "Say which tool, with which arguments.");
    wrong(!(approval || tool) && new.action.is_some(), "/action", "Only an approval or a client's tool has an action.");
    wrong(!approval && new.needs != 1, "/needs", "Only an approval needs several people.");
    wrong(!(1..=20).contains(&new.needs), "/needs", "An approval needs 1 to 20 people.");
    wrong(new.secret && new.kind != Kind::Question, "/secret", "Only a question asks for a secret.");
    wrong(
        new.secret && (new.schema.is_some() || !new.options.is_empty()),
        "/secret",
        "A secret is words: without options and schema.",
    );
    wrong(
        new.secret && new.on_expiry == OnExpiry::Default,
        "/on_expiry",
        "A secret has no default: it would stand in clear in the question.",
    );
    wrong(
        approval && new.on_expiry == OnExpiry::Default,
        "/on_expiry",
        "An approval has no default: nobody's silence is a yes, and a rejection is a person's.",
    );
    let plain = matches!(new.kind, Kind::Approval | Kind::Human);
    wrong(plain && new.schema.is_some(), "/schema", "This kind of question has a form of its own.");
    wrong(new.kind != Kind::Question && !new.options.is_empty(), "/options", "Only a question has options.");
    wrong(new.kind == Kind::Human && new.on_expiry == OnExpiry::Default, "/on_expiry", "A takeover has no default.");
    if let Some(action) = &new.action {
        errors.extend(action::check(action));
    }
    errors
}
