//! `/`: what needs me, the most urgent first.

use axum::response::{IntoResponse, Redirect, Response};
use engine::{
    Refusal,
    channel::{self, MOST_NEWS, News},
    duration,
    slot::{
        self, InboxLine, Kind, Priority,
        inbox::{COUNTED, SHOWN},
    },
    timer::failed,
};
use http::StatusCode;
use leptos::prelude::*;

use super::{Fields, field};
use crate::{
    components::ago,
    context::Cx,
    page::{Frame, page, refused},
};

pub(crate) async fn show(cx: Cx) -> Response {
    match read(&cx).await {
        Ok(response) => response,
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn read(cx: &Cx) -> Result<Response, Refusal> {
    let lines = slot::inbox(&cx.engine, cx.person()).await?;
    let count = match lines.len() {
        SHOWN => slot::inbox::count(&cx.engine, cx.person()).await?,
        all => all as i64,
    };
    let counted = if count < COUNTED { count.to_string() } else { format!("{COUNTED}+") };
    let news = channel::news(&cx.engine, cx.person()).await?;
    let in_trouble = if cx.person().is_admin() { failed::in_trouble(&cx.engine).await? } else { 0 };
    let answered = slot::inbox::answered(&cx.engine, cx.person()).await?;
    let title = if count > 0 { format!("({counted}) Inbox") } else { "Inbox".to_owned() };
    let (now, zone) = (cx.now, cx.person().time_zone().to_owned());
    let zone2 = zone.clone();
    Ok(page(cx, StatusCode::OK, Frame { title: &title, live: "inbox" }, move || {
        let more = (count > SHOWN as i64)
            .then(|| view! { <p class="faint">{format!("The {SHOWN} most urgent of {counted}.")}</p> });
        let list = if lines.is_empty() {
            view! {
                <div class="empty">
                    <p>"Nothing is waiting for you."</p>
                    <p><a class="button" href="/claims/new">"File a claim"</a></p>
                    <p class="faint">"When an agent needs something that only you can say, its question appears here."</p>
                </div>
            }
            .into_any()
        } else {
            let lines = lines.into_iter().map(|line| inbox_line(line, now)).collect_view();
            view! { <ol class="lines" data-keys="true">{lines}</ol> {more} }.into_any()
        };
        let lately = (!answered.is_empty()).then(|| {
            let answers = answered.into_iter().map(|answer| {
                let href = format!("/slots/{}", answer.id);
                view! { <li><a href=href>{answer.message}</a> <span class="faint">{ago(answer.answered_at, now, &zone)}</span></li> }
            });
            let answers = answers.collect_view();
            view! { <h2>"Answered lately"</h2> <ul class="plain">{answers}</ul> }
        });
        let trouble = (in_trouble > 0).then(|| {
            let words = if in_trouble == 1 { "1 timer".to_owned() } else { format!("{in_trouble} timers") };
            view! { <p class="notice" role="status"><a href="/admin/settings#timers">{words} " could not do their work"</a></p> }
        });
        view! { <h1>"Inbox"</h1> {trouble} {news_list(news, now, &zone2)} {list} {lately} }.into_any()
    }))
}

/// What the clocks did since the person looked last; nothing when there is nothing new.
fn news_list(news: Vec<News>, now: chrono::DateTime<chrono::Utc>, zone: &str) -> Option<AnyView> {
    let fresh: Vec<_> = news.into_iter().filter(|news| news.fresh).collect();
    // What comes while they read stays new.
    let newest = fresh.iter().map(|news| news.id).max()?;
    let more = (fresh.len() == MOST_NEWS).then(|| view! { <p class="faint">{format!("The newest {MOST_NEWS}.")}</p> });
    let lines = fresh.into_iter().map(|news| {
        let words = match news.kind.as_str() {
            "reminded" => "Reminder",
            "at_risk" => "At risk",
            "breached" => "Late",
            _ => "Still late",
        };
        let late = news.kind != "reminded";
        let state = (!news.waits).then_some(" · has ended meanwhile");
        view! {
            <li><b class="badge" class:late=late>{words}</b><a href=format!("/slots/{}", news.slot)>{news.message}</a>
                " "<small>{ago(news.due_at, now, zone)}{state}</small></li>
        }
    });
    Some(
        view! {
            <section class="card news" data-test="news" aria-label="News">
                <ul class="plain">{lines.collect_view()}</ul>
                {more}
                <form method="post" action="/news/seen">
                    <input type="hidden" name="newest" value=newest/>
                    <button class="quiet">"I have seen these"</button>
                </form>
            </section>
        }
        .into_any(),
    )
}

pub(crate) async fn seen(cx: Cx, Fields(fields): Fields) -> Response {
    let Ok(newest) = field(&fields, "newest").parse() else { return refused(&cx, &Refusal::NotFound) };
    match channel::seen(&cx.engine, cx.person(), newest).await {
        Ok(()) => Redirect::to("/").into_response(),
        Err(refusal) => refused(&cx, &refusal),
    }
}

/// Kept lean: a page of 50 stays under 30 kB.
fn inbox_line(line: InboxLine, now: chrono::DateTime<chrono::Utc>) -> impl IntoView {
    let href = format!("/slots/{}", line.id);
    let overdue = line.due_at.is_some_and(|due| due < now).then(|| view! { <b class="badge late">"Overdue"</b> });
    let priority = match line.priority {
        Priority::Urgent => Some(view! { <b class="badge late">"Urgent"</b> }),
        Priority::High => Some(view! { <b class="badge late">"High"</b> }),
        _ => None,
    };
    let kind = match line.kind {
        Kind::Question => None,
        Kind::Approval => Some("Decision"),
        Kind::SignIn => Some("Sign-in"),
        Kind::ClientTool => Some("Output"),
        Kind::Human => Some("Takeover"),
    };
    let kind = kind.map(|words| view! { <b class="badge">{words}</b> });
    let alarm = line.alarm.then(|| view! { <b class="badge late">"Nobody else can"</b> });
    let taken = line.taken_by.map(|name| format!(" · {name} is on it"));
    let whom = line.for_name.map(|name| format!(" · for {name}"));
    let waited = duration::words(now - line.opened_at);
    let message: String = line.message.chars().take(180).collect();
    view! {
        <li data-test="inbox-line"><a href=href>{message}</a>
            <small>{overdue}{priority}{kind}{alarm}{line.agent}{whom}" · waits "{waited}{taken}</small></li>
    }
}
