//! `/slots/{id}`: one question. Answering takes one page.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    Refusal,
    ids::SlotId,
    slot::{self, Slot},
    task,
};
use http::StatusCode;
use leptos::prelude::*;

use super::{Fields, field, own_page};
use crate::{
    components::{Alert, Question, Typed},
    context::Cx,
    page::{Frame, log, page, refused, status},
};

pub(crate) async fn show(cx: Cx, Path(id): Path<String>) -> Response {
    match read(&cx, &id).await {
        Ok(slot) => shown(&cx, slot, StatusCode::OK, None, Typed::default(), ""),
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn read(cx: &Cx, id: &str) -> Result<Slot, Refusal> {
    let id: SlotId = id.parse().map_err(|_| Refusal::NotFound)?;
    slot::get(&cx.engine, &cx.actor(), id).await
}

/// The answer comes in through the one door; a refusal shows the question as it now stands, with what was typed.
pub(crate) async fn post(cx: Cx, Path(id): Path<String>, Fields(fields): Fields) -> Response {
    let slot = match read(&cx, &id).await {
        Ok(slot) => slot,
        Err(refusal) => return refused(&cx, &refusal),
    };
    let back = field(&fields, "back");
    match deposit(&cx, &slot, &fields).await {
        Ok(()) => {
            let to = own_page(&back).map_or_else(|| format!("/slots/{}", slot.id), str::to_owned);
            Redirect::to(&to).into_response()
        }
        Err(refusal) => {
            log(&refusal);
            let slot = match read(&cx, &id).await {
                Ok(slot) => slot,
                Err(gone) => return refused(&cx, &gone),
            };
            let typed = Typed { fields, errors: refusal.errors().to_vec() };
            shown(&cx, slot, status(&refusal), Some(refusal.to_string()), typed, &back)
        }
    }
}

async fn deposit(cx: &Cx, slot: &Slot, fields: &[(String, String)]) -> Result<(), Refusal> {
    // A form that cannot be read is not handed in; but who may answer, and whether it still waits, is said first.
    let value = slot::form::from_form(slot, fields);
    let revision = field(fields, "revision").parse().unwrap_or(0);
    let mut tx = cx.engine.single().await?;
    match value {
        Ok(value) => {
            slot::deposit(&mut tx, &cx.actor(), slot.id, Some(revision), value, None).await?;
            tx.commit().await
        }
        Err(errors) => Err(match slot.standing(cx.person()) {
            slot::Standing::MayOnlySee(sentence) => Refusal::NotYours(sentence),
            _ => slot.closed_refusal().unwrap_or(Refusal::InvalidAnswer(errors)),
        }),
    }
}

fn shown(cx: &Cx, slot: Slot, status: StatusCode, sentence: Option<String>, typed: Typed, back: &str) -> Response {
    let title: String = slot.message.chars().take(60).collect();
    let live = format!("slot:{}", slot.id);
    let (person, now) = (cx.person().clone(), cx.now);
    let back = own_page(back).unwrap_or_default().to_owned();
    page(cx, status, Frame { title: &title, live: &live }, move || {
        let task = format!("/tasks/{}", slot.task_id);
        let claim = slot.claim_id.map(|id| view! { " · " <a href=format!("/claims/{id}")>"The claim"</a> });
        let task_title = slot.task_title.clone();
        let seen = person.sees_all() || slot.for_id == Some(person.id());
        let work =
            if seen { view! { <a href=task>{task_title}</a> }.into_any() } else { view! { {task_title} }.into_any() };
        view! {
            <p class="crumbs"><a href="/">"Inbox"</a> " · " {work} {claim}</p>
            <h1 class="sr-only">"Question"</h1>
            {sentence.map(|sentence| view! { <Alert sentence=sentence/> })}
            <Question asked=slot person=person now=now back=back typed=typed/>
        }
        .into_any()
    })
}

/// What is pending of some slots, with the form right there, for the page that somebody is already on.
pub(crate) fn pending(slots: &[Slot], cx: &Cx, back: &str) -> AnyView {
    let waiting = slots.iter().filter(|slot| slot.status == slot::Status::Waiting);
    waiting
        .map(|slot| {
            view! {
                <Question asked=slot.clone() person=cx.person().clone() now=cx.now back=back.to_owned() typed=Typed::default()/>
            }
        })
        .collect_view()
        .into_any()
}

/// What was asked and how it ended.
pub(crate) fn history(slots: &[Slot], cx: &Cx) -> Option<AnyView> {
    let ended: Vec<_> = slots.iter().filter(|slot| slot.status != slot::Status::Waiting).collect();
    (!ended.is_empty()).then(|| {
        let ended = ended.into_iter().map(|slot| {
            view! {
                <Question asked=slot.clone() person=cx.person().clone() now=cx.now back=String::new() typed=Typed::default()/>
            }
        });
        view! { <h2>"Questions and answers"</h2> {ended.collect_view()} }.into_any()
    })
}

/// The record as a timeline.
pub(crate) fn timeline(lines: Vec<task::RecordLine>, cx: &Cx) -> AnyView {
    let zone = cx.person().time_zone().to_owned();
    let now = cx.now;
    let lines = lines.into_iter().map(|line| {
        view! { <li class=format!("line-{}", line.kind)><span>{line.text}</span> <small class="faint">{crate::components::ago(line.at, now, &zone)}</small></li> }
    });
    view! { <ol class="timeline" data-test="record">{lines.collect_view()}</ol> }.into_any()
}
