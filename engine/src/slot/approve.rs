//! Deciding an approval: yes, yes with edits, or no with a reason; by one person or by k of n (design section 4, kinds).

use serde_json::{Map, Value, json};
use sqlx::types::Json;

use super::{
    Action, Edit, Slot, Standing, Vote,
    action::{self, digest},
    answer,
    close::{self, Approved, Ending},
    deposit::{Behalf, Deposited},
};
use crate::{FieldError, Refusal, Tx, actor::PersonActor, duration, fault};

/// What the person said.
pub(super) enum Decision {
    Approve { arguments: Option<Map<String, Value>> },
    Reject { reason: String },
}

/// Reads an answer's value (`api.md`, approval values). Pointers into the value.
pub(super) fn read(value: &Value) -> Result<Decision, Vec<FieldError>> {
    let one = |pointer: &str, detail: &str| Err(vec![FieldError::new(pointer, detail)]);
    let Some(fields) = value.as_object() else {
        return one(
            "",
            "Answer with a decision: {\"decision\": \"approve\"} or {\"decision\": \"reject\", \"reason\": \"…\"}.",
        );
    };
    let allowed: &[&str] = match fields.get("decision").and_then(Value::as_str) {
        Some("approve") => &["decision", "arguments"],
        Some("reject") => &["decision", "reason"],
        _ => return one("/decision", "Decide: approve or reject."),
    };
    if let Some(other) = fields.keys().find(|name| !allowed.contains(&name.as_str())) {
        return one(&format!("/{other}"), "This does not belong to the decision.");
    }
    if allowed[1] == "reason" {
        let reason = fields.get("reason").and_then(Value::as_str).unwrap_or_default().trim();
        return match reason.chars().count() {
            0 => one("/reason", "Say why, in a few words: the agent goes on with it."),
            1..=2_000 if !reason.contains('\0') => Ok(Decision::Reject { reason: reason.to_owned() }),
            _ => one("/reason", "A reason has at most 2,000 characters."),
        };
    }
    match fields.get("arguments") {
        None => Ok(Decision::Approve { arguments: None }),
        Some(Value::Object(arguments)) => Ok(Decision::Approve { arguments: Some(arguments.clone()) }),
        Some(_) => one("/arguments", "The arguments are a JSON object."),
    }
}

/// Decides. None when somebody else's decision came between reading and writing: read again.
///
/// Refuses with `invalid_answer` for arguments that may not be changed so.
pub(super) async fn decide(
    tx: &mut Tx,
    slot: &Slot,
    person: &PersonActor,
    behalf: Option<&Behalf>,
    value: &Value,
    note: Option<&str>,
) -> Result<Option<Deposited>, Refusal> {
    let after = duration::words(slot.waited(tx.now()));
    let who = match behalf {
        Some(behalf) => format!("{}, on behalf of {},", person.name, behalf.words),
        None => person.name.clone(),
    };
    let ending = Ending::by(person, behalf, slot, note);
    let (action, current) = asked_for(slot)?;
    match read(value).map_err(Refusal::InvalidAnswer)? {
        Decision::Reject { reason } => {
            let said = format!("{who} rejected it after {after}: {reason}");
            let answer = json!({ "decision": "reject", "reason": reason });
            let result = Some(json!({ "rejected": true, "reason": reason, "said": said }));
            // Who approved a moment ago, in another window, has not rejected: decided on the votes as they were read.
            let approved = Approved { votes_seen: slot.votes.len(), votes: json!(slot.votes), arguments: None };
            fault::point("deposit.before_commit");
            let ending = Ending { answer: Some(&answer), approved: Some(approved), result, said: &said, ..ending };
            let closed = close::close(tx, slot, ending).await?;
            Ok(closed.then_some(Deposited { on_behalf: behalf.is_some(), still: None }))
        }
        Decision::Approve { arguments } => {
            let edits = match &arguments {
                None => Vec::new(),
                Some(proposed) => action::edits(&action.editable, current, proposed).map_err(Refusal::InvalidAnswer)?,
            };
            let edited = (!edits.is_empty()).then(|| applied(current, &edits));
            if let (Some(schema), Some(arguments)) = (&action.schema, &edited) {
                let fits = answer::fits_schema(schema, &Value::Object(arguments.clone()));
                let under =
                    |errors: Vec<FieldError>| errors.into_iter().map(|error| error.under("/arguments")).collect();
                fits.map_err(|errors| Refusal::InvalidAnswer(under(errors)))?;
            }
            let edited = edited.map(|arguments| (digest(&action.tool, &arguments), arguments));
            // Other arguments are another action: who approved the former has not approved this one.
            let mut votes = if edited.is_some() { Vec::new() } else { slot.votes.clone() };
            let covers = behalf.and_then(|behalf| behalf.of).filter(|_| slot.standing(person) == Standing::Asked);
            votes.push(Vote {
                id: person.id,
                name: person.name.clone(),
                email: person.email.clone(),
                at: tx.now(),
                covers,
                note: note.map(str::to_owned),
            });
            let change = match edits.as_slice() {
                [] => String::new(),
                edits => format!(" with a change ({})", in_words(edits)),
            };
            let still = slot.needs as usize - votes.len().min(slot.needs as usize);
            if still > 0 {
                let said = format!("{who} approved{change} after {after}: {} of {} needed.", votes.len(), slot.needs);
                let voted = vote(tx, slot, person, &votes, edited.as_ref(), &said).await?;
                return Ok(voted.then_some(Deposited { on_behalf: behalf.is_some(), still: Some(still) }));
            }
            let said = format!("{who} approved{change} after {after}.");
            let answer = json!({ "decision": "approve" });
            let approved = Approved {
                votes_seen: slot.votes.len(),
                votes: json!(votes),
                arguments: edited.as_ref().map(|(digest, arguments)| (arguments, digest.as_str())),
            };
            fault::point("deposit.before_commit");
            // The loop runs what was approved and logs its result: nothing is a result yet.
            let ending = Ending { answer: Some(&answer), approved: Some(approved), said: &said, ..ending };
            let closed = close::close(tx, slot, ending).await?;
            Ok(closed.then_some(Deposited { on_behalf: behalf.is_some(), still: None }))
        }
    }
}

