//! `/account`: what somebody changes about themselves, and where they are signed in.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    FieldError, Refusal,
    calendar::{self, Calendar, CalendarForm, Owner},
    person::{
        self, Party,
        away::{Away, AwayForm},
    },
};
use http::StatusCode;
use leptos::prelude::*;

use super::{Fields, field};
use crate::{
    components::{Alert, Input, Wrong, ago, calendar_form, error_at},
    context::Cx,
    page::{Frame, log, page, refused, status},
};

const ZONES: [&str; 14] = [
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Paris",
    "Europe/Madrid",
    "Europe/Athens",
    "America/New_York",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Sydney",
];

pub(crate) async fn show(cx: Cx) -> Response {
    let (name, zone) = (cx.person().name().to_owned(), cx.person().time_zone().to_owned());
    shown(&cx, name, zone, None).await
}

pub(crate) async fn profile(cx: Cx, Fields(fields): Fields) -> Response {
    let (name, zone) = (field(&fields, "name"), field(&fields, "time_zone"));
    match person::update_profile(&cx.engine, cx.person(), &name, &zone).await {
        Ok(()) => Redirect::to("/account").into_response(),
        Err(refusal) => shown(&cx, name, zone, Some(refusal)).await,
    }
}

pub(crate) async fn password(cx: Cx, Fields(fields): Fields) -> Response {
    let (old, new) = (field(&fields, "old"), field(&fields, "new"));
    match person::change_password(&cx.engine, cx.person(), cx.session.sign_in, &old, &new).await {
        Ok(()) => Redirect::to("/account").into_response(),
        Err(refusal) => {
            let (name, zone) = (cx.person().name().to_owned(), cx.person().time_zone().to_owned());
            shown(&cx, name, zone, Some(refusal)).await
        }
    }
}

pub(crate) async fn away(cx: Cx, Fields(fields): Fields) -> Response {
    let form =
        AwayForm { from: field(&fields, "from"), until: field(&fields, "until"), cover: field(&fields, "cover") };
    match person::away::go_away(&cx.engine, cx.person(), &form).await {
        Ok(()) => Redirect::to("/account").into_response(),
        Err(refusal) => {
            let (name, zone) = (cx.person().name().to_owned(), cx.person().time_zone().to_owned());
            shown_with(&cx, name, zone, Some(form), Some(refusal)).await
        }
    }
}

pub(crate) async fn back(cx: Cx) -> Response {
    match person::away::come_back(&cx.engine, cx.person()).await {
        Ok(()) => Redirect::to("/account").into_response(),
        Err(refusal) => refused(&cx, &refusal),
    }
}

pub(crate) async fn calendar(cx: Cx, Fields(fields): Fields) -> Response {
    let owner = Owner::Person(cx.person().id());
    if field(&fields, "act") == "remove" {
        return match calendar::save(&cx.engine, cx.person(), owner, None).await {
            Ok(_) => Redirect::to("/account").into_response(),
            Err(refusal) => refused(&cx, &refusal),
        };
    }
    let form = calendar_form::read(&fields);
    let saved = match form.read() {
        Ok(own) => calendar::save(&cx.engine, cx.person(), owner, Some(&own)).await,
        Err(errors) => Err(Refusal::Invalid(errors)),
    };
    match saved {
        Ok(_) => Redirect::to("/account").into_response(),
        Err(refusal) => {
            let (name, zone) = (cx.person().name().to_owned(), cx.person().time_zone().to_owned());
            shown_all(&cx, name, zone, None, Some(form), Some(refusal)).await
        }
    }
}

