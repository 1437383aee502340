//! A part of a schema as a form reads it: behind references into the same document, and without "or null", which makers of
//! schemas write in three ways.

use serde_json::{Map, Value};

use super::shape::only;

/// More references in a row than a schema may have.
const MOST_STEPS: usize = 20;

pub(super) struct Opened<'a> {
    /// The schema itself.
    pub schema: &'a Map<String, Value>,
    /// Its `type`, when that is one, or one and null.
    pub kind: Option<&'a str>,
    /// Whether null fits its `type` and its constants.
    pub takes_null: bool,
    /// Whether something around it takes null.
    pub or_null: bool,
    /// The schemas around it, which have words of their own: outermost first.
    outside: Vec<&'a Map<String, Value>>,
}

impl<'a> Opened<'a> {
    /// What stands under `key`, a keyword that is about the words, nearest to where the part is used.
    pub fn word(&self, key: &str) -> Option<&'a Value> {
        self.outside.iter().find_map(|schema| schema.get(key)).or_else(|| self.schema.get(key))
    }

    /// The text under `key`, or nothing.
    pub fn text(&self, key: &str) -> &'a str {
        self.word(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Opens `part` of the schema `root`; None for what is no object or is wrapped in more than words.
pub(super) fn open<'a>(root: &'a Value, part: &'a Value) -> Option<Opened<'a>> {
    let mut schema = part.as_object()?;
    let (mut outside, mut or_null, mut exactly_one) = (Vec::new(), false, false);
    while let Some((inner, null)) = inside(root, schema)? {
        if outside.len() == MOST_STEPS {
            return None;
        }
        exactly_one |= null && schema.contains_key("oneOf");
        or_null |= null;
        outside.push(schema);
        schema = inner.as_object()?;
    }
    let kinds = schema.get("type").map(|kinds| kinds.as_array().map_or(std::slice::from_ref(kinds), Vec::as_slice));
    let mut others = kinds.unwrap_or_default().iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
    let kind = others.next().filter(|_| others.next().is_none());
    let takes_null = kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind == "null"))
        && schema.get("const").is_none_or(Value::is_null)
        && schema.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null))
        && alternatives(schema).is_none_or(|list| list.iter().any(|one| one.get("const").is_some_and(Value::is_null)));
    // Of two alternatives that both take null, "exactly one" takes none.
    (!(exactly_one && takes_null)).then_some(Opened { schema, kind, takes_null, or_null, outside })
}

/// One step: what `schema` stands for and whether null will do as well; the inner None when it stands for itself.
fn inside<'a>(root: &'a Value, schema: &'a Map<String, Value>) -> Option<Option<(&'a Value, bool)>> {
    if let Some(reference) = schema.get("$ref") {
        let target = reference.as_str()?.strip_prefix('#').and_then(|pointer| root.pointer(pointer))?;
        let alone = only(schema, &["$ref"]);
        return alone.then_some(Some((target, false)));
    }
    if let Some([one]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
        && only(schema, &["allOf"])
    {
        return Some(Some((one, false)));
    }
    let (Some([one, other]), true) = (alternatives(schema), only(schema, &["anyOf"]) || only(schema, &["oneOf"]))
    else {
        return Some(None);
    };
    Some(match (is_null(one), is_null(other)) {
        (false, true) => Some((one, true)),
        (true, false) => Some((other, true)),
        _ => None,
    })
}

fn alternatives(schema: &Map<String, Value>) -> Option<&[Value]> {
    schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array).map(Vec::as_slice)
}

fn is_null(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| schema.get("type") == Some(&"null".into()) && only(schema, &["type"]))
}
