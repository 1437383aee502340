//! Style, page script and pictures, inside the program.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

#[derive(RustEmbed)]
#[folder = "../public"]
#[exclude = "node_modules/*"]
#[exclude = "package*.json"]
struct Public;

#[derive(RustEmbed)]
#[folder = "../style"]
struct Style;

/// Changes with any file: pages name it, so browsers may keep what they have for ever.
pub(super) fn version() -> String {
    let mut digest = Sha256::new();
    for name in Public::iter().chain(Style::iter()) {
        if let Some(file) = Public::get(&name).or_else(|| Style::get(&name)) {
            digest.update(file.metadata.sha256_hash());
        }
    }
    engine::hex(&digest.finalize()[..6])
}

pub(super) async fn file(Path(path): Path<String>) -> Response {
    let Some(file) = Style::get(&path).or_else(|| Public::get(&path)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = match path.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "public, max-age=604800")];
    (headers, file.data.into_owned()).into_response()
}
