//! Files: what an asker attaches to a question, and what a person hands in as an answer (design section 4; sizes and types
//! in `docs/architecture.md`). Kept in Postgres; what a file is, its content says, not its name.

use chrono::Duration;
use sqlx::PgConnection;

use crate::{
    Actor, Engine, FieldError, Refusal, Tx, audit,
    ids::{AgentId, FileId, PersonId, SlotId},
    slot, unseen,
};

/// Bytes of the largest file: 10 MB.
pub const LARGEST: usize = 10 * 1000 * 1000;
/// A file that no question and no answer uses is gone after this long.
const KEPT_UNUSED: Duration = Duration::hours(24);
/// Files that one person or agent can have lying about unused.
const MOST_UNUSED: i64 = 50;

/// A file without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub id: FileId,
    pub name: String,
    /// application/pdf, image/png, image/jpeg or text/plain.
    pub media_type: String,
    /// In bytes.
    pub size: i32,
    /// On the asker's side, or handed in as an answer.
    pub from_asker: bool,
}

impl File {
    /// Whether a page can show it as a picture.
    pub fn is_picture(&self) -> bool {
        matches!(self.media_type.as_str(), "image/png" | "image/jpeg")
    }
}

/// Keeps a file until a question or an answer uses it. `pointer`: where a refusal points.
///
/// Refuses with `invalid`: too large, empty, or neither PDF, PNG nor JPEG (an agent may attach plain text too).
pub async fn add(tx: &mut Tx, actor: &Actor, name: &str, bytes: &[u8], pointer: &str) -> Result<FileId, Refusal> {
    let wrong = |detail: &str| Err(Refusal::Invalid(vec![FieldError::new(pointer, detail)]));
    if bytes.is_empty() {
        return wrong("This file is empty.");
    }
    if bytes.len() > LARGEST {
        return wrong("This file is too large: at most 10 MB.");
    }
    let by_agent = matches!(actor, Actor::Agent(_));
    let media_type = match media_type(bytes) {
        Some("text/plain") if !by_agent => None,
        found => found,
    };
    let Some(media_type) = media_type else {
        return wrong(match by_agent {
            true => "Attach a PDF, a PNG or JPEG picture, or plain text.",
            false => "Hand in a PDF, or a PNG or JPEG picture.",
        });
    };
    let (agent, person): (Option<AgentId>, Option<PersonId>) = match actor {
        Actor::Agent(agent) => (Some(agent.id), None),
        Actor::Person(person) => (None, Some(person.id)),
    };
    let now = tx.now();
    sqlx::query!("delete from file where slot_id is null and created_at < $1", now - KEPT_UNUSED)
        .execute(tx.conn())
        .await?;
    let unused = sqlx::query_scalar!(
        r#"select count(*) as "count!" from file where slot_id is null and (agent_id = $1 or person_id = $2)"#,
        agent.map(|id| id.0),
        person.map(|id| id.0),
    )
    .fetch_one(tx.conn())
    .await?;
    if unused >= MOST_UNUSED {
        return wrong("There are 50 files of yours that nothing uses yet. Use them first; they are gone after a day.");
    }
    let id: FileId = tx.new_id();
    sqlx::query!(
        "insert into file (id, agent_id, person_id, name, media_type, size, bytes, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        id.0,
        agent.map(|id| id.0),
        person.map(|id| id.0),
        tidy(name, media_type),
        media_type,
        bytes.len() as i32,
        bytes,
        now,
    )
    .execute(tx.conn())
    .await?;
    audit::write(tx, &actor.key(), "file.added", &format!("file:{id}"), None).await?;
    Ok(id)
}

/// What the content is, of what is let in.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match infer::get(bytes).map(|found| found.mime_type()) {
        Some(known @ ("application/pdf" | "image/png" | "image/jpeg")) => Some(known),
        Some(other) if !other.starts_with("text/") => None,
        // Whatever kind of text it is, it is served as plain text and as a download.
        _ => {
            let text = std::str::from_utf8(bytes).ok()?;
            (!text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t')))
                .then_some("text/plain")
        }
    }
}

/// The last part of the name, without what could harm a header or a folder, and with the ending of a PDF or a picture when it is one.
fn tidy(name: &str, media_type: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let tidy: String = last
        .chars()
        .filter(|letter| !unseen::is_unseen(*letter))
        .filter(|letter| !matches!(letter, '"' | '<' | '>' | ':' | '|' | '?' | '*'))
        .take(200)
        .collect();
    let tidy = tidy.trim().trim_start_matches('.');
    let tidy = if tidy.is_empty() { "file" } else { tidy };
    let endings: &[&str] = match media_type {
        "application/pdf" => &[".pdf"],
        "image/png" => &[".png"],
        "image/jpeg" => &[".jpg", ".jpeg"],
        // A text may end in anything.
        _ => &[""],
    };
    let ends = tidy.to_lowercase();
    match endings.iter().any(|ending| ends.ends_with(ending)) {
        true => tidy.to_owned(),
        false => format!("{tidy}{}", endings[0]),
    }
}

