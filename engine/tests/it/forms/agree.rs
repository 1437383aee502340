//! Whatever the schema: the form, what the page lets through, and the server's check agree (design section 4).

use chrono_tz::UTC;
use engine::{
    pointer,
    slot::{
        Action, Kind, NewSlot, Slot, answer,
        form::{Field, FormShape, Input, Part, files, from_form, shape},
    },
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::{
    browser::{all_typed, fields, page_takes, typed},
    samples::{flat, object, plain, sample, words},
    slot,
};

fn server_takes(slot: &Slot, typed: &[(String, String)]) -> bool {
    from_form(slot, typed, UTC).is_ok_and(|value| answer::check(slot, value).is_ok())
}

/// What a form cannot tell from nothing: an unticked box, an empty list, null. Left out of comparisons.
fn settled(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), settled(value)))
                .filter(|(_, value)| !matches!(value, Value::Bool(false) | Value::Null) && *value != json!({}))
                .collect(),
        ),
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => Value::Array(items.iter().map(settled).collect()),
        other => other.clone(),
    }
}

/// An approval whose arguments may all be changed, with a schema for some of them; and which one is, into what.
#[derive(Clone, Debug)]
struct Edit {
    action: Action,
    pointer: String,
    to: Value,
}

fn argument() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-zA-Zäß東0-9<>&\"'\n\r ]{0,12}".prop_map(Value::from),
        (-9_999_i64..9_999).prop_map(Value::from),
        (-9_999_i64..9_999).prop_map(|hundredths| json!(hundredths as f64 / 100.0)),
        any::<bool>().prop_map(Value::from),
        vec(words(), 0..3).prop_map(|list| json!(list)),
        Just(Value::Null),
    ]
}

