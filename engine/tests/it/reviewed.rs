//! Faults that a reading of kinds and clocks found, each one a promise that was broken once.

use std::time::Duration as Span;

use chrono::Duration;
use engine::{
    Actor, Engine, Refusal, Tx,
    agent::{self, NewAgent, Rule, model::Reply},
    channel::{Channel, Notice},
    file, person,
    policy::{self, PolicyForm, Remind},
    slot::{self, Action, Kind, NewSlot, OnExpiry, Slot, Standing, Status},
    testing::{TestDesk, Who, approve, calls, hands_back, refund},
    timer,
};
use futures::future::{BoxFuture, join_all};
use serde_json::json;
use sqlx::{PgPool, postgres::PgPoolOptions};

const NONE: Vec<Reply> = Vec::new();

fn asking(who: &[&str]) -> NewSlot {
    NewSlot { ask: who.iter().map(|&who| who.to_owned()).collect(), ..NewSlot::question("Why?") }
}

fn named(name: impl ToString, new: NewSlot) -> NewSlot {
    NewSlot { name: Some(name.to_string()), ..new }
}

#[test]
fn an_argument_may_be_called_arguments_and_its_edit_is_not_lost() {
    let arguments = json!({ "arguments": { "amount": 500 }, "arguments_note": "old" });
    let action = Action {
        tool: "call".to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
        editable: vec!["/arguments/amount".to_owned(), "/arguments_note".to_owned()],
        schema: None,
    };
    let slot = Slot::bare(NewSlot { kind: Kind::Approval, action: Some(action), ..NewSlot::question("Pay?") });
    let typed = [("decision", "approve"), ("argument/arguments/amount", "50"), ("argument/arguments_note", "new")];
    let typed = typed.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let value = slot::form::from_form(&slot, &typed, chrono_tz::UTC).unwrap();
    assert_eq!(value["arguments"], json!({ "arguments": { "amount": 50 }, "arguments_note": "new" }));
}

