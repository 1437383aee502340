//! `/admin/settings`: policies with a preview, the site's calendar, and timers that failed again and again.

use axum::{
    extract::{Path, Query, rejection::QueryRejection},
    response::{IntoResponse, Redirect, Response},
};
use chrono::{DateTime, Utc};
use engine::{
    FieldError, Refusal,
    calendar::{self, Calendar, CalendarForm, Owner, import},
    duration,
    policy::{self, Policy, PolicyForm, Preview},
    settings::{self, Change},
    slot,
    timer::failed::{self, FailedTimer},
};
use http::StatusCode;
use leptos::{either::Either, prelude::*};
use serde::Deserialize;

use super::{Fields, field, sent::Sent};
use crate::{
    components::{Alert, Input, Wrong, ago, calendar_form, error_at, until},
    context::Cx,
    page::{Frame, log, page, refused, status},
};

/// What the page shows besides what is saved.
#[derive(Default)]
struct Shown {
    policy: Option<PolicyForm>,
    asked_at: String,
    preview: Option<Preview>,
    calendar: Option<CalendarForm>,
    notice: Option<String>,
    changed: Option<Change>,
    /// The refusal and which form it belongs to.
    wrong: Option<(&'static str, Refusal)>,
}

#[derive(Deserialize)]
pub(crate) struct ShowQuery {
    /// A policy to be changed.
    policy: Option<String>,
    /// A change just made, which can be undone.
    changed: Option<Change>,
}

pub(crate) async fn show(cx: Cx, query: Result<Query<ShowQuery>, QueryRejection>) -> Response {
    let Ok(Query(query)) = query else { return refused(&cx, &Refusal::NotFound) };
    let mut shows = Shown { changed: query.changed, ..Shown::default() };
    if let Some(id) = query.policy {
        match settings::settings(&cx.engine).await {
            Ok(settings) => {
                shows.policy = settings.policies.iter().find(|policy| policy.id.to_string() == id).map(PolicyForm::of);
            }
            Err(refusal) => return refused(&cx, &refusal),
        }
    }
    shown(&cx, shows).await
}

/// Back to the page after a change, with the offer to undo it.
fn changed(cx: &Cx, change: Result<Change, Refusal>) -> Response {
    match change {
        Ok(change) => Redirect::to(&format!("/admin/settings?changed={change}")).into_response(),
        Err(refusal) => refused(cx, &refusal),
    }
}

pub(crate) async fn undo(cx: Cx, Path(change): Path<String>) -> Response {
    let Ok(change) = change.parse() else { return refused(&cx, &Refusal::NotFound) };
    match settings::undo(&cx.engine, cx.person(), change).await {
        Err(wrong @ Refusal::Invalid(_)) => {
            shown(&cx, Shown { wrong: Some(("undo", wrong)), ..Shown::default() }).await
        }
        undone => changed(&cx, undone),
    }
}

fn form(fields: &[(String, String)]) -> PolicyForm {
    let get = |name: &str| field(fields, name);
    PolicyForm {
        agent: get("agent"),
        kind: get("kind"),
        priority: get("priority"),
        target: get("target"),
        business: !get("business").is_empty(),
        at_risk_percent: get("at_risk_percent"),
        remind_after: get("remind_after"),
        remind_every: get("remind_every"),
        remind_most: get("remind_most"),
        escalate_after: get("escalate_after"),
        reassign: !get("reassign").is_empty(),
    }
}

/// Saves a policy, or shows what it would mean.
pub(crate) async fn policy(cx: Cx, Fields(fields): Fields) -> Response {
    if let Err(refusal) = calendar::only_admins(cx.person()) {
        return refused(&cx, &refusal);
    }
    let (form, asked_at) = (form(&fields), field(&fields, "asked_at"));
    if field(&fields, "act") != "preview" {
        return match policy::save(&cx.engine, cx.person(), &form).await {
            Ok(change) => changed(&cx, Ok(change)),
            Err(refusal) => {
                shown(&cx, Shown { policy: Some(form), asked_at, wrong: Some(("policy", refusal)), ..Shown::default() })
                    .await
            }
        };
    }
    let previewed = async {
        let policy = form.read().map_err(Refusal::Invalid)?;
        let settings = settings::settings(&cx.engine).await?;
        let zone = settings.site.zone;
        let at = match asked_at.as_str() {
            "" => cx.now,
            text => slot::form::moment(text, zone).ok_or_else(|| {
                Refusal::invalid("/asked_at", "Write a date and a time, for example 2026-12-24T18:00.")
            })?,
        };
        Ok(policy::preview(&policy, &settings.site, at))
    };
    let (preview, wrong) = match previewed.await {
        Ok(preview) => (Some(preview), None),
        Err(refusal) => (None, Some(("policy", refusal))),
    };
    shown(&cx, Shown { policy: Some(form), asked_at, preview, wrong, ..Shown::default() }).await
}

pub(crate) async fn remove(cx: Cx, Path(id): Path<String>) -> Response {
    let removed = match id.parse() {
        Ok(id) => policy::remove(&cx.engine, cx.person(), id).await,
        Err(_) => Err(Refusal::NotFound),
    };
    changed(&cx, removed)
}

/// Saves the site's calendar; with an .ics file its holidays are added to the list first, to be looked at.
pub(crate) async fn calendar(cx: Cx, sent: Sent) -> Response {
    if let Err(refusal) = calendar::only_admins(cx.person()) {
        return refused(&cx, &refusal);
    }
    let (fields, files) = sent.into_parts();
    let mut form = calendar_form::read(&fields);
    if let Some((_, _, bytes)) = files.into_iter().find(|(name, _, _)| name == "ics") {
        let imported = import::holidays(&String::from_utf8_lossy(&bytes), cx.now.date_naive());
        let (notice, wrong) = match imported {
            Ok((holidays, others)) => {
                let count = holidays.len();
                let read = CalendarForm::of(&Calendar { holidays, ..Calendar::default() }).holidays;
                let own: Vec<&str> = form.holidays.lines().map(str::trim).collect();
                // A file that is read again adds nothing.
                let new = read.lines().filter(|line| !own.contains(line));
                form.holidays =
                    own.iter().copied().chain(new).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
                let others = match others {
                    0 => String::new(),
                    1 => " 1 event was no whole day, or comes back in another way than every year, and is left out."
                        .to_owned(),
                    _ => format!(
                        " {others} events were no whole days, or come back in another way than every year, and are left out."
                    ),
                };
                let days = if count == 1 { "1 day was".to_owned() } else { format!("{count} days were") };
                (Some(format!("{days} read from the file.{others} Look at the list, then save it.")), None)
            }
            Err(detail) => (None, Some(("calendar", Refusal::invalid("/ics", detail)))),
        };
        return shown(&cx, Shown { calendar: Some(form), notice, wrong, ..Shown::default() }).await;
    }
    let saved = match form.read() {
        Ok(site) => calendar::save(&cx.engine, cx.person(), Owner::Site, Some(&site)).await,
        Err(errors) => Err(Refusal::Invalid(errors)),
    };
    match saved {
        Ok(change) => changed(&cx, Ok(change)),
        Err(refusal) => {
            shown(&cx, Shown { calendar: Some(form), wrong: Some(("calendar", refusal)), ..Shown::default() }).await
        }
    }
}

/// Tries one timer again, or "all".
pub(crate) async fn retry(cx: Cx, Path(id): Path<String>) -> Response {
    let again = match (id.as_str(), id.parse()) {
        ("all", _) => failed::retry(&cx.engine, cx.person(), None).await,
        (_, Ok(id)) => failed::retry(&cx.engine, cx.person(), Some(id)).await,
        _ => Err(Refusal::NotFound),
    };
    match again {
        Ok(()) => Redirect::to("/admin/settings").into_response(),
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn shown(cx: &Cx, shown: Shown) -> Response {
    let read = async {
        let failed = failed::failed(&cx.engine, cx.person()).await?;
        Ok::<_, Refusal>((failed, settings::settings(&cx.engine).await?))
    };
    let ((failed, how_many), settings) = match read.await {
        Ok(read) => read,
        Err(refusal) => return refused(cx, &refusal),
    };
    if let Some((_, refusal)) = &shown.wrong {
        log(refusal);
    }
    let code = shown.wrong.as_ref().map_or(StatusCode::OK, |(_, refusal)| status(refusal));
    let sentence = shown.wrong.as_ref().map(|(_, refusal)| refusal.to_string());
    let errors = |name: &str| match &shown.wrong {
        Some((form, refusal)) if *form == name => refusal.errors().to_vec(),
        _ => Vec::new(),
    };
    let (policy_errors, calendar_errors) = (errors("policy"), errors("calendar"));
    page(cx, code, Frame { title: "Settings", live: "" }, || {
        let calendar = shown.calendar.unwrap_or_else(|| CalendarForm::of(&settings.site));
        let policies = settings.policies.iter().map(policy_line).collect_view();
        let none = settings.policies.is_empty().then(|| {
            view! { <p class="faint">"There is none yet: only questions that bring a target or reminders of their own have clocks."</p> }
        });
        let ics = error_at(&calendar_errors, "/ics");
        view! {
            <h1>"Settings"</h1>
            {sentence.map(|sentence| view! { <Alert sentence=sentence/> })}
            {shown.changed.map(|change| view! {
                <form method="post" action=format!("/admin/settings/undo/{change}") class="notice saved" role="status">
                    <span>"Saved. What is asked from now on follows it."</span> <button class="option">"Undo"</button>
                </form>
            })}
            {shown.notice.map(|notice| view! { <p class="notice" role="status">{notice}</p> })}
            <h2>"How long answers may take"</h2>
            {none}
            <ul class="plain policies" data-test="policies">{policies}</ul>
            {policy_form(shown.policy.unwrap_or_else(fresh), &shown.asked_at, shown.preview.as_ref(), &settings.site, &policy_errors)}
            <h2>"The site's calendar"</h2>
            <form method="post" action="/admin/settings/calendar" enctype="multipart/form-data" class="card" id="calendar" data-turbo="false"
                data-typed="true">
                {calendar_form::inputs(&calendar, &calendar_errors)}
                <div class="field">
                    <label for="ics">"Add holidays from an .ics file"</label>
                    <input type="file" id="ics" name="ics" accept=".ics,text/calendar"
                        aria-invalid=ics.is_some().then_some("true") aria-describedby="ics-wrong"/>
                    <Wrong id="ics-wrong".to_owned() sentence=ics/>
                </div>
                <button>"Save the calendar"</button>
            </form>
            {in_trouble(failed, how_many, cx)}
        }
        .into_any()
    })
}

fn fresh() -> PolicyForm {
    PolicyForm {
        target: "4h".to_owned(),
        business: true,
        at_risk_percent: "75".to_owned(),
        remind_after: "2h".to_owned(),
        remind_every: "4h".to_owned(),
        remind_most: "3".to_owned(),
        ..PolicyForm::default()
    }
}

/// "Approvals of Refunds: 4 business hours; warned at 75 %; …"
fn policy_line(policy: &Policy) -> impl IntoView + use<> {
    let form = PolicyForm::of(policy);
    let scope = [form.agent, form.kind, form.priority].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let scope = if scope.is_empty() { "Everything".to_owned() } else { scope.join(", ") };
    let time = if policy.business { "business time" } else { "plain time" };
    let mut words = Vec::new();
    if let Some(target) = policy.target {
        words.push(format!("{} of {time}, warned at {} %", duration::text(target), policy.at_risk_percent));
    }
    if let Some(remind) = policy.remind {
        let every = remind.every.map(|every| format!(", then every {}", duration::text(every))).unwrap_or_default();
        words.push(format!("reminded after {}{every}, at most {} times", duration::text(remind.after), remind.most));
    }
    if let Some(after) = policy.escalate_after {
        words.push(format!("the managers {} after the sponsor", duration::text(after)));
    }
    if policy.reassign {
        words.push("late, the question itself goes up".to_owned());
    }
    view! {
        <li>
            <span><b>{scope.clone()}</b> ": " {words.join("; ")}</span>
            <span class="acts">
                <a href=format!("/admin/settings?policy={}#policy", policy.id)>"Change" <span class="sr-only">" the policy for " {scope.clone()}</span></a>
                <form method="post" action=format!("/admin/settings/policy/{}/remove", policy.id)>
                    <button class="quiet">"Remove"</button>
                </form>
            </span>
        </li>
    }
}

fn policy_form(
    form: PolicyForm,
    asked_at: &str,
    preview: Option<&Preview>,
    site: &Calendar,
    errors: &[FieldError],
) -> AnyView {
    let text = |name: &'static str, label: &'static str, value: &str, help: &'static str| {
        view! { <Input name=name label=label value=value autocomplete="off" help=help errors=errors/> }
    };
    let select = |name: &'static str, label: &'static str, choices: &[&'static str], chosen: &str| {
        let wrong = error_at(errors, &format!("/{name}"));
        let options = choices
            .iter()
            .map(
                |choice| view! { <option value=*choice selected=*choice == chosen>{choice.replace('_', " ")}</option> },
            )
            .collect_view();
        view! {
            <div class="field">
                <label for=name>{label}</label>
                <select id=name name=name aria-describedby=format!("{name}-wrong")><option value="">"any"</option>{options}</select>
                <Wrong id=format!("{name}-wrong") sentence=wrong/>
            </div>
        }
    };
    let check = |name: &'static str, label: &'static str, on: bool| {
        view! { <label class="check"><input type="checkbox" name=name value="true" checked=on/>{label}</label> }
    };
    view! {
        <form method="post" action="/admin/settings/policy" class="card" id="policy" data-typed="true">
            <h3>"Add or change a policy"</h3>
            <p class="faint">"The most specific one decides: an agent's before a kind's before a priority's."</p>
            <div class="row">
                {text("agent", "Agent", &form.agent, "Empty: any.")}
                {select("kind", "Kind", &["question", "approval", "client_tool", "human"], &form.kind)}
                {select("priority", "Priority", &["low", "normal", "high", "urgent"], &form.priority)}
            </div>
            <div class="row">
                {text("target", "An answer may take", &form.target, "Like 90s, 15m, 4h, 2d or 1h 30m.")}
                {text("at_risk_percent", "Warn at (percent of it)", &form.at_risk_percent, "")}
            </div>
            {check("business", "Count business time", form.business)}
            <div class="row">
                {text("remind_after", "First reminder after", &form.remind_after, "Empty: none.")}
                {text("remind_every", "Then every", &form.remind_every, "")}
                {text("remind_most", "At most", &form.remind_most, "")}
            </div>
            <div class="row">
                {text("escalate_after", "After the due date the sponsor is told; the managers so long after that", &form.escalate_after, "Empty: they are not.")}
            </div>
            {check("reassign", "Late, the question itself goes to them", form.reassign)}
            <div class="row">
                <Input name="asked_at" label=format!("Try it: asked at ({})", site.zone.name()) kind="datetime-local"
                    value=asked_at errors=errors/>
            </div>
            {preview.map(|preview| previewed(&form, preview, asked_at, site))}
            <div class="options">
                <button name="act" value="preview" class="option" data-turbo="false">"Preview"</button>
                <button name="act" value="save">"Save the policy"</button>
            </div>
        </form>
    }
    .into_any()
}

/// "Asked Friday 4 December, 16:40, with a target of 4h business time: due Monday 7 December, 11:40; …"
fn previewed(form: &PolicyForm, preview: &Preview, asked_at: &str, site: &Calendar) -> AnyView {
    let clock = |at: DateTime<Utc>| at.with_timezone(&site.zone).format("%A %-d %B, %H:%M").to_string();
    let asked = slot::form::moment(asked_at, site.zone).map_or_else(|| "now".to_owned(), clock);
    let time = if form.business { "business time" } else { "plain time" };
    let target = match form.target.trim() {
        "" => String::new(),
        target => format!(", with a target of {target} {time}"),
    };
    let line =
        |label: &'static str, at: Option<DateTime<Utc>>| at.map(|at| view! { <dt>{label}</dt><dd>{clock(at)}</dd> });
    let never = (!form.target.trim().is_empty() && preview.due_at.is_none()).then(|| {
        view! { <p class="wrong">"The calendar does not have that much business time within five years."</p> }
    });
    let reminders = preview.reminders.iter().map(|at| clock(*at)).collect::<Vec<_>>();
    let shown = reminders.iter().take(6).cloned().collect::<Vec<_>>().join("; ");
    let more = reminders.len().saturating_sub(6);
    let reminders = (!reminders.is_empty()).then(|| {
        view! { <dt>"Reminders"</dt><dd>{shown} {(more > 0).then(|| format!("; and {more} more"))}</dd> }
    });
    view! {
        <div class="preview" data-test="preview" role="status">
            <p>{format!("Asked {asked}{target}:")}</p>
            {never}
            <dl class="facts">
                {line("Due", preview.due_at)} {line("At risk", preview.at_risk_at)} {reminders} {line("The managers", preview.managers_at)}
            </dl>
        </div>
    }
    .into_any()
}

fn in_trouble(failed: Vec<FailedTimer>, how_many: i64, cx: &Cx) -> AnyView {
    if failed.is_empty() {
        return ().into_any();
    }
    let zone = cx.person().time_zone();
    let more = how_many - failed.len() as i64;
    let lines = failed.into_iter().map(|timer| {
        let again = match timer.next_at {
            Some(at) => Either::Left(view! { "tried again " {until(at, cx.now, zone)} }),
            None => Either::Right("given up"),
        };
        view! {
            <li>
                <span>
                    <b class="badge late">{timer.kind.replace('_', " ")}</b> <a href=format!("/slots/{}", timer.slot)>{timer.message}</a>
                    <br/><small>"due " {ago(timer.due_at, cx.now, zone)} " · tried " {timer.tries} " times, " {again} " · " {timer.problem}</small>
                </span>
                <form method="post" action=format!("/admin/settings/timers/{}/retry", timer.id)><button class="option">"Try again"</button></form>
            </li>
        }
    });
    view! {
        <h2 id="timers">"Timers that could not do their work"</h2>
        <ul class="plain policies" data-test="failed-timers">{lines.collect_view()}</ul>
        {(more > 0).then(|| view! { <p class="faint">{format!("The newest; there are {more} more.")}</p> })}
        <form method="post" action="/admin/settings/timers/all/retry"><button class="option">"Try all again"</button></form>
    }
    .into_any()
}
