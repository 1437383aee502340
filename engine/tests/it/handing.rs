//! Handing over: reassigning, declining, being on it, absence and cover, and the alarm when nobody can answer.

use chrono::Duration;
use engine::{
    Actor,
    agent::{self, NewAgent, model::Reply},
    person::{self, away::AwayForm},
    slot::{self, Kind, NewSlot, OnExpiry, Standing, Status},
    testing::{TestDesk, Who, approve, named, refund},
};
use serde_json::json;
use sqlx::PgPool;

const NONE: Vec<Reply> = Vec::new();

fn asking(who: &[&str]) -> NewSlot {
    NewSlot { ask: who.iter().map(|&who| who.to_owned()).collect(), ..NewSlot::question("Why?") }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_question_goes_from_hand_to_hand_and_only_its_holder_answers(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, asking(&["mia@layby.example"])).await.unwrap();
    assert_eq!(desk.reassign(Who::Sam, slot.id, "sam@layby.example").await.unwrap_err().code(), "not_found");
    assert_eq!(desk.reassign(Who::Ada, slot.id, "sam@layby.example").await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.reassign(Who::Mia, slot.id, "nobody@x.example").await.unwrap_err().errors()[0].pointer, "/to");
    assert_eq!(desk.reassign(Who::Mia, slot.id, "mia@layby.example").await.unwrap_err().errors()[0].pointer, "/to");
    desk.reassign(Who::Mia, slot.id, "sam@layby.example").await.unwrap();
    assert_eq!((desk.inbox(Who::Mia).await, desk.inbox(Who::Sam).await), (0, 1));
    assert_eq!(desk.answer(Who::Mia, slot.id, json!("mine?")).await.unwrap_err().code(), "not_found");
    desk.reassign(Who::Noor, slot.id, "group:finance").await.unwrap();
    assert!(!desk.answer(Who::Sam, slot.id, json!("Because.")).await.unwrap().on_behalf);
    assert_eq!(desk.reassign(Who::Noor, slot.id, "mia@layby.example").await.unwrap_err().code(), "already_answered");
    let lines = slot::history(&desk.engine, &slot).await.unwrap();
    let kinds: Vec<_> = lines.iter().map(|line| line.kind.as_str()).collect();
    assert_eq!(kinds, ["started", "asked", "reassigned", "reassigned", "answered"]);
}

#[sqlx::test(migrations = "../migrations")]
async fn who_declines_is_asked_no_more_and_somebody_always_is(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    // Sam declines a group's question: it stays with the others of the group, out of Sam's sight.
    let group = desk.ask(&agent, asking(&["group:finance"])).await.unwrap();
    desk.decline(Who::Sam, group.id).await.unwrap();
    assert_eq!(desk.inbox(Who::Sam).await, 0);
    assert_eq!(desk.answer(Who::Sam, group.id, json!("after all")).await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.inbox(Who::Noor).await, 1);
    assert!(!desk.answer(Who::Noor, group.id, json!("Because.")).await.unwrap().on_behalf);

    // The only one asked declines: the sponsor, then the managers, then nobody is left and the decline is refused.
    let mias = desk.ask(&agent, NewSlot { name: Some("m".into()), ..asking(&["mia@layby.example"]) }).await.unwrap();
    desk.decline(Who::Mia, mias.id).await.unwrap();
    assert_eq!(desk.slot(mias.id).await.asked, vec!["noor@layby.example".to_owned()]);
    assert_eq!(desk.decline(Who::Noor, mias.id).await.unwrap_err().code(), "forbidden");
    assert_eq!(desk.decline(Who::Mia, mias.id).await.unwrap_err().code(), "not_found");
    // Asked anew, who declined may answer.
    desk.reassign(Who::Noor, mias.id, "mia@layby.example").await.unwrap();
    assert!(desk.answer(Who::Mia, mias.id, json!("Because.")).await.is_ok());
}

