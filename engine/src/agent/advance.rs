//! One task's loop: call the model, run what it asks for, repeat, with everything appended, until it parks or ends. It
//! starts from the log alone, so any instance can take the next step of any work.

use std::{collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::types::Json;

use super::{
    ask,
    client_tool::ClientTool,
    conversation::{self, LoggedCall, Turn, TurnKind},
    lease::{Lease, Lost},
    model::{Models, Reply, Request},
    permit::Rule,
    propose,
    tools::{self, ASK_PERSON, CATEGORISE, HAND_BACK, HAND_OVER, HandBack, READ_CLAIM},
};
use crate::{
    Engine, Refusal, fault,
    ids::{AgentId, ClaimId, PersonId},
    task::{self, Status, stop::Ending},
};

/// A model that has not answered by then has hung.
const LONGEST_CALL: Duration = Duration::from_secs(120);
/// Pauses between tries of a model that fails.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];

/// What the loop needs to know of the task and its agent.
pub(super) struct Work {
    pub agent_id: AgentId,
    pub agent: String,
    pub prompt: String,
    pub model: String,
    pub remembers: bool,
    pub may_choose: bool,
    pub when_stuck: bool,
    pub about: String,
    pub most: i32,
    pub stuck_after: i32,
    pub max_turns: i32,
    pub for_id: Option<PersonId>,
    pub claim_id: Option<ClaimId>,
    pub questions: i32,
    pub cost_micros: i64,
    pub budget_micros: Option<i64>,
    /// When its process must be finished; None when it is part of none.
    pub finish_by: Option<DateTime<Utc>>,
    pub client_tools: Json<Vec<ClientTool>>,
    /// What it may do by itself; a tool that is not named is only proposed.
    pub permits: Json<HashMap<String, Rule>>,
}

pub(super) enum Next {
    GoOn,
    /// Parked or ended: there is nothing more to do now.
    Rest,
}

/// Works on the task until it parks or ends. Err(Lost::Lease) when somebody else has it.
pub(super) async fn advance(engine: &Engine, models: &Models, lease: Lease) -> Result<(), Lost> {
    loop {
        let Some(work) = read(engine, lease).await? else { return Err(Lost::Lease) };
        let turns = conversation::read(engine, lease.task).await?;
        if let Next::Rest = step(engine, models, lease, &work, &turns).await? {
            return Ok(());
        }
    }
}

async fn read(engine: &Engine, lease: Lease) -> Result<Option<Work>, Refusal> {
    Ok(sqlx::query_as!(
        Work,
        r#"select a.id as "agent_id: AgentId", a.name as agent, a.prompt, a.model,
                  (a.memory = 'persistent') as "remembers!", a.may_choose, a.when_stuck, a.about, a.most, a.stuck_after,
                  a.max_turns, t.for_id as "for_id: PersonId", t.claim_id as "claim_id: ClaimId", t.questions,
                  t.cost_micros, t.budget_micros, p.started_at + p.within_seconds * interval '1 second' as finish_by,
                  a.client_tools as "client_tools: Json<Vec<ClientTool>>",
                  coalesce((select jsonb_object_agg(tool, rule) from permit where agent_id = a.id), '{}')
                      as "permits!: Json<HashMap<String, Rule>>"
           from task t join agent a on a.id = t.agent_id left join process p on p.task_id = t.id
           where t.id = $1 and t.epoch = $2 and t.status = 'working'"#,
        lease.task.0,
        lease.epoch,
    )
    .fetch_optional(&engine.pool)
    .await?)
}

async fn step(engine: &Engine, models: &Models, lease: Lease, work: &Work, turns: &[Turn]) -> Result<Next, Lost> {
    let replies = turns.iter().rev().filter(|turn| turn.kind == TurnKind::Reply);
    if let Some(reply) = replies.clone().next().and_then(Turn::reply) {
        let has_result = |call: &LoggedCall| turns.iter().any(|turn| turn.call_id.as_deref() == Some(&call.key));
        let open: Vec<_> = reply.calls.iter().filter(|call| !has_result(call)).collect();
        if !open.is_empty() {
            return run_calls(engine, lease, work, &open).await;
        }
    }
    let failures = failures(turns);
    if failures >= work.stuck_after {
        return ask::stuck(engine, lease, work, turns).await;
    }
    if turns.last().is_some_and(|turn| turn.kind == TurnKind::Reply) {
        // Words where work must be handed back: say so before the next turn.
        let text = "Use the tools: hand the work back with `hand_back` when it is done.";
        conversation::log_advice(engine, &lease, text).await?;
        return Ok(Next::GoOn);
    }
    if replies.count() as i32 >= work.max_turns {
        let problem = format!("The limit of {} turns was reached.", work.max_turns);
        return end(engine, lease, Status::Stopped, None, &problem).await;
    }
    if work.finish_by.is_some_and(|by| by <= engine.clock.now()) {
        let problem = "The review could not be completed: its time was over.";
        return end(engine, lease, Status::Failed, None, problem).await;
    }
    // Reserved before the call: a task that has nothing left does not begin one.
    if work.budget_micros.is_some_and(|budget| work.cost_micros >= budget) {
        return end(engine, lease, Status::Stopped, None, "The budget was used up.").await;
    }
    let seq = turns.len() as i32 + 1;
    match ask_model(models, lease, work, turns, seq).await {
        Ok(reply) => {
            conversation::log_reply(engine, &lease, seq, reply).await?;
            Ok(Next::GoOn)
        }
        Err(problem) => end(engine, lease, Status::Failed, None, &problem).await,
    }
}

/// How many steps in a row have failed: words only, or a call that came to an error. A person's advice starts afresh.
fn failures(turns: &[Turn]) -> i32 {
    turns.iter().fold(0, |failures, turn| match turn.kind {
        TurnKind::Reply if turn.reply().is_none_or(|reply| reply.calls.is_empty()) => failures + 1,
        TurnKind::Result if turn.failed() => failures + 1,
        TurnKind::Result => 0,
        TurnKind::Advice if turn.call_id.is_some() => 0,
        _ => failures,
    })
}

async fn ask_model(models: &Models, lease: Lease, work: &Work, turns: &[Turn], seq: i32) -> Result<Reply, String> {
    let model = models.get(&work.model);
    let system = match work.about.as_str() {
        "" => work.prompt.clone(),
        about => format!("{}\n\nThese decisions are a person's; ask before you decide one: {about}", work.prompt),
    };
    let tools = tools::offered(work);
    let mut tries = PAUSES.iter();
    loop {
        let request = Request { task: lease.task, seq, system: &system, turns, tools: &tools };
        let problem = match tokio::time::timeout(LONGEST_CALL, model.answer(request)).await {
            Ok(Ok(reply)) => return Ok(reply),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        tracing::warn!(task = %lease.task, %problem, "a model call failed");
        match tries.next() {
            Some(pause) => tokio::time::sleep(*pause).await,
            None => return Err(format!("The model could not be reached: {problem}.")),
        }
    }
}

/// Runs the calls of one reply that have no result yet: tools first, then everything that waits for a person together,
/// handing back last.
async fn run_calls(engine: &Engine, lease: Lease, work: &Work, open: &[&LoggedCall]) -> Result<Next, Lost> {
    let mut waits = Vec::new();
    for call in open.iter().filter(|call| call.call.name != HAND_BACK) {
        let asked = match (call.call.name.as_str(), work.claim_id) {
            (ASK_PERSON, _) => ask::question(work, call, waits.len() as i32),
            (HAND_OVER, _) => ask::takeover(work, call),
            (READ_CLAIM, Some(claim)) => {
                let body = json!({ "claim": tools::read_claim(engine, claim).await? });
                let line = format!("{} read the claim.", work.agent);
                conversation::log_result(engine, &lease, &call.key, &body, Some(("tool", &line))).await?;
                continue;
            }
            (CATEGORISE, Some(claim)) => match propose::proposal(engine, lease, work, call, claim).await? {
                Some(asked) => asked,
                None => continue,
            },
            (name, _) => match work.client_tools.iter().find(|tool| tool.name == name) {
                Some(tool) => ask::client_tool(tool, call),
                None => Err(format!("There is no tool “{name}”.")),
            },
        };
        match asked {
            Ok(new) => waits.push((call.key.clone(), new)),
            Err(said) => {
                let line = format!("{} could not use {}: {said}", work.agent, call.call.name);
                conversation::log_result(engine, &lease, &call.key, &json!({ "error": said }), Some(("tool", &line)))
                    .await?;
            }
        }
    }
    if !waits.is_empty() {
        return ask::park(engine, lease, work, waits).await;
    }
    if let Some(call) = open.iter().find(|call| call.call.name == HAND_BACK) {
        return hand_back(engine, lease, work, call).await;
    }
    Ok(Next::GoOn)
}

async fn hand_back(engine: &Engine, lease: Lease, work: &Work, call: &LoggedCall) -> Result<Next, Lost> {
    match serde_json::from_value::<HandBack>(call.call.arguments.clone()) {
        Ok(result) => {
            let summary: String = result.summary.chars().take(4_000).collect();
            let said = format!("{} finished: {summary}", work.agent);
            let result = json!({ "verdict": result.verdict, "summary": summary });
            end(engine, lease, Status::Done, Some(&result), &said).await
        }
        Err(error) => {
            let said = format!("The arguments of hand_back do not fit: {error}.");
            conversation::log_result(engine, &lease, &call.key, &json!({ "error": said }), None).await?;
            Ok(Next::GoOn)
        }
    }
}

pub(super) async fn end(
    engine: &Engine,
    lease: Lease,
    status: Status,
    result: Option<&Value>,
    said: &str,
) -> Result<Next, Lost> {
    let mut tx = engine.begin().await?;
    let ending = Ending {
        status,
        result,
        problem: (status != Status::Done).then_some(said),
        said,
        slots: "the work has ended.",
        actor: "system",
        epoch: Some(lease.epoch),
    };
    if !task::stop::end(&mut tx, lease.task, ending).await? {
        return Err(Lost::Lease);
    }
    fault::point("finish.before_commit");
    tx.commit().await?;
    fault::point("finish.after_commit");
    Ok(Next::Rest)
}

impl Work {
    /// What the agent may do with a tool that changes something.
    pub(super) fn rule(&self, tool: &str) -> Rule {
        self.permits.get(tool).copied().unwrap_or(Rule::Propose)
    }
}
