//! A question as its reader sees it: with the form, why there is none, or how it ended.

use chrono::{DateTime, Utc};
use engine::{
    FieldError,
    actor::PersonActor,
    duration,
    slot::{Slot, Standing, Status},
};
use leptos::prelude::*;

use super::{AnswerForm, ago, markdown, until};

/// What somebody typed into a form that was refused.
#[derive(Clone, Default)]
pub(crate) struct Typed {
    pub fields: Vec<(String, String)>,
    pub errors: Vec<FieldError>,
}

impl Typed {
    /// The words themselves, to be shown where there is no form any more.
    fn words(&self) -> String {
        let words = self.fields.iter().filter(|(name, text)| name.starts_with("answer") && !text.is_empty());
        words.map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// A question with everything its reader may do about it. `back` is the own page that shows it.
#[component]
pub(crate) fn Question(
    asked: Slot,
    person: PersonActor,
    now: DateTime<Utc>,
    back: String,
    typed: Typed,
) -> impl IntoView {
    let slot = asked;
    let zone = person.time_zone().to_owned();
    let context =
        (!slot.context.is_empty()).then(|| view! { <div class="context" inner_html=markdown(&slot.context)></div> });
    let pending = slot.status == Status::Waiting;
    let due = slot.due_at.map(|at| view! { " · due " {until(at, now, &zone)} });
    let expires = slot.expires_at.filter(|_| pending).map(|at| view! { " · expires " {until(at, now, &zone)} });
    let overdue = slot.is_overdue(now).then(|| view! { <strong class="badge late">"Overdue"</strong> });
    let urgent = (slot.priority > engine::slot::Priority::Normal)
        .then(|| view! { <strong class="badge">{slot.priority.as_str()}</strong> });
    let words = typed.words();
    let kept = (!words.is_empty()).then(|| {
        view! { <div class="typed" data-test="typed"><p>"What you had typed:"</p><blockquote>{words}</blockquote></div> }
    });
    let below = match (pending, slot.standing(&person)) {
        (true, Standing::Asked) => {
            view! { <AnswerForm asked=slot.clone() back=back typed=typed.fields errors=typed.errors/> }.into_any()
        }
        (true, Standing::OnBehalf) => {
            let whom = format!("You answer on behalf of {}; it is recorded as yours.", slot.asked_words());
            view! {
                <p class="faint">{whom}</p>
                <AnswerForm asked=slot.clone() back=back typed=typed.fields errors=typed.errors/>
            }
            .into_any()
        }
        (true, Standing::MayOnlySee(sentence)) => view! { <p class="notice">{sentence}</p> {kept} }.into_any(),
        (true, Standing::Hidden) => ().into_any(),
        (false, _) => view! { {ended(&slot)} {kept} }.into_any(),
    };
    view! {
        <section class="question" class:pending=pending data-test=pending.then_some("pending")>
            <p class="faint">
                {slot.agent.clone()} " asked " {slot.asked_words().to_owned()} " " {ago(slot.opened_at, now, &zone)} {due} {expires}
                " " {overdue} {urgent}
            </p>
            <p class="message">{slot.message.clone()}</p>
            {context}
            {below}
        </section>
    }
}

/// How a slot ended, in a sentence, with the answer.
fn ended(slot: &Slot) -> AnyView {
    let after = slot.closed_at.map(|at| duration::words(at - slot.opened_at)).unwrap_or_default();
    let by = slot.answered_by.clone().unwrap_or_default();
    let sentence = match (slot.status, &slot.on_behalf_of) {
        (Status::Answered, Some(whom)) => format!("{by} answered on behalf of {whom} after {after}."),
        (Status::Answered, None) => format!("{by} answered after {after}."),
        (Status::Expired, _) if slot.answer.is_some() => {
            format!("Nobody answered within {after}; the default was used.")
        }
        (Status::Expired, _) => format!("Nobody answered within {after}."),
        (Status::Cancelled, _) => format!("Withdrawn after {after}: {}", slot.reason.clone().unwrap_or_default()),
        (Status::Waiting, _) => String::new(),
    };
    let answer = slot.answer.as_ref().map(|value| view! { <blockquote class="said">{shown(slot, value)}</blockquote> });
    view! { <p class="outcome">{sentence}</p> {answer} }.into_any()
}

/// An answer as its reader would say it: an option by its label, words as words, the rest as JSON.
fn shown(slot: &Slot, value: &serde_json::Value) -> String {
    if let Some(option) = slot.options.iter().find(|option| option.value == *value) {
        return option.label.clone();
    }
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(true) => "Yes".to_owned(),
        serde_json::Value::Bool(false) => "No".to_owned(),
        serde_json::Value::Object(fields) => {
            let line = |(name, value): (&String, &serde_json::Value)| {
                format!("{name}: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            };
            fields.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
