//! `TestDesk`: a database of its own, a clock that can be advanced, a scripted model, and the demonstration people.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Duration, TimeZone, Utc};
use serde_json::{Value, json};
use sqlx::{PgPool, postgres::PgPoolOptions};

use crate::{
    Actor, Engine, Refusal,
    actor::PersonActor,
    agent::{
        self,
        model::{Call, Models, Reply, Scripted},
        token::TokenOwner,
    },
    claim::{self, ClaimForm},
    clock::Clock,
    demo,
    ids::{ClaimId, PersonId, SlotId, TaskId},
    person,
    seal::Keyring,
    slot::{self, NewSlot, Slot},
    task, timer,
};

/// A clock that stands until it is advanced.
#[derive(Clone)]
pub struct TestClock(Arc<Mutex<DateTime<Utc>>>);

impl Default for TestClock {
    fn default() -> Self {
        let start = Utc.with_ymd_and_hms(2031, 3, 3, 9, 0, 0).single().unwrap_or_default();
        Self(Arc::new(Mutex::new(start)))
    }
}

impl TestClock {
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Layby without HTTP, for one test.
pub struct TestDesk {
    pub engine: Engine,
    pub clock: TestClock,
    pub script: Scripted,
    pub models: Models,
    people: Vec<PersonId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Mia,
    Sam,
    /// A manager.
    Noor,
    /// An administrator.
    Ada,
}

impl TestDesk {
    /// Over a database that `sqlx::test` made and migrated. The Auditor says what `script` tells it.
    pub async fn new(pool: PgPool, script: Vec<Reply>) -> Self {
        let clock = TestClock::default();
        let (keys, _) = Keyring::generate();
        let engine = Engine::new(pool, Arc::new(clock.clone()), keys);
        agent::ensure_built_in(&engine).await.expect("the built-in agents can be added");
        let mut tx = engine.begin().await.expect("the database is there");
        let people = demo::people(&mut tx).await.expect("the people can be added");
        tx.commit().await.expect("the people can be committed");
        let script = Scripted::new(script);
        let models = Models::only(script.clone());
        Self { engine, clock, script, models, people }
    }

    /// Another instance over the same database: its own pool and wake-ups, the same clock.
    pub async fn second_instance(&self) -> Engine {
        let options = self.engine.pool.connect_options().as_ref().clone();
        let pool = PgPoolOptions::new().max_connections(10).connect_with(options).await.expect("the database is there");
        Engine::new(pool, Arc::new(self.clock.clone()), self.engine.keys.clone())
    }

    pub fn id(&self, who: Who) -> PersonId {
        self.people[who as usize]
    }

    /// The person as a session of this moment would have them.
    pub async fn person(&self, who: Who) -> PersonActor {
        let mut conn = self.engine.pool.acquire().await.expect("the database is there");
        person::acting(&mut conn, self.id(who)).await.expect("the person can be read").expect("the person is active")
    }

    pub async fn actor(&self, who: Who) -> Actor {
        Actor::Person(self.person(who).await)
    }

    /// An outside agent with Noor as its sponsor.
    pub async fn outside_agent(&self, name: &str) -> crate::actor::AgentActor {
        let mut tx = self.engine.begin().await.expect("the database is there");
        let new = agent::NewAgent {
            name: name.to_owned(),
            purpose: String::new(),
            sponsor_email: "noor@layby.example".to_owned(),
        };
        agent::add(&mut tx, "system", new).await.expect("the agent can be added");
        let scopes = vec!["ask".to_owned(), "read".to_owned()];
        let owner = TokenOwner::Agent(name.to_owned());
        let token = agent::token::create(&mut tx, "system", owner, scopes).await.expect("the token can be made");
        tx.commit().await.expect("the agent can be committed");
        match agent::token::actor(&self.engine, &token).await {
            Ok(Some(Actor::Agent(agent))) => agent,
            other => panic!("the token is not the agent's: {other:?}"),
        }
    }

    pub async fn ask(&self, agent: &crate::actor::AgentActor, new: NewSlot) -> Result<Slot, Refusal> {
        let mut tx = self.engine.single().await?;
        let opened = slot::open(&mut tx, slot::Asker::Agent(agent), new).await?;
        tx.commit().await?;
        Ok(opened.slot)
    }

    pub async fn answer(&self, who: Who, slot: SlotId, value: Value) -> Result<slot::Deposited, Refusal> {
        let actor = self.actor(who).await;
        let mut tx = self.engine.single().await?;
        let deposited = slot::deposit(&mut tx, &actor, slot, None, value, None).await?;
        tx.commit().await?;
        Ok(deposited)
    }

    /// Answers what was seen at a revision, as an approval needs it.
    pub async fn decide(
        &self,
        who: Who,
        slot: SlotId,
        revision: slot::Revision,
        value: Value,
    ) -> Result<slot::Deposited, Refusal> {
        let actor = self.actor(who).await;
        let mut tx = self.engine.single().await?;
        let deposited = slot::deposit(&mut tx, &actor, slot, Some(revision), value, None).await?;
        tx.commit().await?;
        Ok(deposited)
    }

    pub async fn reassign(&self, who: Who, slot: SlotId, to: &str) -> Result<(), Refusal> {
        let actor = self.actor(who).await;
        let mut tx = self.engine.begin().await?;
        slot::reassign(&mut tx, &actor, slot, to, "They know better.").await?;
        tx.commit().await
    }