/// A file with its content, for whoever may see its slot; one that nothing uses yet, for who brought it.
pub async fn get(engine: &Engine, actor: &Actor, id: FileId) -> Result<(File, Vec<u8>), Refusal> {
    let row = sqlx::query!(
        r#"select name, media_type, size, slot_id as "slot_id: SlotId", agent_id as "agent_id: AgentId",
                  person_id as "person_id: PersonId" from file where id = $1"#,
        id.0
    )
    .fetch_optional(&engine.pool)
    .await?
    .ok_or(Refusal::NotFound)?;
    match row.slot_id {
        Some(slot) => drop(slot::get(engine, actor, slot).await?),
        None => {
            let own = match actor {
                Actor::Agent(agent) => row.agent_id == Some(agent.id),
                Actor::Person(person) => row.person_id == Some(person.id),
            };
            if !own {
                return Err(Refusal::NotFound);
            }
        }
    }
    let bytes = sqlx::query_scalar!("select bytes from file where id = $1", id.0).fetch_one(&engine.pool).await?;
    let from_asker = row.agent_id.is_some();
    Ok((File { id, name: row.name, media_type: row.media_type, size: row.size, from_asker }, bytes))
}

/// The files of some slots, with whose they are, the oldest first.
pub async fn of_slots(engine: &Engine, slots: &[SlotId]) -> Result<Vec<(SlotId, File)>, Refusal> {
    let ids: Vec<_> = slots.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"select id as "id: FileId", slot_id as "slot_id!: SlotId", name, media_type, size,
                  (agent_id is not null) as "from_asker!"
           from file where slot_id = any($1) order by id"#,
        &ids
    )
    .fetch_all(&engine.pool)
    .await?;
    let file = |row: (FileId, String, String, i32, bool)| File {
        id: row.0,
        name: row.1,
        media_type: row.2,
        size: row.3,
        from_asker: row.4,
    };
    Ok(rows
        .into_iter()
        .map(|row| (row.slot_id, file((row.id, row.name, row.media_type, row.size, row.from_asker))))
        .collect())
}

/// One of somebody's own files that nothing uses yet but, after a lost race, this very answer: its media type. None when
/// there is no such file of theirs.
pub(crate) async fn usable(
    conn: &mut PgConnection,
    person: PersonId,
    slot: SlotId,
    id: FileId,
) -> Result<Option<String>, Refusal> {
    Ok(sqlx::query_scalar!(
        "select media_type from file where id = $1 and person_id = $2 and (slot_id is null or slot_id = $3)",
        id.0,
        person.0,
        slot.0
    )
    .fetch_optional(conn)
    .await?)
}

/// Names of somebody's own files that nothing uses yet, for a form that comes back.
pub async fn names(engine: &Engine, person: PersonId, ids: &[FileId]) -> Result<Vec<(FileId, String)>, Refusal> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"select id as "id: FileId", name from file where id = any($1) and person_id = $2 and slot_id is null"#,
        &ids,
        person.0
    )
    .fetch_all(&engine.pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// Makes files the slot's: those of an agent that asks, or of the person who answers. False when one of them is not theirs
/// or is used already. Needs the transaction of the asking or answering.
pub(crate) async fn attach(tx: &mut Tx, actor: &Actor, slot: SlotId, files: &[FileId]) -> Result<bool, Refusal> {
    let ids: Vec<_> = files.iter().map(|id| id.0).collect();
    let (agent, person) = match actor {
        Actor::Agent(agent) => (Some(agent.id.0), None),
        Actor::Person(person) => (None, Some(person.id.0)),
    };
    let attached = sqlx::query!(
        "update file set slot_id = $1
         where id = any($2) and (slot_id is null or slot_id = $1) and (agent_id = $3 or person_id = $4)",
        slot.0,
        &ids,
        agent,
        person
    )
    .execute(tx.conn())
    .await?;
    Ok(attached.rows_affected() as usize == files.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_its_content_says() {
        assert_eq!(media_type(b"%PDF-1.7\n..."), Some("application/pdf"));
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0rest"), Some("image/jpeg"));
        assert_eq!(media_type("a,b\n1,\"ü\"".as_bytes()), Some("text/plain"));
        for other in [&b"MZ\x90\x00"[..], b"PK\x03\x04", b"\x7fELF", b"GIF89a", b"\x00\x01", b"\xff\xfe<"] {
            assert_eq!(media_type(other), None);
        }
        // A page in a text's clothes is served as a text, as a download, never as a page.
        assert_ne!(media_type(b"<html><script>alert(1)</script>"), Some("text/html"));
    }

    #[test]
    fn a_files_name_can_harm_no_header_and_no_folder() {
        let tidy = |name: &str| tidy(name, "text/plain");
        assert_eq!(tidy("../../etc/passwd"), "passwd");
        assert_eq!(tidy("C:\\x\\inv\r\nSet-Cookie: a=\"b\".pdf"), "invSet-Cookie a=b.pdf");
        assert_eq!(tidy(".."), "file");
        assert_eq!(tidy(""), "file");
    }

    #[test]
    fn a_files_name_says_that_it_is_a_pdf_or_a_picture() {
        assert_eq!(tidy("..", "application/pdf"), "file.pdf");
        assert_eq!(tidy("", "image/png"), "file.png");
        assert_eq!(tidy("Invoice.PDF", "application/pdf"), "Invoice.PDF");
        assert_eq!(tidy("invoice\u{202e}fdp.exe", "image/jpeg"), "invoicefdp.exe.jpg");
        assert_eq!(tidy("photo.JPEG", "image/jpeg"), "photo.JPEG");
    }
}
