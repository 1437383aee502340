//! Actions that an agent may not take alone: proposed with their exact arguments, approved by a person, run once. The
//! approval is used up in the transaction of the effect and its result, after its digest was checked again (design
//! section 4, approval).

use serde_json::{Map, Value, json};
use sqlx::types::Json;

use super::{
    advance::Work,
    conversation::{self, LoggedCall},
    lease::{Lease, Lost},
    permit::Rule,
    tools::{self, CATEGORISE},
};
use crate::{
    Engine, Refusal, Tx, fault,
    ids::{ClaimId, SlotId},
    slot::{self, Action, Kind, NewSlot, action::digest},
};

/// What is to be asked before the call may run; None when it has run (its permit is `alone`, or it was approved). The
/// inner Err is what the model is told instead.
pub(super) async fn proposal(
    engine: &Engine,
    lease: Lease,
    work: &Work,
    call: &LoggedCall,
    claim: ClaimId,
) -> Result<Option<Result<NewSlot, String>>, Lost> {
    let rule = work.rule(CATEGORISE);
    if rule == Rule::Never {
        return Ok(Some(Err(format!("{} may not do that.", work.agent))));
    }
    let schema = tools::categorise_schema();
    let arguments = match &call.call.arguments {
        Value::Object(arguments) if slot::answer::matches(&schema, &call.call.arguments) => arguments.clone(),
        other => return Ok(Some(Err(format!("These arguments do not fit: {other}.")))),
    };
    // What a person approved runs as they approved it, whatever the permit says by now.
    if let Some(approved) = approved(engine, lease, call).await? {
        execute(engine, &lease, work, call, claim, approved).await?;
        return Ok(None);
    }
    if rule == Rule::Alone {
        let mut tx = engine.begin().await?;
        run(&mut tx, &lease, work, call, claim, &arguments, None).await?;
        fault::point("execute.before_commit");
        tx.commit().await?;
        return Ok(None);
    }
    let claim = tools::read_claim(engine, claim).await?;
    let text = |key: &str| claim.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = format!(
        "Put {} at {} from {} into {}?",
        text("amount"),
        text("merchant"),
        text("category"),
        arguments.get("category").and_then(Value::as_str).unwrap_or_default()
    );
    Ok(Some(Ok(NewSlot {
        kind: Kind::Approval,
        action: Some(Action {
            tool: CATEGORISE.to_owned(),
            arguments,
            editable: vec!["/category".to_owned()],
            schema: Some(schema),
        }),
        ..NewSlot::question(message)
    })))
}

/// An approval that a person gave, as it is kept.
struct Approval {
    id: SlotId,
    tool: String,
    arguments: Map<String, Value>,
    digest: String,
    said: String,
}

/// The approval of this very call, when there is one and it is not used up.
async fn approved(engine: &Engine, lease: Lease, call: &LoggedCall) -> Result<Option<Approval>, Refusal> {
    let row = sqlx::query!(
        r#"select s.id as "id: SlotId", s.action as "action!: Json<Action>",
                  s.arguments as "arguments: Json<Map<String, Value>>", s.digest as "digest!", p.name
           from slot s join person p on p.id = s.answered_by
           where s.task_id = $1 and s.call_id = $2 and s.name = 'approval' and s.kind = 'approval'
             and s.status = 'answered' and s.answer ->> 'decision' = 'approve' and s.used_at is null"#,
        lease.task.0,
        call.key,
    )
    .fetch_optional(&engine.pool)
    .await?;
    Ok(row.map(|row| Approval {
        id: row.id,
        tool: row.action.0.tool,
        arguments: row.arguments.map_or(row.action.0.arguments, |Json(arguments)| arguments),
        digest: row.digest,
        said: format!("{} approved it.", row.name),
    }))
}

/// Runs what was approved, once: the approval is used up with the effect and its result, or nothing happens.
async fn execute(
    engine: &Engine,
    lease: &Lease,
    work: &Work,
    call: &LoggedCall,
    claim: ClaimId,
    approved: Approval,
) -> Result<(), Lost> {
    // What runs is what was shown: the arguments themselves are digested again, not looked up.
    if approved.tool != call.call.name || digest(&approved.tool, &approved.arguments) != approved.digest {
        let said = "What was approved is not what would run, so nothing was done.";
        return conversation::log_result(engine, lease, &call.key, &json!({ "error": said }), Some(("tool", said)))
            .await;
    }
    let mut tx = engine.begin().await?;
    // The task's row first, as everything that changes its slots; the lease is checked when the result is appended.
    sqlx::query!("select id from task where id = $1 for update", lease.task.0).fetch_optional(tx.conn()).await?;
    let now = tx.now();
    let used = sqlx::query!(
        "update slot set used_at = $2 where id = $1 and used_at is null and status = 'answered' and digest = $3",
        approved.id.0,
        now,
        approved.digest
    )
    .execute(tx.conn())
    .await?;
    if used.rows_affected() != 1 {
        return Err(Lost::Lease);
    }
    run(&mut tx, lease, work, call, claim, &approved.arguments, Some(&approved)).await?;
    fault::point("execute.before_commit");
    tx.commit().await?;
    fault::point("execute.after_commit");
    Ok(())
}

/// The effect and its result, in one transaction.
async fn run(
    tx: &mut Tx,
    lease: &Lease,
    work: &Work,
    call: &LoggedCall,
    claim: ClaimId,
    arguments: &Map<String, Value>,
    approved: Option<&Approval>,
) -> Result<(), Lost> {
    let category = arguments.get("category").and_then(Value::as_str).unwrap_or_default();
    tools::categorise(tx, claim, category).await?;
    let body = json!({
        "done": true,
        "arguments": arguments,
        "edited": approved.is_some() && Some(arguments) != call.call.arguments.as_object(),
        "said": approved.map(|approved| &approved.said),
    });
    let line = format!("{} put the claim into {category}.", work.agent);
    conversation::append_in(tx, lease, "result", Some(&call.key), &body, Some(("tool", &line))).await
}