/// Another value of the same type.
fn other(value: &Value, by: i64) -> Value {
    match value {
        Value::String(text) => json!(format!("{text}{by}")),
        Value::Number(number) => number.as_i64().map_or(json!(0.5), |whole| json!(whole + by)),
        Value::Bool(yes) => json!(!yes),
        Value::Array(items) => json!([items.as_slice(), &[json!(by)]].concat()),
        _ => json!({ "now": by }),
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let name = || prop_oneof![3 => "[a-z]{1,6}", 1 => Just("a/b".to_owned()), 1 => Just("~".to_owned())];
    let fields = || vec((name(), argument(), any::<bool>()), 1..4);
    (fields(), fields(), any::<prop::sample::Index>(), 1_i64..99).prop_map(|(outer, inner, at, by)| {
        let mut arguments = Map::new();
        let mut properties = Map::new();
        let mut editable = Vec::new();
        for (name, value, described) in outer {
            if described && (value.is_string() || value.is_i64()) {
                let kind = if value.is_string() { "string" } else { "integer" };
                properties.insert(name.clone(), json!({ "type": kind, "title": "Described" }));
            } else {
                properties.remove(&name);
            }
            arguments.insert(name, value);
        }
        arguments.insert("inner".to_owned(), inner.into_iter().map(|(name, value, _)| (name, value)).collect());
        for (name, value) in &arguments {
            let pointer = pointer::child("", name);
            match value.as_object() {
                Some(inner) => editable.extend(inner.keys().map(|name| pointer::child(&pointer, name))),
                None => editable.push(pointer),
            }
        }
        properties.remove("inner");
        let pointer = at.get(&editable).clone();
        let to = other(Value::Object(arguments.clone()).pointer(&pointer).unwrap(), by);
        let schema = (!properties.is_empty()).then(|| json!({ "properties": properties }));
        Edit { action: Action { tool: "do".to_owned(), arguments, editable, schema }, pointer, to }
    })
}

/// What a browser sends of a field in which `text` stands.
fn sent(field: &Field, text: &str) -> Vec<(String, String)> {
    let text = match &field.input {
        Input::Check { .. } if text != "true" => return Vec::new(),
        Input::LongText { .. } | Input::Lines(_) | Input::Json => {
            text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
        }
        _ => text.replace(['\r', '\n'], ""),
    };
    vec![(field.name.clone(), text)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// A value that fits can be typed, the page lets it through, and it arrives as it was meant.
    #[test]
    fn what_fits_can_be_typed_and_arrives_unchanged(sample in prop_oneof![sample(), object()], zone in select(vec![UTC, chrono_tz::Europe::Berlin, chrono_tz::America::New_York])) {
        let slot = slot(&sample.schema);
        prop_assert!(answer::check(&slot, sample.fits.clone()).is_ok(), "{sample:?}");
        let shape = shape(&slot);
        let typed = all_typed(&shape, &sample.fits, zone);
        let arrived = from_form(&slot, &typed, zone);
        // An hour that comes twice in autumn is meant the first time.
        let twice = zone != UTC && sample.schema.to_string().contains("date-time");
        let arrived = arrived.map_err(|errors| TestCaseError::fail(format!("{errors:?} {sample:?} {typed:?}")))?;
        if !twice {
            prop_assert_eq!(settled(&arrived), settled(&sample.fits), "{:?} {:?}", sample, typed);
        }
        prop_assert!(answer::check(&slot, arrived).is_ok());
        let list = match &shape { FormShape::One(field) => vec![field], FormShape::Many(parts) => fields(parts), _ => vec![] };
        for field in list {
            let there = sample.fits.pointer(&field.pointer).is_some();
            prop_assert!(page_takes(field, &typed, field.required && there), "{field:?} {typed:?}");
        }
    }

    /// Whatever is typed: the page never refuses what the server takes, and for lengths, patterns, whole numbers and
    /// what must be filled in it refuses the same.
    #[test]
    fn the_page_and_the_server_refuse_the_same(sample in sample(), text in prop_oneof!["", "[0-9]{1,3}", "-?[0-9]{1,2}\\.[0-9]", "[a-zA-Zäß ]{1,14}", "[A-Z]{2}-[0-9]{1,2}", "[^\\x00\\r\\n]{1,6}"]) {
        let slot = slot(&sample.schema);
        let FormShape::One(field) = shape(&slot) else { return Err(TestCaseError::fail("no field")) };
        let exact = match &field.input {
            Input::Text { kind: "text", .. } | Input::LongText { .. } => text.encode_utf16().count() == text.chars().count(),
            Input::Number { step, .. } => step != "any",
            _ => false,
        };
        // A browser sends nothing for what is no number.
        let number = matches!(field.input, Input::Number { .. });
        let text = if number && text.parse::<f64>().is_err() { String::new() } else { text };
        let bmp = text.encode_utf16().count() == text.chars().count();
        let typed = if matches!(field.input, Input::Several(_) | Input::Choice(_) | Input::Check { .. }) && text.is_empty() {
            Vec::new()
        } else {
            vec![(field.name.clone(), text)]
        };
        let (page, server) = (page_takes(&field, &typed, field.required), server_takes(&slot, &typed));
        prop_assert!(page || !server || !bmp, "the page refuses what the server takes: {field:?} {typed:?}");
        if exact {
            prop_assert_eq!(page, server, "{:?} {:?}", field, typed);
        }
    }

    /// A proposal that nobody touches fits, and is sent as it was proposed.
    #[test]
    fn what_is_proposed_and_left_as_it_is_arrives(sample in plain()) {
        let mut schema = sample.schema;
        schema["default"] = sample.fits.clone();
        let slot = slot(&schema);
        let FormShape::One(field) = shape(&slot) else { return Err(TestCaseError::fail("no field")) };
        let shown = field.default.clone().unwrap_or_default();
        let typed = match &field.input {
            Input::Several(_) => typed(&field, &serde_json::from_str(&shown).unwrap(), UTC),
            // Another file than the one that is proposed cannot be: a browser fills none in.
            Input::File { .. } => return Ok(()),
            _ => sent(&field, &shown),
        };
        prop_assert!(page_takes(&field, &typed, field.required), "{field:?} {typed:?}");
        let arrived = from_form(&slot, &typed, UTC);
        prop_assert_eq!(arrived.as_ref().map(settled), Ok(settled(&sample.fits)), "{:?} {:?}", field, typed);
    }

    /// Every file of an answer is found where it stands, so that it is checked by its content; and nothing else is.
    #[test]
    fn every_file_of_an_answer_is_found(sample in prop_oneof![plain(), flat()]) {
        let slot = slot(&sample.schema);
        let parts = match shape(&slot) { FormShape::One(field) => vec![Part::Field(field)], FormShape::Many(parts) => parts, other => panic!("{other:?}") };
        let mut asked: Vec<_> = fields(&parts).into_iter()
            .filter(|field| matches!(field.input, Input::File { .. }) && sample.fits.pointer(&field.pointer).is_some_and(Value::is_string))
            .map(|field| field.pointer.clone()).collect();
        let mut found: Vec<_> = files(&slot, &sample.fits).into_iter().map(|file| {
            assert!(file.id.is_some());
            file.pointer
        }).collect();
        asked.sort();
        found.sort();
        prop_assert_eq!(asked, found, "{:?}", sample);
    }

    /// An approval's form that comes back untouched changes nothing; one changed field changes that argument alone.
    #[test]
    fn an_edit_is_of_one_argument_and_none_happens_by_itself(edit in edit()) {
        let slot = Slot::bare(NewSlot { kind: Kind::Approval, action: Some(edit.action.clone()), ..NewSlot::question("?") });
        let FormShape::Decision { editable, .. } = shape(&slot) else { panic!("a decision") };
        let form = |changed: Option<&Value>| {
            let decision = std::iter::once(("decision".to_owned(), "approve".to_owned()));
            let fields = editable.iter().flat_map(|field| {
                let shown = field.default.clone().unwrap_or_default();
                match changed.filter(|_| field.pointer == format!("/arguments{}", edit.pointer)) {
                    Some(Value::String(text)) => sent(field, text),
                    Some(value) => sent(field, &value.to_string()),
                    None => sent(field, &shown),
                }
            });
            decision.chain(fields).collect::<Vec<_>>()
        };
        let untouched = form(None);
        prop_assert_eq!(from_form(&slot, &untouched, UTC), Ok(json!({ "decision": "approve" })), "{:?}", untouched);
        for field in &editable {
            prop_assert!(page_takes(field, &untouched, field.required), "{field:?} {untouched:?}");
        }
        let touched = form(Some(&edit.to));
        let mut arguments = Value::Object(edit.action.arguments.clone());
        // A field shows no line breaks but those that a browser sends.
        let broken = edit.to.as_str().map(|text| text.replace("\r\n", "\n").replace('\r', "\n"));
        *arguments.pointer_mut(&edit.pointer).unwrap() = broken.map_or(edit.to.clone(), Value::from);
        let arrived = from_form(&slot, &touched, UTC).map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
        prop_assert_eq!(&arrived["arguments"], &arguments, "{:?}", touched);
    }

    /// Whatever is sent, as a form or as JSON, to whatever schema: a value, or sentences; never a panic.
    #[test]
    fn nonsense_is_refused_in_sentences(sample in prop_oneof![sample(), object()], texts in vec("\\PC{0,20}", 0..6)) {
        let slot = slot(&sample.schema);
        let names: Vec<String> = match shape(&slot) {
            FormShape::One(field) => vec![field.name],
            FormShape::Many(parts) => fields(&parts).into_iter().map(|field| field.name.clone()).collect(),
            _ => vec!["answer".to_owned()],
        };
        let typed: Vec<_> = names.into_iter().cycle().zip(texts).collect();
        for errors in [from_form(&slot, &typed, UTC).err(), from_form(&slot, &typed, UTC).ok().and_then(|value| answer::check(&slot, value).err())].into_iter().flatten() {
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.iter().all(|error| error.detail.chars().next().is_some_and(|letter| !letter.is_lowercase())), "{errors:?}");
        }
    }
}
