//! One page: a Leptos view in the frame that all pages share, rendered to one piece of HTML with its status.

use axum::response::{Html, IntoResponse, Response};
use engine::Refusal;
use http::StatusCode;
use leptos::prelude::*;

use crate::{
    REQUEST_ID,
    components::{Alert, WhatWasTyped, escape},
    context::{Cx, Guest},
};

/// What the frame needs to know of a page.
pub(crate) struct Frame<'a> {
    pub title: &'a str,
    /// What it shows, so that it is told when that changes: "inbox", "claim:<id>", …; "" for nothing.
    pub live: &'a str,
}

/// A page for somebody who is signed in.
pub(crate) fn page(cx: &Cx, status: StatusCode, frame: Frame<'_>, view: impl FnOnce() -> AnyView) -> Response {
    let person = cx.person();
    let works = person.sees_all();
    let admin = person.is_admin();
    let name = person.name().to_owned();
    let header = move || {
        view! {
            <nav aria-label="Main">
                <a href="/">"Inbox"</a>
                <a href="/claims">"Claims"</a>
                <a href="/tasks">{if works { "All work" } else { "My work" }}</a>
                {admin.then(|| view! { <a href="/admin/settings">"Settings"</a> })}
            </nav>
            <div class="me">
                <a href="/account">{name}</a>
                <form method="post" action="/sign-out"><button class="quiet">"Sign out"</button></form>
            </div>
        }
        .into_any()
    };
    html(status, &cx.assets, frame, &cx.mark.to_string(), header, view)
}

/// A page for anybody.
pub(crate) fn open_page(guest: &Guest, status: StatusCode, title: &str, view: impl FnOnce() -> AnyView) -> Response {
    html(status, &guest.assets, Frame { title, live: "" }, "", || ().into_any(), view)
}

/// A refusal as a page of its own: a sentence, the request's id when the fault is ours, and a way on.
pub(crate) fn refused(cx: &Cx, refusal: &Refusal) -> Response {
    refused_with(cx, refusal, String::new())
}

/// The same, with the words that were typed and would else be lost.
pub(crate) fn refused_with(cx: &Cx, refusal: &Refusal, words: String) -> Response {
    log(refusal);
    let status = status(refusal);
    let sentence = refusal.to_string();
    page(cx, status, Frame { title: heading(status), live: "" }, move || {
        view! {
            <h1>{heading(status)}</h1>
            <Alert sentence=sentence/>
            {(!words.is_empty()).then(|| view! { <WhatWasTyped words=words/> })}
            <p><a href="/">"Back to your inbox"</a></p>
            {fault_id(status)}
        }
        .into_any()
    })
}

/// A page without a session or a database: for what went wrong before there was either.
pub fn error_page(status: StatusCode) -> Response {
    html(
        status,
        "",
        Frame { title: heading(status), live: "" },
        "",
        || ().into_any(),
        move || {
            view! {
                <h1>{heading(status)}</h1>
                <p>"Nothing was changed. Please try again in a moment."</p>
                <p><a href="/">"Back to Layby"</a></p>
                {fault_id(status)}
            }
            .into_any()
        },
    )
}

pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(crate) fn log(refusal: &Refusal) {
    if let Refusal::Fault(cause) = refusal {
        tracing::error!(%cause, "a page failed");
    }
}

fn heading(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 415 => "That could not be read",
        404 => "Not here",
        403 => "Not yours to do",
        409 => "Too late",
        429 => "Too many tries",
        413 => "Too large",
        _ if status.is_server_error() => "Something went wrong",
        _ => "This needs another look",
    }
}

fn fault_id(status: StatusCode) -> Option<impl IntoView> {
    let id = REQUEST_ID.try_with(Clone::clone).ok()?;
    status.is_server_error().then(|| view! { <p class="faint">"Request " <code>{id}</code></p> })
}

fn html(
    status: StatusCode,
    assets: &str,
    frame: Frame<'_>,
    mark: &str,
    header: impl FnOnce() -> AnyView,
    view: impl FnOnce() -> AnyView,
) -> Response {
    let (header, body) = Owner::new().with(|| (header().to_html(), view().to_html()));
    let title = escape(frame.title);
    let live = match frame.live {
        "" => String::new(),
        topics => format!(
            r#"<turbo-stream-source src="/live?topics={}&amp;after={mark}"></turbo-stream-source>"#,
            escape(topics)
        ),
    };
    let page = format!(
        r##"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title} · Layby</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="turbo-refresh-method" content="morph">
<meta name="turbo-refresh-scroll" content="preserve">
<link rel="icon" href="/static/layby.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/layby.css?v={assets}" data-turbo-track="reload">
<script type="module" src="/static/layby.js?v={assets}" data-turbo-track="reload"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><a class="brand" href="/"><img src="/static/layby.svg" alt="" width="28" height="28">Layby</a>{header}</header>
<main id="main" tabindex="-1">{body}</main>
{live}
</body>
</html>
"##
    );
    (status, Html(page)).into_response()
}
