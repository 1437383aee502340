//! What the loop waits for a person with: a question, work that is handed over or stuck, a client's tool. All of one turn
//! open together and the task parks with them.

use serde_json::{Value, json};

use super::{
    advance::{self, Next, Work},
    client_tool::ClientTool,
    conversation::{self, LoggedCall, Turn},
    lease::{Lease, Lost},
    tools::{AskPerson, HandOver},
};
use crate::{
    Engine, Refusal, fault,
    slot::{self, Action, Asker, Choice, Kind, NewSlot, open::LoopAsks},
    task::Status,
};

/// The question that a call puts; Err is what the model is told instead.
pub(super) fn question(work: &Work, call: &LoggedCall, before: i32) -> Result<NewSlot, String> {
    // Its conversation is its continuation: with none there is nothing to come back to, and a wait that can never be
    // resumed looks just like patience. So it is refused here, not when somebody has answered (design section 5).
    if !work.remembers {
        return Err(format!(
            "{} keeps no conversation, so it could never get the answer. Set memory = \"persistent\" for it.",
            work.agent
        ));
    }
    if !work.may_choose {
        return Err(format!("{} may not ask people.", work.agent));
    }
    if work.questions + before >= work.most {
        return Err(format!("This work has put its {} questions. Finish without asking more.", work.most));
    }
    let ask: AskPerson = serde_json::from_value(call.call.arguments.clone())
        .map_err(|error| format!("The arguments of ask_person do not fit: {error}."))?;
    let options = ask.options.into_iter().map(|label| Choice { value: Value::String(label.clone()), label });
    Ok(NewSlot { context: ask.context, options: options.collect(), ..NewSlot::question(ask.question) })
}

/// Asks a supervisor to take the work over.
pub(super) fn takeover(work: &Work, call: &LoggedCall) -> Result<NewSlot, String> {
    if !work.remembers {
        return Err(format!("{} keeps no conversation, so the work could never come back.", work.agent));
    }
    if !work.may_choose {
        return Err(format!("{} may not ask people.", work.agent));
    }
    let over: HandOver = serde_json::from_value(call.call.arguments.clone())
        .map_err(|error| format!("The arguments of hand_over do not fit: {error}."))?;
    Ok(NewSlot { kind: Kind::Human, context: over.context, ..NewSlot::question(over.reason) })
}

/// Asks the program of whoever the work is for.
pub(super) fn client_tool(tool: &ClientTool, call: &LoggedCall) -> Result<NewSlot, String> {
    let Value::Object(arguments) = call.call.arguments.clone() else {
        return Err(format!("The arguments of {} are a JSON object.", tool.name));
    };
    let action = Action { tool: tool.name.clone(), arguments, editable: Vec::new(), schema: None };
    let message = match tool.description.as_str() {
        "" => format!("Run {} and hand in what comes of it.", tool.name),
        description => description.to_owned(),
    };
    Ok(NewSlot {
        kind: Kind::ClientTool,
        action: Some(action),
        schema: tool.output.clone(),
        ..NewSlot::question(message)
    })
}

/// Opens all questions of one turn and parks the task, in one transaction.
pub(super) async fn park(
    engine: &Engine,
    lease: Lease,
    work: &Work,
    questions: Vec<(String, NewSlot)>,
) -> Result<Next, Lost> {
    let mut tx = engine.begin().await?;
    let keys: Vec<String> = questions.iter().map(|(key, _)| key.clone()).collect();
    for (key, mut new) in questions {
        new.task_id = Some(lease.task);
        new.name = Some(new.kind.as_str().to_owned());
        if let Some(finish_by) = work.finish_by {
            new = new.until(finish_by, tx.now());
        }
        let asker = Asker::Loop(LoopAsks {
            agent_id: work.agent_id,
            agent: &work.agent,
            epoch: lease.epoch,
            call_id: &key,
            for_id: work.for_id,
            claim_id: work.claim_id,
        });
        match slot::open(&mut tx, asker, new).await {
            Ok(_) => {}
            Err(Refusal::TaskEnded(_)) => return Err(Lost::Lease),
            // What the model said does not make a question: it is told so, for every question of the turn.
            Err(refusal @ Refusal::Invalid(_)) => {
                drop(tx);
                let said = refusal.errors().iter().map(|error| error.detail.as_str()).collect::<Vec<_>>().join(" ");
                for key in keys.iter().filter(|key| !key.starts_with("stuck:")) {
                    conversation::log_result(engine, &lease, key, &json!({ "error": said }), None).await?;
                }
                return Ok(Next::GoOn);
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
    fault::point("park.before_commit");
    tx.commit().await?;
    fault::point("park.after_commit");
    Ok(Next::Rest)
}

/// A step failed again and again: one person is asked, once; their words come back as advice before the next turn.
pub(super) async fn stuck(engine: &Engine, lease: Lease, work: &Work, turns: &[Turn]) -> Result<Next, Lost> {
    let asked_before = turns.iter().any(|turn| turn.call_id.as_ref().is_some_and(|id| id.starts_with("stuck:")));
    if !work.when_stuck || !work.remembers || asked_before || work.questions >= work.most {
        let problem = format!("{} did not get further after {} failed steps.", work.agent, work.stuck_after);
        return advance::end(engine, lease, Status::Failed, None, &problem).await;
    }
    let last = turns.iter().rev().find_map(|turn| {
        let text = turn.body.get("error").or(turn.body.get("text"))?.as_str()?;
        (!text.trim().is_empty()).then(|| text.chars().take(1_000).collect::<String>())
    });
    let message = format!("{} is stuck. What should it do next?", work.agent);
    let mut new = NewSlot::question(message);
    if let Some(last) = last {
        new.context = format!("The last thing that went wrong:\n\n> {}", last.replace('\n', "\n> "));
    }
    park(engine, lease, work, vec![(format!("stuck:{}", turns.len()), new)]).await
}
