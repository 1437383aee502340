//! A question as its reader sees it: with the form, why there is none, or how it ended.

use chrono::{DateTime, Utc};
use engine::{
    actor::PersonActor,
    duration,
    file::File,
    ids::SlotId,
    slot::{Kind, Slot, Standing, Status, form},
};
use leptos::prelude::*;
use serde_json::Value;

use super::{
    AnswerForm, Typed, WhatWasTyped,
    action::{action, votes},
    ago, attached, inputs, markdown, until,
};

/// How a question stands on its page.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// On the page of a claim or a task; hand over and decline are a click away.
    Within,
    /// On its own page.
    Alone,
    /// One of several in one form, with the prefix of its fields.
    Together,
}

/// A question with everything its reader may do about it. `back` is the own page that shows it.
#[component]
pub(crate) fn Question(
    asked: Slot,
    person: PersonActor,
    now: DateTime<Utc>,
    back: String,
    typed: Typed,
    files: Vec<(SlotId, File)>,
    place: Place,
) -> impl IntoView {
    let slot = asked;
    let files: Vec<File> = files.into_iter().filter(|(id, _)| *id == slot.id).map(|(_, file)| file).collect();
    let (attachments, handed_in): (Vec<File>, Vec<File>) = files.into_iter().partition(|file| file.from_asker);
    let context =
        (!slot.context.is_empty()).then(|| view! { <div class="context" inner_html=markdown(&slot.context)></div> });
    let pending = slot.status == Status::Waiting;
    let standing = slot.standing(&person);
    let typed = typed.at(slot.revision, person.zone());
    let words = typed.words(slot.secret);
    let words = (!words.is_empty()).then_some(words);
    let kept = |words: Option<String>| words.map(|words| view! { <WhatWasTyped words=words/> });
    // Approving would else undo what changed underneath.
    let outdated = kept(words.clone().filter(|_| typed.outdated && slot.kind == Kind::Approval));
    let form = |typed: Typed| match place {
        Place::Together => {
            let prefix = prefix(slot.id);
            let revision = format!("{prefix}revision");
            view! {
                <input type="hidden" name=revision value=slot.revision.to_string()/>
                {inputs(&slot, form::shape(&slot), &typed, &prefix, false)}
            }
            .into_any()
        }
        _ => view! { <AnswerForm asked=slot.clone() back=back.clone() typed=typed/> }.into_any(),
    };
    let below = match (pending, &standing) {
        (true, Standing::Asked) => view! { {outdated} {form(typed)} }.into_any(),
        (true, Standing::OnBehalf) => {
            let whom = format!("You answer on behalf of {}; it is recorded as yours.", slot.asked_words());
            view! { <p class="faint">{whom}</p> {outdated} {form(typed)} }.into_any()
        }
        (true, Standing::MayOnlySee(sentence)) => {
            view! { <p class="notice">{sentence.clone()}</p> {kept(words)} }.into_any()
        }
        (true, Standing::Hidden) => ().into_any(),
        (false, _) => view! { {ended(&slot, &handed_in)} {kept(words)} }.into_any(),
    };
    let more = (place == Place::Within && pending && slot.may_be_handed_over_by(&person)).then(|| {
        view! { <p class="more"><a href=format!("/slots/{}", slot.id)>"Hand over, decline, or say that you are on it"</a></p> }
    });
    view! {
        <section class="question" class:pending=pending data-test=pending.then_some("pending")>
            {heading(&slot, &person, now)}
            <p class="message">{slot.message.clone()}</p>
            {slot.alarm.clone().filter(|_| pending).map(|alarm| view! { <p class="notice" data-test="alarm">{alarm}</p> })}
            {on_it(&slot, &person, now)}
            {context}
            {attached(&attachments)}
            {action(&slot)}
            {votes(&slot)}
            {below}
            {more}
        </section>
    }
}

/// What the fields of one of several questions begin with.
pub(crate) fn prefix(slot: SlotId) -> String {
    format!("{slot}:")
}

/// Who asked whom, when, and until when.
fn heading(slot: &Slot, person: &PersonActor, now: DateTime<Utc>) -> AnyView {
    let zone = person.time_zone().to_owned();
    let pending = slot.status == Status::Waiting;
    let due = slot.due_at.filter(|_| pending).map(|at| view! { " · due " {until(at, now, &zone)} });
    let expires = slot.expires_at.filter(|_| pending).map(|at| view! { " · expires " {until(at, now, &zone)} });
    let risk = (pending && slot.warned_at.is_some() && !slot.is_overdue(now))
        .then(|| view! { <strong class="badge late">"At risk"</strong> });
    let business = slot
        .waited_business
        .map(|seconds| chrono::Duration::seconds(seconds))
        .map(|waited| format!(" · waited {} of business time", duration::words(waited)));
    let overdue = slot.is_overdue(now).then(|| view! { <strong class="badge late">"Overdue"</strong> });
    let urgent = (slot.priority > engine::slot::Priority::Normal)
        .then(|| view! { <strong class="badge">{slot.priority.as_str()}</strong> });
    let verb = match slot.kind {
        Kind::Approval => " proposed to ",
        Kind::ClientTool => " needs an output from ",
        Kind::Human => " handed over to ",
        _ => " asked ",
    };
    view! {
        <p class="faint">
            {slot.agent.clone()} {verb} {slot.asked_words().to_owned()} " " {ago(slot.opened_at, now, &zone)} {due} {expires}
            {business} " " {overdue} {risk} {urgent}
        </p>
    }
    .into_any()
}

