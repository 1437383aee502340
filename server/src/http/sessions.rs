//! Sessions in Postgres: the cookie names a row, the row a sign-in, and the sign-in a person as they stand now.

use axum::{
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::Response,
};
use engine::person::store;
use engine::{Engine, ids::SignInId};
use tower_sessions::{
    Expiry, Session, SessionManagerLayer, SessionStore,
    cookie::SameSite,
    session::{Id, Record},
    session_store::{Error, Result},
};

/// A session ends after this long unused.
const UNUSED_DAYS: i64 = 14;

/// Sessions in the engine's table. (The ready-made store turns on sqlx's `time` types, which the engine does not speak.)
#[derive(Clone)]
pub(super) struct Store(Engine);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    async fn keep(&self, record: &Record, fresh: bool) -> Result<bool> {
        let data = serde_json::to_value(&record.data).map_err(|error| Error::Encode(error.to_string()))?;
        // By the engine's clock, like every other time that is kept.
        let expires_at = self.0.clock.now() + chrono::Duration::days(UNUSED_DAYS);
        store::save(&self.0, &record.id.to_string(), &data, expires_at, fresh).await.map_err(backend)
    }
}

fn backend(error: engine::Refusal) -> Error {
    Error::Backend(error.to_string())
}

#[async_trait::async_trait]
impl SessionStore for Store {
    async fn create(&self, record: &mut Record) -> Result<()> {
        while !self.keep(record, true).await? {
            record.id = Id::default();
        }
        Ok(())
    }

    async fn save(&self, record: &Record) -> Result<()> {
        self.keep(record, false).await.map(|_| ())
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let Some((data, expires_at)) = store::load(&self.0, &id.to_string()).await.map_err(backend)? else {
            return Ok(None);
        };
        let data = serde_json::from_value(data).map_err(|error| Error::Decode(error.to_string()))?;
        let expiry_date = time::OffsetDateTime::from_unix_timestamp(expires_at.timestamp())
            .map_err(|error| Error::Decode(error.to_string()))?;
        Ok(Some(Record { id: *id, data, expiry_date }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        store::delete(&self.0, &id.to_string()).await.map_err(backend)
    }
}

pub(super) fn layer(engine: &Engine, tls: bool) -> SessionManagerLayer<Store> {
    SessionManagerLayer::new(Store(engine.clone()))
        // A browser takes a __Host- cookie only over TLS, from this very host, for all paths.
        .with_name(if tls { "__Host-layby" } else { "layby" })
        .with_secure(tls)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_path("/")
        .with_expiry(Expiry::OnInactivity(time::Duration::days(UNUSED_DAYS)))
}

/// Says who is calling, from the session's sign-in; nobody when there is none, or it has ended.
pub(super) async fn who(State(engine): State<Engine>, session: Session, mut request: Request, next: Next) -> Response {
    let mut signed = app::Signed(None);
    let has_cookie = request.headers().contains_key(http::header::COOKIE);
    if has_cookie && let Ok(Some(sign_in)) = session.get::<SignInId>("sign_in").await {
        match engine::person::session(&engine, sign_in).await {
            Ok(Some(person)) => signed = app::Signed(Some(app::Session { person, sign_in })),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, cause = ?std::error::Error::source(&error), "a session could not be read");
                return app::error_page(http::StatusCode::SERVICE_UNAVAILABLE);
            }
        }
    }
    let network = request
        .extensions()
        .get::<ConnectInfo<std::net::SocketAddr>>()
        .map_or_else(|| "unknown".to_owned(), |ConnectInfo(address)| address.ip().to_string());
    request.extensions_mut().insert(signed);
    request.extensions_mut().insert(app::Network(network));
    next.run(request).await
}
