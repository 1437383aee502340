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
    extract::DefaultBodyLimit,
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

/// Bytes of the largest form with a calendar and a file of holidays.
const LARGEST_CALENDAR: usize = 2 * 1000 * 1000;

/// Bytes of the largest form that hands in files.
const LARGEST_FORM: usize = 128 * 1000 * 1000;

/// A Content-Disposition (RFC 6266): the file's name for old programs, and whole for the rest.
pub fn content_disposition(kind: &str, name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_ascii_graphic() && !matches!(letter, '"' | '\\') { letter } else { '_' })
        .collect();
    let coded: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{coded}")
}

/// All pages and their forms.
pub fn router(engine: Engine) -> Router {
    use pages::{account, claims, files, inbox, settings, sign_in, slot, tasks, together};
    let with_files = || DefaultBodyLimit::max(LARGEST_FORM);
    Router::new()
        .route("/", get(inbox::show))
        .route("/news/seen", post(inbox::seen))
        .route("/admin/settings", get(settings::show))
        .route("/admin/settings/policy", post(settings::policy))
        .route("/admin/settings/policy/{id}/remove", post(settings::remove))
        .route("/admin/settings/undo/{change}", post(settings::undo))
        .route("/admin/settings/calendar", post(settings::calendar).layer(DefaultBodyLimit::max(LARGEST_CALENDAR)))
        .route("/admin/settings/timers/{id}/retry", post(settings::retry))
        .route("/account/calendar", post(account::calendar))
        .route("/sign-in", get(sign_in::show).post(sign_in::post))
        .route("/sign-out", post(sign_in::out))
        .route("/setup", get(sign_in::setup).post(sign_in::set_up))
        .route("/slots/{id}", get(slot::show).post(slot::post).layer(with_files()))
        .route("/slots/{id}/reassign", post(slot::reassign))
        .route("/slots/{id}/due", post(slot::due))
        .route("/slots/{id}/decline", post(slot::decline))
        .route("/slots/{id}/take", post(slot::take))
        .route("/slots/{id}/let-go", post(slot::let_go))
        .route("/files/{id}", get(files::show))
        .route("/claims", get(claims::list))
        .route("/claims/new", get(claims::new).post(claims::file))
        .route("/claims/{id}", get(claims::show))
        .route("/claims/{id}/restart", post(claims::restart))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{id}", get(tasks::show))
        .route("/tasks/{id}/stop", post(tasks::stop))
        .route("/tasks/{id}/take-over", post(tasks::take_over))
        .route("/tasks/{id}/questions", get(together::show).post(together::post).layer(with_files()))
        .route("/account", get(account::show).post(account::profile))
        .route("/account/away", post(account::away))
        .route("/account/back", post(account::back))
        .route("/account/password", post(account::password))
        .route("/account/sessions/{id}/end", post(account::end_session))
        .fallback(pages::missing)
        .with_state(engine)
}
