//! The contract for programs (`api.md`), base `/api/v1`.

mod answers;
mod auth;
mod body;
mod files;
mod idempotent;
mod problem;
mod shown;
mod slots;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};

use super::Http;
use problem::Problem;

pub(super) fn router(http: Http, rate_limit: u32) -> Router {
    let limits = auth::Limits::new(rate_limit);
    Router::new()
        .route("/slots", get(slots::list).post(slots::open))
        .route("/slots/{id}", get(slots::get))
        .route("/slots/{id}/answer", post(answers::answer))
        .route("/slots/{id}/cancel", post(answers::cancel))
        .route("/slots/{id}/reassign", post(answers::reassign))
        .route("/slots/{id}/due", post(answers::due))
        .route("/slots/{id}/secret", post(answers::secret))
        .route("/tasks/{id}/resolve", post(answers::resolve))
        .route("/files", post(files::add).layer(DefaultBodyLimit::max(engine::file::LARGEST + 1)))
        .route("/files/{id}", get(files::get))
        .method_not_allowed_fallback(async || {
            Problem::simple(405, "method_not_allowed", "This address does not take that method.")
        })
        .fallback(async || Problem::simple(404, "not_found", "There is no such call in this version of the API."))
        .layer(middleware::from_fn_with_state(auth::Auth { engine: http.engine.clone(), limits }, auth::bearer))
        .with_state(http)
}
