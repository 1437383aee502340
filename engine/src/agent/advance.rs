//! One task's loop: call the model, run what it asks for, repeat, with everything appended, until it parks or ends. It
//! starts from the log alone, so any instance can take the next step of any work.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    conversation::{self, LoggedCall, Turn, TurnKind},
    lease::{Lease, Lost},
    model::{Models, Reply, Request},
    tools::{self, ASK_PERSON, AskPerson, HAND_BACK, HandBack, READ_CLAIM},
};
use crate::{
    Engine, Refusal, fault,
    ids::{AgentId, ClaimId, PersonId},
    slot::{self, Asker, Choice, NewSlot, OnExpiry, open::LoopAsks},
    task::{self, Status, stop::Ending},
};

/// A model that has not answered by then has hung.
const LONGEST_CALL: Duration = Duration::from_secs(120);
/// Pauses between tries of a model that fails.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];

/// What the loop needs to know of the task and its agent.
struct Work {
    agent_id: AgentId,
    agent: String,
    prompt: String,
    model: String,
    remembers: bool,
    may_choose: bool,
    when_stuck: bool,
    about: String,
    most: i32,
    stuck_after: i32,
    max_turns: i32,
    for_id: Option<PersonId>,
    claim_id: Option<ClaimId>,
    questions: i32,
    cost_micros: i64,
    budget_micros: Option<i64>,
    /// How long its process waits for a person; None when it is part of none.
    within_seconds: Option<i64>,
}

enum Next {
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
                  t.cost_micros, t.budget_micros, p.within_seconds as "within_seconds?"
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
        return stuck(engine, lease, work, turns).await;
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
    let tools = tools::offered(work.may_choose, work.claim_id.is_some());
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

/// Runs the calls of one reply that have no result yet: tools first, then all questions together, handing back last.
async fn run_calls(engine: &Engine, lease: Lease, work: &Work, open: &[&LoggedCall]) -> Result<Next, Lost> {
    let named = |name: &'static str| open.iter().filter(move |call| call.call.name == name);
    for call in open.iter().filter(|call| call.call.name != ASK_PERSON && call.call.name != HAND_BACK) {
        let (body, line) = match (call.call.name.as_str(), work.claim_id) {
            (READ_CLAIM, Some(claim)) => {
                (json!({ "claim": tools::read_claim(engine, claim).await? }), format!("{} read the claim.", work.agent))
            }
            (name, _) => {
                let said = format!("There is no tool “{name}”.");
                (json!({ "error": said }), format!("{} called a tool that does not exist.", work.agent))
            }
        };
        conversation::log_result(engine, &lease, &call.key, &body, Some(("tool", &line))).await?;
    }
    let mut questions = Vec::new();
    for call in named(ASK_PERSON) {
        match question(work, call, questions.len() as i32) {
            Ok(new) => questions.push((call.key.clone(), new)),
            Err(said) => {
                let line = format!("{} could not ask: {said}", work.agent);
                conversation::log_result(engine, &lease, &call.key, &json!({ "error": said }), Some(("tool", &line)))
                    .await?;
            }
        }
    }
    if !questions.is_empty() {
        return park(engine, lease, work, questions).await;
    }
    if let Some(call) = named(HAND_BACK).next() {
        return hand_back(engine, lease, work, call).await;
    }
    Ok(Next::GoOn)
}

/// The question that a call puts; Err is what the model is told instead.
fn question(work: &Work, call: &LoggedCall, before: i32) -> Result<NewSlot, String> {
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

/// Opens all questions of one turn and parks the task, in one transaction.
async fn park(engine: &Engine, lease: Lease, work: &Work, questions: Vec<(String, NewSlot)>) -> Result<Next, Lost> {
    let mut tx = engine.begin().await?;
    let keys: Vec<String> = questions.iter().map(|(key, _)| key.clone()).collect();
    for (key, mut new) in questions {
        new.task_id = Some(lease.task);
        new.name = Some("question".to_owned());
        if let Some(seconds) = work.within_seconds {
            new.expires_in = Some(chrono::Duration::seconds(seconds));
            new.on_expiry = OnExpiry::Fail;
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
async fn stuck(engine: &Engine, lease: Lease, work: &Work, turns: &[Turn]) -> Result<Next, Lost> {
    let asked_before = turns.iter().any(|turn| turn.kind == TurnKind::Advice && turn.call_id.is_some());
    if !work.when_stuck || !work.remembers || asked_before || work.questions >= work.most {
        let problem = format!("{} did not get further after {} failed steps.", work.agent, work.stuck_after);
        return end(engine, lease, Status::Failed, None, &problem).await;
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

async fn end(engine: &Engine, lease: Lease, status: Status, result: Option<&Value>, said: &str) -> Result<Next, Lost> {
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
