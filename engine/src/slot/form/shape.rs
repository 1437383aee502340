//! From a schema to a form (JSON Schema 2020-12, the subset of design section 4): scalars, choices, lists of scalars, and
//! objects one level deep. What has no form is answered as JSON.

use serde_json::Value;

use super::{
    Field, FormShape, Input, Item, Part,
    opened::{Opened, open},
};
use crate::{
    pointer,
    slot::{Choice, Kind, Slot},
};

const MOST_FIELDS: usize = 50;
/// Keywords that say nothing about which values fit.
const WORDS: [&str; 12] = [
    "title",
    "description",
    "$comment",
    "examples",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$defs",
    "definitions",
];

/// What the page shows for this slot.
pub fn shape(slot: &Slot) -> FormShape {
    match (slot.kind, &slot.action) {
        (Kind::Approval, Some(action)) => {
            let current = slot.arguments().cloned().map(Value::Object).unwrap_or_default();
            let editable = action.editable.iter().filter_map(|pointer| {
                let value = current.pointer(pointer)?;
                Some(argument(pointer, value, action.schema.as_ref()))
            });
            return FormShape::Decision { editable: editable.collect(), action: action.clone() };
        }
        (Kind::Human, _) => return FormShape::Takeover,
        _ => {}
    }
    if slot.secret {
        return FormShape::Secret;
    }
    if !slot.options.is_empty() {
        return FormShape::Options(slot.options.clone());
    }
    let Some(schema) = &slot.schema else {
        return if slot.kind == Kind::ClientTool { FormShape::Json } else { FormShape::Text };
    };
    let Some(opened) = open(schema, schema) else { return FormShape::Json };
    match input(schema, &opened) {
        Some(scalar) => FormShape::One(field("answer", "", "Your answer", &opened, true, scalar)),
        // An object that may be null as a whole would need a way to say which.
        None if opened.or_null || opened.takes_null && opened.kind.is_some() => FormShape::Json,
        None => object(schema, &opened).map_or(FormShape::Json, FormShape::Many),
    }
}

/// What a schema says of the argument at `pointer`.
fn described<'a>(schema: &'a Value, pointer: &str) -> Option<Opened<'a>> {
    pointer::names(pointer)
        .try_fold(open(schema, schema)?, |opened, name| open(schema, opened.schema.get("properties")?.get(&name)?))
}

/// An argument that may be changed: its type stays what it was. `root` is the schema of them all.
fn argument(pointer: &str, value: &Value, root: Option<&Value>) -> Field {
    let name = format!("argument{pointer}");
    let at = format!("/arguments{pointer}");
    let called = pointer.trim_start_matches('/');
    if let Some(root) = root
        && let Some(opened) = described(root, pointer)
        && let Some((input, false)) = input(root, &opened)
        && !matches!(input, Input::File { .. } | Input::DateTime | Input::Lines(_) | Input::Several(_))
    {
        let text = if matches!(input, Input::Choice(_)) { value.to_string() } else { plain(value) };
        let (input, required) = match input {
            // A single line would lose the breaks.
            Input::Text { kind: "text", min, max, .. } if text.contains(['\n', '\r']) => {
                (Input::LongText { min, max }, min.is_some_and(|min| min > 0))
            }
            Input::Text { kind: "text", min, .. } | Input::LongText { min, .. } => {
                (input, min.is_some_and(|min| min > 0))
            }
            input => (input, !value.is_boolean()),
        };
        let field = field(&name, &at, called, &opened, required, (input, false));
        return Field { default: Some(text), ..field };
    }
    let (input, text) = match value {
        Value::Number(number) => (Input::Number { min: None, max: None, step: "any".to_owned() }, number.to_string()),
        Value::Bool(yes) => (Input::Check { must: false }, yes.to_string()),
        Value::String(text) if text.contains(['\n', '\r']) || text.chars().count() > 100 => {
            (Input::LongText { min: None, max: None }, text.clone())
        }
        Value::String(text) => (Input::Text { kind: "text", min: None, max: None, pattern: None }, text.clone()),
        other => (Input::Json, format!("{other:#}")),
    };
    Field {
        name,
        pointer: at,
        label: words(called),
        help: String::new(),
        // An empty text is a text.
        required: value.is_number(),
        nullable: false,
        default: Some(text),
        input,
    }
}

