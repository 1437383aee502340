//! Taking work over: a manager or an administrator steps in, for an agent of ours, working or waiting.

use super::{Status, list};
use crate::{
    Refusal, Tx,
    actor::PersonActor,
    ids::{AgentId, ClaimId, PersonId, SlotId, TaskId},
    slot::{self, Asker, Kind, NewSlot, open::LoopAsks},
};

/// Parks the work in the person's hands: they hand in its result, or write to the agent and give it back, by answering the
/// slot that this opens. An instance in the middle of a model call writes no more; questions that stand stay as they are.
///
/// Refuses with `not_found`, `forbidden`, or `task_ended` (ended, an outside program's, or in somebody's hands already).
pub async fn take_over(tx: &mut Tx, person: &PersonActor, id: TaskId) -> Result<SlotId, Refusal> {
    let task = list::seen(tx.conn(), person, id).await?;
    if !person.sees_all() {
        return Err(Refusal::Forbidden("Only a manager or an administrator can take work over.".to_owned()));
    }
    if task.for_id == Some(person.id) {
        return Err(Refusal::Forbidden("This work is for you: somebody else takes it over.".to_owned()));
    }
    tx.transaction().await?;
    let row = sqlx::query!(
        r#"select t.agent_id as "agent_id: AgentId", t.status as "status: Status", t.epoch, t.turns,
                  t.for_id as "for_id: PersonId", t.claim_id as "claim_id: ClaimId", a.inside, a.name as agent,
                  p.started_at + p.within_seconds * interval '1 second' as finish_by
           from task t join agent a on a.id = t.agent_id left join process p on p.task_id = t.id
           where t.id = $1 for update of t"#,
        id.0
    )
    .fetch_one(tx.conn())
    .await?;
    if !row.inside {
        return Err(Refusal::TaskEnded(format!(
            "{} is a program outside Layby: answer its questions, or stop the work.",
            task.agent
        )));
    }
    if !row.status.is_open() {
        return Err(Refusal::TaskEnded(format!("This work has ended already ({}).", row.status.as_str())));
    }
    let holder = sqlx::query_scalar!(
        "select p.name from slot s join person p on p.id = s.assignee_id
         where s.task_id = $1 and s.status = 'waiting' and s.call_id like 'takeover:%'",
        id.0
    )
    .fetch_optional(tx.conn())
    .await?;
    if let Some(holder) = holder {
        return Err(Refusal::TaskEnded(format!("{holder} has taken this work over already.")));
    }
    let mut new = NewSlot {
        task_id: Some(id),
        name: Some("takeover".to_owned()),
        kind: Kind::Human,
        ask: vec![person.email.clone()],
        ..NewSlot::question("Hand in the result, or write to the agent and give the work back.")
    };
    if let Some(finish_by) = row.finish_by {
        new = new.until(finish_by, tx.now());
    }
    let call_id = format!("takeover:{}", row.turns);
    let by = LoopAsks {
        agent_id: row.agent_id,
        agent: &row.agent,
        epoch: row.epoch,
        call_id: &call_id,
        for_id: row.for_id,
        claim_id: row.claim_id,
    };
    Ok(slot::open(tx, Asker::Supervisor { person, by }, new).await?.slot.id)
}