#[sqlx::test(migrations = "../migrations")]
async fn being_on_it_is_shown_to_others_ends_by_itself_and_keeps_nobody_from_answering(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, asking(&["group:finance"])).await.unwrap();
    let take = async |who| {
        let actor = desk.actor(who).await;
        let mut tx = desk.engine.begin().await.unwrap();
        let taken = slot::take(&mut tx, &actor, slot.id).await;
        tx.commit().await.unwrap();
        taken
    };
    assert_eq!(take(Who::Mia).await.unwrap_err().code(), "not_found");
    take(Who::Sam).await.unwrap();
    assert_eq!(take(Who::Noor).await.unwrap_err().code(), "taken");
    let now = desk.engine.clock.now();
    assert_eq!(desk.slot(slot.id).await.taken_at(now).unwrap().name, "Sam Okafor");
    let line = slot::inbox(&desk.engine, &desk.person(Who::Noor).await).await.unwrap().remove(0);
    assert_eq!(line.taken_by.as_deref(), Some("Sam Okafor"));
    desk.clock.advance(slot::on_it::HOLDS);
    assert_eq!(desk.slot(slot.id).await.taken_at(desk.engine.clock.now()), None);
    take(Who::Noor).await.unwrap();
    assert!(desk.answer(Who::Sam, slot.id, json!("Because.")).await.is_ok());
    assert_eq!(take(Who::Noor).await.unwrap_err().code(), "already_answered");
}

