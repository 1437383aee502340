//! Random sequences of everything that people, the asker and the clock can do to the slots of a task, two at once on two
//! instances, against a plain model: the outcome is always one of the model's two orders, authority always holds, and
//! record and audit always tell the same story.

mod ops;
mod plain;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use chrono::Duration;
use engine::{
    Engine, Refusal,
    actor::AgentActor,
    ids::PersonId,
    person::away,
    slot::Slot,
    testing::{TestDesk, Who},
};
use proptest::{
    option,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::runtime::Handle;

use ops::{Before, EVERYBODY, Op, Opening, Step, Tag, email};
use plain::Model;

/// What is known before anything is done: which slots may have been opened. Of two things at once only the database knows
/// which was first, so the model itself goes along with the test.
#[derive(Clone, Debug)]
struct Plan {
    first: Opening,
    /// Away from the beginning, with who covers.
    away: Option<(Who, Who)>,
    tags: Vec<Tag>,
    next: Tag,
}

impl ReferenceStateMachine for Plan {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        (ops::opening(), option::weighted(0.7, ops::absence()))
            .prop_map(|(first, away)| Self { first, away, tags: vec![0], next: 1 })
            .boxed()
    }

    fn transitions(plan: &Self) -> BoxedStrategy<Step> {
        ops::step(&plan.tags, plan.next).boxed()
    }

    fn preconditions(plan: &Self, step: &Step) -> bool {
        step.ops().all(|op| !matches!(op, Op::On(tag, _) if !plan.tags.contains(tag)))
    }

    fn apply(mut plan: Self, step: &Step) -> Self {
        plan.tags.extend(step.ops().filter_map(|op| match op {
            Op::Open(tag, _) => Some(*tag),
            _ => None,
        }));
        plan.next += 2;
        plan
    }
}

/// The two instances, and whoever asks. Set once: what the machine starts from is given to it by no argument.
struct World {
    desk: TestDesk,
    second: Engine,
    agent: AgentActor,
    handle: Handle,
}

static WORLD: OnceLock<Arc<World>> = OnceLock::new();

struct Running {
    world: Arc<World>,
    slots: BTreeMap<Tag, Slot>,
    model: Model,
}

struct OneStory;

impl StateMachineTest for OneStory {
    type SystemUnderTest = Running;
    type Reference = Plan;

    fn init_test(plan: &Plan) -> Running {
        let world = WORLD.get().expect("the world is there").clone();
        world.handle.block_on(Running::begin(world.clone(), plan))
    }

    fn apply(running: Running, _: &Plan, step: Step) -> Running {
        let handle = running.world.handle.clone();
        handle.block_on(running.step(step))
    }

    fn check_invariants(running: &Running, _: &Plan) {
        running.world.handle.block_on(running.tells_the_same());
    }
}

impl Running {
    async fn begin(world: Arc<World>, plan: &Plan) -> Self {
        let World { desk, agent, .. } = &*world;
        for who in EVERYBODY {
            away::come_back(&desk.engine, &desk.person(who).await).await.expect("somebody can come back");
        }
        let slot = ops::open(&desk.engine, agent, None, 0, &plan.first).await.expect("the first can be asked");
        let begun = Self { model: Model::new(&plan.first), slots: BTreeMap::from([(0, slot)]), world };
        match plan.away {
            Some((who, cover)) => begun.step(Step { first: Op::GoAway { who, cover }, second: None }).await,
            None => begun,
        }
    }

    async fn step(mut self, step: Step) -> Self {
        let World { desk, second, agent, .. } = &*self.world;
        if step.ops().any(|op| matches!(op, Op::Expire)) {
            desk.clock.advance(Duration::hours(2));
            self.model.later();
        }
        let task = self.slots[&0].task_id;
        let before = |op: &Op| {
            let slot = match op {
                Op::On(tag, _) => self.slots.get(tag),
                _ => None,
            };
            Before { desk, agent, task, slot }
        };
        let one = ops::perform(&desk.engine, before(&step.first), &step.first);
        let (one, two) = match &step.second {
            None => (one.await, Ok(None)),
            Some(other) => tokio::join!(one, ops::perform(second, before(other), other)),
        };
        let code = |result: &Result<_, Refusal>| result.as_ref().err().map_or("ok", Refusal::code);
        let codes = [code(&one), code(&two)];
        for (op, opened) in step.ops().zip([one, two]) {
            if let (Op::Open(tag, _), Ok(Some(slot))) = (op, opened) {
                self.slots.insert(*tag, slot);
            }
        }
        for slot in self.slots.values_mut() {
            *slot = desk.slot(slot.id).await;
        }
        let now: BTreeMap<Tag, Value> = self.slots.iter().map(|(tag, slot)| (*tag, shown(desk, slot))).collect();
        let seen = &self.model;
        let orders = match &step.second {
            None => {
                let (after, code) = seen.apply(&step.first, seen);
                vec![(after, [code, "ok"])]
            }
            Some(other) => {
                let (a, first) = seen.apply(&step.first, seen);
                let (ab, second) = a.apply(other, seen);
                let (b, other) = seen.apply(other, seen);
                let (ba, late) = b.apply(&step.first, seen);
                vec![(ab, [first, second]), (ba, [late, other])]
            }
        };
        let fitting = orders.iter().find(|(after, expected)| agree(codes, *expected) && after.shown() == now);
        let Some((after, _)) = fitting else {
            let allowed: Vec<_> = orders.iter().map(|(after, codes)| (codes, after.shown())).collect();
            panic!("{step:?}\nfrom {seen:?}\ngot {codes:?} {now:?}\nallowed {allowed:?}");
        };
        self.model = after.clone();
        self
    }

