//! From a schema to a form (JSON Schema 2020-12, the subset of design section 4): scalars, choices, lists of scalars, and
//! objects one level deep. What has no form is answered as JSON.

use serde_json::Value;

use super::{Field, FormShape, Input, Item, Part};
use crate::{
    pointer,
    slot::{Choice, Kind, Slot},
};

const MOST_FIELDS: usize = 50;
/// Keywords that say nothing about which values fit.
const WORDS: [&str; 8] =
    ["title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly"];

/// What the page shows for this slot.
pub fn shape(slot: &Slot) -> FormShape {
    match (slot.kind, &slot.action) {
        (Kind::Approval, Some(action)) => {
            let current = slot.arguments().cloned().map(Value::Object).unwrap_or_default();
            let editable = action.editable.iter().filter_map(|pointer| {
                let value = current.pointer(pointer)?;
                let schema = action.schema.as_ref().and_then(|schema| described(schema, pointer));
                Some(argument(pointer, value, schema))
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
    if let Some((input, nullable)) = input(schema) {
        let label = schema.get("title").and_then(Value::as_str).unwrap_or("Your answer");
        let required = !nullable;
        return FormShape::One(Field { nullable, ..field("answer", "", label, schema, required, input) });
    }
    object(schema).map_or(FormShape::Json, FormShape::Many)
}

/// What a schema says of the argument at `pointer`.
fn described<'a>(schema: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer::names(pointer).try_fold(schema, |schema, name| schema.get("properties")?.get(name))
}

/// An argument that may be changed: its type stays what it was.
fn argument(pointer: &str, value: &Value, schema: Option<&Value>) -> Field {
    let name = format!("argument{pointer}");
    let at = format!("/arguments{pointer}");
    let last = pointer.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some((schema, (input, false))) = schema.and_then(|schema| Some((schema, input(schema)?)))
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
        let field = field(&name, &at, &last, schema, required, input);
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
        label: words(pointer.trim_start_matches('/')),
        help: String::new(),
        // An empty text is a text.
        required: value.is_number(),
        nullable: false,
        default: Some(text),
        input,
    }
}

/// An object whose properties are all scalars, lists of them, or objects of scalars; anything else has no form.
fn object(schema: &Value) -> Option<Vec<Part>> {
    let properties = properties(schema)?;
    let parts = properties.iter().map(|(name, property, required)| {
        let pointer = pointer::child("", name);
        if let Some((input, nullable)) = input(property) {
            let field = field(&format!("answer{pointer}"), &pointer, name, property, *required && !nullable, input);
            return Some(Part::Field(Field { nullable: nullable && *required, ..field }));
        }
        let inner = self::properties(property)?;
        let fields = inner.iter().map(|(inner, property, required)| {
            let pointer = pointer::child(&pointer, inner);
            let (input, nullable) = input(property)?;
            let field = field(&format!("answer{pointer}"), &pointer, inner, property, *required && !nullable, input);
            Some(Field { nullable: nullable && *required, ..field })
        });
        Some(Part::Group {
            name: name.to_string(),
            label: label(name, property),
            help: text(property, "description"),
            required: *required,
            fields: fields.collect::<Option<Vec<_>>>()?,
        })
    });
    parts.collect()
}

/// The properties of an object schema with nothing in it that a form cannot keep: name, schema, required.
fn properties(schema: &Value) -> Option<Vec<(&String, &Value, bool)>> {
    let fields = schema.as_object()?;
    let known = ["type", "properties", "required", "additionalProperties", "$schema", "$id"];
    if fields.get("type")?.as_str()? != "object" || !only(fields, &known) {
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
    Some(properties.iter().map(|(name, property)| (name, property, required.contains(&name.as_str()))).collect())
}

fn only(fields: &serde_json::Map<String, Value>, known: &[&str]) -> bool {
    fields.keys().all(|key| known.contains(&key.as_str()) || WORDS.contains(&key.as_str()) || key.starts_with("x-"))
}

fn field(name: &str, pointer: &str, called: &str, schema: &Value, required: bool, input: Input) -> Field {
    let default = schema.get("default").filter(|value| !value.is_null()).map(|value| match (&input, value) {
        (Input::Choice(_) | Input::Several(_), value) => value.to_string(),
        (Input::Lines(_), Value::Array(items)) => items.iter().map(plain).collect::<Vec<_>>().join("\n"),
        (_, value) => plain(value),
    });
    Field {
        name: name.to_owned(),
        pointer: pointer.to_owned(),
        label: label(called, schema),
        help: text(schema, "description"),
        required,
        nullable: false,
        default,
        input,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn label(name: &str, schema: &Value) -> String {
    match text(schema, "title") {
        title if title.is_empty() => words(name),
        title => title,
    }
}

/// "first_name" as people write it: "First name".
fn words(name: &str) -> String {
    let words = name.replace(['_', '/'], " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn text(schema: &Value, key: &str) -> String {
    schema.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The input of a scalar, a choice or a list, and whether null will do; None for what has none.
fn input(schema: &Value) -> Option<(Input, bool)> {
    let fields = schema.as_object()?;
    if fields.get("const") == Some(&Value::Bool(true)) && only(fields, &["const", "type"]) {
        return Some((Input::Check { must: true }, false));
    }
    if let Some(choices) = choices(schema) {
        return Some((Input::Choice(choices?), false));
    }
    let (kind, nullable) = match fields.get("type")? {
        Value::String(kind) => (kind.as_str(), false),
        Value::Array(kinds) => {
            let kinds: Vec<_> = kinds.iter().map(Value::as_str).collect::<Option<_>>()?;
            let others: Vec<_> = kinds.iter().filter(|kind| **kind != "null").collect();
            match others.as_slice() {
                [one] if kinds.len() == 2 => (**one, true),
                _ => return None,
            }
        }
        _ => return None,
    };
    let input = match kind {
        "boolean" if only(fields, &["type"]) => Input::Check { must: false },
        "integer" | "number" => number(fields, kind == "integer")?,
        "string" => string(fields)?,
        "array" => array(fields)?,
        _ => return None,
    };
    Some((input, nullable))
}

/// What `enum`, `const`, or `oneOf`/`anyOf` of constants offer. The inner None: it has one of these, but no form.
fn choices(schema: &Value) -> Option<Option<Vec<Choice>>> {
    let fields = schema.as_object()?;
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

fn array(fields: &serde_json::Map<String, Value>) -> Option<Input> {
    if !only(fields, &["type", "items", "minItems", "maxItems", "uniqueItems"]) {
        return None;
    }
    let items = fields.get("items")?;
    if let Some(choices) = choices(items) {
        return Some(Input::Several(choices?));
    }
    match input(items)? {
        // A line holds no line break; what one must look like is the server's to say.
        (Input::Text { .. } | Input::LongText { .. }, false) => Some(Input::Lines(Item::Text)),
        (Input::Number { .. }, false) => Some(Input::Lines(Item::Number)),
        _ => None,
    }
}
