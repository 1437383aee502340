//! Schemas of every kind that a form shows, each with a value that fits.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// A schema of one field with values that fit it.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub schema: Value,
    pub fits: Value,
}

pub(super) fn words() -> impl Strategy<Value = String> {
    "[a-zA-Zäß東0-9<>&\"' ]{1,12}"
}

/// Schemas of every kind that has an input, each with a value that fits: as they are, or null, behind a reference, and
/// with a proposal.
pub(super) fn sample() -> impl Strategy<Value = Sample> {
    (plain(), select(Wrap::ALL.to_vec()), any::<bool>(), any::<bool>()).prop_map(|(sample, wrap, null, proposed)| {
        let mut sample = wrap.around(sample, null);
        if proposed && sample.schema.get("const").is_none() {
            sample.schema["default"] = sample.fits.clone();
        }
        sample
    })
}

/// How a maker of schemas may write the same.
#[derive(Clone, Copy, Debug)]
enum Wrap {
    Bare,
    Referred,
    AllOf,
    NullType,
    NullFirst,
    NullLast,
    NullOrReferred,
}

impl Wrap {
    const ALL: [Self; 9] = [
        Self::Bare,
        Self::Bare,
        Self::Bare,
        Self::Referred,
        Self::AllOf,
        Self::NullType,
        Self::NullFirst,
        Self::NullLast,
        Self::NullOrReferred,
    ];

    /// The schema, wrapped, and null instead of its value when that fits now and `null` is wanted.
    fn around(self, sample: Sample, null: bool) -> Sample {
        let schema = sample.schema;
        let refer = |schema: &Value| (json!({ "it": schema }), json!({ "$ref": "#/$defs/it" }));
        let (schema, nullable) = match self {
            Self::Bare => (schema, false),
            Self::Referred => {
                let (defs, reference) = refer(&schema);
                (json!({ "$ref": reference["$ref"], "$defs": defs, "title": "Called so outside" }), false)
            }
            Self::AllOf => (json!({ "allOf": [schema] }), false),
            Self::NullType if schema.get("type").is_some() && schema.get("const").is_none() => {
                let mut schema = schema;
                schema["type"] = json!(["null", schema["type"]]);
                (schema, true)
            }
            Self::NullType => (schema, false),
            Self::NullFirst => (json!({ "anyOf": [{ "type": "null" }, schema] }), true),
            Self::NullLast => (json!({ "oneOf": [schema, { "type": "null" }] }), true),
            Self::NullOrReferred => {
                let (defs, reference) = refer(&schema);
                (json!({ "anyOf": [reference, { "type": "null" }], "$defs": defs }), true)
            }
        };
        Sample { schema, fits: if nullable && null { Value::Null } else { sample.fits } }
    }
}

/// The same, as they are.
pub(super) fn plain() -> impl Strategy<Value = Sample> {
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
    let between = (-999_i64..999, 1_i64..99, 1_i64..99).prop_map(|(tenths, below, above)| {
        let value = tenths as f64 / 10.0;
        let schema = json!({ "type": "number", "exclusiveMinimum": value - below as f64 / 10.0, "exclusiveMaximum": value + above as f64 / 10.0 });
        Sample { schema, fits: json!(value) }
    });
    let times = (1_i64..9, 0_i64..20).prop_map(|(step, times)| Sample {
        schema: json!({ "type": "integer", "minimum": 0, "multipleOf": step }),
        fits: json!(step * times),
    });
    let yes = any::<bool>().prop_map(|yes| Sample { schema: json!({ "type": "boolean" }), fits: json!(yes) });
    let must = Just(Sample { schema: json!({ "const": true }), fits: json!(true) });
    let constant = prop_oneof![words().prop_map(Value::from), (-9_i64..9).prop_map(Value::from), Just(json!(false))]
        .prop_map(|value| Sample { schema: json!({ "const": value }), fits: value });
    let file =
        (any::<u128>(), select(vec!["application/pdf", "image/png", "image/jpeg", ""])).prop_map(|(id, kind)| {
            let mut schema = json!({ "type": "string", "format": "file" });
            if !kind.is_empty() {
                schema["contentMediaType"] = json!(kind);
            }
            Sample { schema, fits: json!(uuid::Uuid::from_u128(id)) }
        });
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
        let least = chosen.len().saturating_sub(usize::from(mask) % 3);
        Sample {
            fits: json!(chosen),
            schema: json!({ "type": "array", "items": { "enum": unique }, "uniqueItems": true, "minItems": least }),
        }
    });
    let lines = (vec("[a-zäß0-9][a-z ]{0,8}[a-z]", 0..4), 0_usize..4).prop_map(|(list, least)| Sample {
        schema: json!({ "type": "array", "items": { "type": "string" }, "minItems": least.min(list.len()), "maxItems": 4 }),
        fits: json!(list),
    });
    let numbers = (vec(-99_i64..99, 0..4), 0_usize..4).prop_map(|(list, least)| Sample {
        schema: json!({ "type": "array", "items": { "type": "number" }, "minItems": least.min(list.len()) }),
        fits: json!(list),
    });
    prop_oneof![
        prop_oneof![text, pattern, inside, whole, number, between, times],
        prop_oneof![yes, must, constant, one, titled, date, moment],
        prop_oneof![address, web, several, lines, numbers, file],
    ]
}

fn name() -> impl Strategy<Value = String> {
    let hard = ["a/b", "a~b", "a.b", "größe"].map(str::to_owned);
    prop_oneof!["[a-z]{1,6}", select(hard.to_vec())]
}

/// An object of up to three properties.
pub(super) fn flat() -> impl Strategy<Value = Sample> {
    vec((name(), plain(), any::<bool>()), 1..4).prop_map(joined)
}

/// An object of up to four properties, one of which may be an object itself, or null instead.
pub(super) fn object() -> impl Strategy<Value = Sample> {
    let flat = vec((name(), sample(), any::<bool>()), 1..4).prop_map(joined).boxed();
    let inner = (flat.clone(), select(Wrap::ALL.to_vec()), any::<bool>());
    (flat, proptest::option::of(inner), any::<bool>()).prop_map(|(mut outer, inner, required)| {
        if let Some((inner, wrap, null)) = inner {
            let inner = wrap.around(inner, null);
            outer.schema["properties"]["inner"] = inner.schema;
            outer.fits["inner"] = inner.fits;
            if required {
                outer.schema["required"].as_array_mut().unwrap().push(json!("inner"));
            }
        }
        with_definitions_at_the_root(outer)
    })
}

/// References are pointers from the root: moves what each part defines there, under names of their own.
fn with_definitions_at_the_root(mut sample: Sample) -> Sample {
    fn moved(part: &mut Value, all: &mut Map<String, Value>) {
        if let Some(fields) = part.as_object_mut()
            && let Some(mut it) = fields.remove("$defs").and_then(|mut defs| defs.as_object_mut()?.remove("it"))
        {
            moved(&mut it, all);
            let name = format!("it{}", all.len());
            let reference = json!(format!("#/$defs/{name}"));
            if fields.contains_key("$ref") {
                fields["$ref"] = reference;
            } else {
                fields["anyOf"][0]["$ref"] = reference;
            }
            all.insert(name, it);
        }
        match part {
            Value::Array(items) => items.iter_mut().for_each(|item| moved(item, all)),
            Value::Object(fields) => fields.values_mut().for_each(|field| moved(field, all)),
            _ => {}
        }
    }
    let mut all = Map::new();
    moved(&mut sample.schema, &mut all);
    if !all.is_empty() {
        sample.schema["$defs"] = Value::Object(all);
    }
    sample
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
