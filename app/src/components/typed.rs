//! What somebody typed into a form that was refused, so that nothing of it is lost.

use chrono_tz::Tz;
use engine::FieldError;

#[derive(Clone, Default)]
pub(crate) struct Typed {
    pub fields: Vec<(String, String)>,
    pub errors: Vec<FieldError>,
    /// Files that were sent with the form: id and name.
    pub files: Vec<(String, String)>,
    /// The arguments changed underneath: the fields show the current ones, not those that were typed.
    pub outdated: bool,
    /// The reader's zone; UTC when None.
    pub zone: Option<Tz>,
}

impl Typed {
    /// Nobody has typed anything yet.
    pub(crate) fn is_blank(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn value(&self, name: &str) -> String {
        self.values(name).into_iter().next().unwrap_or_default()
    }

    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        self.fields.iter().filter(|(field, _)| field == name).map(|(_, text)| text.clone()).collect()
    }

    /// What was typed into a form that came back as refused with `errors`.
    pub(crate) fn new(fields: Vec<(String, String)>, errors: &[FieldError]) -> Self {
        Self { fields, errors: errors.to_vec(), ..Self::default() }
    }

    /// The same, for a form of the slot's present `revision` and a reader in `zone`.
    pub(crate) fn at(self, revision: i32, zone: Tz) -> Self {
        let outdated = !self.is_blank() && self.value("revision") != revision.to_string();
        Self { outdated, zone: Some(zone), ..self }
    }

    /// Whether the field shows what was typed there, or else what the asker proposes.
    pub(crate) fn fills(&self, name: &str) -> bool {
        !(self.is_blank() || self.outdated && name.starts_with("argument"))
    }

    /// The name of a file that was sent, by its id.
    pub(crate) fn kept(&self, id: &str) -> Option<String> {
        self.files.iter().find(|(file, _)| file == id).map(|(_, name)| name.clone())
    }

    /// The words themselves, to be shown where there is no form any more; never a secret's.
    pub(crate) fn words(&self, secret: bool) -> String {
        let told = |name: &str| {
            (name.starts_with("answer") && !secret)
                || name.starts_with("argument")
                || matches!(name, "reason" | "message" | "result")
        };
        let words = self.fields.iter().filter(|(name, text)| told(name) && !text.is_empty());
        let words = words.map(|(name, text)| match name.strip_prefix("argument/") {
            Some(argument) => format!("{argument}: {text}"),
            None => self.kept(text).unwrap_or_else(|| text.clone()),
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// The part of a form of several questions that is this one's: its fields and errors without their prefixes.
    pub(crate) fn of(&self, prefix: &str, pointer: &str) -> Self {
        let fields =
            self.fields.iter().filter_map(|(name, text)| Some((name.strip_prefix(prefix)?.to_owned(), text.clone())));
        let errors = self.errors.iter().filter_map(|error| {
            let inner = error.pointer.strip_prefix(pointer).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
            Some(FieldError::new(inner, error.detail.clone()))
        });
        Self { fields: fields.collect(), errors: errors.collect(), files: self.files.clone(), ..Self::default() }
    }
}
