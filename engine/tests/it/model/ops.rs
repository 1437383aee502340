//! Everything that people, the asker and the clock can do to the slots of one task, and how to do it.

use chrono::Duration;
use engine::{
    Actor, Engine, Refusal,
    actor::AgentActor,
    ids::TaskId,
    person::away::{self, AwayForm},
    slot::{self, NewSlot, Slot},
    task,
    testing::{TestDesk, Who, approve, approve_amount, named, refund, reject},
};
use proptest::{option, prelude::*, sample::select};
use serde_json::json;

pub(super) const EVERYBODY: [Who; 4] = [Who::Mia, Who::Sam, Who::Noor, Who::Ada];
pub(super) const PARTIES: [&str; 5] =
    ["mia@layby.example", "sam@layby.example", "noor@layby.example", "group:finance", "role:manager"];

pub(super) fn email(who: Who) -> &'static str {
    PARTIES[..3].get(who as usize).copied().unwrap_or("ada@layby.example")
}

/// What is asked, of whom, and how many must agree; None for an ordinary question.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub needs: Option<i32>,
    pub asked: Vec<&'static str>,
}

/// Slots are called by the order in which somebody tried to open them.
pub(super) type Tag = usize;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Open(Tag, Opening),
    On(Tag, Act),
    Stop { who: Who },
    Expire,
    GoAway { who: Who, cover: Who },
    ComeBack { who: Who },
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Answer { who: Who },
    Approve { who: Who, fresh: bool },
    Edit { who: Who, fresh: bool, amount: i64 },
    Reject { who: Who, fresh: bool },
    Reassign { who: Who, to: &'static str },
    Decline { who: Who },
    Take { who: Who },
    LetGo { who: Who },
    CancelByAgent,
    CancelBy { who: Who },
}

/// One step: something, or two things at once on two instances.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub first: Op,
    pub second: Option<Op>,
}

impl Step {
    pub(super) fn ops(&self) -> impl Iterator<Item = &Op> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

fn who() -> impl Strategy<Value = Who> {
    select(EVERYBODY.to_vec())
}

pub(super) fn opening() -> impl Strategy<Value = Opening> {
    prop_oneof![
        2 => (1..4_i32).prop_map(|needs| Opening { needs: Some(needs), asked: PARTIES[..3].to_vec() }),
        2 => (1..3_i32).prop_map(|needs| Opening { needs: Some(needs), asked: vec!["group:finance"] }),
        1 => Just(Opening { needs: Some(1), asked: vec!["mia@layby.example"] }),
        1 => Just(Opening { needs: None, asked: vec!["sam@layby.example", "mia@layby.example"] }),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let fresh = || prop_oneof![5 => Just(true), 1 => Just(false)];
    prop_oneof![
        2 => who().prop_map(|who| Act::Answer { who }),
        6 => (who(), fresh()).prop_map(|(who, fresh)| Act::Approve { who, fresh }),
        4 => (who(), fresh(), 38_i64..42).prop_map(|(who, fresh, amount)| Act::Edit { who, fresh, amount }),
        1 => (who(), fresh()).prop_map(|(who, fresh)| Act::Reject { who, fresh }),
        3 => (who(), select(PARTIES.to_vec())).prop_map(|(who, to)| Act::Reassign { who, to }),
        3 => who().prop_map(|who| Act::Decline { who }),
        3 => who().prop_map(|who| Act::Take { who }),
        1 => who().prop_map(|who| Act::LetGo { who }),
        1 => Just(Act::CancelByAgent),
        1 => who().prop_map(|who| Act::CancelBy { who }),
    ]
}

/// Who is away, and who covers for them.
pub(super) fn absence() -> impl Strategy<Value = (Who, Who)> {
    (0..3_usize, who()).prop_map(|(by, who)| (who, EVERYBODY[(who as usize + 1 + by) % 4]))
}

/// Something to do, when the slots of these tags may be there; what it opens is called `next`.
fn op(tags: Vec<Tag>, next: Tag) -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (select(tags), act()).prop_map(|(tag, act)| Op::On(tag, act)),
        2 => opening().prop_map(move |opening| Op::Open(next, opening)),
        2 => absence().prop_map(|(who, cover)| Op::GoAway { who, cover }),
        1 => who().prop_map(|who| Op::ComeBack { who }),
        1 => who().prop_map(|who| Op::Stop { who }),
        1 => Just(Op::Expire),
    ]
}

