//! `/tasks/{id}/questions`: several questions of one piece of work on one page, with one button: all or none.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    FieldError, Refusal,
    file::{self, File},
    ids::{SlotId, TaskId},
    slot::{self, Kind, NotResolved, Resolved, Slot, Standing, Status, form::shape},
};
use http::StatusCode;
use leptos::prelude::*;

use super::{field, own_page, sent::Sent, slot::out_of_sight};
use crate::{
    components::{Alert, Place, Question, Typed, has_file, prefix},
    context::Cx,
    page::{Frame, log, page, refused, status},
};

/// Those of one task that the reader may answer, when there are several; a takeover stands for itself.
pub(crate) fn joint(waiting: &[&Slot], cx: &Cx) -> Vec<Slot> {
    let may = |slot: &&&Slot| {
        slot.kind != Kind::Human && matches!(slot.standing(cx.person()), Standing::Asked | Standing::OnBehalf)
    };
    let Some(first) = waiting.iter().find(may) else { return Vec::new() };
    let joint: Vec<Slot> =
        waiting.iter().filter(may).filter(|slot| slot.task_id == first.task_id).map(|slot| (*slot).clone()).collect();
    if joint.len() > 1 { joint } else { Vec::new() }
}

/// The form of several questions.
pub(crate) fn form(slots: Vec<Slot>, files: &[(SlotId, File)], cx: &Cx, back: &str, typed: &Typed) -> AnyView {
    let Some(task) = slots.first().map(|slot| slot.task_id) else { return ().into_any() };
    let count = slots.iter().filter(|slot| slot.status == Status::Waiting).count();
    let enctype = slots.iter().any(|slot| has_file(&shape(slot))).then_some("multipart/form-data");
    let revisions: i32 = slots.iter().map(|slot| slot.revision).sum();
    let questions = slots
        .into_iter()
        .enumerate()
        .map(|(at, slot)| {
            let typed = typed.of(&prefix(slot.id), &format!("/answers/{at}/value"));
            view! {
                <Question asked=slot person=cx.person().clone() now=cx.now back=String::new() typed=typed
                    files=files.to_vec() place=Place::Together/>
            }
        })
        .collect_view();
    view! {
        <form method="post" action=format!("/tasks/{task}/questions") enctype=enctype class="answer together"
            id=format!("form-{task}-{revisions}") data-typed="true" data-test="together">
            <input type="hidden" name="back" value=back.to_owned()/>
            <h2>{if count == 1 { "One question of one piece of work".to_owned() } else { format!("{count} questions of one piece of work") }}</h2>
            {questions}
            <button>{if count == 1 { "Send the answer".to_owned() } else { format!("Send all {count} answers") }}</button>
            <p class="faint">"Either all of them are handed in, or none. Each can also be answered by itself, from the inbox."</p>
        </form>
    }
    .into_any()
}

pub(crate) async fn show(cx: Cx, Path(id): Path<String>) -> Response {
    match read(&cx, &id).await {
        Ok(slots) => shown(&cx, slots, StatusCode::OK, None, Typed::default(), "").await,
        Err(refusal) => refused(&cx, &refusal),
    }
}

/// The task's waiting slots that the person may answer.
async fn read(cx: &Cx, id: &str) -> Result<Vec<Slot>, Refusal> {
    let id: TaskId = id.parse().map_err(|_| Refusal::NotFound)?;
    let slots = slot::list::of_task(&cx.engine, id).await?;
    let may = |slot: &Slot| matches!(slot.standing(cx.person()), Standing::Asked | Standing::OnBehalf);
    let slots: Vec<_> = slots.into_iter().filter(|slot| slot.status == Status::Waiting && may(slot)).collect();
    if slots.is_empty() { Err(Refusal::NotFound) } else { Ok(slots) }
}

pub(crate) async fn post(cx: Cx, Path(id): Path<String>, sent: Sent) -> Response {
    let kept = sent.keep(&cx).await;
    let back = field(&kept.fields, "back");
    let slots = match answered(&cx, &kept.fields).await {
        Ok(slots) => slots,
        Err(gone) => {
            return out_of_sight(&cx, &gone, &each(&Typed { files: kept.files, ..Typed::new(kept.fields, &[]) })).await;
        }
    };
    let typed = Typed { files: kept.files, ..Typed::new(kept.fields, &[]) };
    let done = match kept.refused {
        None => resolve(&cx, &id, slots, &typed).await,
        Some((name, refusal)) => Err(of_its_question(&slots, &name, refusal).into()),
    };
    match done {
        Ok(()) => Redirect::to(own_page(&back).unwrap_or("/")).into_response(),
        Err(NotResolved { at, refusal }) => {
            log(&refusal);
            let now = match answered(&cx, &typed.fields).await {
                Ok(now) => now,
                Err(gone) => return out_of_sight(&cx, &gone, &each(&typed)).await,
            };
            let which = at.and_then(|at| now.get(at)).filter(|_| refusal.errors().is_empty());
            let about = which.map(|slot| slot.message.chars().take(80).collect::<String>());
            let sentence = match about {
                Some(about) => format!("Nothing was handed in. “{about}”: {refusal}"),
                None => format!("Nothing was handed in. {refusal}"),
            };
            let typed = Typed { errors: refusal.errors().to_vec(), ..typed };
            shown(&cx, now, status(&refusal), Some(sentence), typed, &back).await
        }
    }
}