pub(crate) async fn end_session(cx: Cx, Path(id): Path<String>) -> Response {
    let ended = match id.parse() {
        Ok(id) => person::end_sign_in(&cx.engine, cx.person(), id).await,
        Err(_) => Err(Refusal::NotFound),
    };
    match ended {
        Ok(()) => Redirect::to("/account").into_response(),
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn shown(cx: &Cx, name: String, zone: String, wrong: Option<Refusal>) -> Response {
    shown_with(cx, name, zone, None, wrong).await
}

async fn shown_with(cx: &Cx, name: String, zone: String, typed: Option<AwayForm>, wrong: Option<Refusal>) -> Response {
    shown_all(cx, name, zone, typed, None, wrong).await
}

async fn shown_all(
    cx: &Cx,
    name: String,
    zone: String,
    typed: Option<AwayForm>,
    hours: Option<CalendarForm>,
    wrong: Option<Refusal>,
) -> Response {
    let read = async {
        let sessions = person::sign_ins(&cx.engine, cx.person()).await?;
        let away = person::away::away(&cx.engine, cx.person().id()).await?;
        let people = person::parties(&cx.engine).await?;
        let own = calendar::of_person(&cx.engine, cx.person().id()).await?;
        Ok::<_, Refusal>((sessions, away, people, own))
    };
    let (sessions, away, people, own) = match read.await {
        Ok(read) => read,
        Err(refusal) => return refused(cx, &refusal),
    };
    if let Some(refusal) = &wrong {
        log(refusal);
    }
    let status = wrong.as_ref().map_or(StatusCode::OK, status);
    let errors = wrong.as_ref().map(|refusal| refusal.errors().to_vec()).unwrap_or_default();
    let sentence = wrong.map(|refusal| refusal.to_string());
    page(cx, status, Frame { title: "Account", live: "" }, move || {
        let mut zones = ZONES.to_vec();
        if !zones.contains(&zone.as_str()) {
            zones.push(&zone);
        }
        let zones = zones
            .into_iter()
            .map(
                |choice| view! { <option value=choice.to_owned() selected=choice == zone>{choice.to_owned()}</option> },
            )
            .collect_view();
        let roles = cx.person().roles().iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
        let here = cx.session.sign_in;
        let own_zone = cx.person().time_zone();
        let sessions = sessions.into_iter().map(|session| {
            let agent = program(&session.user_agent);
            let end = if session.id == here {
                view! { <b class="badge">"This one"</b> }.into_any()
            } else {
                view! { <form method="post" action=format!("/account/sessions/{}/end", session.id)><button class="quiet">"End it"</button></form> }.into_any()
            };
            view! { <li><span>{agent}</span> <small class="faint">"seen " {ago(session.seen_at, cx.now, own_zone)}</small> {end}</li> }
        });
        let sessions = sessions.collect_view();
        view! {
            <h1>"Account"</h1>
            {sentence.map(|sentence| view! { <Alert sentence=sentence/> })}
            <form method="post" action="/account" class="card">
                <h2>"You"</h2>
                <p class="faint">{cx.person().email().to_owned()} " · " {roles}</p>
                <Input name="name" label="Name" value=name required=true autocomplete="name" errors=&errors/>
                <div class="field">
                    <label for="time_zone">"Time zone"</label>
                    <select id="time_zone" name="time_zone">{zones}</select>
                    <Wrong id="time_zone-wrong".to_owned() sentence=error_at(&errors, "/time_zone")/>
                </div>
                <button>"Save"</button>
            </form>
            <form method="post" action="/account/password" class="card">
                <h2>"Password"</h2>
                <Input name="old" label="Present password" kind="password" required=true autocomplete="current-password" errors=&errors/>
                <Input name="new" label="New password" kind="password" required=true autocomplete="new-password" errors=&errors/>
                <p class="faint">"Your other sessions end when you change it."</p>
                <button>"Change the password"</button>
            </form>
            {away_form(cx, away, people, typed, &errors)}
            {hours_form(cx, own, hours, &errors)}
            <section class="card">
                <h2>"Where you are signed in"</h2>
                <ul class="plain sessions">{sessions}</ul>
            </section>
        }
        .into_any()
    })
}

/// The person's own hours, for the clocks of what they are asked.
fn hours_form(cx: &Cx, own: Option<Calendar>, typed: Option<CalendarForm>, errors: &[FieldError]) -> AnyView {
    let has_own = own.is_some();
    let open = typed.is_some() || has_own;
    let fresh = || Calendar { zone: cx.zone(), ..Calendar::default() };
    let form = typed.unwrap_or_else(|| CalendarForm::of(&own.unwrap_or_else(fresh)));
    let remove = has_own.then(|| {
        view! { <button class="quiet" name="act" value="remove" formnovalidate=true>"Go by the site's hours again"</button> }
    });
    view! {
        <details class="card" id="own-hours" open=open>
            <summary>"Your own working hours"</summary>
            <form method="post" action="/account/calendar" id="hours" data-typed="true">
                <p class="faint">"Due dates and reminders of what you are asked follow these instead of the site's hours."</p>
                {calendar_form::inputs(&form, errors)}
                <button>"Save the hours"</button> {remove}
            </form>
        </details>
    }
    .into_any()
}

/// Away with a cover, or how to be.
fn away_form(
    cx: &Cx,
    away: Option<Away>,
    people: Vec<Party>,
    typed: Option<AwayForm>,
    errors: &[FieldError],
) -> AnyView {
    let zone = cx.zone();
    if let (Some(away), None) = (&away, &typed) {
        let day = |at: chrono::DateTime<chrono::Utc>| at.with_timezone(&zone).format("%-d %B %Y").to_string();
        let until = away.until.map(|at| format!(" until {}", day(at - chrono::Duration::seconds(1))));
        let verb = if away.now { "You are away since" } else { "You will be away from" };
        let words = format!(
            "{verb} {}{}. {} answers for you meanwhile.",
            day(away.from),
            until.unwrap_or_default(),
            away.cover_name
        );
        return view! {
            <form method="post" action="/account/back" class="card" data-test="away">
                <h2>"Away"</h2>
                <p>{words}</p>
                <button class="option">{if away.now { "I am back" } else { "I stay here" }}</button>
            </form>
        }
        .into_any();
    }
    let typed = typed.unwrap_or_default();
    let options = people
        .into_iter()
        .filter(|party| party.is_person && party.name != cx.person().email())
        .map(|party| {
            let selected = party.name == typed.cover;
            view! { <option value=party.name selected=selected>{party.words}</option> }
        })
        .collect_view();
    let wrong = error_at(errors, "/cover");
    view! {
        <form method="post" action="/account/away" class="card">
            <h2>"Away"</h2>
            <p class="faint">"What you are asked meanwhile, your cover can answer on your behalf."</p>
            <div class="row">
                <Input name="from" label="First day" kind="date" value=typed.from required=true errors=errors/>
                <Input name="until" label="Last day (may stay empty)" kind="date" value=typed.until errors=errors/>
            </div>
            <div class="field">
                <label for="cover">"Who answers for you"</label>
                <select id="cover" name="cover" required=true aria-invalid=wrong.is_some().then_some("true")
                    aria-describedby="cover-wrong"><option value="">"Choose …"</option>{options}</select>
                <Wrong id="cover-wrong".to_owned() sentence=wrong/>
            </div>
            <button>"Save the absence"</button>
        </form>
    }
    .into_any()
}

/// What a person calls the program of a User-Agent header: "Firefox on Android". A hint, no more: anybody can write any.
fn program(agent: &str) -> String {
    let first =
        |names: &[(&str, &'static str)]| names.iter().find(|(part, _)| agent.contains(part)).map(|(_, name)| *name);
    // The order matters: most of them also name the ones after them.
    let browser = first(&[
        ("Firefox/", "Firefox"),
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) if agent.is_empty() => "An unknown program".to_owned(),
        (None, None) => agent.chars().take(60).collect(),
    }
}
