use std::time::Duration as Span;

use chrono::Duration;
use engine::{
    Actor, Engine, Refusal,
    agent::model::Reply,
    ids::SlotId,
    slot::{self, Choice, Kind, NewSlot, OnExpiry, Priority, Standing, Status},
    testing::{TestDesk, Who, named},
};
use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::{PgPool, postgres::PgPoolOptions};
use uuid::Uuid;

const NONE: Vec<Reply> = Vec::new();

fn asking(who: &str) -> NewSlot {
    NewSlot { ask: vec![who.to_owned()], ..NewSlot::question("How much do we refund for A-17?") }
}

/// A small schema that takes 2^30 steps to check.
fn doubling() -> Value {
    let step =
        |n: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/s{n}") }, { "$ref": format!("#/$defs/s{n}") }] });
    let mut defs: serde_json::Map<_, _> = (0..30).map(|n| (format!("s{n}"), step(n + 1))).collect();
    defs.insert("s30".to_owned(), json!({ "type": "string" }));
    json!({ "$defs": defs, "$ref": "#/$defs/s0" })
}

async fn status(desk: &TestDesk, id: SlotId) -> Status {
    slot::get(&desk.engine, &desk.actor(Who::Noor).await, id).await.unwrap().status
}

async fn count(desk: &TestDesk, sql: &str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&desk.engine.pool).await.unwrap()
}