    /// Record, audit and events of every slot agree with the model, line for line.
    async fn tells_the_same(&self) {
        for (tag, slot) in &self.slots {
            let model = &self.model.slots[tag];
            for kind in ["answered", "expired", "cancelled", "voted", "reassigned", "declined", "taken", "let_go"] {
                let expected = model.lines.get(kind).copied().unwrap_or_default();
                let told = [
                    self.count("record_line where slot_id = $1 and kind = $2", slot, kind).await,
                    self.count("audit where object = 'slot:' || $1::uuid and action = 'slot.' || $2", slot, kind).await,
                ];
                assert_eq!(told, [expected; 2], "{kind} in record and audit; {model:?}");
            }
            let ended = i64::from(model.status != "waiting");
            let ends = "('slot.answered', 'slot.expired', 'slot.cancelled')";
            let events =
                self.count(&format!("outbox where slot_id = $1 and type in {ends} and $2 = ''"), slot, "").await;
            assert_eq!(events, ended, "events of the end; {model:?}");
            let keys = self.count("slot_candidate where slot_id = $1 and $2 = ''", slot, "").await;
            assert_eq!(keys == 0, ended == 1, "in {keys} inboxes; {model:?}");
        }
    }

    async fn count(&self, what: &str, slot: &Slot, kind: &str) -> i64 {
        let sql = format!("select count(*) from {what}");
        let query = sqlx::query_scalar(&sql).bind(slot.id.0).bind(kind);
        query.fetch_one(&self.world.desk.engine.pool).await.expect("the statement counts")
    }
}

/// Who loses the right between reading and writing is told so, not that there is nothing.
fn agree(codes: [&str; 2], expected: [&str; 2]) -> bool {
    let hidden = |code: &str| matches!(code, "not_yours" | "not_found");
    codes.iter().zip(expected).all(|(code, expected)| *code == expected || hidden(code) && hidden(expected))
}

/// What a reader sees of the slot, with addresses for people.
fn shown(desk: &TestDesk, slot: &Slot) -> Value {
    let address = |id: PersonId| EVERYBODY.into_iter().find(|who| desk.id(*who) == id).map(email);
    let votes: BTreeSet<_> = slot.votes.iter().map(|vote| (&*vote.email, vote.covers.and_then(address))).collect();
    let declined: BTreeSet<_> = slot.declined.iter().filter_map(|id| address(*id)).collect();
    let taken = slot.taken_at(desk.engine.clock.now()).and_then(|taken| address(taken.id));
    let amount = slot.arguments().map(|arguments| &arguments["amount"]);
    json!([slot.status.as_str(), slot.revision, amount, votes, slot.asked, declined, slot.rung, taken])
}

#[sqlx::test(migrations = "../migrations")]
async fn whatever_happens_at_once_the_outcome_is_one_and_everybody_tells_the_same_story(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    let world = Arc::new(World { desk, second, agent, handle: Handle::current() });
    assert!(WORLD.set(world.clone()).is_ok());
    // Beside the test's own thread, which drives the connections meanwhile.
    let run = tokio::task::spawn_blocking(|| {
        let config = Config { cases: 120, failure_persistence: None, max_shrink_iters: 100, ..Config::default() };
        let mut runner = TestRunner::new(config.clone());
        let all = runner.run(&Plan::sequential_strategy(1..10), |(plan, steps, seen)| {
            OneStory::test_sequential(config.clone(), plan, steps, seen);
            Ok(())
        });
        if let Err(failure) = all {
            panic!("{failure}");
        }
    });
    run.await.expect("every run keeps the promise");
    world.second.pool.close().await;
}
