//! Every kind of slot against every refusal, and how each kind is answered (design section 4).

use chrono::Duration;
use engine::{
    Refusal,
    agent::model::Reply,
    file,
    ids::SlotId,
    slot::{self, Action, Choice, Kind, NewSlot, OnExpiry, Slot, Status},
    testing::{TestDesk, Who, approve, named, refund, reject},
};
use serde_json::{Value, json};
use sqlx::PgPool;

const NONE: Vec<Reply> = Vec::new();
const MIA: &str = "mia@layby.example";

/// A way to ask, an answer that fits, and answers that do not, with where they are wrong.
struct Case {
    name: &'static str,
    new: NewSlot,
    fits: Value,
    wrong: Vec<(Value, &'static str)>,
    /// Who is asked; a takeover is a supervisor's.
    who: Who,
    /// Somebody who may see it, but not answer it.
    sees: Who,
}

fn asked(new: NewSlot, who: &str) -> NewSlot {
    NewSlot { ask: vec![who.to_owned()], ..new }
}

fn schema(schema: Value) -> NewSlot {
    NewSlot { schema: Some(schema), ..NewSlot::question("What is it?") }
}

fn cases() -> Vec<Case> {
    let case = |name, new, fits, wrong| Case { name, new: asked(new, MIA), fits, wrong, who: Who::Mia, sees: Who::Ada };
    let action = Action {
        tool: "scale".to_owned(),
        arguments: json!({ "unit": "kg" }).as_object().cloned().unwrap(),
        editable: Vec::new(),
        schema: None,
    };
    let tool = NewSlot {
        kind: Kind::ClientTool,
        action: Some(action),
        ..schema(json!({ "type": "object", "required": ["weight"], "properties": { "weight": { "type": "number" } } }))
    };
    let options = NewSlot {
        options: vec![
            Choice { value: json!("replace"), label: "Replace it".into() },
            Choice { value: json!(2), label: "Pay it back".into() },
        ],
        ..NewSlot::question("Which?")
    };
    let form = json!({
        "type": "object",
        "required": ["amount", "address"],
        "additionalProperties": false,
        "properties": {
            "amount": { "type": "integer", "minimum": 1, "maximum": 9 },
            "on": { "type": "string", "format": "date" },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 1 },
            "address": { "type": "object", "required": ["city"], "properties": { "city": { "type": "string", "minLength": 2 } } },
        },
    });
    let good = json!({ "amount": 3, "on": "2031-03-04", "tags": ["a"], "address": { "city": "Ulm" } });
    let without = |pointer: &str, value: Value| {
        let mut form = good.clone();
        *form.pointer_mut(pointer).unwrap() = value;
        form
    };
    vec![
        case(
            "words",
            NewSlot::question("Why?"),
            json!("Because."),
            vec![(json!(1), ""), (json!("  "), ""), (json!("a\0"), "")],
        ),
        case(
            "number",
            schema(json!({ "type": "number", "exclusiveMinimum": 0 })),
            json!(1.5),
            vec![(json!(0), ""), (json!("1"), "")],
        ),
        case(
            "date",
            schema(json!({ "type": "string", "format": "date" })),
            json!("2031-02-28"),
            vec![(json!("2031-02-30"), ""), (json!("tomorrow"), "")],
        ),
        case("one of", options, json!(2), vec![(json!("2"), ""), (json!("other"), "")]),
        case(
            "several of",
            schema(json!({ "type": "array", "items": { "enum": [1, 2, 3] }, "minItems": 2, "uniqueItems": true })),
            json!([1, 3]),
            vec![(json!([1]), ""), (json!([1, 1]), ""), (json!([1, 9]), "/1")],
        ),
        case(
            "form",
            schema(form),
            good.clone(),
            vec![
                (without("/amount", json!(10)), "/amount"),
                (without("/on", json!("soon")), "/on"),
                (without("/tags", json!(["a", "b"])), "/tags"),
                (without("/address/city", json!("U")), "/address/city"),
                (json!({ "amount": 3 }), "/address"),
                (json!({ "amount": 3, "address": { "city": "Ulm" }, "more": 1 }), ""),
            ],
        ),
        case(
            "secret",
            NewSlot { secret: true, ..NewSlot::question("The password?") },
            json!("hunter2"),
            vec![(json!(""), ""), (json!({}), "")],
        ),
        case(
            "approval",
            refund(&[], 1),
            approve(),
            vec![
                (json!("yes"), ""),
                (json!({ "decision": "maybe" }), "/decision"),
                (reject(" "), "/reason"),
                (json!({ "decision": "approve", "reason": "x" }), "/reason"),
                (json!({ "decision": "approve", "arguments": { "order": "A-18", "amount": 40 } }), "/arguments"),
                (
                    json!({ "decision": "approve", "arguments": { "order": "A-17", "amount": "40" } }),
                    "/arguments/amount",
                ),
                (json!({ "decision": "approve", "arguments": { "order": "A-17" } }), "/arguments/amount"),
            ],
        ),
        case(
            "client tool",
            tool,
            json!({ "weight": 1 }),
            vec![(json!({}), "/weight"), (json!({ "weight": "1" }), "/weight")],
        ),
        Case {
            name: "takeover",
            new: asked(NewSlot { kind: Kind::Human, ..NewSlot::question("Please take this over.") }, "role:manager"),
            fits: json!({ "result": "I called them." }),
            wrong: vec![
                (json!("done"), ""),
                (json!({ "result": "" }), "/result"),
                (json!({ "messages": [] }), "/messages"),
                (json!({ "messages": ["a", " "] }), "/messages"),
                (json!({ "result": "x", "messages": ["y"] }), ""),
            ],
            who: Who::Noor,
            sees: Who::Ada, // may answer on behalf: administrators take work over too
        },
    ]
}