/// An object whose properties are all scalars, lists of them, or objects of scalars; anything else has no form.
fn object(root: &Value, opened: &Opened) -> Option<Vec<Part>> {
    let parts = properties(opened)?.into_iter().map(|(name, property, required)| {
        let pointer = pointer::child("", name);
        let opened = open(root, property)?;
        if let Some(scalar) = input(root, &opened) {
            return Some(Part::Field(field(&format!("answer{pointer}"), &pointer, name, &opened, required, scalar)));
        }
        let fields = properties(&opened)?.into_iter().map(|(inner, property, required)| {
            let pointer = pointer::child(&pointer, inner);
            let opened = open(root, property)?;
            let scalar = input(root, &opened)?;
            Some(field(&format!("answer{pointer}"), &pointer, inner, &opened, required, scalar))
        });
        let null = opened.or_null || opened.takes_null;
        Some(Part::Group {
            name: name.to_string(),
            label: label(name, &opened),
            help: opened.text("description").to_owned(),
            required: required && !null,
            nullable: required && null,
            fields: fields.collect::<Option<Vec<_>>>()?,
        })
    });
    parts.collect()
}

/// The properties of an object schema with nothing in it that a form cannot keep: name, schema, required.
fn properties<'a>(opened: &Opened<'a>) -> Option<Vec<(&'a str, &'a Value, bool)>> {
    let fields = opened.schema;
    let known = ["type", "properties", "required", "additionalProperties"];
    if opened.kind != Some("object") || !only(fields, &known) {
        return None;
    }
    // More properties than are named cannot be typed, and need not be; but they must not be asked for.
    if fields.get("additionalProperties").is_some_and(|more| !more.is_boolean()) {
        return None;
    }
    let properties = fields.get("properties")?.as_object()?;
    if properties.is_empty() || properties.len() > MOST_FIELDS {
        return None;
    }
    let required: Vec<&str> = match fields.get("required") {
        None => Vec::new(),
        Some(list) => list.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
    };
    if required.iter().any(|name| !properties.contains_key(*name)) {
        return None;
    }
    Some(properties.iter().map(|(name, property)| (&**name, property, required.contains(&name.as_str()))).collect())
}

/// Whether the schema has no other keywords than these and those that are about words.
pub(super) fn only(fields: &serde_json::Map<String, Value>, known: &[&str]) -> bool {
    fields.keys().all(|key| known.contains(&key.as_str()) || WORDS.contains(&key.as_str()) || key.starts_with("x-"))
}

