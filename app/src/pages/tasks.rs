//! `/tasks`: the work, what it waits on and for how long; the receipt, the record, and stopping.

use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    Refusal, duration, file,
    ids::TaskId,
    slot,
    task::{self, Status, Task, TaskFilter},
};
use http::StatusCode;
use leptos::prelude::*;
use serde::Deserialize;

use super::{Fields, field, slot as slots};
use crate::{
    components::{Alert, TextArea, Wrong, ago, error_at},
    context::Cx,
    page::{Frame, log, page, refused, status},
};

const SHOWN: i64 = 100;
const STATUSES: [Status; 6] =
    [Status::Waiting, Status::Working, Status::Done, Status::Failed, Status::Stopped, Status::Cancelled];

#[derive(Deserialize)]
pub(crate) struct Filter {
    status: Option<String>,
}

pub(crate) async fn list(cx: Cx, Query(filter): Query<Filter>) -> Response {
    let chosen = filter.status.and_then(|text| STATUSES.into_iter().find(|status| status.as_str() == text));
    let tasks =
        match task::list(&cx.engine, cx.person(), TaskFilter { status: chosen, before: None, limit: SHOWN }).await {
            Ok(tasks) => tasks,
            Err(refusal) => return refused(&cx, &refusal),
        };
    let title = if cx.person().sees_all() { "All work" } else { "My work" };
    page(&cx, StatusCode::OK, Frame { title, live: "tasks" }, || {
        let tabs = STATUSES.into_iter().map(|status| {
            let current = (chosen == Some(status)).then_some("page");
            view! { <a href=format!("/tasks?status={}", status.as_str()) aria-current=current>{status.as_str()}</a> }
        });
        let list = if tasks.is_empty() {
            view! { <div class="empty"><p>"No such work. It begins when somebody files a claim or an outside agent asks."</p></div> }.into_any()
        } else {
            let lines = tasks.into_iter().map(|task| line(task, &cx)).collect_view();
            view! { <ol class="lines" data-keys="true">{lines}</ol> }.into_any()
        };
        view! {
            <h1>{title}</h1>
            <nav class="tabs" aria-label="Status">
                <a href="/tasks" aria-current=chosen.is_none().then_some("page")>"all"</a>
                {tabs.collect_view()}
            </nav>
            {list}
        }
        .into_any()
    })
}

fn line(task: Task, cx: &Cx) -> impl IntoView + use<> {
    let state = match (&task.waiting_on, task.waiting_since) {
        (Some(on), Some(since)) => format!("waits for {on} · {}", duration::words(cx.now - since)),
        _ => task.status.as_str().to_owned(),
    };
    view! {
        <li><a href=format!("/tasks/{}", task.id)>{task.title}</a>
            <small>{task.agent}" · "{state}" · "{ago(task.created_at, cx.now, cx.person().time_zone())}</small></li>
    }
}

pub(crate) async fn show(cx: Cx, Path(id): Path<String>) -> Response {
    match shown(&cx, &id, StatusCode::OK, None, String::new()).await {
        Ok(response) => response,
        Err(refusal) => refused(&cx, &refusal),
    }
}

pub(crate) async fn stop(cx: Cx, Path(id): Path<String>, Fields(fields): Fields) -> Response {
    let reason = field(&fields, "reason");
    match stopped(&cx, &id, &reason).await {
        Ok(()) => Redirect::to(&format!("/tasks/{id}")).into_response(),
        Err(refusal) => {
            log(&refusal);
            let again = shown(&cx, &id, status(&refusal), Some(&refusal), reason).await;
            again.unwrap_or_else(|refusal| refused(&cx, &refusal))
        }
    }
}

async fn stopped(cx: &Cx, id: &str, reason: &str) -> Result<(), Refusal> {
    let id: TaskId = id.parse().map_err(|_| Refusal::NotFound)?;
    let mut tx = cx.engine.begin().await?;
    task::stop(&mut tx, cx.person(), id, reason).await?;
    tx.commit().await
}

pub(crate) async fn take_over(cx: Cx, Path(id): Path<String>) -> Response {
    let taken = async {
        let id: TaskId = id.parse().map_err(|_| Refusal::NotFound)?;
        let mut tx = cx.engine.begin().await?;
        task::take_over(&mut tx, cx.person(), id).await?;
        tx.commit().await
    };
    match taken.await {
        Ok(()) => Redirect::to(&format!("/tasks/{id}")).into_response(),
        Err(refusal) => {
            log(&refusal);
            let again = shown(&cx, &id, status(&refusal), Some(&refusal), String::new()).await;
            again.unwrap_or_else(|refusal| refused(&cx, &refusal))
        }
    }
}