pub(super) fn step(tags: &[Tag], next: Tag) -> impl Strategy<Value = Step> + use<> {
    (op(tags.to_vec(), next), option::weighted(0.7, op(tags.to_vec(), next + 1)))
        .prop_map(|(first, second)| Step { first, second })
}

/// What the slots are when the step begins: a form that was opened then is sent now.
pub(super) struct Before<'a> {
    pub desk: &'a TestDesk,
    pub agent: &'a AgentActor,
    pub task: TaskId,
    pub slot: Option<&'a Slot>,
}

/// Does it on this instance. Ok is the slot, if it opens one.
pub(super) async fn perform(engine: &Engine, before: Before<'_>, op: &Op) -> Result<Option<Slot>, Refusal> {
    let Before { desk, agent, task, slot } = before;
    match op {
        Op::Open(tag, opening) => {
            let opened = open(engine, agent, Some(task), *tag, opening).await?;
            return Ok(Some(opened));
        }
        Op::On(_, act) => match slot {
            Some(slot) => on_slot(engine, desk, agent, slot, act).await?,
            None => return Err(Refusal::NotFound),
        },
        Op::Stop { who } => {
            let person = desk.person(*who).await;
            let mut tx = engine.begin().await?;
            task::stop(&mut tx, &person, task, "Enough.").await?;
            tx.commit().await?;
        }
        Op::Expire => drop(engine::timer::due(engine).await?),
        Op::GoAway { who, cover } => {
            let yesterday = (engine.clock.now() - Duration::days(1)).date_naive().to_string();
            let form = AwayForm { from: yesterday, until: String::new(), cover: email(*cover).to_owned() };
            away::go_away(engine, &desk.person(*who).await, &form).await?;
        }
        Op::ComeBack { who } => away::come_back(engine, &desk.person(*who).await).await?,
    }
    Ok(None)
}

/// Asks, for an hour; under a name of its own, so that it is a slot of its own.
pub(super) async fn open(
    engine: &Engine,
    agent: &AgentActor,
    task: Option<TaskId>,
    tag: Tag,
    opening: &Opening,
) -> Result<Slot, Refusal> {
    let ask: Vec<String> = opening.asked.iter().map(|&name| name.to_owned()).collect();
    let new = match opening.needs {
        Some(needs) => refund(&opening.asked, needs),
        None => NewSlot { ask, ..NewSlot::question("Which order?") },
    };
    let mut tx = engine.single().await?;
    let new = NewSlot { task_id: task, expires_in: Some(Duration::hours(1)), ..named(format!("slot-{tag}"), new) };
    let opened = slot::open(&mut tx, slot::Asker::Agent(agent), new).await?;
    tx.commit().await?;
    Ok(opened.slot)
}

async fn on_slot(engine: &Engine, desk: &TestDesk, agent: &AgentActor, slot: &Slot, act: &Act) -> Result<(), Refusal> {
    let deposit = async |who, fresh: bool, value| {
        let actor = desk.actor(who).await;
        let revision = if fresh { slot.revision } else { slot.revision - 1 };
        let mut tx = engine.single().await?;
        slot::deposit(&mut tx, &actor, slot.id, Some(revision), value, None).await?;
        tx.commit().await
    };
    let actor = match *act {
        Act::Answer { who } => return deposit(who, true, json!("A-17")).await,
        Act::Approve { who, fresh } => return deposit(who, fresh, approve()).await,
        Act::Edit { who, fresh, amount } => return deposit(who, fresh, approve_amount(amount)).await,
        Act::Reject { who, fresh } => return deposit(who, fresh, reject("No.")).await,
        Act::CancelByAgent => Actor::Agent(agent.clone()),
        Act::Reassign { who, .. }
        | Act::Decline { who }
        | Act::Take { who }
        | Act::LetGo { who }
        | Act::CancelBy { who } => desk.actor(who).await,
    };
    let mut tx = engine.begin().await?;
    match *act {
        Act::Reassign { to, .. } => slot::reassign(&mut tx, &actor, slot.id, to, "They know.").await?,
        Act::Decline { .. } => slot::decline(&mut tx, &actor, slot.id, "I do not know.").await?,
        Act::Take { .. } => drop(slot::take(&mut tx, &actor, slot.id).await?),
        Act::LetGo { .. } => slot::let_go(&mut tx, &actor, slot.id).await?,
        _ => slot::cancel(&mut tx, &actor, slot.id, "Settled.").await?,
    }
    tx.commit().await
}
