//! `/slots/{id}`: one question. Answering takes one page; so do handing over, declining, and saying that one is on it.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    Refusal, Tx,
    file::{self, File},
    ids::SlotId,
    person,
    slot::{self, Kind, Moved, Slot, Standing, Status},
    task,
};
use http::StatusCode;
use leptos::prelude::*;

use super::{Fields, field, own_page, sent::Sent, together};
use crate::{
    components::{Alert, Input, Place, Question, TextArea, Typed, Wrong, error_at},
    context::Cx,
    page::{Frame, log, page, refused, refused_with, status},
};

/// Which form on the page was refused, and with what.
#[derive(Default)]
struct Refused {
    form: &'static str,
    sentence: Option<String>,
    typed: Typed,
}

pub(crate) async fn show(cx: Cx, Path(id): Path<String>) -> Response {
    match read(&cx, &id).await {
        Ok(slot) => shown(&cx, slot, StatusCode::OK, Refused::default(), "").await,
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn read(cx: &Cx, id: &str) -> Result<Slot, Refusal> {
    let id: SlotId = id.parse().map_err(|_| Refusal::NotFound)?;
    slot::get(&cx.engine, &cx.actor(), id).await
}

/// The answer comes in through the one door; a refusal shows the question as it now stands, with what was typed.
pub(crate) async fn post(cx: Cx, Path(id): Path<String>, sent: Sent) -> Response {
    let slot = match read(&cx, &id).await {
        Ok(slot) => slot,
        Err(gone) => return out_of_sight(&cx, &gone, &alone(&id, Typed::new(sent.into_parts().0, &[]))).await,
    };
    let kept = sent.keep(&cx).await;
    let back = field(&kept.fields, "back");
    let done = match kept.refused {
        None => deposit(&cx, &slot, &kept.fields).await,
        Some((_, refusal)) => Err(refusal),
    };
    match done {
        Ok(()) => {
            let to = own_page(&back).map_or_else(|| format!("/slots/{}", slot.id), str::to_owned);
            Redirect::to(&to).into_response()
        }
        Err(refusal) => {
            let typed = Typed { files: kept.files, ..Typed::new(kept.fields, refusal.errors()) };
            again(&cx, &id, "answer", &refusal, typed, &back).await
        }
    }
}

/// The page once more, as the question now stands, with the sentence and what was typed.
async fn again(cx: &Cx, id: &str, form: &'static str, refusal: &Refusal, typed: Typed, back: &str) -> Response {
    log(refusal);
    match read(cx, id).await {
        Ok(slot) => {
            let refused = Refused { form, sentence: Some(refusal.to_string()), typed };
            shown(cx, slot, status(refusal), refused, back).await
        }
        Err(gone) => out_of_sight(cx, &gone, &alone(id, typed)).await,
    }
}

/// What was typed for the one question of this page.
fn alone(id: &str, typed: Typed) -> Vec<(SlotId, Typed)> {
    id.parse().ok().map(|id| (id, typed)).into_iter().collect()
}

/// Handed to others, a question is not shown any more; what was typed for it is, unless it was to be a secret.
pub(crate) async fn out_of_sight(cx: &Cx, gone: &Refusal, typed: &[(SlotId, Typed)]) -> Response {
    let ids: Vec<SlotId> = typed.iter().map(|(id, _)| *id).collect();
    let secrets = slot::secret::asked_by(&cx.engine, &ids).await;
    let words =
        typed.iter().map(|(id, typed)| typed.words(secrets.as_ref().map_or(true, |secrets| secrets.contains(id))));
    refused_with(cx, gone, words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n"))
}

async fn deposit(cx: &Cx, slot: &Slot, fields: &[(String, String)]) -> Result<(), Refusal> {
    // A form that cannot be read is not handed in; but who may answer, and whether it still waits, is said first.
    let value = slot::form::from_form(slot, fields, cx.zone());
    let revision = field(fields, "revision").parse().unwrap_or(0);
    let mut tx = cx.engine.single().await?;
    match value {
        Ok(value) => {
            slot::deposit(&mut tx, &cx.actor(), slot.id, Some(revision), value, None).await?;
            tx.commit().await
        }
        Err(errors) => Err(match slot.standing(cx.person()) {
            Standing::MayOnlySee(sentence) => Refusal::NotYours(sentence),
            _ => slot.closed_refusal().unwrap_or(Refusal::InvalidAnswer(errors)),
        }),
    }
}

/// Runs one of the other verbs and comes back to the page.
async fn other(
    cx: &Cx,
    id: &str,
    form: &'static str,
    fields: Vec<(String, String)>,
    verb: impl AsyncFnOnce(&mut Tx, SlotId) -> Result<(), Refusal>,
) -> Response {
    let done = async {
        let slot: SlotId = id.parse().map_err(|_| Refusal::NotFound)?;
        let mut tx = cx.engine.begin().await?;
        verb(&mut tx, slot).await?;
        tx.commit().await
    };
    match done.await {
        // Whoever handed it on may not see it any more.
        Ok(()) if read(cx, id).await.is_err() => Redirect::to("/").into_response(),
        Ok(()) => Redirect::to(&format!("/slots/{id}")).into_response(),
        Err(refusal) => {
            let typed = Typed::new(fields, refusal.errors());
            again(cx, id, form, &refusal, typed, "").await
        }
    }
}

pub(crate) async fn reassign(cx: Cx, Path(id): Path<String>, Fields(fields): Fields) -> Response {
    let (actor, to, reason) = (cx.actor(), field(&fields, "to"), field(&fields, "reason"));
    other(&cx, &id, "reassign", fields, async |tx, slot| slot::reassign(tx, &actor, slot, &to, &reason).await).await
}

pub(crate) async fn decline(cx: Cx, Path(id): Path<String>, Fields(fields): Fields) -> Response {
    let (actor, reason) = (cx.actor(), field(&fields, "reason"));
    other(&cx, &id, "decline", fields, async |tx, slot| slot::decline(tx, &actor, slot, &reason).await).await
}

pub(crate) async fn due(cx: Cx, Path(id): Path<String>, Fields(fields): Fields) -> Response {
    let (actor, reason, zone) = (cx.actor(), field(&fields, "reason"), cx.zone());
    let typed = field(&fields, "due_at");
    other(&cx, &id, "due", fields, async |tx, slot| {
        let at = slot::form::moment(&typed, zone)
            .ok_or_else(|| Refusal::invalid("/due_at", "Write a date and a time, for example 2026-12-24T18:00."))?;
        slot::move_due(tx, &actor, slot, Moved::Due(at), &reason).await
    })
    .await
}

pub(crate) async fn take(cx: Cx, Path(id): Path<String>) -> Response {
    let actor = cx.actor();
    other(&cx, &id, "take", Vec::new(), async |tx, slot| slot::take(tx, &actor, slot).await.map(drop)).await
}

pub(crate) async fn let_go(cx: Cx, Path(id): Path<String>) -> Response {
    let actor = cx.actor();
    other(&cx, &id, "take", Vec::new(), async |tx, slot| slot::let_go(tx, &actor, slot).await).await
}

async fn shown(cx: &Cx, slot: Slot, status: StatusCode, wrong: Refused, back: &str) -> Response {
    let read = async {
        let files = file::of_slots(&cx.engine, &[slot.id]).await?;
        let lines = slot::history(&cx.engine, &slot).await?;
        let parties = match slot.may_be_handed_over_by(cx.person()) {
            true => person::parties(&cx.engine).await?,
            false => Vec::new(),
        };
        Ok::<_, Refusal>((files, lines, parties))
    };
    let (files, lines, parties) = match read.await {
        Ok(read) => read,
        Err(refusal) => return refused(cx, &refusal),
    };
    let title: String = slot.message.chars().take(60).collect();
    let live = format!("slot:{}", slot.id);
    let (person, now) = (cx.person().clone(), cx.now);
    let back = own_page(back).unwrap_or_default().to_owned();
    let Refused { form, sentence, typed } = wrong;
    page(cx, status, Frame { title: &title, live: &live }, move || {
        let task = format!("/tasks/{}", slot.task_id);
        let claim = slot.claim_id.map(|id| view! { " · " <a href=format!("/claims/{id}")>"The claim"</a> });
        let task_title = slot.task_title.clone();
        let seen = person.sees_all() || slot.for_id == Some(person.id());
        let work =
            if seen { view! { <a href=task>{task_title}</a> }.into_any() } else { view! { {task_title} }.into_any() };
        let others = others(cx, &slot, parties, form, &typed);
        let typed = if form == "answer" { typed } else { Typed::default() };
        let history = (lines.len() > 1).then(|| view! { <h2>"What happened"</h2> {timeline(lines, cx)} });
        view! {
            <p class="crumbs"><a href="/">"Inbox"</a> " · " {work} {claim}</p>
            <h1 class="sr-only">"Question"</h1>
            {sentence.map(|sentence| view! { <Alert sentence=sentence/> })}
            <Question asked=slot person=person now=now back=back typed=typed files=files place=Place::Alone/>
            {others}
            {history}
        }
        .into_any()
    })
}

/// What else somebody can do with a question than answer it.
fn others(cx: &Cx, slot: &Slot, parties: Vec<person::Party>, form: &str, typed: &Typed) -> Option<AnyView> {
    let standing = slot.standing(cx.person());
    if slot.status != Status::Waiting || parties.is_empty() {
        return None;
    }
    let on_it = matches!(standing, Standing::Asked | Standing::OnBehalf).then(|| {
        let mine = slot.taken_at(cx.now).is_some_and(|taken| taken.id == cx.person().id());
        let taken = slot.taken_at(cx.now).is_some();
        let (path, words) = if mine { ("let-go", "I am no longer on it") } else { ("take", "I’m on it") };
        (mine || !taken).then(|| {
            view! {
                <form method="post" action=format!("/slots/{}/{path}", slot.id)><button class="option">{words}</button></form>
            }
        })
    });
    let fresh = Typed::default();
    let of = |name: &str| if form == name { typed.clone() } else { fresh.clone() };
    let (hand, decline) = (of("reassign"), of("decline"));
    let options =
        parties.into_iter().map(|party| view! { <option value=party.name>{party.words}</option> }).collect_view();
    let to_wrong = error_at(&hand.errors, "/to");
    let id = slot.id;
    let hand_over = view! {
        <details class="card" id="others-hand-over" open=form == "reassign">
            <summary>"Hand it to somebody else"</summary>
            <form method="post" action=format!("/slots/{id}/reassign") id="hand-over" data-typed="true">
                <div class="field">
                    <label for="to">"To whom? An e-mail address, a group or a role"</label>
                    <input type="text" id="to" name="to" list="parties" required=true autocomplete="off" value=hand.value("to")
                        aria-invalid=to_wrong.is_some().then_some("true") aria-describedby="to-wrong"/>
                    <datalist id="parties">{options}</datalist>
                    <Wrong id="to-wrong".to_owned() sentence=to_wrong/>
                </div>
                {reason("hand-over-reason", "Why? They will read it.", &hand)}
                <button>"Hand it over"</button>
            </form>
        </details>
    };
    let decline = (standing == Standing::Asked).then(|| {
        let words = if slot.kind == Kind::Approval { "Decline to decide" } else { "Decline to answer" };
        view! {
            <details class="card" id="others-decline" open=form == "decline">
                <summary>{words}</summary>
                <form method="post" action=format!("/slots/{id}/decline") id="decline" data-typed="true">
                    {reason("decline-reason", "Why? Others who were asked go on waiting; else it goes to the sponsor or the managers.", &decline)}
                    <button>"Decline"</button>
                </form>
            </details>
        }
    });
    let due = cx.person().is_manager().then(|| {
        let typed = of("due");
        view! {
            <details class="card" id="others-due" open=form == "due">
                <summary>"Move the due date"</summary>
                <form method="post" action=format!("/slots/{id}/due") id="move-due" data-typed="true">
                    <Input name="due_at" label=format!("To when? In {}", cx.zone().name()) kind="datetime-local" required=true
                        value=typed.value("due_at") errors=&typed.errors/>
                    {reason("due-reason", "Why? It is recorded.", &typed)}
                    <button>"Move it"</button>
                </form>
            </details>
        }
    });
    Some(view! { <div class="others" data-test="others">{on_it} {hand_over} {decline} {due}</div> }.into_any())
}

fn reason(id: &'static str, label: &'static str, typed: &Typed) -> AnyView {
    let wrong = error_at(&typed.errors, "/reason");
    view! {
        <label for=id>{label}</label>
        <TextArea name="reason".to_owned() id=id.to_owned() value=typed.value("reason") rows=2 required=true
            wrong=wrong.is_some() described_by=format!("{id}-wrong")/>
        <Wrong id=format!("{id}-wrong") sentence=wrong/>
    }
    .into_any()
}

/// What is pending of some slots, with the form right there, for the page that somebody is already on. Several of one
/// task that they may answer stand in one form.
pub(crate) fn pending(slots: &[Slot], files: &[(SlotId, File)], cx: &Cx, back: &str) -> AnyView {
    let waiting: Vec<&Slot> = slots.iter().filter(|slot| slot.status == Status::Waiting).collect();
    let joint = together::joint(&waiting, cx);
    let alone: Vec<_> = waiting.into_iter().filter(|slot| !joint.iter().any(|other| other.id == slot.id)).collect();
    let form = (!joint.is_empty()).then(|| together::form(joint, files, cx, back, &Typed::default()));
    let alone = alone
        .into_iter()
        .map(|slot| {
            view! {
                <Question asked=slot.clone() person=cx.person().clone() now=cx.now back=back.to_owned()
                    typed=Typed::default() files=files.to_vec() place=Place::Within/>
            }
        })
        .collect_view();
    view! { {form} {alone} }.into_any()
}

/// What was asked and how it ended.
pub(crate) fn history(slots: &[Slot], files: &[(SlotId, File)], cx: &Cx) -> Option<AnyView> {
    let ended: Vec<_> = slots.iter().filter(|slot| slot.status != Status::Waiting).collect();
    (!ended.is_empty()).then(|| {
        let ended = ended.into_iter().map(|slot| {
            view! {
                <Question asked=slot.clone() person=cx.person().clone() now=cx.now back=String::new()
                    typed=Typed::default() files=files.to_vec() place=Place::Within/>
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
