//! The pages, a noun each.

pub(crate) mod account;
pub(crate) mod claims;
pub(crate) mod files;
pub(crate) mod inbox;
pub(crate) mod sent;
pub(crate) mod settings;
pub(crate) mod sign_in;
pub(crate) mod slot;
pub(crate) mod tasks;
pub(crate) mod together;

use axum::{
    extract::{Form, FromRequest, Request},
    response::Response,
};
use engine::Refusal;

use crate::{
    context::Cx,
    page::{error_page, refused},
};

/// Fields of a form as a browser sends them. A character that Postgres cannot keep (U+0000) is left out: nobody types it.
pub(crate) struct Fields(pub Vec<(String, String)>);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        match Form::<Vec<(String, String)>>::from_request(request, state).await {
            Ok(Form(mut fields)) => {
                for (_, text) in &mut fields {
                    text.retain(|letter| letter != '\0');
                }
                Ok(Self(fields))
            }
            Err(rejection) => Err(error_page(rejection.status())),
        }
    }
}

pub(crate) fn field(fields: &[(String, String)], name: &str) -> String {
    fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.clone()).unwrap_or_default()
}

/// `back` only when it is a page of ours: one slash, and nothing that a browser reads as another host.
pub(crate) fn own_page(back: &str) -> Option<&str> {
    let second = back.chars().nth(1);
    (back.starts_with('/')
        && second.is_none_or(|letter| letter != '/' && letter != '\\')
        && back.chars().all(|letter| !letter.is_control() && letter.is_ascii() && letter != '\\'))
    .then_some(back)
}

pub(crate) async fn missing(cx: Cx) -> Response {
    refused(&cx, &Refusal::NotFound)
}

#[cfg(test)]
mod tests {
    use super::own_page;

    #[test]
    fn redirects_only_go_to_own_pages() {
        for own in ["/", "/claims/1", "/tasks?status=waiting"] {
            assert_eq!(own_page(own), Some(own));
        }
        for other in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/\n/evil"]
        {
            assert_eq!(own_page(other), None, "{other}");
        }
    }
}
