//! Who is calling: the bearer token, and how often it may.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    extract::{Request, State},
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};
use engine::{Actor, Engine};

use super::Problem;

#[derive(Clone)]
pub(super) struct Auth {
    pub engine: Engine,
    pub limits: Limits,
}

/// Requests of each caller in the present second.
#[derive(Clone)]
pub(super) struct Limits {
    most: u32,
    counted: Arc<Mutex<(i64, HashMap<String, u32>)>>,
}

impl Limits {
    pub(super) fn new(most: u32) -> Self {
        Self { most, counted: Arc::default() }
    }

    fn allow(&self, caller: String, second: i64) -> bool {
        if self.most == 0 {
            return true;
        }
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.0 != second {
            *counted = (second, HashMap::new());
        }
        let count = counted.1.entry(caller).or_default();
        *count += 1;
        *count <= self.most
    }
}

/// Puts the token's [`Actor`] into the request; 401 without a good one.
pub(super) async fn bearer(State(auth): State<Auth>, mut request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let Some(token) = token else {
        return Problem::simple(401, "unauthorized", "Send a token: Authorization: Bearer lby_…").into_response();
    };
    let actor = match engine::agent::token::actor(&auth.engine, token).await {
        Ok(Some(actor)) => actor,
        Ok(None) => {
            return Problem::simple(401, "unauthorized", "This token is not known, or was revoked.").into_response();
        }
        Err(refusal) => return Problem::from(refusal).into_response(),
    };
    if !auth.limits.allow(actor.key(), auth.engine.clock.now().timestamp()) {
        return Problem::simple(429, "too_many_requests", "Too many requests with this token. Try again in a second.")
            .into_response();
    }
    request.extensions_mut().insert(actor);
    next.run(request).await
}

/// Refuses with 403 when the token was given none of these scopes.
pub(super) fn needs_one(actor: &Actor, scopes: &[&str]) -> Result<(), Problem> {
    match scopes.iter().any(|scope| actor.has_scope(scope)) {
        true => Ok(()),
        false => needs(actor, scopes[0]),
    }
}

/// Refuses with 403 when the token was not given this scope.
pub(super) fn needs(actor: &Actor, scope: &str) -> Result<(), Problem> {
    if actor.has_scope(scope) {
        return Ok(());
    }
    let detail = match actor {
        Actor::Agent(_) if scope == "answer" => {
            "An agent can ask, read and cancel its own, but never answer.".to_owned()
        }
        _ => format!("This token does not have the scope “{scope}”."),
    };
    Err(Problem::simple(403, "forbidden", detail))
}
