//! The form that answers a slot, made from its kind, options or schema. It posts to the slot's own page; together with
//! others of the same work, to the page that answers them all.

use engine::slot::{
    Choice, Slot,
    form::{FormShape, Part, shape},
};
use leptos::prelude::*;

use super::{
    TextArea, Typed, Wrong, error_at,
    field::{control, is_file},
};

/// The form of one slot, with what was typed and what was wrong with it. `back` is the own page to return to.
#[component]
pub(crate) fn AnswerForm(asked: Slot, back: String, typed: Typed) -> impl IntoView {
    let slot = asked;
    let action = format!("/slots/{}", slot.id);
    let shape = shape(&slot);
    let enctype = has_file(&shape).then_some("multipart/form-data");
    let inside = inputs(&slot, shape, &typed, "", true);
    view! {
        <form method="post" action=action enctype=enctype class="answer" id=format!("form-{}-{}", slot.id, slot.revision)
            data-typed="true" data-test="slot-form">
            <input type="hidden" name="revision" value=slot.revision.to_string()/>
            <input type="hidden" name="back" value=back/>
            {inside}
        </form>
    }
}

/// Whether the form hands in a file, and so must be sent in parts.
pub(crate) fn has_file(shape: &FormShape) -> bool {
    match shape {
        FormShape::One(field) => is_file(field),
        FormShape::Many(parts) => parts.iter().any(|part| match part {
            Part::Field(field) => is_file(field),
            Part::Group { fields, .. } => fields.iter().any(is_file),
        }),
        _ => false,
    }
}

/// The inputs of a slot; their names begin with `prefix`. `alone`: with the buttons that send it.
pub(crate) fn inputs(slot: &Slot, shape: FormShape, typed: &Typed, prefix: &str, alone: bool) -> AnyView {
    // With another revision they are other inputs: what was typed for the former does not move into them.
    let id = format!("answer-{}-{}", slot.id, slot.revision);
    let whole = error_at(&typed.errors, "");
    let send = alone.then(|| view! { <button>"Send the answer"</button> });
    let name = |name: &str| format!("{prefix}{name}");
    match shape {
        FormShape::Options(options) => one_of(options, whole, &id, name("answer"), &typed.value("answer"), alone),
        FormShape::Text => view! {
            <label for=id.clone()>"Your answer"</label>
            <TextArea name=name("answer") id=id.clone() value=typed.value("answer") required=true wrong=whole.is_some()
                described_by=format!("{id}-wrong")/>
            <Wrong id=format!("{id}-wrong") sentence=whole/>
            {send}
        }
        .into_any(),
        // Never filled in again, whatever happens.
        FormShape::Secret => view! {
            <label for=id.clone()>"The secret"</label>
            <input type="password" name=name("answer") id=id.clone() required=true autocomplete="off" spellcheck="false"
                aria-invalid=whole.is_some().then_some("true") aria-describedby=format!("{id}-help {id}-wrong")/>
            <p class="faint" id=format!("{id}-help")>
                "Sealed when you send it, handed to the agent once, then wiped. Nobody can read it here, you neither."
            </p>
            <Wrong id=format!("{id}-wrong") sentence=whole/>
            {send}
        }
        .into_any(),
        FormShape::One(field) => view! { {control(field, &id, typed, prefix)} {send} }.into_any(),
        FormShape::Many(parts) => {
            let parts =
                parts.into_iter().enumerate().map(|(at, part)| part_view(part, &format!("{id}-{at}"), typed, prefix));
            let parts = parts.collect_view();
            view! { <Wrong id=format!("{id}-wrong") sentence=whole/> {parts} {send} }.into_any()
        }
        FormShape::Json => {
            let schema = slot.schema.as_ref().map(|schema| {
                let text = format!("{schema:#}");
                view! { <details><summary>"The form it must have (JSON Schema)"</summary><pre>{text}</pre></details> }
            });
            let wrong = typed.errors.iter().take(5).map(|error| format!("{} {}", error.pointer, error.detail));
            let wrong = wrong.collect::<Vec<_>>().join(" ");
            let wrong = (!wrong.is_empty()).then(|| wrong.trim().to_owned());
            view! {
                <label for=id.clone()>"Your answer, as JSON"</label>
                <TextArea name=name("answer") id=id.clone() value=typed.value("answer") rows=8 required=true
                    wrong=wrong.is_some() described_by=format!("{id}-wrong")/>
                <Wrong id=format!("{id}-wrong") sentence=wrong/>
                {schema}
                {send}
            }
            .into_any()
        }
        FormShape::Decision { editable, .. } => {
            let fields = editable
                .into_iter()
                .enumerate()
                .map(|(at, field)| control(field, &format!("{id}-{at}"), typed, prefix))
                .collect_view();
            decision(fields.into_any(), &id, typed, prefix, alone)
        }
        FormShape::Takeover => takeover(&id, typed, prefix),
    }
}

