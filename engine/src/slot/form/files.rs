//! Which parts of an answer are files: strings whose schema has the format "file". The value is the file's id.

use serde_json::Value;

use crate::{ids::FileId, pointer, slot::Slot};

/// A file in an answer.
pub struct FileAt {
    pub pointer: String,
    /// None when the text is no file's id.
    pub id: Option<FileId>,
    /// The only media type that will do, when the schema names one (`contentMediaType`).
    pub media_type: Option<String>,
}

/// The files in `value`, where the slot's schema asks for one.
pub fn files(slot: &Slot, value: &Value) -> Vec<FileAt> {
    let mut found = Vec::new();
    if let Some(schema) = &slot.schema {
        find(schema, value, String::new(), &mut found);
    }
    found
}

fn find(schema: &Value, value: &Value, pointer: String, found: &mut Vec<FileAt>) {
    match value {
        Value::String(text) if schema.get("format").and_then(Value::as_str) == Some("file") => found.push(FileAt {
            pointer,
            id: text.parse().ok(),
            media_type: schema.get("contentMediaType").and_then(Value::as_str).map(str::to_owned),
        }),
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(inner) = schema.get("properties").and_then(|properties| properties.get(name)) {
                    find(inner, field, pointer::child(&pointer, name), found);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if let Some(inner) = schema.get("items") {
                    find(inner, item, format!("{pointer}/{at}"), found);
                }
            }
        }
        _ => {}
    }
}