#[sqlx::test(migrations = "../migrations")]
async fn an_answer_closes_the_slot_and_tells_who_and_after_how_long(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, asking("mia@layby.example")).await.unwrap();
    desk.clock.advance(Duration::days(30));
    assert!(!desk.answer(Who::Mia, slot.id, json!("40 EUR")).await.unwrap().on_behalf);

    let slot = slot::get(&desk.engine, &desk.actor(Who::Mia).await, slot.id).await.unwrap();
    assert_eq!(slot.status, Status::Answered);
    assert_eq!(slot.answer, Some(json!("40 EUR")));
    assert_eq!(slot.answered_by.as_deref(), Some("Mia Lindqvist"));
    assert_eq!(slot.waited(desk.engine.clock.now()), Duration::days(30));
    assert!(desk.record(slot.task_id).await.contains(&"Mia Lindqvist answered after 30 days.".to_owned()));
    // Record, audit and events tell the same story, and nobody's inbox keeps the question.
    assert_eq!(count(&desk, "select count(*) from audit where action = 'slot.answered'").await, 1);
    assert_eq!(count(&desk, "select count(*) from outbox where type = 'slot.answered'").await, 1);
    assert_eq!(count(&desk, "select count(*) from slot_candidate").await, 0);
    assert_eq!(count(&desk, "select count(*) from task where status = 'working' and open_slots = 0").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn every_refusal_says_what_it_is_and_changes_nothing(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let number =
        NewSlot { schema: Some(json!({ "type": "number", "exclusiveMinimum": 0 })), ..asking("mia@layby.example") };
    let slot = desk.ask(&agent, number).await.unwrap();
    let code =
        |result: Result<slot::Deposited, Refusal>| result.map(|_| "accepted").unwrap_or_else(|refusal| refusal.code());

    assert_eq!(code(desk.answer(Who::Mia, SlotId(Uuid::nil()), json!(1)).await), "not_found");
    assert_eq!(code(desk.answer(Who::Sam, slot.id, json!(1)).await), "not_found");
    assert_eq!(code(desk.answer(Who::Ada, slot.id, json!(1)).await), "not_yours");
    assert_eq!(code(desk.answer(Who::Mia, slot.id, json!("forty")).await), "invalid_answer");
    assert_eq!(code(desk.answer(Who::Mia, slot.id, json!(-1)).await), "invalid_answer");
    let mia = desk.actor(Who::Mia).await;
    let mut tx = desk.engine.single().await.unwrap();
    assert_eq!(code(slot::deposit(&mut tx, &mia, slot.id, Some(7), json!(1), None).await), "stale");
    let by_agent = engine::Actor::Agent(agent.clone());
    assert_eq!(code(slot::deposit(&mut tx, &by_agent, slot.id, None, json!(1), None).await), "not_yours");
    let other = engine::Actor::Agent(desk.outside_agent("Other").await);
    assert_eq!(code(slot::deposit(&mut tx, &other, slot.id, None, json!(1), None).await), "not_found");
    drop(tx);
    assert_eq!(status(&desk, slot.id).await, Status::Waiting);

    assert_eq!(code(desk.answer(Who::Mia, slot.id, json!(1.5)).await), "accepted");
    let again = desk.answer(Who::Mia, slot.id, json!(2)).await.unwrap_err();
    assert_eq!(again.code(), "already_answered");
    assert!(again.to_string().starts_with("Mia Lindqvist answered this first"), "{again}");
    let kept = slot::get(&desk.engine, &mia, slot.id).await.unwrap();
    assert_eq!(kept.answer, Some(json!(1.5)));
}

#[sqlx::test(migrations = "../migrations")]
async fn a_group_a_role_and_a_manager_on_behalf_may_answer_and_nobody_else(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let group = desk.ask(&agent, NewSlot { name: Some("g".into()), ..asking("group:finance") }).await.unwrap();
    assert_eq!(group.waiting_on, "an answer from the group finance");
    assert_eq!(desk.answer(Who::Mia, group.id, json!("x")).await.unwrap_err().code(), "not_found");
    assert!(!desk.answer(Who::Sam, group.id, json!("x")).await.unwrap().on_behalf);

    let role = desk.ask(&agent, NewSlot { name: Some("r".into()), ..asking("role:manager") }).await.unwrap();
    assert_eq!(desk.answer(Who::Ada, role.id, json!("x")).await.unwrap_err().code(), "not_yours");
    assert!(!desk.answer(Who::Noor, role.id, json!("x")).await.unwrap().on_behalf);

    let mias = desk.ask(&agent, NewSlot { name: Some("m".into()), ..asking("mia@layby.example") }).await.unwrap();
    assert!(desk.answer(Who::Noor, mias.id, json!("x")).await.unwrap().on_behalf);
    let mias = slot::get(&desk.engine, &desk.actor(Who::Mia).await, mias.id).await.unwrap();
    assert_eq!(mias.on_behalf_of.as_deref(), Some("Mia Lindqvist"));
    assert!(desk.record(mias.task_id).await.iter().any(|line| line.contains("on behalf of Mia Lindqvist")));
}

#[sqlx::test(migrations = "../migrations")]
async fn authority_is_decided_at_the_deposit_not_when_the_page_was_loaded(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, asking("group:finance")).await.unwrap();
    let loaded = desk.actor(Who::Sam).await; // Sam's rights as they were
    sqlx::query("delete from group_member where person_id = $1")
        .bind(desk.id(Who::Sam).0)
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    let mut tx = desk.engine.single().await.unwrap();
    let late = slot::deposit(&mut tx, &loaded, slot.id, None, json!("x"), None).await;
    assert_eq!(late.unwrap_err().code(), "not_yours");
    drop(tx);

    let mias = desk.ask(&agent, NewSlot { name: Some("m".into()), ..asking("mia@layby.example") }).await.unwrap();
    let loaded = desk.actor(Who::Mia).await;
    sqlx::query("update person set disabled_at = now() where id = $1")
        .bind(desk.id(Who::Mia).0)
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    let mut tx = desk.engine.single().await.unwrap();
    assert!(slot::deposit(&mut tx, &loaded, mias.id, None, json!("x"), None).await.is_err());
    drop(tx);
    assert_eq!(status(&desk, mias.id).await, Status::Waiting);
}