fn code<T>(result: Result<T, Refusal>) -> String {
    result.map(|_| "accepted").unwrap_or_else(|refusal| refusal.code()).to_owned()
}

async fn ask(desk: &TestDesk, agent: &engine::actor::AgentActor, case: &Case, name: &str) -> Slot {
    let new = NewSlot { name: Some(name.to_owned()), ..case.new.clone() };
    desk.ask(agent, new).await.unwrap_or_else(|refusal| panic!("{}: {refusal}: {:?}", case.name, refusal.errors()))
}

#[sqlx::test(migrations = "../migrations")]
async fn every_kind_refuses_in_every_way_and_takes_what_fits_once(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    for case in cases() {
        let name = case.name;
        let slot = ask(&desk, &agent, &case, "first").await;
        let give = async |who, id, revision, value: &Value| code(desk.decide(who, id, revision, value.clone()).await);

        // Nobody who is not asked learns that it exists; who may only see it is told so; the agent never answers.
        assert_eq!(give(Who::Sam, slot.id, 1, &case.fits).await, "not_found", "{name}");
        assert_eq!(give(case.who, SlotId(uuid::Uuid::nil()), 1, &case.fits).await, "not_found", "{name}");
        if slot.kind != Kind::Human {
            assert_eq!(give(case.sees, slot.id, 1, &case.fits).await, "not_yours", "{name}");
        }
        let by_agent = engine::Actor::Agent(agent.clone());
        let mut tx = desk.engine.single().await.unwrap();
        assert_eq!(
            code(slot::deposit(&mut tx, &by_agent, slot.id, Some(1), case.fits.clone(), None).await),
            "not_yours"
        );
        drop(tx);

        // What does not fit is said where it is wrong; what was seen must be what is asked.
        for (wrong, pointer) in &case.wrong {
            let refusal = desk.decide(case.who, slot.id, 1, wrong.clone()).await.unwrap_err();
            assert_eq!(refusal.code(), "invalid_answer", "{name}: {wrong}");
            let pointers: Vec<_> = refusal.errors().iter().map(|error| error.pointer.as_str()).collect();
            assert!(pointers.contains(pointer), "{name}: {wrong}: {pointers:?}");
            assert!(
                refusal.errors().iter().all(|error| error.detail.ends_with('.') || error.detail.ends_with(')')),
                "{refusal:?}"
            );
        }
        assert_eq!(give(case.who, slot.id, 7, &case.fits).await, "stale", "{name}");
        if slot.kind == Kind::Approval {
            let refusal = desk.answer(case.who, slot.id, case.fits.clone()).await.unwrap_err();
            assert_eq!((refusal.code(), refusal.errors()[0].pointer.as_str()), ("invalid", "/revision"));
        }
        assert_eq!(desk.slot(slot.id).await.status, Status::Waiting, "{name}");

        assert_eq!(give(case.who, slot.id, 1, &case.fits).await, "accepted", "{name}");
        let answered = desk.slot(slot.id).await;
        assert_eq!(answered.status, Status::Answered, "{name}");
        assert_eq!(answered.answer.is_none(), slot.secret, "{name}");
        assert_eq!(give(case.who, slot.id, 1, &case.fits).await, "already_answered", "{name}");

        // The other two ends, each told as what it is.
        let cancelled = ask(&desk, &agent, &case, "cancelled").await;
        let mut tx = desk.engine.begin().await.unwrap();
        slot::cancel(&mut tx, &by_agent, cancelled.id, "It is settled.").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(give(case.who, cancelled.id, 1, &case.fits).await, "cancelled", "{name}");
        let new = NewSlot { expires_in: Some(Duration::hours(1)), ..case.new.clone() };
        let expired = ask(&desk, &agent, &Case { new, ..case }, "expired").await;
        desk.clock.advance(Duration::hours(2));
        assert_eq!(engine::timer::due(&desk.engine).await.unwrap(), 1, "{name}");
        assert_eq!(give(case.who, expired.id, 1, &json!("x")).await, "expired", "{name}");
        assert_eq!(desk.slot(expired.id).await.answered_by, None, "an expiry is nobody's act: {name}");
    }
    // Every slot has one end, and record, audit and events tell the same.
    let ended = "select count(*) from slot where status <> 'waiting'";
    for told in [
        "select count(*) from audit where action in ('slot.answered', 'slot.cancelled', 'slot.expired')",
        "select count(*) from record_line where kind in ('answered', 'cancelled', 'expired')",
        "select count(*) from outbox where type in ('slot.answered', 'slot.cancelled', 'slot.expired')",
    ] {
        assert_eq!(desk.count(told).await, desk.count(ended).await, "{told}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn what_does_not_belong_to_a_kind_is_refused_when_asked(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let base = || asked(NewSlot::question("Why?"), MIA);
    let action = |arguments: Value, editable: &[&str]| {
        let mut new = refund(&[MIA], 1);
        let action = new.action.as_mut().unwrap();
        action.arguments = arguments.as_object().cloned().unwrap();
        action.editable = editable.iter().map(|&pointer| pointer.to_owned()).collect();
        new
    };
    let hour = Some(Duration::hours(1));
    let no = Some(json!({ "decision": "reject", "reason": "x" }));
    for (new, pointer) in [
        (NewSlot { kind: Kind::SignIn, ..base() }, "/kind"),
        (NewSlot { kind: Kind::Approval, ..base() }, "/action"),
        (NewSlot { kind: Kind::ClientTool, ..base() }, "/action"),
        (NewSlot { action: refund(&[], 1).action, ..base() }, "/action"),
        (NewSlot { needs: 2, ..base() }, "/needs"),
        (refund(&[MIA], 0), "/needs"),
        (refund(&[MIA], 21), "/needs"),
        (NewSlot { secret: true, ..refund(&[MIA], 1) }, "/secret"),
        (NewSlot { secret: true, schema: Some(json!({ "type": "string" })), ..base() }, "/secret"),
        (
            NewSlot {
                secret: true,
                on_expiry: OnExpiry::Default,
                expires_in: hour,
                default_value: Some(json!("x")),
                ..base()
            },
            "/on_expiry",
        ),
        (
            NewSlot { on_expiry: OnExpiry::Default, expires_in: hour, default_value: no, ..refund(&[MIA], 1) },
            "/on_expiry",
        ),
        (NewSlot { schema: Some(json!({ "type": "string" })), ..refund(&[MIA], 1) }, "/schema"),
        (action(json!({ "amount": 1 }), &["/other"]), "/action/editable/0"),
        (action(json!({ "amount": 1 }), &[""]), "/action/editable/0"),
        (action(json!({ "id": 9007199254740993_u64 }), &[]), "/action/arguments"),
    ] {
        let refusal = desk.ask(&agent, new.clone()).await.unwrap_err();
        assert!(refusal.errors().iter().any(|error| error.pointer == pointer), "{new:?}: {refusal:?}");
    }
    assert_eq!(desk.count("select count(*) from task").await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_question_that_nobody_answers_climbs_the_ladder_with_a_new_deadline_each_time(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = NewSlot {
        expires_in: Some(Duration::hours(4)),
        on_expiry: OnExpiry::Escalate,
        ..asked(NewSlot::question("Why?"), MIA)
    };
    let slot = desk.ask(&agent, new).await.unwrap();
    desk.clock.advance(Duration::hours(5));
    desk.settle().await;
    let sponsor = desk.slot(slot.id).await;
    assert_eq!((sponsor.status, sponsor.asked), (Status::Waiting, vec!["noor@layby.example".to_owned()]));
    assert_eq!(sponsor.expires_at, Some(desk.engine.clock.now() + Duration::hours(4)));
    assert_eq!(desk.answer(Who::Mia, slot.id, json!("late")).await.unwrap_err().code(), "not_found");
    assert_eq!((desk.inbox(Who::Mia).await, desk.inbox(Who::Noor).await), (0, 1));
    desk.clock.advance(Duration::hours(4));
    desk.settle().await;
    assert_eq!(desk.slot(slot.id).await.asked, vec!["role:manager".to_owned()]);
    desk.clock.advance(Duration::hours(4));
    desk.settle().await;
    let end = desk.slot(slot.id).await;
    assert_eq!((end.status, end.answered_by), (Status::Expired, None));
    assert_eq!(desk.count("select count(*) from record_line where kind = 'escalated'").await, 2);
    assert_eq!(desk.count("select count(*) from outbox where type = 'slot.reassigned'").await, 2);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_secret_handed_in_as_its_work_ends_is_wiped_all_the_same(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    let (mia, noor) = (desk.actor(Who::Mia).await, desk.person(Who::Noor).await);
    for round in 0..40 {
        let slot = desk
            .ask(
                &agent,
                named(round, NewSlot { secret: true, ..asked(NewSlot::question("Why?"), "mia@layby.example") }),
            )
            .await
            .unwrap();
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
        let slot = desk
            .ask(&agent, named(round, NewSlot { schema, ..asked(NewSlot::question("Why?"), "mia@layby.example") }))
            .await
            .unwrap();
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
    let number = |who: &str| NewSlot {
        schema: Some(json!({ "type": "object", "required": ["pin"] })),
        ..asked(NewSlot::question("Why?"), who)
    };
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
