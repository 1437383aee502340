//! The form that answers a slot, made from its options or schema. It posts to the slot's own page.

use engine::{
    FieldError,
    slot::{
        Choice, Slot,
        form::{Field, FormShape, Input, fields},
    },
};
use leptos::prelude::*;

use super::{TextArea, Wrong, error_at};

/// The form, with what was typed (pairs of field name and text) and what was wrong with it. `back` is the own page to
/// return to.
#[component]
pub(crate) fn AnswerForm(
    asked: Slot,
    back: String,
    typed: Vec<(String, String)>,
    errors: Vec<FieldError>,
) -> impl IntoView {
    let slot = asked;
    let action = format!("/slots/{}", slot.id);
    let value =
        |name: &str| typed.iter().find(|(field, _)| field == name).map(|(_, text)| text.clone()).unwrap_or_default();
    let id = format!("answer-{}", slot.id);
    let inside = match fields(&slot) {
        FormShape::Options(options) => options_buttons(options, error_at(&errors, ""), &id),
        FormShape::Text => {
            let wrong = error_at(&errors, "");
            view! {
                <label for=id.clone()>"Your answer"</label>
                <TextArea name="answer".to_owned() id=id.clone() value=value("answer") required=true wrong=wrong.is_some()
                    described_by=format!("{id}-wrong")/>
                <Wrong id=format!("{id}-wrong") sentence=wrong/>
                <button>"Send the answer"</button>
            }
            .into_any()
        }
        FormShape::One(field) => {
            let error = error_at(&errors, &field.pointer);
            let text = value(&field.name);
            view! { {input(field, &id, text, error)} <button>"Send the answer"</button> }.into_any()
        }
        FormShape::Many(list) => {
            let whole = error_at(&errors, "");
            let inputs = list.into_iter().enumerate().map(|(at, field)| {
                let error = error_at(&errors, &field.pointer);
                let text = value(&field.name);
                input(field, &format!("{id}-{at}"), text, error)
            });
            let inputs = inputs.collect_view();
            view! { <Wrong id=format!("{id}-wrong") sentence=whole/> {inputs} <button>"Send the answer"</button> }
                .into_any()
        }
        FormShape::Json => {
            let schema = slot.schema.as_ref().map(|schema| format!("{schema:#}")).unwrap_or_default();
            let wrong = errors.first().map(|error| format!("{} {}", error.pointer, error.detail).trim().to_owned());
            view! {
                <label for=id.clone()>"Your answer, as JSON"</label>
                <TextArea name="answer.json".to_owned() id=id.clone() value=value("answer.json") rows=8 required=true
                    wrong=wrong.is_some() described_by=format!("{id}-wrong")/>
                <Wrong id=format!("{id}-wrong") sentence=wrong/>
                <details><summary>"The form it must have (JSON Schema)"</summary><pre>{schema}</pre></details>
                <button>"Send the answer"</button>
            }
            .into_any()
        }
    };
    view! {
        <form method="post" action=action class="answer" id=format!("form-{}-{}", slot.id, slot.revision) data-typed="true"
            data-test="slot-form">
            <input type="hidden" name="revision" value=slot.revision.to_string()/>
            <input type="hidden" name="back" value=back/>
            {inside}
        </form>
    }
}

fn json(value: &serde_json::Value) -> String {
    value.to_string()
}

fn options_buttons(options: Vec<Choice>, wrong: Option<String>, id: &str) -> AnyView {
    let buttons = options.into_iter().map(|option| {
        view! { <button name="answer" value=json(&option.value) class="option">{option.label}</button> }
    });
    let buttons = buttons.collect_view();
    view! {
        <Wrong id=format!("{id}-wrong") sentence=wrong/>
        <div class="options" role="group" aria-label="Your answer">{buttons}</div>
    }
    .into_any()
}

/// One labelled input with its help and what is wrong with it.
fn input(field: Field, id: &str, text: String, error: Option<String>) -> AnyView {
    let wrong = error.is_some().then_some("true");
    let (help_id, wrong_id) = (format!("{id}-help"), format!("{id}-wrong"));
    let described = format!("{help_id} {wrong_id}");
    let help = (!field.help.is_empty()).then(|| view! { <p class="faint" id=help_id>{field.help}</p> });
    let (name, required) = (field.name, field.required);
    let label = if required { field.label } else { format!("{} (may stay empty)", field.label) };
    let id = id.to_owned();
    let control = match field.input {
        Input::Check => {
            return view! {
                <div class="field">
                    <label class="check">
                        <input type="checkbox" name=name value="true" checked=text == "true"/>
                        {label}
                    </label>
                    {help}
                    <Wrong id=wrong_id sentence=error/>
                </div>
            }
            .into_any();
        }
        Input::LongText { .. } => view! {
            <TextArea name=name id=id.clone() value=text required=required wrong=error.is_some() described_by=described/>
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
        Input::Choice(choices) => {
            let options = choices.into_iter().map(|choice| {
                let value = json(&choice.value);
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
