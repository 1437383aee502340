//! Several slots of one task answered in one go: each is checked, and either all are deposited or none (design section 4).

use serde_json::Value;

use super::{Deposited, Revision, Standing, Status, deposit, list};
use crate::{
    Actor, FieldError, Refusal, Tx,
    ids::{SlotId, TaskId},
};

const MOST: usize = 50;

/// One of the answers.
pub struct Resolved {
    pub slot: SlotId,
    pub revision: Option<Revision>,
    pub value: Value,
}

/// Why nothing was deposited, and which of the answers is the reason (None: the request itself).
#[derive(Debug)]
pub struct NotResolved {
    pub at: Option<usize>,
    pub refusal: Refusal,
}

impl From<Refusal> for NotResolved {
    fn from(refusal: Refusal) -> Self {
        Self { at: None, refusal }
    }
}

impl From<sqlx::Error> for NotResolved {
    fn from(error: sqlx::Error) -> Self {
        Self { at: None, refusal: error.into() }
    }
}

/// Answers several slots of a task, all or none. Answers what came of each, in the order of `answers`.
///
/// Refuses as [`deposit`] does for the first that cannot be; what does not fit is named for all of them at once, with
/// pointers `/answers/<n>/value/…`. Nothing is done then, provided that the caller drops `tx`.
pub async fn resolve(
    tx: &mut Tx,
    actor: &Actor,
    task: TaskId,
    answers: Vec<Resolved>,
) -> Result<Vec<Deposited>, NotResolved> {
    if answers.is_empty() || answers.len() > MOST {
        return Err(Refusal::invalid("/answers", "Answer 1 to 50 questions at once.").into());
    }
    for (at, answer) in answers.iter().enumerate() {
        if answers[..at].iter().any(|other| other.slot == answer.slot) {
            return Err(
                Refusal::invalid(&format!("/answers/{at}/slot_id"), "This question is answered twice here.").into()
            );
        }
    }
    tx.transaction().await?;
    // The task's row first, as everything that changes its slots.
    let there =
        sqlx::query_scalar!("select id from task where id = $1 for update", task.0).fetch_optional(tx.conn()).await?;
    if there.is_none() {
        return Err(Refusal::NotFound.into());
    }
    // What does not fit is said of all of them before anything is handed in, so that nobody mends one thing at a time.
    let mut wrong: Vec<FieldError> = Vec::new();
    for (at, answer) in answers.iter().enumerate() {
        let slot = list::lean(tx.conn(), answer.slot).await?.filter(|slot| slot.task_id == task);
        let slot = slot.ok_or(NotResolved { at: Some(at), refusal: Refusal::NotFound })?;
        // Who may not answer learns nothing of what would fit.
        let may = matches!(actor, Actor::Person(person) if matches!(slot.standing(person), Standing::Asked | Standing::OnBehalf));
        if slot.status == Status::Waiting
            && may
            && let Err(errors) = deposit::fits(&slot, &answer.value)
        {
            wrong.extend(errors.into_iter().map(|error| error.under(&format!("/answers/{at}/value"))));
        }
    }
    let mut deposited = Vec::new();
    for (at, answer) in answers.into_iter().enumerate() {
        let refusal = match deposit(tx, actor, answer.slot, answer.revision, answer.value, None).await {
            Ok(done) => {
                deposited.push(done);
                continue;
            }
            Err(Refusal::InvalidAnswer(_)) if !wrong.is_empty() => Refusal::InvalidAnswer(wrong),
            Err(Refusal::InvalidAnswer(errors)) => {
                let under = format!("/answers/{at}/value");
                Refusal::InvalidAnswer(errors.into_iter().map(|error| error.under(&under)).collect())
            }
            Err(refusal) => refusal,
        };
        return Err(NotResolved { at: Some(at), refusal });
    }
    Ok(deposited)
}
