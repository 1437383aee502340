//! The form of a slot: what a page shows for its kind, options and schema, and back from the form's fields to the value.
//! The check that counts is the deposit's; here only strings become numbers, booleans and objects.

mod files;
mod opened;
mod read;
mod shape;

use super::{Action, Choice};

pub use files::{FileAt, files};
pub use read::{from_form, moment};
pub use shape::shape;

/// What to show.
#[derive(Clone, Debug, PartialEq)]
pub enum FormShape {
    /// Free text.
    Text,
    /// Words that are never shown again.
    Secret,
    /// One of the options.
    Options(Vec<Choice>),
    /// One value of a schema; the field is named `answer`.
    One(Field),
    /// An object; the fields are named `answer` and their pointer.
    Many(Vec<Part>),
    /// A schema that has no form: JSON in a text area named `answer`.
    Json,
    /// Yes or no to an action (`decision`, `reason`), with a field for each argument that may be changed (`argument` and
    /// its pointer).
    Decision { action: Action, editable: Vec<Field> },
    /// The work's result (`result`) or words to the agent (`message`); the button `act` says which.
    Takeover,
}

/// A field, or several that belong together (a nested object).
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Field(Field),
    /// `nullable`: it must be there and is null when nothing was typed in it.
    Group {
        name: String,
        label: String,
        help: String,
        required: bool,
        nullable: bool,
        fields: Vec<Field>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The form field's name.
    pub name: String,
    /// Where a [`crate::FieldError`] points: "" or "/<property>".
    pub pointer: String,
    pub label: String,
    pub help: String,
    pub required: bool,
    /// It must be there, and left empty it is null.
    pub nullable: bool,
    /// What stands there before anybody typed.
    pub default: Option<String>,
    pub input: Input,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// `kind` is an HTML input type: text, email, url, date. `pattern` as HTML has it: for the whole text.
    Text {
        kind: &'static str,
        min: Option<u64>,
        max: Option<u64>,
        pattern: Option<String>,
    },
    LongText {
        min: Option<u64>,
        max: Option<u64>,
    },
    /// `step` is "any", or a whole number for whole numbers.
    Number {
        min: Option<f64>,
        max: Option<f64>,
        step: String,
    },
    /// A day and a time, in the reader's time zone.
    DateTime,
    /// Yes or no; `must`: only yes will do.
    Check {
        must: bool,
    },
    Choice(Vec<Choice>),
    /// Any number of these.
    Several(Vec<Choice>),
    /// A list, one to a line.
    Lines(Item),
    /// A file of one of these media types.
    File {
        accept: &'static str,
    },
    /// Any JSON.
    Json,
}

/// What each line of a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Text,
    Number,
}
