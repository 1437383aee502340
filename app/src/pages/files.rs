//! `/files/{id}`: what was attached or handed in. Pictures that people handed in are shown; everything else is a download,
//! so that nothing of it ever runs here.

use axum::{
    extract::{Path, RawQuery},
    response::{IntoResponse, Response},
};
use engine::{Refusal, file, ids::FileId};
use http::{HeaderValue, header};

use crate::{content_disposition, context::Cx, page::refused};

pub(crate) async fn show(cx: Cx, Path(id): Path<String>, RawQuery(query): RawQuery) -> Response {
    let read = async {
        let id: FileId = id.parse().map_err(|_| Refusal::NotFound)?;
        file::get(&cx.engine, &cx.actor(), id).await
    };
    match read.await {
        Ok((file, bytes)) => {
            let inline = file.is_picture() && !file.from_asker && query.as_deref() != Some("download");
            let kind = if inline { "inline" } else { "attachment" };
            let value = |text: &str, other: &'static str| {
                HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(other))
            };
            let headers = [
                (header::CONTENT_TYPE, value(&file.media_type, "application/octet-stream")),
                (header::CONTENT_DISPOSITION, value(&content_disposition(kind, &file.name), "attachment")),
            ];
            (headers, bytes).into_response()
        }
        Err(refusal) => refused(&cx, &refusal),
    }
}