/// The questions that the form names, in its order. Refuses when one of them is none.
fn named(fields: &[(String, String)]) -> Result<Vec<SlotId>, Refusal> {
    let ids = fields.iter().filter_map(|(name, _)| name.strip_suffix(":revision"));
    ids.map(|id| id.parse().map_err(|_| Refusal::NotFound)).collect()
}

/// What was typed for each of them.
fn each(typed: &Typed) -> Vec<(SlotId, Typed)> {
    named(&typed.fields).unwrap_or_default().into_iter().map(|id| (id, typed.of(&prefix(id), ""))).collect()
}

/// The questions that the form answers, as they stand now.
async fn answered(cx: &Cx, fields: &[(String, String)]) -> Result<Vec<Slot>, Refusal> {
    let mut slots = Vec::new();
    for id in named(fields)? {
        slots.push(slot::get(&cx.engine, &cx.actor(), id).await?);
    }
    if slots.is_empty() { Err(Refusal::NotFound) } else { Ok(slots) }
}

/// What is wrong with the file of field `name`, where the form of all the questions shows it.
fn of_its_question(slots: &[Slot], name: &str, refusal: Refusal) -> Refusal {
    let Some(at) = slots.iter().position(|slot| name.starts_with(&prefix(slot.id))) else { return refusal };
    match refusal.errors() {
        [] => refusal,
        errors => Refusal::Invalid(under(at, errors)),
    }
}

/// The errors of one question's answer, where the form of all of them shows them.
fn under(at: usize, errors: &[FieldError]) -> Vec<FieldError> {
    let moved = |error: &FieldError| FieldError::new(format!("/answers/{at}/value{}", error.pointer), &error.detail);
    errors.iter().map(moved).collect()
}

async fn resolve(cx: &Cx, task: &str, slots: Vec<Slot>, typed: &Typed) -> Result<(), NotResolved> {
    let task: TaskId = task.parse().map_err(|_| Refusal::NotFound)?;
    let mut answers = Vec::new();
    let mut wrong: Vec<FieldError> = Vec::new();
    for (at, slot) in slots.iter().enumerate() {
        let own = typed.of(&prefix(slot.id), "");
        match slot::form::from_form(slot, &own.fields, cx.zone()) {
            Ok(value) => {
                let revision = field(&own.fields, "revision").parse().unwrap_or(0);
                answers.push(Resolved { slot: slot.id, revision: Some(revision), value });
            }
            Err(errors) => wrong.extend(under(at, &errors)),
        }
    }
    if !wrong.is_empty() {
        // That it is too late is said before what does not fit.
        let late = slots.iter().enumerate().find_map(|(at, slot)| Some((at, slot.closed_refusal()?)));
        return Err(match late {
            Some((at, refusal)) => NotResolved { at: Some(at), refusal },
            None => Refusal::InvalidAnswer(wrong).into(),
        });
    }
    let mut tx = cx.engine.begin().await?;
    slot::resolve(&mut tx, &cx.actor(), task, answers).await?;
    Ok(tx.commit().await?)
}

async fn shown(
    cx: &Cx,
    slots: Vec<Slot>,
    status: StatusCode,
    sentence: Option<String>,
    typed: Typed,
    back: &str,
) -> Response {
    let ids: Vec<SlotId> = slots.iter().map(|slot| slot.id).collect();
    let files = match file::of_slots(&cx.engine, &ids).await {
        Ok(files) => files,
        Err(refusal) => return refused(cx, &refusal),
    };
    let live = ids.iter().map(|id| format!("slot:{id}")).collect::<Vec<_>>().join(",");
    let title = slots.first().map(|slot| slot.task_title.clone()).unwrap_or_default();
    let back = own_page(back).unwrap_or_default().to_owned();
    page(cx, status, Frame { title: "Questions", live: &live }, move || {
        view! {
            <p class="crumbs"><a href="/">"Inbox"</a> " · " {title}</p>
            <h1 class="sr-only">"Questions"</h1>
            {sentence.map(|sentence| view! { <Alert sentence=sentence/> })}
            {form(slots, &files, cx, &back, &typed)}
        }
        .into_any()
    })
}