async fn shown(
    cx: &Cx,
    id: &str,
    status: StatusCode,
    wrong: Option<&Refusal>,
    reason: String,
) -> Result<Response, Refusal> {
    let id: TaskId = id.parse().map_err(|_| Refusal::NotFound)?;
    let task = task::get(&cx.engine, cx.person(), id).await?;
    let questions = slot::list::of_task(&cx.engine, id).await?;
    let files = file::of_slots(&cx.engine, &questions.iter().map(|slot| slot.id).collect::<Vec<_>>()).await?;
    let lines = task::record(&cx.engine, id).await?;
    let live = format!("task:{id}");
    let sentence = wrong.map(ToString::to_string);
    let error = wrong.and_then(|refusal| error_at(refusal.errors(), "/reason"));
    let title: String = task.title.chars().take(80).collect();
    Ok(page(cx, status, Frame { title: &title, live: &live }, || {
        let may_stop = task.may_be_stopped_by(cx.person());
        let taken =
            questions.iter().any(|slot| slot.status == slot::Status::Waiting && slot.call_id.starts_with("takeover:"));
        let take_over = (task.inside && task.status.is_open() && cx.person().sees_all() && !taken).then(|| {
            view! {
                <form method="post" action=format!("/tasks/{id}/take-over") class="card">
                    <p>"Take this work into your own hands: finish it yourself, or write to the agent and give it back."</p>
                    <button class="option">"Take it over"</button>
                </form>
            }
        });
        let open = error.is_some();
        let kept = (!may_stop && !reason.is_empty()).then(|| {
            view! { <div class="typed" data-test="typed"><p>"What you had typed:"</p><blockquote>{reason.clone()}</blockquote></div> }
        });
        let stop = may_stop.then(|| {
            view! {
                <details class="card stop" id="stop-work" open=open>
                    <summary>"Stop this work"</summary>
                    <form method="post" action=format!("/tasks/{id}/stop") id="stop" data-typed="true">
                        <label for="reason">"Why? Whoever waits for this work, or answers late, will read it."</label>
                        <TextArea name="reason".to_owned() id="reason".to_owned() value=reason.clone() rows=2 required=true
                            wrong=error.is_some() described_by="reason-wrong".to_owned()/>
                        <Wrong id="reason-wrong".to_owned() sentence=error.clone()/>
                        <button class="danger">"Stop the work"</button>
                    </form>
                </details>
            }
        });
        view! {
            <p class="crumbs"><a href="/tasks">"Work"</a></p>
            <h1>{task.title.clone()}</h1>
            {sentence.map(|sentence| view! { <Alert sentence=sentence/> })}
            {kept}
            {slots::pending(&questions, &files, cx, &format!("/tasks/{id}"))}
            {receipt(&task, cx)}
            {take_over}
            {stop}
            {slots::history(&questions, &files, cx)}
            <h2>"The record"</h2>
            {slots::timeline(lines, cx)}
        }
        .into_any()
    }))
}

/// The receipt: who did what for whom, what it waits on, what it took.
fn receipt(task: &Task, cx: &Cx) -> impl IntoView + use<> {
    let zone = cx.person().time_zone();
    let waiting = task.waiting_on.clone().map(|on| {
        let since = task.waiting_since.map(|since| format!(", for {}", duration::words(cx.now - since)));
        view! { <dt>"Waits for"</dt><dd>{on}{since}</dd> }
    });
    let claim =
        task.claim_id.map(|id| view! { <dt>"About"</dt><dd><a href=format!("/claims/{id}")>"the claim"</a></dd> });
    let whom = task.for_name.clone().map(|name| view! { <dt>"For"</dt><dd>{name}</dd> });
    let problem = task.problem.clone().map(|problem| view! { <dt>"Problem"</dt><dd class="words">{problem}</dd> });
    let summary = task.result.as_ref().and_then(|result| result.get("summary")?.as_str().map(str::to_owned));
    let summary = summary.map(|summary| view! { <dt>"Result"</dt><dd class="words">{summary}</dd> });
    let finished = task.finished_at.map(|at| view! { <dt>"Ended"</dt><dd>{ago(at, cx.now, zone)}</dd> });
    view! {
        <dl class="facts card" data-test="receipt">
            <dt>"Status"</dt><dd><b class=format!("badge status-{}", task.status.as_str())>{task.status.as_str()}</b></dd>
            {waiting}
            <dt>"Agent"</dt><dd>{task.agent.clone()}</dd>
            {claim} {whom} {summary} {problem}
            <dt>"Waited for people"</dt><dd>{duration::words(task.waited + task.waiting_on.as_ref().and(task.waiting_since).map_or(chrono::Duration::zero(), |since| cx.now - since))}</dd>
            <dt>"Questions"</dt><dd>{task.questions}</dd>
            <dt>"Model calls"</dt><dd>{task.model_calls}</dd>
            <dt>"Tokens"</dt><dd>{task.input_tokens}" in, "{task.output_tokens}" out"</dd>
            <dt>"Cost"</dt><dd>{task.cost.to_string()}</dd>
            <dt>"Began"</dt><dd>{ago(task.created_at, cx.now, zone)}</dd>
            {finished}
        </dl>
    }
}
