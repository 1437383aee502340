//! Whatever the schema: the form, what the page lets through, and the server's check agree (design section 4).

use chrono_tz::{Tz, UTC};
use engine::slot::{
    self, Action, Kind, NewSlot, Slot, answer,
    form::{Field, FormShape, Input, Part, from_form, shape},
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// A schema of one field with values that fit it.
#[derive(Clone, Debug)]
struct Sample {
    schema: Value,
    fits: Value,
}

fn slot(schema: &Value) -> Slot {
    Slot::bare(NewSlot { schema: Some(schema.clone()), ..NewSlot::question("?") })
}

fn words() -> impl Strategy<Value = String> {
    "[a-zA-Zäß東0-9<>&\"' ]{1,12}"
}

/// Schemas of every kind that has an input, each with a value that fits.
fn sample() -> impl Strategy<Value = Sample> {
    let text = (0_u64..4, 0_u64..9, words()).prop_map(|(min, more, text)| {
        let length = text.chars().count() as u64;
        let (min, max) = (min.min(length), length + more);
        Sample { schema: json!({ "type": "string", "minLength": min, "maxLength": max }), fits: json!(text) }
    });
    let pattern = "[A-Z]{2}-[0-9]{1,3}".prop_map(|text| Sample {
        schema: json!({ "type": "string", "pattern": "^[A-Z]{2}-[0-9]+$" }),
        fits: json!(text),
    });
    let inside = "[a-z]{0,3}X[a-z]{0,3}"
        .prop_map(|text| Sample { schema: json!({ "type": "string", "pattern": "X" }), fits: json!(text) });
    let whole = (-99_i64..99, 0_i64..50, 0_i64..50, any::<bool>()).prop_map(|(value, below, above, exclusive)| {
        let schema = match exclusive {
            true => json!({ "type": "integer", "exclusiveMinimum": value - below - 1, "exclusiveMaximum": value + above + 1 }),
            false => json!({ "type": "integer", "minimum": value - below, "maximum": value + above }),
        };
        Sample { schema, fits: json!(value) }
    });
    let number = (-9_999_i64..9_999, 0_i64..99, 0_i64..99).prop_map(|(hundredths, below, above)| {
        let value = hundredths as f64 / 100.0;
        let schema = json!({ "type": "number", "minimum": value - below as f64, "maximum": value + above as f64 });
        Sample { schema, fits: json!(value) }
    });
    let times = (1_i64..9, 0_i64..20).prop_map(|(step, times)| Sample {
        schema: json!({ "type": "integer", "minimum": 0, "multipleOf": step }),
        fits: json!(step * times),
    });
    let yes = any::<bool>().prop_map(|yes| Sample { schema: json!({ "type": "boolean" }), fits: json!(yes) });
    let must = Just(Sample { schema: json!({ "const": true }), fits: json!(true) });
    let choices = || {
        vec(
            prop_oneof![
                words().prop_map(Value::from),
                (-9_i64..9).prop_map(Value::from),
                any::<bool>().prop_map(Value::from)
            ],
            1..5,
        )
    };
    let one = (choices(), any::<prop::sample::Index>())
        .prop_map(|(list, at)| Sample { fits: at.get(&list).clone(), schema: json!({ "enum": list }) });
    let titled = (choices(), any::<prop::sample::Index>()).prop_map(|(list, at)| {
        let mut unique: Vec<Value> = Vec::new();
        list.iter().for_each(|value| {
            if !unique.contains(value) {
                unique.push(value.clone())
            }
        });
        let each: Vec<_> = unique.iter().map(|value| json!({ "const": value, "title": "A title" })).collect();
        Sample { fits: at.get(&unique).clone(), schema: json!({ "oneOf": each }) }
    });
    let date = (1_i32..28, 1..12, 1970..2100).prop_map(|(day, month, year)| Sample {
        schema: json!({ "type": "string", "format": "date" }),
        fits: json!(format!("{year:04}-{month:02}-{day:02}")),
    });
    let moment = (0_i64..4_000_000_000).prop_map(|seconds| {
        let at = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        Sample {
            schema: json!({ "type": "string", "format": "date-time" }),
            fits: json!(at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
        }
    });
    let address = "[a-z]{1,8}@[a-z]{1,8}\\.example"
        .prop_map(|text| Sample { schema: json!({ "type": "string", "format": "email" }), fits: json!(text) });
    let web = "https://[a-z]{1,8}\\.example/[a-z0-9]{0,8}"
        .prop_map(|text| Sample { schema: json!({ "type": "string", "format": "uri" }), fits: json!(text) });
    let several = (vec(words(), 1..5), any::<u8>()).prop_map(|(list, mask)| {
        let mut unique: Vec<String> = Vec::new();
        list.into_iter().for_each(|word| {
            if !unique.contains(&word) {
                unique.push(word)
            }
        });
        let chosen: Vec<_> =
            unique.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, word)| word).collect();
        Sample {
            fits: json!(chosen),
            schema: json!({ "type": "array", "items": { "enum": unique }, "uniqueItems": true }),
        }
    });
    let lines = vec("[a-zäß0-9][a-z ]{0,8}[a-z]", 0..4).prop_map(|list| Sample {
        schema: json!({ "type": "array", "items": { "type": "string" }, "maxItems": 4 }),
        fits: json!(list),
    });
    let numbers = vec(-99_i64..99, 0..4).prop_map(|list| Sample {
        schema: json!({ "type": "array", "items": { "type": "number" } }),
        fits: json!(list),
    });
    prop_oneof![
        prop_oneof![text, pattern, inside, whole, number, times],
        prop_oneof![yes, must, one, titled, date, moment],
        prop_oneof![address, web, several, lines, numbers],
    ]
}

