//! The web: layers, sessions, static files, live updates, the API, and the pages of the crate `app`.

mod api;
mod assets;
mod headers;
mod live;
mod sessions;

use std::time::Duration;

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use engine::Engine;
use tokio::sync::watch;
use tower_http::{catch_panic::CatchPanicLayer, csrf::CsrfLayer};

use crate::cli::Failure;

const LARGEST_BODY: usize = 1024 * 1024;

#[derive(Clone)]
pub struct HttpConfig {
    /// What people and links use: "https://layby.example.com".
    pub base_url: String,
    /// API requests a second that one token may make; 0 for no limit.
    pub rate_limit: u32,
    /// Turns true when the program stops: long polls and live pages end then.
    pub shutdown: watch::Receiver<bool>,
}

#[derive(Clone)]
pub(crate) struct Http {
    pub engine: Engine,
    pub shutdown: watch::Receiver<bool>,
}

/// Everything that is served.
pub async fn router(engine: Engine, config: HttpConfig) -> Result<Router, Failure> {
    let http = Http { engine: engine.clone(), shutdown: config.shutdown.clone() };
    let sessions = sessions::layer(&engine, config.base_url.starts_with("https://"));
    let assets = assets::version();

    let pages = app::router(engine.clone())
        .route("/live", get(live::live).with_state(http.clone()))
        .layer(middleware::from_fn_with_state(engine.clone(), sessions::who))
        .layer(sessions)
        // Nothing that somebody else's page sends changes anything here; programs have tokens and no cookies.
        .layer(CsrfLayer::new())
        .layer(middleware::map_response(bare_errors_as_pages))
        .layer(axum::Extension(app::Assets { version: assets }));

    let router = Router::new()
        .merge(pages)
        .nest("/api/v1", api::router(http.clone(), config.rate_limit))
        .route("/healthz", get(async || "alive"))
        .route("/readyz", get(ready).with_state(engine.clone()))
        .route("/static/{*path}", get(assets::file))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(
            headers::Headers { engine, tls: config.base_url.starts_with("https://") },
            headers::headers,
        ));
    Ok(router)
}

/// What a library refuses (a body that is too large or no form, a post from another site) as a page like any other.
async fn bare_errors_as_pages(response: Response) -> Response {
    let refused = response.status().is_client_error() || response.status().is_server_error();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.is_none_or(|kind| kind.starts_with("text/plain")) {
        true if refused => app::error_page(response.status()),
        _ => response,
    }
}

/// Whether this instance can work: the database answers.
async fn ready(State(engine): State<Engine>) -> Response {
    match sqlx::query("select 1 from task limit 1").execute(&engine.pool).await {
        Ok(_) => "ready".into_response(),
        Err(error) => {
            tracing::warn!(%error, "not ready: the database does not answer");
            (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer").into_response()
        }
    }
}

fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    app::error_page(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Looks now and then whether a slot that somebody here waits for has ended without our being told: one query for all.
pub async fn catch_lost_wake_ups(engine: Engine, mut shutdown: watch::Receiver<bool>) {
    while !*shutdown.borrow() {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
            _ = shutdown.changed() => {}
        }
        let awaited = engine.wakes.awaited_slots();
        if awaited.is_empty() {
            continue;
        }
        match engine::slot::list::ended_of(&engine, &awaited).await {
            Ok(ended) => engine.wakes.wake_slots(ended),
            Err(error) => tracing::warn!(%error, "lost wake-ups could not be looked for"),
        }
    }
}