fn part_view(part: Part, id: &str, typed: &Typed, prefix: &str) -> AnyView {
    match part {
        Part::Field(field) => control(field, id, typed, prefix),
        Part::Group { label, help, required, fields, .. } => {
            let legend = if required { label } else { format!("{label} (may stay empty)") };
            let help = (!help.is_empty()).then(|| view! { <p class="faint">{help}</p> });
            let fields = fields
                .into_iter()
                .enumerate()
                .map(|(at, mut field)| {
                    // A group that may stay empty as a whole must not insist on its parts.
                    field.required &= required;
                    control(field, &format!("{id}-{at}"), typed, prefix)
                })
                .collect_view();
            view! { <fieldset class="group"><legend>{legend}</legend>{help}{fields}</fieldset> }.into_any()
        }
    }
}

/// One of the options: a button each, or, among other questions, to be marked.
fn one_of(options: Vec<Choice>, wrong: Option<String>, id: &str, name: String, typed: &str, alone: bool) -> AnyView {
    if alone {
        let buttons = options.into_iter().map(|option| {
            view! { <button name=name.clone() value=option.value.to_string() class="option">{option.label}</button> }
        });
        let buttons = buttons.collect_view();
        return view! {
            <Wrong id=format!("{id}-wrong") sentence=wrong/>
            <div class="options" role="group" aria-label="Your answer">{buttons}</div>
        }
        .into_any();
    }
    let marks = options.into_iter().map(|option| {
        let value = option.value.to_string();
        let checked = value == typed;
        view! {
            <label class="check">
                <input type="radio" name=name.clone() value=value checked=checked required=true/>
                {option.label}
            </label>
        }
    });
    let marks = marks.collect_view();
    view! { <fieldset class="group"><legend>"Your answer"</legend>{marks}</fieldset> <Wrong id=format!("{id}-wrong") sentence=wrong/> }
        .into_any()
}

fn decision(fields: AnyView, id: &str, typed: &Typed, prefix: &str, alone: bool) -> AnyView {
    let name = |name: &str| format!("{prefix}{name}");
    let arguments = error_at(&typed.errors, "/arguments").or_else(|| error_at(&typed.errors, ""));
    let wrong = error_at(&typed.errors, "/reason");
    let (said, reason) = (typed.value("decision"), typed.value("reason"));
    let reason_area = view! {
        <label for=format!("{id}-reason")>"Why not? The agent goes on with your words."</label>
        <TextArea name=name("reason") id=format!("{id}-reason") value=reason.clone() rows=2 wrong=wrong.is_some()
            described_by=format!("{id}-reason-wrong")/>
        <Wrong id=format!("{id}-reason-wrong") sentence=wrong.clone()/>
    };
    if alone {
        let open = wrong.is_some() || !reason.is_empty();
        return view! {
            {fields}
            <Wrong id=format!("{id}-wrong") sentence=arguments/>
            <div class="options"><button name=name("decision") value="approve">"Approve"</button></div>
            <details class="reject" id=format!("{id}-reject") open=open>
                <summary>"Reject …"</summary>
                {reason_area}
                <button class="danger" name=name("decision") value="reject" formnovalidate=true>"Reject it"</button>
            </details>
        }
        .into_any();
    }
    let mark = |value: &'static str, label: &'static str| {
        view! {
            <label class="check">
                <input type="radio" name=name("decision") value=value checked=said == value required=true/>
                {label}
            </label>
        }
    };
    let none = error_at(&typed.errors, "/decision");
    view! {
        {fields}
        <Wrong id=format!("{id}-wrong") sentence=arguments/>
        <fieldset class="group">
            <legend>"Your decision"</legend>
            {mark("approve", "Approve")}
            {mark("reject", "Reject")}
            <Wrong id=format!("{id}-decision-wrong") sentence=none/>
            {reason_area}
        </fieldset>
    }
    .into_any()
}

fn takeover(id: &str, typed: &Typed, prefix: &str) -> AnyView {
    let name = |name: &str| format!("{prefix}{name}");
    let area = |field: &'static str, label: &'static str, pointer: &str| {
        let wrong = error_at(&typed.errors, pointer);
        view! {
            <label for=format!("{id}-{field}")>{label}</label>
            <TextArea name=name(field) id=format!("{id}-{field}") value=typed.value(field) rows=3 wrong=wrong.is_some()
                described_by=format!("{id}-{field}-wrong")/>
            <Wrong id=format!("{id}-{field}-wrong") sentence=wrong/>
        }
    };
    view! {
        <Wrong id=format!("{id}-wrong") sentence=error_at(&typed.errors, "")/>
        {area("message", "Write to the agent: it goes on with your words", "/messages")}
        <p><button class="option" name=name("act") value="back">"Give the work back"</button></p>
        {area("result", "Or hand in the work's result: then the work is done", "/result")}
        <p><button name=name("act") value="result">"Hand in the result"</button></p>
    }
    .into_any()
}