/// An object of up to four properties, one of which may be an object itself.
fn object() -> impl Strategy<Value = Sample> {
    let name = prop_oneof![
        "[a-z]{1,6}",
        Just("a/b".to_owned()),
        Just("a~b".to_owned()),
        Just("a.b".to_owned()),
        Just("größe".to_owned())
    ];
    let flat = vec((name, sample(), any::<bool>()), 1..4).prop_map(joined).boxed();
    (flat.clone(), proptest::option::of(flat), any::<bool>()).prop_map(|(mut outer, inner, required)| {
        if let Some(inner) = inner {
            outer.schema["properties"]["inner"] = inner.schema;
            outer.fits["inner"] = inner.fits;
            if required {
                outer.schema["required"].as_array_mut().unwrap().push(json!("inner"));
            }
        }
        outer
    })
}

fn joined(fields: Vec<(String, Sample, bool)>) -> Sample {
    let (mut properties, mut required, mut fits) = (Map::new(), Vec::new(), Map::new());
    for (name, sample, must) in fields {
        if properties.contains_key(&name) {
            continue;
        }
        if must {
            required.push(json!(name));
        }
        properties.insert(name.clone(), sample.schema);
        fits.insert(name, sample.fits);
    }
    Sample {
        schema: json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }),
        fits: Value::Object(fits),
    }
}

/// What somebody types into the field to say `value`, as a browser sends it.
fn typed(field: &Field, value: &Value, zone: Tz) -> Vec<(String, String)> {
    let one = |text: String| vec![(field.name.clone(), text)];
    match (&field.input, value) {
        (Input::Check { .. }, Value::Bool(true)) => one("true".to_owned()),
        (Input::Check { .. }, _) => Vec::new(),
        (Input::Several(_), Value::Array(items)) => {
            items.iter().map(|item| (field.name.clone(), item.to_string())).collect()
        }
        (Input::Lines(_), Value::Array(items)) => {
            let lines: Vec<_> =
                items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect();
            one(lines.join("\r\n"))
        }
        (Input::Choice(_), value) => one(value.to_string()),
        (Input::DateTime, Value::String(text)) => {
            let at = chrono::DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&zone);
            one(at.format("%Y-%m-%dT%H:%M:%S").to_string())
        }
        (_, Value::String(text)) => one(text.clone()),
        (_, other) => one(other.to_string()),
    }
}

fn all_typed(shape: &FormShape, value: &Value, zone: Tz) -> Vec<(String, String)> {
    let of = |field: &Field, value: &Value| typed(field, value, zone);
    match shape {
        FormShape::One(field) => of(field, value),
        FormShape::Many(parts) => fields(parts)
            .into_iter()
            .filter_map(|field| Some(of(field, value.pointer(&field.pointer)?)))
            .flatten()
            .collect(),
        other => panic!("no form: {other:?}"),
    }
}

fn fields(parts: &[Part]) -> Vec<&Field> {
    parts
        .iter()
        .flat_map(|part| match part {
            Part::Field(field) => vec![field],
            Part::Group { fields, .. } => fields.iter().collect(),
        })
        .collect()
}