    pub async fn decline(&self, who: Who, slot: SlotId) -> Result<(), Refusal> {
        let actor = self.actor(who).await;
        let mut tx = self.engine.begin().await?;
        slot::decline(&mut tx, &actor, slot, "I do not know.").await?;
        tx.commit().await
    }

    pub async fn take_over(&self, who: Who, task: TaskId) -> Result<SlotId, Refusal> {
        let person = self.person(who).await;
        let mut tx = self.engine.begin().await?;
        let slot = task::take_over(&mut tx, &person, task).await?;
        tx.commit().await?;
        Ok(slot)
    }

    /// The slot as a manager sees it.
    pub async fn slot(&self, id: SlotId) -> Slot {
        slot::get(&self.engine, &self.actor(Who::Noor).await, id).await.expect("a manager sees every slot")
    }

    /// How many a person's inbox has.
    pub async fn inbox(&self, who: Who) -> usize {
        slot::inbox(&self.engine, &self.person(who).await).await.expect("the inbox can be read").len()
    }

    /// A number that a statement counts.
    pub async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.engine.pool).await.expect("the statement counts")
    }

    pub async fn stop(&self, who: Who, task: TaskId, reason: &str) -> Result<(), Refusal> {
        let person = self.person(who).await;
        let mut tx = self.engine.begin().await?;
        task::stop(&mut tx, &person, task, reason).await?;
        tx.commit().await
    }

    /// Files a claim of 286.50 EUR at a restaurant.
    pub async fn file_claim(&self, who: Who, explanation: &str) -> ClaimId {
        let person = self.person(who).await;
        let mut tx = self.engine.begin().await.expect("the database is there");
        let form = ClaimForm {
            spent_on: tx.now().date_naive().to_string(),
            merchant: "Restaurant Borchardt".to_owned(),
            amount: "86.50".to_owned(),
            currency: "EUR".to_owned(),
            category: "meals".to_owned(),
            explanation: explanation.to_owned(),
        };
        let id = claim::file(&mut tx, &person, form).await.expect("the claim can be filed");
        tx.commit().await.expect("the claim can be committed");
        id
    }

    pub async fn claim(&self, id: ClaimId) -> claim::Claim {
        claim::get(&self.engine, &self.person(Who::Noor).await, id).await.expect("the claim can be read")
    }

    pub async fn task_of(&self, id: ClaimId) -> task::Task {
        let review = self.claim(id).await.review.expect("filing starts a review");
        task::get(&self.engine, &self.person(Who::Noor).await, review.task_id).await.expect("the task can be read")
    }

    /// The waiting slots of a claim, the newest first.
    pub async fn waiting(&self, id: ClaimId) -> Vec<Slot> {
        let slots = slot::list::of_claim(&self.engine, id).await.expect("slots can be read");
        slots.into_iter().filter(|slot| slot.status == slot::Status::Waiting).collect()
    }

    /// The sentences of a task's record.
    pub async fn record(&self, task: TaskId) -> Vec<String> {
        let lines = task::record(&self.engine, task).await.expect("the record can be read");
        lines.into_iter().map(|line| line.text).collect()
    }

    /// Does everything that is due and ready at this moment.
    pub async fn settle(&self) {
        person::away::due(&self.engine).await.expect("absences can begin and end");
        timer::due(&self.engine).await.expect("what is due can expire");
        agent::work::run_until_quiet(&self.engine, &self.models).await.expect("the work can go on");
    }
}

/// The same question under a name of its own.
pub fn named(name: impl ToString, new: NewSlot) -> NewSlot {
    NewSlot { name: Some(name.to_string()), ..new }
}

/// An approval of a refund of 40 for A-17, of which the amount may be changed.
pub fn refund(ask: &[&str], needs: i32) -> NewSlot {
    NewSlot {
        kind: slot::Kind::Approval,
        action: Some(slot::Action {
            tool: "refund".to_owned(),
            arguments: json!({ "order": "A-17", "amount": 40 }).as_object().cloned().unwrap_or_default(),
            editable: vec!["/amount".to_owned()],
            schema: None,
        }),
        needs,
        ask: ask.iter().map(|&name| name.to_owned()).collect(),
        ..NewSlot::question("Refund 40 EUR for A-17?")
    }
}

/// Yes, as it stands.
pub fn approve() -> Value {
    json!({ "decision": "approve" })
}

/// Yes, with another amount.
pub fn approve_amount(amount: i64) -> Value {
    json!({ "decision": "approve", "arguments": { "order": "A-17", "amount": amount } })
}

pub fn reject(reason: &str) -> Value {
    json!({ "decision": "reject", "reason": reason })
}

/// A scripted reply that asks.
pub fn asks(question: &str) -> Reply {
    calls("ask_person", json!({ "question": question }))
}

/// A scripted reply that finishes.
pub fn hands_back(summary: &str) -> Reply {
    calls("hand_back", json!({ "verdict": "approve", "summary": summary }))
}

/// A scripted reply that only talks.
pub fn says(text: &str) -> Reply {
    Reply { text: text.to_owned(), ..Reply::default() }
}

pub fn calls(name: &str, arguments: Value) -> Reply {
    Reply {
        calls: vec![Call { id: "call_1".to_owned(), name: name.to_owned(), arguments }],
        input_tokens: 100,
        output_tokens: 20,
        ..Reply::default()
    }
}
