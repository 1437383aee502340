//! What a page needs: the engine, who is signed in, and the moment.

use axum::{
    extract::{FromRef, FromRequestParts},
    http::request::Parts,
    response::{IntoResponse, Redirect, Response},
};
use chrono::{DateTime, Utc};
use engine::{Actor, Engine, actor::PersonActor, wake::Mark};

use crate::{Assets, Session, Signed};

/// A signed-in person's request. Nobody signed in: off to the sign-in page, and back here afterwards.
pub(crate) struct Cx {
    pub engine: Engine,
    pub session: Session,
    pub assets: String,
    pub now: DateTime<Utc>,
    /// Before anything was read: what changes later, the page has not seen.
    pub mark: Mark,
}

impl Cx {
    pub(crate) fn person(&self) -> &PersonActor {
        &self.session.person
    }

    /// The reader's time zone.
    pub(crate) fn zone(&self) -> chrono_tz::Tz {
        self.person().zone()
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor::Person(self.session.person.clone())
    }
}

/// Anybody's request.
pub(crate) struct Guest {
    pub engine: Engine,
    pub signed: Option<Session>,
    pub assets: String,
}

impl<S> FromRequestParts<S> for Guest
where
    S: Send + Sync,
    Engine: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let signed = parts.extensions.get::<Signed>().and_then(|signed| signed.0.clone());
        let assets = parts.extensions.get::<Assets>().map(|assets| assets.version.clone()).unwrap_or_default();
        Ok(Self { engine: Engine::from_ref(state), signed, assets })
    }
}

impl<S> FromRequestParts<S> for Cx
where
    S: Send + Sync,
    Engine: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let Ok(guest) = Guest::from_request_parts(parts, state).await;
        let Some(session) = guest.signed else {
            let next = if parts.method == http::Method::GET { parts.uri.path() } else { "/" };
            return Err(Redirect::to(&format!("/sign-in?next={next}")).into_response());
        };
        let (now, mark) = (guest.engine.clock.now(), guest.engine.wakes.mark());
        Ok(Self { engine: guest.engine, session, assets: guest.assets, now, mark })
    }
}