/// Whether a browser would let this through (HTML, constraint validation), for one field.
fn page_takes(field: &Field, typed: &[(String, String)], required: bool) -> bool {
    let mine: Vec<&str> = typed.iter().filter(|(name, _)| *name == field.name).map(|(_, text)| text.as_str()).collect();
    let text = mine.first().copied().unwrap_or_default();
    if text.is_empty() {
        return match field.input {
            Input::Check { must } => !(must && required),
            Input::Several(_) | Input::Lines(_) => true,
            _ => !required,
        };
    }
    let length = text.replace("\r\n", "\n").encode_utf16().count() as u64;
    match &field.input {
        Input::Text { min, max, pattern, .. } => {
            min.is_none_or(|min| length >= min)
                && max.is_none_or(|max| length <= max)
                && pattern
                    .as_ref()
                    .is_none_or(|pattern| regex::Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(text))
        }
        Input::LongText { min, max } => min.is_none_or(|min| length >= min) && max.is_none_or(|max| length <= max),
        Input::Number { min, max, step } => text.parse::<f64>().is_ok_and(|number| {
            let steps = step.parse::<f64>().map_or(true, |step| ((number - min.unwrap_or(0.0)) / step).fract() == 0.0);
            min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max) && steps
        }),
        _ => true,
    }
}

fn server_takes(slot: &Slot, typed: &[(String, String)]) -> bool {
    from_form(slot, typed, UTC).is_ok_and(|value| answer::check(slot, value).is_ok())
}

/// Optional booleans and lists come back as false and nothing when they were not there: leave those out of comparisons.
fn settled(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !matches!(value, Value::Bool(false)) && **value != json!([]))
                .map(|(name, value)| (name.clone(), settled(value)))
                .filter(|(_, value)| *value != json!({}))
                .collect(),
        ),
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => Value::Array(items.iter().map(settled).collect()),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

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
        let FormShape::One(field) = shape(&slot) else { panic!("one field") };
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

#[test]
fn a_schema_without_a_form_is_answered_as_json() {
    for schema in [
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "number" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "object", "properties": { "b": { "type": "object", "properties": { "c": { "type": "string" } } } } } } }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "patternProperties": { "^x": {} } }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["b"] }),
        json!({ "type": "object" }),
    ] {
        let slot = slot(&schema);
        assert_eq!(shape(&slot), FormShape::Json, "{schema}");
        let typed = [("answer".to_owned(), "[[1, 2]]".to_owned())];
        assert_eq!(from_form(&slot, &typed, UTC).unwrap(), json!([[1, 2]]));
        let typed = [("answer".to_owned(), "[[1, 2".to_owned())];
        assert!(from_form(&slot, &typed, UTC).unwrap_err()[0].detail.starts_with("This is not JSON yet"));
    }
}

#[test]
fn a_form_has_its_fields_in_the_order_in_which_they_were_asked() {
    let slot = slot(
        &json!({ "type": "object", "properties": { "zip": { "type": "string" }, "city": { "type": "string" }, "age": { "type": ["integer", "null"] } }, "required": ["age"] }),
    );
    let FormShape::Many(parts) = shape(&slot) else { panic!("a form") };
    assert_eq!(fields(&parts).iter().map(|field| field.label.as_str()).collect::<Vec<_>>(), ["Zip", "City", "Age"]);
    // What may be null may stay empty, and is null then.
    assert_eq!(from_form(&slot, &[], UTC).unwrap(), json!({ "age": null }));
    assert!(matches!(fields(&parts)[2].input, Input::Number { .. }));
}

#[test]
fn a_local_time_is_read_in_the_readers_zone_and_one_that_is_skipped_is_none() {
    let slot = slot(&json!({ "type": "string", "format": "date-time" }));
    let read = |text: &str| from_form(&slot, &[("answer".to_owned(), text.to_owned())], chrono_tz::Europe::Berlin);
    assert_eq!(read("2026-07-01T12:00").unwrap(), json!("2026-07-01T10:00:00Z"));
    assert_eq!(read("2026-12-01T12:00").unwrap(), json!("2026-12-01T11:00:00Z"));
    assert!(read("2026-03-29T02:30").is_err(), "this half hour does not exist in Berlin");
    assert_eq!(read("2026-10-25T02:30").unwrap(), json!("2026-10-25T00:30:00Z"), "twice: the first");
}

#[test]
fn an_argument_may_be_called_arguments_and_its_edit_is_not_lost() {
    let arguments = json!({ "arguments": { "amount": 500 }, "arguments_note": "old" });
    let action = Action {
        tool: "call".to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        editable: vec!["/arguments/amount".to_owned(), "/arguments_note".to_owned()],
        schema: None,
    };
    let slot = Slot::bare(NewSlot { kind: Kind::Approval, action: Some(action), ..NewSlot::question("Pay?") });
    let typed = [("decision", "approve"), ("argument/arguments/amount", "50"), ("argument/arguments_note", "new")];
    let typed = typed.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let value = slot::form::from_form(&slot, &typed, chrono_tz::UTC).unwrap();
    assert_eq!(value["arguments"], json!({ "arguments": { "amount": 50 }, "arguments_note": "new" }));
}