#[sqlx::test(migrations = "../migrations")]
async fn as_many_at_once_as_there_are_connections_never_wait_for_each_other(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let options = desk.engine.pool.connect_options().as_ref().clone();
    let small = PgPoolOptions::new()
        .max_connections(3)
        .acquire_timeout(Span::from_secs(5))
        .connect_with(options)
        .await
        .unwrap();
    let engine = Engine { pool: small.clone(), ..desk.engine.clone() };
    let noor = desk.person(Who::Noor).await;
    let by_agent = Actor::Agent(agent.clone());
    for round in 0..5 {
        let mut slots = Vec::new();
        for n in 0..12 {
            slots.push(desk.ask(&agent, named(format!("{round}.{n}"), asking(&["mia@layby.example"]))).await.unwrap());
        }
        let all = slots.iter().enumerate().map(async |(n, slot)| {
            let mut tx = engine.single().await?;
            match n % 3 {
                0 => slot::cancel(&mut tx, &by_agent, slot.id, "Settled.").await?,
                1 => {
                    slot::reassign(&mut tx, &Actor::Person(noor.clone()), slot.id, "sam@layby.example", "Ask Sam.")
                        .await?
                }
                _ => {
                    drop(tx);
                    tx = engine.begin().await?;
                    engine::task::stop(&mut tx, &noor, slot.task_id, "Enough.").await?;
                }
            }
            tx.commit().await
        });
        for done in join_all(all).await {
            done.unwrap();
        }
    }
    small.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_was_approved_with_an_edit_runs_so_whatever_the_permit_says_by_then(pool: PgPool) {
    let mut both = calls("categorise_claim", json!({ "category": "travel" }));
    both.calls.extend(calls("ask_person", json!({ "question": "Who was there?" })).calls);
    let desk = TestDesk::new(pool, vec![both, hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "Dinner").await;
    desk.settle().await;
    let slots = desk.waiting(claim).await;
    let of = |kind| slots.iter().find(|slot| slot.kind == kind).unwrap();
    let edited = json!({ "decision": "approve", "arguments": { "category": "events" } });
    desk.decide(Who::Noor, of(Kind::Approval).id, 1, edited).await.unwrap();
    let mut tx = desk.engine.begin().await.unwrap();
    agent::permit(&mut tx, "system", slots[0].agent_id, "categorise_claim", Rule::Alone).await.unwrap();
    tx.commit().await.unwrap();
    desk.answer(Who::Mia, of(Kind::Question).id, json!("Nobody.")).await.unwrap();
    desk.settle().await;
    assert_eq!(desk.claim(claim).await.category, "events");
    assert!(desk.slot(of(Kind::Approval).id).await.used_at.is_some());
}

#[sqlx::test(migrations = "../migrations")]
async fn a_question_goes_only_to_where_enough_people_can_end_it(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let people = ["mia@layby.example", "sam@layby.example", "noor@layby.example"];
    // Two are needed: one person is not enough, whatever they would say.
    let slot = desk.ask(&agent, refund(&people, 2)).await.unwrap();
    let refusal = desk.reassign(Who::Noor, slot.id, "sam@layby.example").await.unwrap_err();
    assert_eq!(refusal.errors()[0].pointer, "/to");
    assert!(refusal.to_string().contains("it needs 2"), "{refusal}");
    desk.reassign(Who::Noor, slot.id, "group:finance").await.unwrap();
    // The sponsor declined: late, the question passes them by; with nobody above, it stays and ends.
    let ladder = |name: &str, new: NewSlot| {
        named(name, NewSlot { expires_in: Some(Duration::hours(1)), on_expiry: OnExpiry::Escalate, ..new })
    };
    let group = desk.ask(&agent, ladder("g", asking(&["group:finance"]))).await.unwrap();
    desk.decline(Who::Noor, group.id).await.unwrap();
    let two = desk.ask(&agent, ladder("two", refund(&people[..2], 2))).await.unwrap();
    desk.clock.advance(Duration::hours(2));
    desk.settle().await;
    for id in [group.id, two.id] {
        let ended = desk.slot(id).await;
        assert_eq!((ended.status, ended.answered_by), (Status::Expired, None), "{:?}", ended.asked);
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn nobody_has_a_hand_in_the_decision_on_their_own_claim(pool: PgPool) {
    let script = vec![calls("categorise_claim", json!({ "category": "travel" })), hands_back("Done.")];
    let desk = TestDesk::new(pool, script).await;
    let claim = desk.file_claim(Who::Noor, "Dinner").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    assert_eq!(desk.decide(Who::Noor, slot.id, 1, approve()).await.unwrap_err().code(), "not_yours");
    // Nor chooses who decides, nor takes the review over and ends it.
    assert_eq!(desk.reassign(Who::Noor, slot.id, "sam@layby.example").await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.take_over(Who::Noor, slot.task_id).await.unwrap_err().code(), "forbidden");
    let takeover = desk.take_over(Who::Ada, slot.task_id).await.unwrap();
    let result = json!({ "result": { "verdict": "approve", "summary": "Fine." } });
    assert_eq!(desk.answer(Who::Noor, takeover, result.clone()).await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.reassign(Who::Ada, takeover, "noor@layby.example").await.unwrap_err().errors()[0].pointer, "/to");
    desk.answer(Who::Ada, takeover, result).await.unwrap();
    assert_eq!(desk.task_of(claim).await.status, engine::task::Status::Done);
}

#[sqlx::test(migrations = "../migrations")]
async fn an_agent_that_asks_many_keeps_nobody_from_being_disabled(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let mut ask = vec!["mia@layby.example".to_owned()];
    let mut tx = desk.engine.begin().await.unwrap();
    for n in 0..19 {
        let email = format!("p{n}@layby.example");
        let new = person::NewPerson {
            email: email.clone(),
            name: format!("P {n}"),
            roles: vec![person::Role::Person],
            groups: Vec::new(),
            password: None,
        };
        person::add(&mut tx, "system", new).await.unwrap();
        ask.push(email);
    }
    tx.commit().await.unwrap();
    let slot = desk.ask(&agent, NewSlot { ask: ask.clone(), ..refund(&[], 20) }).await.unwrap();
    assert_eq!(slot.alarm, None);
    ask.push("sam@layby.example".to_owned());
    let many = desk.ask(&agent, named("many", NewSlot { ask, ..refund(&[], 1) })).await.unwrap_err();
    assert_eq!(many.errors()[0].pointer, "/ask");
    let mut tx = desk.engine.begin().await.unwrap();
    person::disable(&mut tx, "system", "mia@layby.example").await.unwrap();
    tx.commit().await.unwrap();
    let found = desk.slot(slot.id).await;
    assert!(found.alarm.unwrap().contains("only 19"));
}

#[sqlx::test(migrations = "../migrations")]
async fn a_secret_handed_in_as_its_work_ends_is_wiped_all_the_same(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    let (mia, noor) = (desk.actor(Who::Mia).await, desk.person(Who::Noor).await);
    for round in 0..40 {
        let slot =
            desk.ask(&agent, named(round, NewSlot { secret: true, ..asking(&["mia@layby.example"]) })).await.unwrap();
        let give = async {
            let mut tx = desk.engine.single().await.unwrap();
            let _ = slot::deposit(&mut tx, &mia, slot.id, None, json!("hunter2"), None).await;
            tx.commit().await.unwrap();
        };
        let stop = async {
            let mut tx = second.begin().await.unwrap();
            engine::task::stop(&mut tx, &noor, slot.task_id, "Enough.").await.unwrap();
            tx.commit().await.unwrap();
        };
        tokio::join!(give, stop);
        assert_eq!(desk.count("select count(*) from sealed_secret").await, 0, "round {round}");
    }
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn an_answer_with_a_file_that_loses_a_race_is_told_so_and_keeps_its_file(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    let noor = desk.actor(Who::Noor).await;
    for round in 0..30 {
        let schema = Some(json!({ "type": "string", "format": "file" }));
        let slot = desk.ask(&agent, named(round, NewSlot { schema, ..asking(&["mia@layby.example"]) })).await.unwrap();
        let mut tx = desk.engine.begin().await.unwrap();
        let id = file::add(&mut tx, &noor, "r.pdf", b"%PDF-1.7\n", "").await.unwrap();
        tx.commit().await.unwrap();
        let give = async {
            let mut tx = desk.engine.single().await?;
            slot::deposit(&mut tx, &noor, slot.id, None, json!(id), None).await?;
            tx.commit().await
        };
        let hand = async {
            let mut tx = second.begin().await?;
            slot::reassign(&mut tx, &noor, slot.id, "sam@layby.example", "Ask Sam.").await?;
            tx.commit().await
        };
        let (given, handed) = tokio::join!(give, hand);
        given.unwrap();
        assert!(handed.is_ok() || handed.unwrap_err().code() == "already_answered");
    }
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn answering_several_tells_nothing_of_a_question_that_one_may_not_see(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let number =
        |who: &str| NewSlot { schema: Some(json!({ "type": "object", "required": ["pin"] })), ..asking(&[who]) };
    let mias = desk.ask(&agent, number("mia@layby.example")).await.unwrap();
    let sams = desk
        .ask(&agent, named("s", NewSlot { task_id: Some(mias.task_id), ..number("sam@layby.example") }))
        .await
        .unwrap();
    let mia = desk.actor(Who::Mia).await;
    let answers = [mias.id, sams.id].map(|slot| slot::Resolved { slot, revision: None, value: json!({}) });
    let mut tx = desk.engine.begin().await.unwrap();
    let refused = slot::resolve(&mut tx, &mia, mias.task_id, answers.into()).await.unwrap_err();
    let pointers: Vec<_> = refused.refusal.errors().iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/answers/0/value/pin"]);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_sponsor_can_read_what_they_hear_of_and_no_more(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let mut tx = desk.engine.begin().await.unwrap();
    let new = NewAgent { name: "Sams".into(), purpose: String::new(), sponsor_email: "sam@layby.example".into() };
    agent::add(&mut tx, "system", new).await.unwrap();
    let owner = agent::token::TokenOwner::Agent("Sams".into());
    let token = agent::token::create(&mut tx, "system", owner, vec!["ask".into()]).await.unwrap();
    tx.commit().await.unwrap();
    let Ok(Some(Actor::Agent(agent))) = agent::token::actor(&desk.engine, &token).await else { panic!("an agent") };
    let slot = desk.ask(&agent, asking(&["mia@layby.example"])).await.unwrap();
    let sam = desk.actor(Who::Sam).await;
    let seen = slot::get(&desk.engine, &sam, slot.id).await.unwrap();
    assert!(matches!(seen.standing(&desk.person(Who::Sam).await), Standing::MayOnlySee(_)));
    assert_eq!(desk.answer(Who::Sam, slot.id, json!("x")).await.unwrap_err().code(), "not_yours");
    let listed = slot::list(&desk.engine, &sam, slot::ListOfSlots { limit: 10, ..Default::default() }).await.unwrap();
    assert_eq!(listed.len(), 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn an_administrator_who_declined_a_takeover_may_still_take_it(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let human = NewSlot {
        kind: Kind::Human,
        ask: vec!["role:manager".into(), "role:admin".into()],
        ..NewSlot::question("Please.")
    };
    let slot = desk.ask(&agent, human).await.unwrap();
    desk.decline(Who::Ada, slot.id).await.unwrap();
    desk.answer(Who::Ada, slot.id, json!({ "result": "After all." })).await.unwrap();
}

/// Down for as long as the test lasts.
struct Down;

impl Channel for Down {
    fn deliver<'a>(&'a self, _: &'a mut Tx, notices: &'a [Notice]) -> BoxFuture<'a, Result<(), Refusal>> {
        let many = notices.len() > 1;
        Box::pin(async move { if many { Err(Refusal::Fault("too many at once".into())) } else { Ok(()) } })
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_reminder_or_a_warning_never_hands_a_question_on_however_it_is_fired(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let form = PolicyForm { target: "4h".into(), remind_after: "1h".into(), reassign: true, ..PolicyForm::default() };
    policy::save(&desk.engine, &desk.person(Who::Ada).await, &form).await.unwrap();
    let mut slots = Vec::new();
    for n in 0..3 {
        slots.push(desk.ask(&agent, named(n, asking(&["mia@layby.example"]))).await.unwrap());
    }
    // A channel that takes one at a time: every batch fails, and each timer is fired alone.
    let engine = Engine { channel: std::sync::Arc::new(Down), ..desk.engine.clone() };
    desk.clock.advance(Duration::minutes(200));
    assert_eq!(timer::due(&engine).await.unwrap(), 6);
    for slot in slots {
        assert_eq!(desk.slot(slot.id).await.asked, ["mia@layby.example"]);
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn the_managers_hear_nothing_of_a_question_whose_due_date_was_moved(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot =
        desk.ask(&agent, NewSlot { target: Some(Duration::hours(1)), ..asking(&["mia@layby.example"]) }).await.unwrap();
    // As one that was being claimed while the date was moved: it could not be dropped.
    sqlx::query("insert into timer (slot_id, kind, due_at, run_at) values ($1, 'managers', $2, $2)")
        .bind(slot.id.0)
        .bind(desk.engine.clock.now())
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 0);
    assert_eq!(desk.count("select count(*) from timer where kind = 'managers'").await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn each_clock_of_a_question_counts_as_it_was_said(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let form = PolicyForm { target: "4h".into(), business: true, ..PolicyForm::default() };
    policy::save(&desk.engine, &desk.person(Who::Ada).await, &form).await.unwrap();
    desk.clock.advance(Duration::days(4) + Duration::hours(7)); // Friday 16:00
    let remind = Remind { after: Duration::hours(1), every: Some(Duration::hours(12)), most: 6 };
    let slot = desk.ask(&agent, NewSlot { remind: Some(remind), ..asking(&["mia@layby.example"]) }).await.unwrap();
    assert_eq!(slot.due_at.unwrap().to_rfc3339(), "2031-03-10T11:00:00+00:00", "business time over the weekend");
    let mut reminded = 0;
    for _ in 0..5 {
        desk.clock.advance(Duration::hours(12));
        timer::due(&desk.engine).await.unwrap();
        reminded += 1;
        let lines = slot::history(&desk.engine, &slot).await.unwrap();
        assert_eq!(
            lines.iter().filter(|line| line.kind == "reminded").count(),
            reminded,
            "plain time, also on Saturday"
        );
    }
}