#[sqlx::test(migrations = "../migrations")]
async fn of_two_deposits_at_once_on_two_instances_exactly_one_wins(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    for round in 0..20 {
        let new = NewSlot { name: Some(round.to_string()), ..asking("group:finance") };
        let slot = desk.ask(&agent, new).await.unwrap();
        let tries = (0..10).map(|n| {
            let engine = if n % 2 == 0 { desk.engine.clone() } else { second.clone() };
            let desk = &desk;
            async move {
                let actor = desk.actor(if n % 4 < 2 { Who::Sam } else { Who::Noor }).await;
                let mut tx = engine.single().await.unwrap();
                let result = slot::deposit(&mut tx, &actor, slot.id, Some(1), json!(format!("answer {n}")), None).await;
                tx.commit().await.unwrap();
                result
            }
        });
        let results = futures::future::join_all(tries).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        assert!(
            results
                .iter()
                .filter_map(|result| result.as_ref().err())
                .all(|refusal| refusal.code() == "already_answered")
        );
    }
    assert_eq!(count(&desk, "select count(*) from audit where action = 'slot.answered'").await, 20);
    assert_eq!(count(&desk, "select count(*) from record_line where kind = 'answered'").await, 20);
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn deposit_expiry_and_stop_at_once_leave_one_outcome(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    for round in 0..30 {
        let new = NewSlot {
            name: Some(round.to_string()),
            expires_in: Some(Duration::seconds(1)),
            on_expiry: OnExpiry::Fail,
            ..asking("mia@layby.example")
        };
        let slot = desk.ask(&agent, new).await.unwrap();
        desk.clock.advance(Duration::seconds(2));
        let (deposit, expiry, stop) = tokio::join!(
            desk.answer(Who::Mia, slot.id, json!("yes")),
            engine::timer::due(&second),
            desk.stop(Who::Noor, slot.task_id, "enough"),
        );
        let expired = expiry.unwrap() == 1;
        match status(&desk, slot.id).await {
            Status::Answered => assert!(deposit.is_ok() && !expired),
            Status::Expired => assert!(deposit.is_err() && expired),
            Status::Cancelled => assert!(deposit.is_err() && !expired && stop.is_ok()),
            Status::Waiting => panic!("nobody closed the slot"),
        }
        let task: String = sqlx::query_scalar("select status from task where id = $1")
            .bind(slot.task_id.0)
            .fetch_one(&desk.engine.pool)
            .await
            .unwrap();
        let expected = if stop.is_ok() { "cancelled" } else { "failed" };
        assert_eq!(task, expected);
    }
    let told_twice = "select count(*) from (select object from audit where action in ('slot.answered', 'slot.expired', 'slot.cancelled') group by object having count(*) <> 1) twice";
    assert_eq!(count(&desk, told_twice).await, 0);
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_late_yes_after_a_stop_is_refused_with_when_and_why(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, asking("mia@layby.example")).await.unwrap();
    desk.stop(Who::Noor, slot.task_id, "The customer withdrew.").await.unwrap();
    let late = desk.answer(Who::Mia, slot.id, json!("yes")).await.unwrap_err();
    assert_eq!(late.code(), "cancelled");
    assert!(late.to_string().contains("The customer withdrew."), "{late}");
    assert_eq!(desk.stop(Who::Noor, slot.task_id, "again").await.unwrap_err().code(), "task_ended");
    let more = desk
        .ask(&agent, NewSlot { task_id: Some(slot.task_id), name: Some("more".into()), ..asking("mia@layby.example") })
        .await;
    assert_eq!(more.unwrap_err().code(), "task_ended");
}

#[sqlx::test(migrations = "../migrations")]
async fn asked_again_it_is_the_same_slot_and_its_name_is_for_one_question(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let first = desk.ask(&agent, asking("mia@layby.example")).await.unwrap();
    let again = NewSlot { task_id: Some(first.task_id), ..asking("mia@layby.example") };
    assert_eq!(desk.ask(&agent, again.clone()).await.unwrap().id, first.id);
    desk.answer(Who::Mia, first.id, json!("40")).await.unwrap();
    let stands = desk.ask(&agent, again).await.unwrap();
    assert_eq!((stands.id, stands.answer), (first.id, Some(json!("40"))));
    let other = NewSlot {
        task_id: Some(first.task_id),
        name: Some(first.name.clone()),
        ..NewSlot::question("Something else?")
    };
    assert_eq!(desk.ask(&agent, other).await.unwrap_err().code(), "name_in_use");

    // At once, from two connections: still one slot, and the task counts one.
    let new = NewSlot { task_id: Some(first.task_id), name: Some("race".into()), ..asking("mia@layby.example") };
    let both = tokio::join!(desk.ask(&agent, new.clone()), desk.ask(&agent, new));
    assert_eq!(both.0.unwrap().id, both.1.unwrap().id);
    assert_eq!(count(&desk, "select open_slots::bigint from task where open_slots > 0").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn with_two_slots_open_the_work_goes_on_after_the_last(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let first = desk.ask(&agent, asking("mia@layby.example")).await.unwrap();
    let second = NewSlot { task_id: Some(first.task_id), name: Some("second".into()), ..asking("mia@layby.example") };
    let second = desk.ask(&agent, second).await.unwrap();
    desk.answer(Who::Mia, second.id, json!("b")).await.unwrap();
    assert_eq!(count(&desk, "select count(*) from task where status = 'waiting' and open_slots = 1").await, 1);
    desk.answer(Who::Mia, first.id, json!("a")).await.unwrap();
    assert_eq!(count(&desk, "select count(*) from task where status = 'working' and open_slots = 0").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn expiry_is_the_systems_act_and_does_what_was_said(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = |name: &str, on_expiry, default_value| NewSlot {
        name: Some(name.to_owned()),
        expires_in: Some(Duration::hours(24)),
        on_expiry,
        default_value,
        ..asking("mia@layby.example")
    };
    let tell = desk.ask(&agent, new("tell", OnExpiry::Tell, None)).await.unwrap();
    let fail = desk.ask(&agent, new("fail", OnExpiry::Fail, None)).await.unwrap();
    let default = desk.ask(&agent, new("default", OnExpiry::Default, Some(json!("no refund")))).await.unwrap();
    desk.clock.advance(Duration::hours(24) - Duration::seconds(1));
    assert_eq!(engine::timer::due(&desk.engine).await.unwrap(), 0);
    desk.clock.advance(Duration::seconds(1));
    assert_eq!(engine::timer::due(&desk.engine).await.unwrap(), 3);
    for (slot, task, answer) in
        [(&tell, "working", None), (&fail, "failed", None), (&default, "working", Some(json!("no refund")))]
    {
        let slot = slot::get(&desk.engine, &desk.actor(Who::Noor).await, slot.id).await.unwrap();
        assert_eq!((slot.status, &slot.answer, slot.answered_by.as_ref()), (Status::Expired, &answer, None));
        let status: String = sqlx::query_scalar("select status from task where id = $1")
            .bind(slot.task_id.0)
            .fetch_one(&desk.engine.pool)
            .await
            .unwrap();
        assert_eq!(status, task, "{}", slot.name);
    }
    assert_eq!(desk.answer(Who::Mia, tell.id, json!("late")).await.unwrap_err().code(), "expired");
    assert_eq!(count(&desk, "select count(*) from audit where action = 'slot.expired' and actor = 'system'").await, 3);
}

#[sqlx::test(migrations = "../migrations")]
async fn what_cannot_be_asked_is_refused_when_it_is_asked(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let option = |value: Value| Choice { value, label: "x".to_owned() };
    let base = || asking("mia@layby.example");
    let cases: Vec<(NewSlot, &str)> = vec![
        (NewSlot { message: "  ".into(), ..base() }, "/message"),
        (NewSlot { ask: vec!["nobody@layby.example".into()], ..base() }, "/ask/0"),
        (NewSlot { ask: vec!["mia@layby.example".into(), "group:none".into()], ..base() }, "/ask/1"),
        (NewSlot { ask: vec!["role:emperor".into()], ..base() }, "/ask/0"),
        (NewSlot { options: vec![option(json!(1)), option(json!(1))], ..base() }, "/options/1/value"),
        (NewSlot { schema: Some(json!({ "type": "nonsense" })), ..base() }, "/schema"),
        (NewSlot { schema: Some(json!(true)), ..base() }, "/schema"),
        (NewSlot { schema: Some(json!({ "$ref": "https://example.com/schema" })), ..base() }, "/schema"),
        (NewSlot { schema: Some(json!({ "$ref": "file:///etc/passwd" })), ..base() }, "/schema"),
        (NewSlot { schema: Some(doubling()), ..base() }, "/schema"),
        (NewSlot { on_expiry: OnExpiry::Default, expires_in: Some(Duration::hours(1)), ..base() }, "/default"),
        (NewSlot { on_expiry: OnExpiry::Escalate, ..base() }, "/expires_in"),
        (NewSlot { default_value: Some(json!("x")), ..base() }, "/default"),
        (NewSlot { message: "nul \0".into(), ..base() }, "/message"),
    ];
    for (new, pointer) in cases {
        let refusal = desk.ask(&agent, new.clone()).await.unwrap_err();
        assert_eq!(refusal.errors().first().map(|error| error.pointer.as_str()), Some(pointer), "{new:?}: {refusal}");
    }
    assert_eq!(count(&desk, "select count(*) from task").await, 0);
    let others = desk.outside_agent("Other").await;
    let slot = desk.ask(&others, base()).await.unwrap();
    let widened = NewSlot { task_id: Some(slot.task_id), ..base() };
    assert_eq!(desk.ask(&agent, widened).await.unwrap_err().errors()[0].pointer, "/task_id");
}

#[sqlx::test(migrations = "../migrations")]
async fn the_inbox_has_the_most_urgent_first_and_each_question_once(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = |name: &str, priority, target: Option<i64>, ask: &[&str]| NewSlot {
        name: Some(name.to_owned()),
        priority,
        target: target.map(Duration::hours),
        ask: ask.iter().map(|&who| who.to_owned()).collect(),
        ..NewSlot::question(name)
    };
    let sam = ["sam@layby.example", "group:finance"];
    for slot in [
        new("old", Priority::Normal, None, &sam),
        new("due late", Priority::Normal, Some(9), &sam[..1]),
        new("due soon", Priority::Normal, Some(1), &sam[1..]),
        new("low", Priority::Low, Some(1), &sam),
        new("urgent", Priority::Urgent, None, &sam),
        new("not Sam's", Priority::Urgent, None, &["mia@layby.example"]),
    ] {
        desk.ask(&agent, slot).await.unwrap();
        desk.clock.advance(Duration::seconds(1));
    }
    let person = desk.person(Who::Sam).await;
    let inbox = slot::inbox(&desk.engine, &person).await.unwrap();
    let order: Vec<_> = inbox.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(order, ["urgent", "due soon", "due late", "old", "low"]);
    assert_eq!(slot::inbox::count(&desk.engine, &person).await.unwrap(), 5);
}

#[sqlx::test(migrations = "../migrations")]
async fn an_agent_reads_and_withdraws_its_own_questions_only(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let other = engine::Actor::Agent(desk.outside_agent("Other").await);
    let slot = desk.ask(&agent, asking("mia@layby.example")).await.unwrap();
    let agent = engine::Actor::Agent(agent);
    assert_eq!(slot::get(&desk.engine, &other, slot.id).await.unwrap_err().code(), "not_found");
    let all = slot::ListOfSlots { limit: 50, ..Default::default() };
    assert_eq!(slot::list(&desk.engine, &other, all.clone()).await.unwrap().len(), 0);
    assert_eq!(slot::list(&desk.engine, &agent, all).await.unwrap().len(), 1);
    let mut tx = desk.engine.single().await.unwrap();
    assert_eq!(slot::cancel(&mut tx, &other, slot.id, "x").await.unwrap_err().code(), "not_found");
    let mia = desk.actor(Who::Mia).await;
    assert_eq!(slot::cancel(&mut tx, &mia, slot.id, "x").await.unwrap_err().code(), "not_yours");
    slot::cancel(&mut tx, &agent, slot.id, "No longer needed.").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status(&desk, slot.id).await, Status::Cancelled);
}

#[sqlx::test(migrations = "../migrations")]
async fn whoever_may_only_see_is_told_who_may_answer(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, asking("mia@layby.example")).await.unwrap();
    assert_eq!(slot.kind, Kind::Question);
    match slot.standing(&desk.person(Who::Ada).await) {
        Standing::MayOnlySee(sentence) => assert!(sentence.contains("Mia Lindqvist"), "{sentence}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(slot.standing(&desk.person(Who::Sam).await), Standing::Hidden);
}

#[sqlx::test(migrations = "../migrations")]
async fn the_audit_cannot_be_changed_or_emptied(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    for sql in ["update audit set actor = 'x'", "delete from audit", "truncate audit"] {
        assert!(sqlx::query(sql).execute(&desk.engine.pool).await.is_err(), "{sql}");
    }
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
            slots.push(desk.ask(&agent, named(format!("{round}.{n}"), asking("mia@layby.example"))).await.unwrap());
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
