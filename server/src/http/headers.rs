//! What every answer carries: a request id, and what a browser may do with the page.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use engine::Engine;
use http::{HeaderName, HeaderValue, header};
use tracing::Instrument;

/// No script, style or frame but our own files; nothing inline. The one hash is the style of Turbo's progress bar, which
/// it writes when it starts: another text would be refused.
const POLICY: &str = "default-src 'none'; script-src 'self'; \
    style-src 'self' 'sha256-WAyOw4V+FqDc35lQPyRADLBWbuNK8ahvYEaQIYF1+Ps='; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'";

#[derive(Clone)]
pub(super) struct Headers {
    pub engine: Engine,
    pub tls: bool,
}

pub(super) async fn headers(State(set): State<Headers>, mut request: Request, next: Next) -> Response {
    let id = set.engine.ids.next().to_string();
    let span = tracing::info_span!("request", id = %id, method = %request.method(), path = request.uri().path());
    let program = request.uri().path().starts_with("/static/");
    request.extensions_mut().insert(app::RequestId(id.clone()));
    let answer = app::REQUEST_ID.scope(id.clone(), next.run(request).instrument(span));
    let mut response = answer.await;
    if response.status().is_server_error() {
        tracing::error!(%id, status = %response.status(), "a request failed");
    }
    let headers = response.headers_mut();
    let mut set_header = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set_header(header::CONTENT_SECURITY_POLICY, POLICY);
    set_header(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set_header(header::REFERRER_POLICY, "same-origin");
    set_header(header::X_FRAME_OPTIONS, "DENY");
    set_header(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    if set.tls {
        set_header(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    if !program {
        set_header(header::CACHE_CONTROL, "no-store");
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}