#[test]
fn a_schema_that_refers_to_itself_or_costs_too_much_is_refused_when_asked() {
    let refused = |schema: Value| answer::check_schema(&schema).is_err();
    let twice = json!({ "$defs": { "a": { "anyOf": [{ "items": { "$ref": "#/$defs/a" } }, { "items": { "$ref": "#/$defs/a" } }] } }, "$ref": "#/$defs/a" });
    assert!(refused(twice));
    assert!(refused(json!({ "properties": { "again": { "$ref": "#" } } })));
    let around = json!({ "$defs": { "a": { "not": { "$ref": "#/$defs/b" } }, "b": { "not": { "$ref": "#/$defs/a" } } }, "$ref": "#/$defs/a" });
    assert!(refused(around));
    assert!(refused(json!({ "$ref": "#/$defs/nowhere" })));
    // Read with the sign it leads to the harmless one, read as whoever checks the answer does, to itself.
    let hidden = json!({ "$ref": "#/$defs/a%61" });
    assert!(refused(json!({ "$defs": { "a%61": true, "aa": { "items": hidden } }, "$ref": "#/$defs/a%61" })));
    assert!(refused(json!({ "$ref": "https://example.com/schema" })));
    assert!(refused(json!({ "$dynamicRef": "#node" })));
    assert!(refused(json!({ "type": "string", "pattern": "(\\p{L}{100}){100}" })));
    let patterns: Vec<Value> = (0..21).map(|at| json!({ "pattern": format!("^{at}$") })).collect();
    assert!(refused(json!({ "anyOf": patterns })));
    let shared = json!({ "$defs": { "name": { "type": "string" } }, "properties": { "a": { "$ref": "#/$defs/name" }, "b": { "$ref": "#/$defs/name" } } });
    assert_eq!(answer::check_schema(&shared), Ok(()));
}

#[test]
fn an_answer_that_costs_too_much_to_check_is_refused_with_a_sentence() {
    let said = |schema: Value, value: Value| match answer::check(&slot(&schema), value) {
        Ok(_) => String::new(),
        Err(errors) => errors[0].detail.clone(),
    };
    let patterns: Vec<Value> = (1..=20).map(|at| json!({ "pattern": format!("[01]*1[01]{{3000}}{at}") })).collect();
    let long = json!("01101000111010".repeat(2_000));
    assert!(said(json!({ "type": "string", "allOf": patterns }), long.clone()).contains("too large to be checked"));
    assert_eq!(said(json!({ "type": "string", "pattern": "^[01]+$" }), long), "");
    // Every one of thousands of alternatives would be told for every item.
    let leaf = json!({ "anyOf": vec![json!({ "type": "array" }); 2_000] });
    let schema = json!({ "items": { "anyOf": [leaf.clone(), leaf] } });
    assert!(said(schema.clone(), json!(vec![1; 40])).contains("too large to say where"));
    assert_eq!(said(schema, json!([[], []])), "");
}

#[test]
fn a_default_of_null_leaves_the_field_empty() {
    let FormShape::One(field) = shape(&slot(&json!({ "type": ["string", "null"], "default": null }))) else {
        panic!("a text has a field");
    };
    assert_eq!(field.default, None);
}

#[test]
fn a_text_that_a_browser_sends_back_untouched_is_no_edit() {
    let arguments = json!({ "body": "Dear all,\r\nbye\rB", "to": " b@example.org", "line": "one\ntwo", "empty": "x" });
    let schema = json!({ "properties": { "to": { "type": "string", "format": "email" }, "line": { "type": "string", "maxLength": 99 },
        "empty": { "type": "string" } } });
    let action = Action {
        tool: "send".to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        editable: vec!["/body".to_owned(), "/to".to_owned(), "/line".to_owned(), "/empty".to_owned()],
        schema: Some(schema),
    };
    let slot = Slot::bare(NewSlot { kind: Kind::Approval, action: Some(action), ..NewSlot::question("Send?") });
    let read = |empty: &str| {
        let typed = [
            ("decision", "approve"),
            ("argument/body", "Dear all,\r\nbye\r\nB"),
            ("argument/to", "b@example.org"),
            ("argument/line", "one\r\ntwo"),
            ("argument/empty", empty),
        ];
        let typed = typed.map(|(name, text)| (name.to_owned(), text.to_owned()));
        from_form(&slot, &typed, UTC).unwrap()
    };
    assert_eq!(read("x"), json!({ "decision": "approve" }));
    assert_eq!(read("")["arguments"]["empty"], json!(""), "a text may be emptied");
    assert_eq!(read("")["arguments"]["body"], arguments["body"]);
}
