//! A person takes the work over: hands in its result, or writes to the agent and gives it back (design section 4, kinds).

use serde_json::{Value, json};

use super::{
    Slot,
    close::{self, Ending},
    deposit::{Behalf, Deposited},
};
use crate::{FieldError, Refusal, Tx, actor::PersonActor, duration, fault, task};

const LONGEST: usize = 20_000;

enum Takeover {
    Result(Value),
    Messages(Vec<String>),
}

/// Reads an answer's value: `{"result": …}` or `{"messages": ["…"]}`. Pointers into the value.
fn read(value: &Value) -> Result<Takeover, Vec<FieldError>> {
    let one = |pointer: &str, detail: &str| Err(vec![FieldError::new(pointer, detail)]);
    let fields = value.as_object().filter(|fields| fields.len() == 1);
    let Some((name, inner)) = fields.and_then(|fields| fields.iter().next()) else {
        return one("", "Hand in the result, or write to the agent and give the work back: one of the two.");
    };
    match (name.as_str(), inner) {
        ("result", Value::String(text)) if text.trim().is_empty() => one("/result", "Write the work's result."),
        ("result", Value::String(text)) if text.chars().count() > LONGEST => {
            one("/result", "A result has at most 20,000 characters.")
        }
        ("result", Value::String(_) | Value::Object(_)) => Ok(Takeover::Result(inner.clone())),
        ("result", _) => one("/result", "A result is a text or a JSON object."),
        ("messages", Value::Array(list)) => {
            let messages: Option<Vec<_>> = list.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            match messages {
                Some(messages)
                    if (1..=50).contains(&messages.len())
                        && messages.iter().all(|text| !text.trim().is_empty() && text.chars().count() <= LONGEST) =>
                {
                    Ok(Takeover::Messages(messages))
                }
                _ => one("/messages", "Write to the agent: 1 to 50 messages, each of at most 20,000 characters."),
            }
        }
        _ => one("", "Hand in the result, or write to the agent and give the work back."),
    }
}

/// Whether the value can be handed in at all.
pub(super) fn check(value: &Value) -> Result<(), Vec<FieldError>> {
    read(value).map(|_| ())
}

/// Ends the takeover: with a result the work of an agent of ours is done, with messages the agent goes on. None when
/// somebody was first.
pub(super) async fn finish(
    tx: &mut Tx,
    slot: &Slot,
    person: &PersonActor,
    behalf: Option<&Behalf>,
    value: &Value,
    note: Option<&str>,
) -> Result<Option<Deposited>, Refusal> {
    let after = duration::words(slot.waited(tx.now()));
    let name = &person.name;
    let inside = !slot.call_id.is_empty();
    let (said, result, done) = match read(value).map_err(Refusal::InvalidAnswer)? {
        Takeover::Result(result) => {
            let words = result.as_str().or_else(|| result.get("summary")?.as_str()).unwrap_or("the result").to_owned();
            let said = format!("{name} handed in the result after {after}: {words}");
            let done = match result {
                Value::Object(fields) => Value::Object(fields),
                text => json!({ "summary": text }),
            };
            (said.clone(), json!({ "result": done, "said": said }), Some(done))
        }
        Takeover::Messages(messages) => {
            let text = messages.join("\n\n");
            let said = format!("{name} gave the work back after {after}: {text}");
            (said.clone(), json!({ "answer": text, "messages": messages, "said": said }), None)
        }
    };
    tx.transaction().await?;
    fault::point("deposit.before_commit");
    let ending =
        Ending { answer: Some(value), result: Some(result), said: &said, ..Ending::by(person, behalf, slot, note) };
    if !close::close(tx, slot, ending).await? {
        return Ok(None);
    }
    if let Some(done) = done.filter(|_| inside) {
        let ending = task::stop::Ending {
            status: task::Status::Done,
            result: Some(&done),
            problem: None,
            said: &format!("{name} finished this work."),
            slots: "somebody finished the work.",
            actor: &format!("person:{}", person.id),
            epoch: None,
        };
        task::stop::end(tx, slot.task_id, ending).await?;
    }
    Ok(Some(Deposited { on_behalf: behalf.is_some(), still: None }))
}
