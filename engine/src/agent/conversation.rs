//! The conversation of a task: the log that is the agent's whole state (design section 1).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::types::Json;

use super::{
    lease::{Lease, Lost},
    model::{Call, Reply},
};
use crate::{Engine, Refusal, Tx, fault, ids::TaskId, task::record, wake::Topic};

#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum TurnKind {
    /// What the agent is to do.
    Instruction,
    /// What the model said.
    Reply,
    /// What a call of a reply came to.
    Result,
    /// Words before the next turn that no call asked for.
    Advice,
}

#[derive(Clone, Debug)]
pub struct Turn {
    pub seq: i32,
    pub kind: TurnKind,
    pub call_id: Option<String>,
    pub body: Value,
}

/// A reply as it is logged: every call has a key that is unique in the task, whatever ids the model made up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LoggedReply {
    pub text: String,
    pub calls: Vec<LoggedCall>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LoggedCall {
    pub key: String,
    #[serde(flatten)]
    pub call: Call,
}

pub(super) async fn read(engine: &Engine, task: TaskId) -> Result<Vec<Turn>, Refusal> {
    Ok(sqlx::query_as!(
        Turn,
        r#"select seq, kind as "kind: TurnKind", call_id, body from turn where task_id = $1 order by seq"#,
        task.0
    )
    .fetch_all(&engine.pool)
    .await?)
}

impl Turn {
    pub(super) fn reply(&self) -> Option<LoggedReply> {
        (self.kind == TurnKind::Reply).then(|| serde_json::from_value(self.body.clone()).ok()).flatten()
    }

    pub(super) fn failed(&self) -> bool {
        self.kind == TurnKind::Result && self.body.get("error").is_some()
    }
}

/// The name of the call that a result belongs to; None for what no call asked for.
pub(super) fn called(turns: &[Turn], result: &Turn) -> Option<String> {
    let key = result.call_id.as_deref()?;
    turns
        .iter()
        .rev()
        .filter_map(Turn::reply)
        .flat_map(|reply| reply.calls)
        .find(|call| call.key == key)
        .map(|call| call.call.name)
}

/// Appends what the model said, with its usage, if the lease still holds.
pub(super) async fn log_reply(engine: &Engine, lease: &Lease, seq: i32, reply: Reply) -> Result<(), Lost> {
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let calls = reply.calls.iter().cloned().enumerate();
    let body = LoggedReply {
        text: reply.text,
        calls: calls.map(|(n, call)| LoggedCall { key: format!("{seq}.{}", n + 1), call }).collect(),
    };
    let written = sqlx::query!(
        r#"
        with moved as (
            update task
            set turns = turns + 1, model_calls = model_calls + 1, input_tokens = input_tokens + $4,
                output_tokens = output_tokens + $5, cost_micros = cost_micros + $6, updated_at = $7
            where id = $1 and epoch = $2 and status = 'working' and turns = $3 - 1
            returning id
        )
        insert into turn (task_id, seq, kind, body, created_at) select id, $3, 'reply', $8, $7 from moved
        "#,
        lease.task.0,
        lease.epoch,
        seq,
        reply.input_tokens.max(0),
        reply.output_tokens.max(0),
        reply.cost_micros.max(0),
        now,
        Json(&body) as _,
    )
    .execute(tx.conn())
    .await
    .map_err(Refusal::from)?;
    if written.rows_affected() != 1 {
        return Err(Lost::Lease);
    }
    if !body.text.trim().is_empty() {
        let said: String = body.text.chars().take(2_000).collect();
        record::write(&mut tx, lease.task, "model", &said).await?;
    }
    tx.wake(Topic::Task(lease.task));
    fault::point("reply.before_commit");
    tx.commit().await?;
    fault::point("reply.after_commit");
    Ok(())
}

/// Appends the result of a call, once, with the line of the record that tells it.
pub(super) async fn log_result(
    engine: &Engine,
    lease: &Lease,
    call: &str,
    body: &Value,
    line: Option<(&str, &str)>,
) -> Result<(), Lost> {
    append(engine, lease, "result", Some(call), body, line).await
}

/// Appends advice of the loop's own.
pub(super) async fn log_advice(engine: &Engine, lease: &Lease, text: &str) -> Result<(), Lost> {
    append(engine, lease, "advice", None, &json!({ "text": text }), None).await
}

async fn append(
    engine: &Engine,
    lease: &Lease,
    kind: &str,
    call: Option<&str>,
    body: &Value,
    line: Option<(&str, &str)>,
) -> Result<(), Lost> {
    let mut tx = engine.begin().await?;
    append_in(&mut tx, lease, kind, call, body, line).await?;
    fault::point("result.before_commit");
    tx.commit().await?;
    fault::point("result.after_commit");
    Ok(())
}

/// Appends in a transaction that did more: the effect and its result become durable together.
pub(super) async fn append_in(
    tx: &mut Tx,
    lease: &Lease,
    kind: &str,
    call: Option<&str>,
    body: &Value,
    line: Option<(&str, &str)>,
) -> Result<(), Lost> {
    let now = tx.now();
    let written = sqlx::query!(
        r#"
        with moved as (
            update task set turns = turns + 1, updated_at = $3
            where id = $1 and epoch = $2 and status = 'working'
            returning id, turns
        )
        insert into turn (task_id, seq, kind, call_id, body, created_at)
        select id, turns, $4, $5, $6, $3 from moved
        "#,
        lease.task.0,
        lease.epoch,
        now,
        kind,
        call,
        body,
    )
    .execute(tx.conn())
    .await
    .map_err(Refusal::from)?;
    if written.rows_affected() != 1 {
        return Err(Lost::Lease);
    }
    if let Some((kind, text)) = line {
        record::write(tx, lease.task, kind, text).await?;
    }
    tx.wake(Topic::Task(lease.task));
    Ok(())
}