fn on_it(slot: &Slot, person: &PersonActor, now: DateTime<Utc>) -> Option<AnyView> {
    let taken = slot.taken_at(now)?;
    let who = if taken.id == person.id() { "You are on it".to_owned() } else { format!("{} is on it", taken.name) };
    let until = until(taken.until, now, person.time_zone());
    Some(view! { <p class="notice" data-test="on-it">{who} "; free again " {until} "."</p> }.into_any())
}

/// How a slot ended, in a sentence, with the answer.
fn ended(slot: &Slot, files: &[File]) -> AnyView {
    let after = slot.closed_at.map(|at| duration::words(at - slot.opened_at)).unwrap_or_default();
    let by = slot.answered_by.clone().unwrap_or_default();
    let decision = |name: &str| slot.answer.as_ref().and_then(|answer| answer.get("decision")?.as_str()) == Some(name);
    let verb = match slot.kind {
        Kind::Approval if decision("reject") => "rejected it",
        Kind::Approval if slot.edited.is_some() => "approved it with a change",
        Kind::Approval => "approved it",
        Kind::Human if slot.answer.as_ref().is_some_and(|answer| answer.get("result").is_some()) => {
            "handed in the result"
        }
        Kind::Human => "gave the work back",
        _ => "answered",
    };
    let sentence = match (slot.status, &slot.on_behalf_of) {
        (Status::Answered, Some(whom)) => format!("{by} {verb} on behalf of {whom} after {after}."),
        (Status::Answered, None) => format!("{by} {verb} after {after}."),
        (Status::Expired, _) if slot.answer.is_some() => {
            format!("Nobody answered within {after}; the default was used.")
        }
        (Status::Expired, _) => format!("Nobody answered within {after}."),
        (Status::Cancelled, _) => format!("Withdrawn after {after}: {}", slot.reason.clone().unwrap_or_default()),
        (Status::Waiting, _) => String::new(),
    };
    let secret = (slot.secret && slot.status == Status::Answered).then_some(match slot.used_at {
        Some(_) => "The secret was handed to the agent, once, and wiped.",
        None => "The secret is sealed until the agent takes it.",
    });
    let secret = secret.map(|words| view! { <p class="faint">{words}</p> });
    let answer = slot.answer.as_ref().and_then(|value| shown(slot, value));
    let answer = answer.map(|words| view! { <blockquote class="said">{words}</blockquote> });
    // Of several approvals each has its note beside its vote.
    let beside = slot.needs > 1 && slot.is_approved();
    let note = slot.note.clone().filter(|_| !beside).map(|note| view! { <p class="faint">"Note: " {note}</p> });
    view! { <p class="outcome">{sentence}</p> {secret} {answer} {attached(files)} {note} }.into_any()
}

/// An answer as its reader would say it: an option by its label, words as words, files by themselves, the rest as JSON.
fn shown(slot: &Slot, value: &Value) -> Option<String> {
    if let Some(option) = slot.options.iter().find(|option| option.value == *value) {
        return Some(option.label.clone());
    }
    match slot.kind {
        Kind::Approval => return Some(value.get("reason")?.as_str()?.to_owned()),
        Kind::Human => {
            let words = value.get("result").or(value.get("messages"))?;
            return Some(match words {
                Value::Array(messages) => messages.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n"),
                Value::String(text) => text.clone(),
                other => {
                    other.get("summary").and_then(Value::as_str).map_or_else(|| format!("{other:#}"), str::to_owned)
                }
            });
        }
        _ => {}
    }
    let files: Vec<String> =
        form::files(slot, value).into_iter().filter_map(|file| file.id.map(|id| id.to_string())).collect();
    let plain = |value: &Value| match value {
        Value::String(text) if files.contains(text) => "(the file below)".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "Yes".to_owned(),
        Value::Bool(false) => "No".to_owned(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    Some(match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}: {}", plain(value))).collect::<Vec<_>>().join("\n")
        }
        other => plain(other),
    })
    .filter(|words| words != "(the file below)")
}
