//! Live pages: a page names what it shows, and is told to refresh when that has changed.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    extract::{Query, State},
    http::StatusCode,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use engine::{Actor, claim, slot, task, wake::Topic};
use serde::Deserialize;

use super::Http;

/// Changes that come together make one refresh.
const TOGETHER: Duration = Duration::from_millis(100);

#[derive(Deserialize)]
pub(super) struct Topics {
    #[serde(default)]
    topics: String,
    /// The moment before the page was read.
    #[serde(default)]
    after: String,
}

pub(super) async fn live(
    State(http): State<Http>,
    Extension(app::Signed(session)): Extension<app::Signed>,
    Query(topics): Query<Topics>,
) -> Response {
    let Some(session) = session else { return StatusCode::UNAUTHORIZED.into_response() };
    let mut seen = Vec::new();
    for topic in topics.topics.split(',').take(20) {
        seen.extend(topics_of(&http, &session, topic).await);
    }
    let subscription = http.engine.wakes.subscribe(seen.clone());
    // What changed between the page and this connection was told to nobody, so it is told now.
    let missed = topics.after.parse().map_or(true, |mark| http.engine.wakes.changed_since(&mark, &seen));
    let shutdown = http.shutdown.clone();
    let state = (http, session, subscription, missed);
    let events = futures::stream::unfold(state, move |(http, session, subscription, missed)| {
        let mut shutdown = shutdown.clone();
        async move {
            if !missed {
                tokio::select! {
                    () = subscription.woken() => {}
                    _ = shutdown.wait_for(|stop| *stop) => return None,
                }
            }
            tokio::time::sleep(TOGETHER).await;
            // Whoever was signed out or disabled meanwhile sees nothing more.
            engine::person::session(&http.engine, session.sign_in).await.ok()??;
            let refresh = Event::default().data(r#"<turbo-stream action="refresh"></turbo-stream>"#);
            Some((Ok::<_, Infallible>(refresh), (http, session, subscription, false)))
        }
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(20))).into_response()
}

/// What a topic of the page means, if this person may see it.
async fn topics_of(http: &Http, session: &app::Session, topic: &str) -> Vec<Topic> {
    let (engine, person) = (&http.engine, &session.person);
    match topic.split_once(':') {
        None if topic == "inbox" => person.keys().iter().cloned().map(Topic::Inbox).collect(),
        None if topic == "tasks" => vec![Topic::AnyTask],
        Some(("slot", id)) => match id.parse() {
            Ok(id) if slot::get(engine, &Actor::Person(person.clone()), id).await.is_ok() => vec![Topic::Slot(id)],
            _ => Vec::new(),
        },
        Some(("task", id)) => match id.parse() {
            Ok(id) if task::get(engine, person, id).await.is_ok() => vec![Topic::Task(id)],
            _ => Vec::new(),
        },
        Some(("claim", id)) => match id.parse() {
            Ok(id) if claim::get(engine, person, id).await.is_ok() => vec![Topic::Claim(id)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