#[sqlx::test(migrations = "../migrations")]
async fn a_cover_answers_on_behalf_of_who_is_away_and_only_meanwhile(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let before = desk.ask(&agent, asking(&["mia@layby.example"])).await.unwrap();
    let form = |from: &str, until: &str, cover: &str| AwayForm {
        from: from.to_owned(),
        until: until.to_owned(),
        cover: cover.to_owned(),
    };
    let mia = desk.person(Who::Mia).await;
    for (form, pointer) in [
        (form("soon", "", "sam@layby.example"), "/from"),
        (form("2031-03-05", "2031-03-04", "sam@layby.example"), "/until"),
        (form("2031-03-04", "", "mia@layby.example"), "/cover"),
        (form("2031-03-04", "", ""), "/cover"),
        (form("2031-02-01", "2031-02-02", "sam@layby.example"), "/until"),
    ] {
        let refusal = person::away::go_away(&desk.engine, &mia, &form).await.unwrap_err();
        assert_eq!(refusal.errors()[0].pointer, pointer, "{form:?}");
    }
    person::away::go_away(&desk.engine, &mia, &form("2031-03-04", "2031-03-05", "sam@layby.example")).await.unwrap();
    assert_eq!(desk.inbox(Who::Sam).await, 0, "it is only Monday");
    assert_eq!(desk.answer(Who::Sam, before.id, json!("x")).await.unwrap_err().code(), "not_found");
    desk.clock.advance(Duration::days(1));
    desk.settle().await;
    let during = desk.ask(&agent, NewSlot { name: Some("d".into()), ..asking(&["mia@layby.example"]) }).await.unwrap();
    assert_eq!((desk.inbox(Who::Sam).await, desk.inbox(Who::Mia).await), (2, 2));
    assert!(desk.answer(Who::Sam, before.id, json!("Because.")).await.unwrap().on_behalf);
    let answered = desk.slot(before.id).await;
    assert_eq!(
        (answered.answered_by.as_deref(), answered.on_behalf_of.as_deref()),
        (Some("Sam Okafor"), Some("Mia Lindqvist"))
    );
    desk.clock.advance(Duration::days(2));
    desk.settle().await;
    assert_eq!(desk.inbox(Who::Sam).await, 0, "Mia is back");
    assert_eq!(desk.answer(Who::Sam, during.id, json!("x")).await.unwrap_err().code(), "not_found");
    assert_eq!(person::away::away(&desk.engine, mia.id()).await.unwrap(), None);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_cover_and_who_they_cover_have_one_vote_between_them(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let away = AwayForm { from: "2031-03-03".into(), until: "2031-03-05".into(), cover: "sam@layby.example".into() };
    person::away::go_away(&desk.engine, &desk.person(Who::Mia).await, &away).await.unwrap();
    desk.settle().await;
    let asked = ["mia@layby.example", "noor@layby.example"];
    let first = desk.ask(&agent, refund(&asked, 2)).await.unwrap();
    assert_eq!(first.alarm, None);
    // Mia votes although she is away: her seat is used, so her cover has no say.
    desk.decide(Who::Mia, first.id, 1, approve()).await.unwrap();
    assert_eq!(desk.inbox(Who::Sam).await, 0);
    assert_eq!(desk.decide(Who::Sam, first.id, 1, approve()).await.unwrap_err().code(), "not_yours");
    desk.decide(Who::Noor, first.id, 1, approve()).await.unwrap();
    assert_eq!(desk.slot(first.id).await.status, Status::Answered);
    // The other way round.
    let second = desk.ask(&agent, named("second", refund(&asked, 2))).await.unwrap();
    desk.decide(Who::Sam, second.id, 1, approve()).await.unwrap();
    assert_eq!(desk.inbox(Who::Mia).await, 0);
    assert_eq!(desk.decide(Who::Mia, second.id, 1, approve()).await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.decide(Who::Sam, second.id, 1, approve()).await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.slot(second.id).await.votes[0].covers, Some(desk.id(Who::Mia)));
    // A manager has a say of their own; but not for whoever had theirs.
    let away = AwayForm { cover: "noor@layby.example".into(), ..away };
    person::away::go_away(&desk.engine, &desk.person(Who::Mia).await, &away).await.unwrap();
    let own = desk.ask(&agent, named("own", refund(&["mia@layby.example", "sam@layby.example"], 2))).await.unwrap();
    desk.decide(Who::Mia, own.id, 1, approve()).await.unwrap();
    desk.decide(Who::Noor, own.id, 1, approve()).await.unwrap();
    assert_eq!(desk.slot(own.id).await.on_behalf_of, None);
    // Mia and her cover are not two.
    let third = desk.ask(&agent, named("third", refund(&["mia@layby.example"], 2))).await.unwrap();
    assert!(third.alarm.as_deref().unwrap().contains("only 1"), "{:?}", third.alarm);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_question_whose_people_vanish_without_a_word_is_found_and_raises_the_alarm(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let group = desk.ask(&agent, asking(&["group:finance"])).await.unwrap();
    let two = desk.ask(&agent, named("two", refund(&["group:finance"], 2))).await.unwrap();
    let one = desk.ask(&agent, named("one", asking(&["mia@layby.example"]))).await.unwrap();
    assert_eq!(slot::sweep_alarms(&desk.engine).await.unwrap(), 0, "all are there");
    sqlx::query("delete from group_member where person_id = $1")
        .bind(desk.id(Who::Sam).0)
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(slot::sweep_alarms(&desk.engine).await.unwrap(), 1, "one of the group is enough, unless two are needed");
    assert!(desk.slot(two.id).await.alarm.is_some());
    sqlx::query("delete from group_member").execute(&desk.engine.pool).await.unwrap();
    assert_eq!(slot::sweep_alarms(&desk.engine).await.unwrap(), 1);
    assert!(desk.slot(group.id).await.alarm.is_some());
    assert_eq!(desk.slot(one.id).await.alarm, None);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_question_that_nobody_can_answer_says_so_to_the_sponsor_and_the_managers_at_once(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let disable = async |email: &str| {
        let mut tx = desk.engine.begin().await.unwrap();
        person::disable(&mut tx, "system", email).await.unwrap();
        tx.commit().await.unwrap();
    };
    // Asked while they were there, then disabled: the waiting question finds somebody at once.
    let waiting = desk.ask(&agent, asking(&["mia@layby.example"])).await.unwrap();
    assert_eq!(waiting.alarm, None);
    disable("mia@layby.example").await;
    let found = desk.slot(waiting.id).await;
    assert!(found.alarm.as_deref().unwrap().contains("cannot answer"), "{:?}", found.alarm);
    assert_eq!(desk.inbox(Who::Noor).await, 1);
    // Asked when nobody is there any more, or of an empty group: the same.
    let late = desk.ask(&agent, NewSlot { name: Some("late".into()), ..asking(&["mia@layby.example"]) }).await.unwrap();
    assert!(late.alarm.is_some());
    sqlx::query("insert into people_group (id, name) values (gen_random_uuid(), 'empty')")
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    let empty = desk.ask(&agent, NewSlot { name: Some("empty".into()), ..asking(&["group:empty"]) }).await.unwrap();
    assert!(empty.alarm.is_some());
    assert_eq!(desk.inbox(Who::Noor).await, 3);
    assert!(desk.answer(Who::Noor, empty.id, json!("I can.")).await.is_ok());
    // An approval that needs more than there are says how many can.
    let few =
        desk.ask(&agent, NewSlot { name: Some("few".into()), ..refund(&["sam@layby.example"], 2) }).await.unwrap();
    assert!(few.alarm.as_deref().unwrap().contains("only 1"), "{:?}", few.alarm);
    desk.decide(Who::Sam, few.id, 1, approve()).await.unwrap();
    desk.decide(Who::Noor, few.id, 1, approve()).await.unwrap();
    assert_eq!(desk.slot(few.id).await.status, Status::Answered);
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
