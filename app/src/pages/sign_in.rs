//! `/sign-in`, `/sign-out` and `/setup`.

use axum::{
    Extension,
    extract::Query,
    http::{HeaderMap, header},
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    FieldError, Refusal,
    person::{self, NewPerson, SignInRefusal},
};
use http::StatusCode;
use leptos::prelude::*;
use serde::Deserialize;
use tower_sessions::Session;

use super::{Fields, field, own_page};
use crate::{
    Network,
    components::{Alert, Input},
    context::Guest,
    page::{error_page, log, open_page},
};

#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

pub(crate) async fn show(guest: Guest, Query(query): Query<Next>) -> Response {
    if guest.signed.is_some() {
        return Redirect::to(own_page(&query.next).unwrap_or("/")).into_response();
    }
    match person::setup::needed(&guest.engine).await {
        Ok(true) => Redirect::to("/setup").into_response(),
        Ok(false) => form(&guest, StatusCode::OK, "", &query.next, None),
        Err(refusal) => {
            log(&refusal);
            error_page(StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

fn form(guest: &Guest, status: StatusCode, email: &str, next: &str, wrong: Option<String>) -> Response {
    let (email, next) = (email.to_owned(), own_page(next).unwrap_or("/").to_owned());
    open_page(guest, status, "Sign in", move || {
        view! {
            <div class="narrow">
                <h1>"Sign in"</h1>
                {wrong.map(|sentence| view! { <Alert sentence=sentence/> })}
                <form method="post" action="/sign-in" class="card">
                    <input type="hidden" name="next" value=next/>
                    <Input name="email" label="E-mail address" kind="email" value=email autocomplete="username" required=true/>
                    <Input name="password" label="Password" kind="password" autocomplete="current-password" required=true/>
                    <button>"Sign in"</button>
                </form>
            </div>
        }
        .into_any()
    })
}

pub(crate) async fn post(
    guest: Guest,
    session: Session,
    Extension(Network(network)): Extension<Network>,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Response {
    let (email, next) = (field(&fields, "email"), field(&fields, "next"));
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signed = person::sign_in(&guest.engine, &email, &field(&fields, "password"), &network, agent).await;
    let signed = match signed {
        Ok(signed) => signed,
        Err(refusal) => {
            let status = match &refusal {
                SignInRefusal::Wrong => StatusCode::UNPROCESSABLE_ENTITY,
                SignInRefusal::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
                SignInRefusal::Fault(fault) => {
                    log(fault);
                    StatusCode::INTERNAL_SERVER_ERROR
                }
            };
            return form(&guest, status, &email, &next, Some(refusal.to_string()));
        }
    };
    // A new cookie at sign-in: one that somebody planted before is worth nothing.
    let kept = async {
        session.cycle_id().await?;
        session.insert("sign_in", signed.sign_in).await
    };
    if let Err(error) = kept.await {
        tracing::error!(%error, "a session could not be kept");
        return error_page(StatusCode::SERVICE_UNAVAILABLE);
    }
    Redirect::to(own_page(&next).unwrap_or("/")).into_response()
}

pub(crate) async fn out(guest: Guest, session: Session) -> Response {
    if let Some(signed) = &guest.signed
        && let Err(refusal) = person::sign_out(&guest.engine, signed.sign_in).await
    {
        log(&refusal);
        return error_page(StatusCode::SERVICE_UNAVAILABLE);
    }
    // The sign-in has ended on the server; a cookie that stays behind opens nothing.
    let _ = session.flush().await;
    Redirect::to("/sign-in").into_response()
}

pub(crate) async fn setup(guest: Guest) -> Response {
    match person::setup::needed(&guest.engine).await {
        Ok(true) => setup_form(&guest, StatusCode::OK, &[], Vec::new()),
        _ => Redirect::to("/sign-in").into_response(),
    }
}

pub(crate) async fn set_up(guest: Guest, Fields(fields): Fields) -> Response {
    let new = NewPerson {
        email: field(&fields, "email"),
        name: field(&fields, "name"),
        roles: Vec::new(),
        groups: Vec::new(),
        password: Some(field(&fields, "password")),
    };
    match person::setup::set_up(&guest.engine, &field(&fields, "code"), new).await {
        Ok(_) => Redirect::to("/sign-in").into_response(),
        Err(Refusal::Invalid(errors)) => setup_form(&guest, StatusCode::UNPROCESSABLE_ENTITY, &fields, errors),
        Err(refusal) => {
            log(&refusal);
            error_page(StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

fn setup_form(guest: &Guest, status: StatusCode, fields: &[(String, String)], errors: Vec<FieldError>) -> Response {
    let fields = fields.to_vec();
    open_page(guest, status, "Set up", move || {
        let input = |name: &'static str, label: &'static str, kind: &'static str| {
            // A password is never sent back.
            let value = if kind == "password" { String::new() } else { field(&fields, name) };
            view! { <Input name=name label=label kind=kind value=value required=true errors=&errors/> }
        };
        view! {
            <div class="narrow">
                <h1>"Set up Layby"</h1>
                <p>"There is no administrator yet. The server printed a one-time code when it started."</p>
                <form method="post" action="/setup" class="card">
                    {input("code", "One-time code", "text")}
                    {input("name", "Your name", "text")}
                    {input("email", "Your e-mail address", "email")}
                    {input("password", "A password", "password")}
                    <button>"Make me the administrator"</button>
                </form>
            </div>
        }
        .into_any()
    })
}
