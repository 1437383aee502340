//! The one door: every answer, from a page, the API or anywhere else, comes in here (design section 4).

use serde_json::{Value, json};

use super::{Kind, Revision, Slot, Standing, Status, answer, approve, close, close::Ending, form, human, list, secret};
use crate::{
    Actor, FieldError, Refusal, Tx,
    actor::PersonActor,
    duration, fault, file,
    ids::{FileId, PersonId, SlotId},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deposited {
    pub on_behalf: bool,
    /// How many approvals are still needed; None when the slot is answered.
    pub still: Option<usize>,
}

/// Whose answer it is that somebody else gives.
pub(super) struct Behalf {
    pub of: Option<PersonId>,
    pub words: String,
}

/// Hands `value` to the slot: authority, still waiting, the revision the person saw, the answer fits; then closes the
/// slot and makes the work ready, or counts one approval of several.
///
/// Refuses with `not_found`, `not_yours`, `already_answered`, `expired`, `cancelled`, `stale` or `invalid_answer`, and
/// then has done nothing. `revision` None means "whatever is asked now"; an approval needs one (`invalid`, /revision).
pub async fn deposit(
    tx: &mut Tx,
    actor: &Actor,
    id: SlotId,
    revision: Option<Revision>,
    value: Value,
    note: Option<String>,
) -> Result<Deposited, Refusal> {
    let note = note.filter(|note| !note.trim().is_empty());
    // Who finds, when it writes, that something changed since it read (a vote more, handed on, an end), reads again.
    for attempt in 0..8 {
        if attempt > 1 {
            // Overtaken twice: nobody overtakes who holds the task's row.
            super::lock(tx, id).await?;
        }
        let slot = list::lean(tx.conn(), id).await?.ok_or(Refusal::NotFound)?;
        let person = match actor {
            Actor::Person(person) => person,
            Actor::Agent(agent) if agent.id == slot.agent_id => {
                return Err(Refusal::NotYours("An agent can ask, read and cancel, but never answer.".to_owned()));
            }
            Actor::Agent(_) => return Err(Refusal::NotFound),
        };
        let behalf = may_answer(tx, &slot, person).await?;
        if slot.status != Status::Waiting {
            return Err(ended(tx, id, revision).await?);
        }
        if slot.kind == Kind::Approval && revision.is_none() {
            return Err(Refusal::invalid(
                "/revision",
                "Say which revision you decide on: what you saw is what you approve.",
            ));
        }
        if revision.is_some_and(|seen| seen != slot.revision) {
            return Err(Refusal::Stale { revision: slot.revision });
        }
        if note.as_ref().is_some_and(|note| note.chars().count() > 4_000 || note.contains('\0')) {
            return Err(Refusal::invalid("/note", "A note has at most 4,000 characters."));
        }
        let (behalf, note) = (behalf.as_ref(), note.as_deref());
        let done = match slot.kind {
            Kind::Approval => approve::decide(tx, &slot, person, behalf, &value, note).await?,
            Kind::Human => human::finish(tx, &slot, person, behalf, &value, note).await?,
            _ => give(tx, actor, &slot, person, behalf, value.clone(), note).await?,
        };
        fault::point("deposit.after_commit");
        if let Some(deposited) = done {
            return Ok(deposited);
        }
    }
    Err(ended(tx, id, revision).await?)
}

/// Whether `value` could be handed in now, without doing it: for a page that takes several answers at once.
pub(super) fn fits(slot: &Slot, value: &Value) -> Result<(), Vec<FieldError>> {
    match slot.kind {
        Kind::Approval => approve::read(value).map(|_| ()),
        Kind::Human => human::check(value),
        _ if slot.secret => secret::read(value.clone()).map(|_| ()),
        _ => answer::check(slot, value.clone()).map(|_| ()),
    }
}

/// The answer to a question or of a client's tool: closes the slot.
async fn give(
    tx: &mut Tx,
    actor: &Actor,
    slot: &Slot,
    person: &PersonActor,
    behalf: Option<&Behalf>,
    value: Value,
    note: Option<&str>,
) -> Result<Option<Deposited>, Refusal> {
    let after = duration::words(slot.waited(tx.now()));
    let said = match behalf {
        Some(behalf) => format!("{} answered on behalf of {} after {after}.", person.name, behalf.words),
        None => format!("{} answered after {after}.", person.name),
    };
    let ending = Ending { said: &said, ..Ending::by(person, behalf, slot, note) };
    let closed = if slot.secret {
        let words = secret::read(value).map_err(Refusal::InvalidAnswer)?;
        let sealed = tx.engine.keys.seal(slot.id, &words)?;
        let result = Some(json!({ "secret": true, "said": said }));
        fault::point("deposit.before_commit");
        close::close(tx, slot, Ending { sealed: Some(&sealed), result, ..ending }).await?
    } else {
        let value = answer::check(slot, value).map_err(Refusal::InvalidAnswer)?;
        let files = form::files(slot, &value);
        if !files.is_empty() {
            // The task's row first, as everything that changes its slots; and what changed until then is read again.
            let locked = super::lock(tx, slot.id).await?;
            if !locked.is_some_and(|now| now.status == slot.status && now.handed == slot.handed) {
                return Ok(None);
            }
            hand_in(tx, actor, slot, person, &files).await?;
        }
        let result = Some(json!({ "answer": value, "note": note, "said": said }));
        fault::point("deposit.before_commit");
        close::close(tx, slot, Ending { answer: Some(&value), result, ..ending }).await?
    };
    Ok(closed.then_some(Deposited { on_behalf: behalf.is_some(), still: None }))
}

/// Makes the files of an answer the slot's, each of the type that its field asks for.
async fn hand_in(
    tx: &mut Tx,
    actor: &Actor,
    slot: &Slot,
    person: &PersonActor,
    files: &[form::FileAt],
) -> Result<(), Refusal> {
    let mut ids: Vec<FileId> = Vec::new();
    let mut errors = Vec::new();
    for file in files {
        let found = match file.id {
            Some(id) if !ids.contains(&id) => {
                file::usable(tx.conn(), person.id, slot.id, id).await?.map(|kind| (id, kind))
            }
            _ => None,
        };
        match found {
            Some((id, kind)) if file.media_type.as_ref().is_none_or(|wanted| *wanted == kind) => ids.push(id),
            Some(_) => errors.push(FieldError::new(
                file.pointer.clone(),
                format!("Hand in a file of the type {}.", file.media_type.as_deref().unwrap_or_default()),
            )),
            None => errors.push(FieldError::new(
                file.pointer.clone(),
                "Choose a file: this is none that you uploaded and have not used yet.",
            )),
        }
    }
    if !errors.is_empty() {
        return Err(Refusal::InvalidAnswer(errors));
    }
    match file::attach(tx, actor, slot.id, &ids).await? {
        true => Ok(()),
        false => Err(Refusal::InvalidAnswer(vec![FieldError::new("", "One of these files is no longer there.")])),
    }
}

/// Why the slot, as it stands now, takes no answer: with who was first and when.
async fn ended(tx: &mut Tx, id: SlotId, revision: Option<Revision>) -> Result<Refusal, Refusal> {
    let slot = list::read(tx.conn(), id).await?.ok_or(Refusal::NotFound)?;
    Ok(match slot.closed_refusal() {
        Some(refusal) => refusal,
        None if revision.is_some_and(|seen| seen != slot.revision) => Refusal::Stale { revision: slot.revision },
        None => Refusal::NotYours("You may no longer answer this question.".to_owned()),
    })
}

/// On whose behalf the person answers, if on somebody's; or the refusal.
async fn may_answer(tx: &mut Tx, slot: &Slot, person: &PersonActor) -> Result<Option<Behalf>, Refusal> {
    match slot.standing(person) {
        Standing::Asked => covers(tx, slot, person).await,
        // Whoever had their say already has nobody speak for them.
        Standing::OnBehalf => {
            let of = slot.assignee_id.filter(|id| !slot.spent().contains(id));
            Ok(Some(Behalf { of, words: slot.asked_words().to_owned() }))
        }
        // How it ended is more use than who might have answered it.
        Standing::MayOnlySee(sentence) => Err(Refusal::NotYours(sentence)),
        Standing::Hidden => Err(Refusal::NotFound),
    }
}

/// Whom the person covers for, when only that lets them answer.
async fn covers(tx: &mut Tx, slot: &Slot, person: &PersonActor) -> Result<Option<Behalf>, Refusal> {
    let own = format!("person:{}", person.id);
    let mut absent = None;
    for key in slot.seats_of(person) {
        match key.strip_prefix("person:") {
            Some(id) if *key != own => absent = id.parse::<PersonId>().ok(),
            // Asked themselves, in person or as one of a group.
            _ => return Ok(None),
        }
    }
    let Some(absent) = absent else { return Ok(None) };
    let name = sqlx::query_scalar!("select name from person where id = $1", absent.0).fetch_optional(tx.conn()).await?;
    Ok(Some(Behalf { of: Some(absent), words: name.unwrap_or_default() }))
}
