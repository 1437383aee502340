//! Forms made from schemas and from the arguments of an approval (design section 4).

mod agree;
mod browser;
mod samples;

use chrono_tz::UTC;
use engine::slot::{
    self, Action, Kind, NewSlot, Slot, answer,
    form::{FormShape, Input, from_form, shape},
};
use serde_json::{Value, json};

use browser::fields;

fn slot(schema: &Value) -> Slot {
    Slot::bare(NewSlot { schema: Some(schema.clone()), ..NewSlot::question("?") })
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

/// What Pydantic and its like write for a model with a nested model, an enumeration and fields that may be left out.
#[test]
fn a_schema_with_references_and_or_null_has_a_form_and_is_refused_field_by_field() {
    let schema = json!({
        "$defs": {
            "Address": { "type": "object", "title": "Address", "properties": { "street": { "type": "string", "title": "Street" } },
                "required": ["street"] },
            "Size": { "enum": ["small", "large"], "type": "string", "title": "Size" }
        },
        "type": "object",
        "title": "Order",
        "properties": {
            "size": { "$ref": "#/$defs/Size", "description": "Of the box" },
            "count": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }], "title": "How many", "default": null },
            "sure": { "type": ["boolean", "null"] },
            "to": { "anyOf": [{ "$ref": "#/$defs/Address" }, { "type": "null" }] }
        },
        "required": ["size", "count", "sure", "to"]
    });
    assert_eq!(answer::check_schema(&schema), Ok(()));
    let slot = slot(&schema);
    let FormShape::Many(parts) = shape(&slot) else { panic!("a form") };
    let fields = fields(&parts);
    assert_eq!(
        fields.iter().map(|field| field.label.as_str()).collect::<Vec<_>>(),
        ["Size", "How many", "Sure", "Street"]
    );
    assert_eq!((fields[0].help.as_str(), &fields[1].default), ("Of the box", &None));
    let read = |typed: &[(&str, &str)]| {
        let typed: Vec<_> = typed.iter().map(|(name, text)| (format!("answer/{name}"), text.to_string())).collect();
        from_form(&slot, &typed, UTC).unwrap()
    };
    let empty = read(&[("size", "\"small\"")]);
    assert_eq!(empty, json!({ "size": "small", "count": null, "sure": null, "to": null }));
    assert_eq!(answer::check(&slot, empty.clone()), Ok(empty));
    let full = read(&[("size", "\"large\""), ("count", "0"), ("sure", "false"), ("to/street", "Elm Street 1")]);
    let errors = answer::check(&slot, full).unwrap_err();
    let told: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.detail.as_str())).collect();
    assert_eq!(told, [("/count", "Must be 1 or more.")]);
    let wrong = json!({ "size": "huge", "count": "two", "sure": null, "to": { "street": 1 } });
    let errors = answer::check(&slot, wrong).unwrap_err();
    let told: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.detail.as_str())).collect();
    let choose = "Choose one of the answers that are offered.";
    assert_eq!(told, [("/size", choose), ("/count", "Write a whole number."), ("/to/street", "Write a text.")]);
}