fn asked_for(slot: &Slot) -> Result<(&Action, &Map<String, Value>), Refusal> {
    slot.action.as_ref().zip(slot.arguments()).ok_or_else(|| Refusal::fault("an approval has no action"))
}

fn applied(current: &Map<String, Value>, edits: &[Edit]) -> Map<String, Value> {
    let mut arguments = Value::Object(current.clone());
    for edit in edits {
        if let Some(place) = arguments.pointer_mut(&edit.pointer) {
            *place = edit.after.clone();
        }
    }
    match arguments {
        Value::Object(arguments) => arguments,
        _ => current.clone(),
    }
}

/// "/amount from 40 to 30"
fn in_words(edits: &[Edit]) -> String {
    let short = |value: &Value| {
        let text: String = value.to_string().chars().take(80).collect();
        text
    };
    let each = edits.iter().take(5).map(|edit| {
        format!("{} from {} to {}", edit.pointer.trim_start_matches('/'), short(&edit.before), short(&edit.after))
    });
    let mut words = each.collect::<Vec<_>>().join(", ");
    if edits.len() > 5 {
        words.push_str(&format!(" and {} more", edits.len() - 5));
    }
    words
}

/// Counts one yes that is not the last. False when something changed since it was read.
async fn vote(
    tx: &mut Tx,
    slot: &Slot,
    person: &PersonActor,
    votes: &[Vote],
    edited: Option<&(String, Map<String, Value>)>,
    said: &str,
) -> Result<bool, Refusal> {
    let now = tx.now();
    let hidden_from: Vec<_> = super::spent(&slot.declined, votes).iter().map(|id| id.0).collect();
    let voted = sqlx::query_scalar!(
        r#"
        -- The task's row first, as everything that changes its slots.
        with locked as (
            select id from task where id = $2 for update
        ), voted as (
            update slot s
            set votes = $3, arguments = coalesce($4, s.arguments), digest = coalesce($5, s.digest),
                edited_by = case when $4 is null then s.edited_by else $6 end,
                -- What is asked has changed: who read the former must read again.
                revision = s.revision + case when $4 is null then 0 else 1 end
            from locked
            where s.id = $1 and s.task_id = $2 and s.status = 'waiting' and s.revision = $7
              and jsonb_array_length(s.votes) = $8 and s.handed = $14
              and exists (
                  select 1 from acting_person p
                  where p.id = $6 and p.keys && (s.candidates || 'role:manager'::text) and p.id is distinct from $9
                    and (p.id <> all(s.declined) or 'role:manager' = any(p.keys))
              )
            returning s.id, s.task_id
        ), hidden as (
            update slot_candidate c set hidden_from = $10 from voted where c.slot_id = $1
        ), line as (
            insert into record_line (task_id, slot_id, at, kind, text) select task_id, id, $11, 'voted', $12 from voted
        ), audited as (
            insert into audit (at, actor, action, object, detail)
            select $11, 'person:' || $6::uuid, 'slot.voted', 'slot:' || id, $13 from voted
        )
        select count(*) as "count!" from voted
        "#,
        slot.id.0,
        slot.task_id.0,
        Json(votes) as _,
        edited.map(|(_, arguments)| Json(arguments)) as _,
        edited.map(|(digest, _)| digest),
        person.id.0,
        slot.revision,
        slot.votes.len() as i32,
        slot.barred().map(|id| id.0),
        &hidden_from,
        now,
        said,
        json!({ "digest": edited.map_or(slot.digest.as_ref(), |(digest, _)| Some(digest)) }),
        slot.handed,
    )
    .fetch_one(tx.conn())
    .await?;
    if voted == 1 {
        close::announce(tx, slot);
    }
    Ok(voted == 1)
}
