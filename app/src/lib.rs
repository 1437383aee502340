//! What people see: Leptos components and pages, rendered on the server. No SQL and no clock of its own.
//!
//! A page is an axum handler that reads through the engine, renders one Leptos view to one piece of HTML, and answers
//! with the right status. A form with typed text posts to its own page's URL and comes back with what was typed.

mod components;
mod context;
mod page;
mod pages;

use axum::{
    Router,
    routing::{get, post},
};
use engine::{Engine, actor::PersonActor, ids::SignInId};

pub use page::error_page;

/// Who is signed in at this request, put there by the server's sessions.
#[derive(Clone)]
pub struct Signed(pub Option<Session>);

#[derive(Clone)]
pub struct Session {
    pub person: PersonActor,
    pub sign_in: SignInId,
}

/// The request's id, shown on error pages.
#[derive(Clone)]
pub struct RequestId(pub String);

/// Where the request comes from, for the throttling of sign-ins.
#[derive(Clone)]
pub struct Network(pub String);

/// Changes with style and script, so that browsers may keep what they have.
#[derive(Clone)]
pub struct Assets {
    pub version: String,
}

tokio::task_local! {
    /// The id of the request that is being answered.
    pub static REQUEST_ID: String;
}

/// All pages and their forms.
pub fn router(engine: Engine) -> Router {
    use pages::{account, claims, inbox, sign_in, slot, tasks};
    Router::new()
        .route("/", get(inbox::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::post))
        .route("/sign-out", post(sign_in::out))
        .route("/setup", get(sign_in::setup).post(sign_in::set_up))
        .route("/slots/{id}", get(slot::show).post(slot::post))
        .route("/claims", get(claims::list))
        .route("/claims/new", get(claims::new).post(claims::file))
        .route("/claims/{id}", get(claims::show))
        .route("/claims/{id}/restart", post(claims::restart))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{id}", get(tasks::show))
        .route("/tasks/{id}/stop", post(tasks::stop))
        .route("/account", get(account::show).post(account::profile))
        .route("/account/password", post(account::password))
        .route("/account/sessions/{id}/end", post(account::end_session))
        .fallback(pages::missing)
        .with_state(engine)
}