/// A field for an input, which may take null. What must be there and may be null is null when it is left empty.
fn field(name: &str, pointer: &str, called: &str, opened: &Opened, required: bool, scalar: (Input, bool)) -> Field {
    let (input, null) = scalar;
    let default = opened.word("default").filter(|value| !value.is_null()).map(|value| match (&input, value) {
        (Input::Choice(_) | Input::Several(_), value) => value.to_string(),
        (Input::Lines(_), Value::Array(items)) => items.iter().map(plain).collect::<Vec<_>>().join("\n"),
        (_, value) => plain(value),
    });
    Field {
        name: name.to_owned(),
        pointer: pointer.to_owned(),
        label: label(called, opened),
        help: opened.text("description").to_owned(),
        required: required && !null,
        nullable: required && null,
        default,
        input,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn label(name: &str, opened: &Opened) -> String {
    match opened.text("title") {
        "" => words(name),
        title => title.to_owned(),
    }
}

/// "first_name" as people write it: "First name".
fn words(name: &str) -> String {
    let words = name.replace(['_', '/'], " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The input of a scalar, a choice or a list, and whether null will do; None for what has none.
fn input(root: &Value, opened: &Opened) -> Option<(Input, bool)> {
    let fields = opened.schema;
    if fields.get("const") == Some(&Value::Bool(true)) && only(fields, &["const", "type"]) && !opened.or_null {
        return Some((Input::Check { must: true }, false));
    }
    if let Some(choices) = choices(fields) {
        let (nulls, choices): (Vec<_>, Vec<_>) = choices?.into_iter().partition(|choice| choice.value.is_null());
        let null = opened.or_null || opened.takes_null && !nulls.is_empty();
        return (!choices.is_empty()).then_some((Input::Choice(choices), null));
    }
    let null = opened.or_null || opened.takes_null;
    let input = match opened.kind? {
        // A box is ticked or not: there is no third.
        "boolean" if only(fields, &["type"]) && null => Input::Choice(
            [(true, "Yes"), (false, "No")]
                .map(|(yes, label)| Choice { value: yes.into(), label: label.to_owned() })
                .into(),
        ),
        "boolean" if only(fields, &["type"]) => Input::Check { must: false },
        kind @ ("integer" | "number") => number(fields, kind == "integer")?,
        "string" => string(fields)?,
        "array" => array(root, fields)?,
        _ => return None,
    };
    Some((input, null))
}

/// What `enum`, `const`, or `oneOf`/`anyOf` of constants offer. The inner None: it has one of these, but no form.
fn choices(fields: &serde_json::Map<String, Value>) -> Option<Option<Vec<Choice>>> {
    let choice = |value: &Value| Choice { value: value.clone(), label: plain(value) };
    if let Some(values) = fields.get("enum") {
        let list = values.as_array().filter(|_| only(fields, &["enum", "type"]));
        return Some(list.map(|list| list.iter().map(choice).collect()));
    }
    if let Some(value) = fields.get("const") {
        return Some(only(fields, &["const", "type"]).then(|| vec![choice(value)]));
    }
    let list = fields.get("oneOf").or(fields.get("anyOf"))?;
    if !only(fields, &["oneOf", "anyOf", "type"]) || (fields.contains_key("oneOf") && fields.contains_key("anyOf")) {
        return Some(None);
    }
    let each = list.as_array().map(|list| {
        list.iter().map(|one| {
            let inner = one.as_object().filter(|inner| only(inner, &["const", "type"]))?;
            let value = inner.get("const")?.clone();
            let label = inner.get("title").and_then(Value::as_str).map_or_else(|| plain(&value), str::to_owned);
            Some(Choice { value, label })
        })
    });
    Some(each.and_then(|each| each.collect()))
}

fn number(fields: &serde_json::Map<String, Value>, whole: bool) -> Option<Input> {
    let known = ["type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    if !only(fields, &known) {
        return None;
    }
    let bound = |key: &str| fields.get(key).map(Value::as_f64);
    let (minimum, maximum) = (bound("minimum").unwrap_or_default(), bound("maximum").unwrap_or_default());
    let (above, below) = (bound("exclusiveMinimum").flatten(), bound("exclusiveMaximum").flatten());
    let higher = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    let lower = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    if !whole {
        // HTML has no exclusive bound: the page lets the bound itself through, the server does not.
        return Some(Input::Number { min: higher(minimum, above), max: lower(maximum, below), step: "any".to_owned() });
    }
    let min = higher(minimum.map(f64::ceil), above.map(|above| above.floor() + 1.0));
    let max = lower(maximum.map(f64::floor), below.map(|below| below.ceil() - 1.0));
    // HTML counts its steps from `min`.
    let step =
        fields.get("multipleOf").and_then(Value::as_u64).filter(|step| min.is_none_or(|min| min % *step as f64 == 0.0));
    Some(Input::Number { min, max, step: step.unwrap_or(1).to_string() })
}

fn string(fields: &serde_json::Map<String, Value>) -> Option<Input> {
    if !only(fields, &["type", "minLength", "maxLength", "pattern", "format", "contentMediaType"]) {
        return None;
    }
    let count = |key: &str| fields.get(key).and_then(Value::as_u64);
    let (min, max) = (count("minLength"), count("maxLength"));
    // A schema's pattern may match anywhere, HTML's matches the whole.
    let pattern =
        fields.get("pattern").and_then(Value::as_str).map(|pattern| format!("[\\s\\S]*(?:{pattern})[\\s\\S]*"));
    let kind = match fields.get("format").and_then(Value::as_str) {
        Some("file") => {
            return Some(Input::File {
                accept: match fields.get("contentMediaType").and_then(Value::as_str) {
                    Some("application/pdf") => "application/pdf",
                    Some("image/png") => "image/png",
                    Some("image/jpeg") => "image/jpeg",
                    _ => "application/pdf,image/png,image/jpeg",
                },
            });
        }
        Some("date-time") if pattern.is_none() => return Some(Input::DateTime),
        Some("email") => "email",
        Some("uri") => "url",
        Some("date") => "date",
        _ => "text",
    };
    let format = fields.contains_key("format");
    let long = kind == "text" && pattern.is_none() && !format && max.is_none_or(|max| max > 200);
    Some(if long { Input::LongText { min, max } } else { Input::Text { kind, min, max, pattern } })
}

fn array(root: &Value, fields: &serde_json::Map<String, Value>) -> Option<Input> {
    if !only(fields, &["type", "items", "minItems", "maxItems", "uniqueItems"]) {
        return None;
    }
    let items = open(root, fields.get("items")?)?;
    match input(root, &items)? {
        (Input::Choice(choices), false) => Some(Input::Several(choices)),
        // A line holds no line break; what one must look like is the server's to say.
        (Input::Text { .. } | Input::LongText { .. }, false) => Some(Input::Lines(Item::Text)),
        (Input::Number { .. }, false) => Some(Input::Lines(Item::Number)),
        _ => None,
    }
}
