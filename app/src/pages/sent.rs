//! A form as a browser sends it, with or without files. Files are kept before anything else happens, so that a form that
//! is refused comes back with them.

use axum::{
    extract::{FromRequest, Multipart, Request},
    response::Response,
};
use engine::{Refusal, file};
use http::{StatusCode, header};

use super::Fields;
use crate::{context::Cx, page::error_page};

/// Bytes of one form that are kept in memory: of its files, and of its words.
const MOST_FILES: usize = 30 * 1000 * 1000;
const MOST_WORDS: usize = 2 * 1000 * 1000;

/// Fields in their order, and files.
pub(crate) struct Sent {
    fields: Vec<(String, String)>,
    files: Vec<SentFile>,
    /// All files together are larger than is let in; not all of them is here.
    too_much: bool,
}

/// The field's name, the file's name, its content.
pub(crate) type SentFile = (String, String, axum::body::Bytes);

/// The fields with each file's id as its field's value.
pub(crate) struct Kept {
    pub fields: Vec<(String, String)>,
    /// Id and name of the files that came with it.
    pub files: Vec<(String, String)>,
    /// A file that was not let in: the name of its field, and why.
    pub refused: Option<(String, Refusal)>,
}

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("multipart/form-data") {
            let Fields(fields) = Fields::from_request(request, state).await?;
            return Ok(Self { fields, files: Vec::new(), too_much: false });
        }
        let mut parts =
            Multipart::from_request(request, state).await.map_err(|rejection| error_page(rejection.status()))?;
        let mut sent = Self { fields: Vec::new(), files: Vec::new(), too_much: false };
        let (mut file_bytes, mut word_bytes) = (0, 0);
        while let Some(mut part) = parts.next_field().await.map_err(|error| error_page(error.status()))? {
            let name = part.name().unwrap_or_default().to_owned();
            let file = part.file_name().map(str::to_owned);
            let mut bytes = Vec::new();
            while let Some(chunk) = part.chunk().await.map_err(|error| error_page(error.status()))? {
                if file.is_none() {
                    word_bytes += chunk.len();
                    if word_bytes > MOST_WORDS {
                        return Err(error_page(StatusCode::PAYLOAD_TOO_LARGE));
                    }
                } else if bytes.len() > file::LARGEST || file_bytes > MOST_FILES {
                    // Read to its end, so that the form can come back with all else that was typed, but not kept.
                    continue;
                } else {
                    file_bytes += chunk.len();
                }
                bytes.extend_from_slice(&chunk);
            }
            match file {
                // No file was chosen.
                Some(file) if file.is_empty() && bytes.is_empty() => {}
                Some(file) => sent.files.push((name, file, bytes.into())),
                None => {
                    let text = String::from_utf8_lossy(&bytes).replace('\0', "");
                    sent.fields.push((name, text));
                }
            }
        }
        sent.too_much = file_bytes > MOST_FILES;
        Ok(sent)
    }
}

impl Sent {
    /// The fields and the files as they came: for files that are read, not kept.
    pub(crate) fn into_parts(self) -> (Vec<(String, String)>, Vec<SentFile>) {
        (self.fields, self.files)
    }

    /// Keeps the files as the person's own, to be used by the answer.
    pub(crate) async fn keep(self, cx: &Cx) -> Kept {
        let mut kept = Kept { fields: self.fields, files: Vec::new(), refused: None };
        for (name, file, bytes) in self.files {
            if self.too_much {
                let detail = "All files of one answer have at most 30 MB together.";
                kept.refused = Some((name, Refusal::invalid("", detail)));
                break;
            }
            // Where the form points: the field's own place in its answer.
            let pointer = name.split_once("answer").map_or("", |(_, pointer)| pointer).to_owned();
            let added = async {
                let mut tx = cx.engine.begin().await?;
                let id = file::add(&mut tx, &cx.actor(), &file, &bytes, &pointer).await?;
                tx.commit().await?;
                Ok::<_, Refusal>(id)
            };
            match added.await {
                Ok(id) => {
                    kept.fields.retain(|(field, _)| *field != name);
                    kept.fields.push((name, id.to_string()));
                }
                Err(refusal) => kept.refused = Some((name, refusal)),
            }
        }
        let ids: Vec<_> = kept.fields.iter().filter_map(|(_, text)| text.parse().ok()).collect();
        let names = file::names(&cx.engine, cx.person().id(), &ids).await.unwrap_or_default();
        kept.files = names.into_iter().map(|(id, name)| (id.to_string(), name)).collect();
        kept
    }
}
