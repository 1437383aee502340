//! One labelled input with its help and what is wrong with it: the same for every schema.

use chrono::DateTime;
use chrono_tz::Tz;
use engine::slot::form::{Field, Input, Item};
use leptos::prelude::*;

use super::{TextArea, Typed, Wrong, error_under};

pub(crate) fn is_file(field: &Field) -> bool {
    matches!(field.input, Input::File { .. })
}

/// The input for `field`; its name begins with `prefix`.
pub(crate) fn control(field: Field, id: &str, typed: &Typed, prefix: &str) -> AnyView {
    let error = error_under(&typed.errors, &field.pointer);
    let wrong = error.is_some().then_some("true");
    let (help_id, wrong_id) = (format!("{id}-help"), format!("{id}-wrong"));
    let described = format!("{help_id} {wrong_id}");
    let mut words = field.help.clone();
    if let Input::Lines(item) = &field.input {
        words = format!("{words} One {} to a line.", if *item == Item::Text { "entry" } else { "number" })
            .trim()
            .to_owned();
    }
    let help = (!words.is_empty()).then(|| view! { <p class="faint" id=help_id>{words}</p> });
    // What was typed, else what the asker proposes.
    let text = match typed.fills(&field.name) {
        false => proposed(&field, typed),
        true => typed.value(&field.name),
    };
    let chosen: Vec<String> = match typed.fills(&field.name) {
        false => field.default.iter().flat_map(|text| each(text)).collect(),
        true => typed.values(&field.name),
    };
    let (name, required) = (format!("{prefix}{}", field.name), field.required);
    let optional = matches!(field.input, Input::Check { .. } | Input::Several(_));
    let label = if required || optional { field.label } else { format!("{} (may stay empty)", field.label) };
    let id = id.to_owned();
    let control = match field.input {
        Input::Check { must } => {
            return view! {
                <div class="field">
                    <label class="check">
                        <input type="checkbox" name=name value="true" checked=text == "true" required=must && required
                            aria-invalid=wrong aria-describedby=described/>
                        {label}
                    </label>
                    {help}
                    <Wrong id=wrong_id sentence=error/>
                </div>
            }
            .into_any();
        }
        Input::Several(choices) => {
            let boxes = choices.into_iter().map(|choice| {
                let value = choice.value.to_string();
                let checked = chosen.contains(&value);
                view! {
                    <label class="check">
                        <input type="checkbox" name=name.clone() value=value checked=checked/>
                        {choice.label}
                    </label>
                }
            });
            let boxes = boxes.collect_view();
            return view! {
                <fieldset class="field group" aria-describedby=described>
                    <legend>{label}</legend>
                    {help}
                    {boxes}
                    <Wrong id=wrong_id sentence=error/>
                </fieldset>
            }
            .into_any();
        }
        Input::LongText { min, max } => view! {
            <TextArea name=name id=id.clone() value=text required=required wrong=error.is_some() described_by=described
                min=min max=max/>
        }
        .into_any(),
        // An empty list is a list, so nothing has to stand here.
        Input::Lines(_) => view! {
            <TextArea name=name id=id.clone() value=text wrong=error.is_some() described_by=described/>
        }
        .into_any(),
        Input::Json => view! {
            <TextArea name=name id=id.clone() value=text rows=5 required=required wrong=error.is_some() described_by=described/>
        }
        .into_any(),
        Input::Text { kind, min, max, pattern } => view! {
            <input type=kind name=name id=id.clone() value=text required=required aria-invalid=wrong aria-describedby=described
                minlength=min.map(|min| min.to_string()) maxlength=max.map(|max| max.to_string()) pattern=pattern/>
        }
        .into_any(),
        Input::Number { min, max, step } => view! {
            <input type="number" name=name id=id.clone() value=text required=required step=step aria-invalid=wrong
                aria-describedby=described min=min.map(|min| min.to_string()) max=max.map(|max| max.to_string())/>
        }
        .into_any(),
        Input::DateTime => view! {
            <input type="datetime-local" name=name id=id.clone() value=text required=required aria-invalid=wrong
                aria-describedby=described/>
        }
        .into_any(),
        Input::File { accept } => {
            // A file that was sent before the form was refused need not be chosen again.
            let kept = typed.kept(&text);
            let sent = kept.clone().map(|file| {
                view! { <p class="kept">{file} " is kept; choose another to replace it." <input type="hidden" name=name.clone() value=text/></p> }
            });
            view! {
                <input type="file" name=name.clone() id=id.clone() accept=accept required=required && kept.is_none()
                    aria-invalid=wrong aria-describedby=described/>
                {sent}
            }
            .into_any()
        }
        Input::Choice(choices) => {
            let options = choices.into_iter().map(|choice| {
                let value = choice.value.to_string();
                let selected = value == text;
                view! { <option value=value selected=selected>{choice.label}</option> }
            });
            let options = options.collect_view();
            view! {
                <select name=name id=id.clone() required=required aria-invalid=wrong aria-describedby=described>
                    <option value="">"Choose …"</option>
                    {options}
                </select>
            }
            .into_any()
        }
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            {control}
            {help}
            <Wrong id=wrong_id sentence=error/>
        </div>
    }
    .into_any()
}

/// What the asker proposes, as the field shows it: a moment in the reader's zone and without one, as a browser takes it.
fn proposed(field: &Field, typed: &Typed) -> String {
    let text = field.default.clone().unwrap_or_default();
    match (&field.input, DateTime::parse_from_rfc3339(&text)) {
        (Input::DateTime, Ok(at)) => {
            at.with_timezone(&typed.zone.unwrap_or(Tz::UTC)).format("%Y-%m-%dT%H:%M:%S").to_string()
        }
        _ => text,
    }
}

/// The values of a proposed list, each as the form sends it.
fn each(text: &str) -> Vec<String> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Array(items)) => items.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}
