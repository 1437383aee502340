//! Clocks: targets, warnings, breaches, reminders, the ladder, expiry; on any number of instances, whatever happens to them
//! (design section 7).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use chrono::{DateTime, Duration, Utc};
use engine::{
    Actor, Engine, Refusal, Tx,
    agent::model::Reply,
    calendar::{self, CalendarForm, Owner},
    channel::{self, Channel, Notice},
    policy::{self, PolicyForm, Remind},
    settings,
    slot::{self, Moved, NewSlot, OnExpiry, Slot, Status},
    testing::{TestDesk, Who, named},
    timer,
};
use futures::future::BoxFuture;
use serde_json::json;
use sqlx::PgPool;

const NONE: Vec<Reply> = Vec::new();

fn asking() -> NewSlot {
    NewSlot { ask: vec!["mia@layby.example".to_owned()], ..NewSlot::question("Why?") }
}

async fn kinds(desk: &TestDesk, slot: &Slot) -> Vec<String> {
    slot::history(&desk.engine, slot).await.unwrap().into_iter().map(|line| line.kind).skip(2).collect()
}

async fn policy(desk: &TestDesk, form: PolicyForm) {
    policy::save(&desk.engine, &desk.person(Who::Ada).await, &form).await.unwrap();
}

#[sqlx::test(migrations = "../migrations")]
async fn a_target_warns_at_three_quarters_and_breaches_at_its_end_each_stamped_with_when_it_fell_due(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, NewSlot { target: Some(Duration::hours(4)), ..asking() }).await.unwrap();
    let start = desk.engine.clock.now();
    assert_eq!((slot.at_risk_at, slot.due_at), (Some(start + Duration::hours(3)), Some(start + Duration::hours(4))));
    desk.clock.advance(Duration::minutes(179));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 0);
    // After an outage of a day both fire at once, stamped with their own times.
    desk.clock.advance(Duration::days(1));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 2);
    let late = desk.slot(slot.id).await;
    assert_eq!((late.warned_at, late.breached_at), (slot.at_risk_at, slot.due_at));
    assert_eq!(kinds(&desk, &slot).await, ["at_risk", "breached"]);
    let stamps: Vec<(DateTime<Utc>, DateTime<Utc>)> =
        sqlx::query_as("select due_at, at from record_line where due_at is not null order by id")
            .fetch_all(&desk.engine.pool)
            .await
            .unwrap();
    assert_eq!(stamps[1], (start + Duration::hours(4), desk.engine.clock.now()), "when it was due, and when it ran");
    // The person asked was warned; the sponsor hears of the breach.
    let mias = channel::news(&desk.engine, &desk.person(Who::Mia).await).await.unwrap();
    assert_eq!(mias.iter().map(|news| news.kind.as_str()).collect::<Vec<_>>(), ["at_risk"]);
    assert!(mias[0].fresh && mias[0].waits);
    channel::seen(&desk.engine, &desk.person(Who::Mia).await).await.unwrap();
    assert!(!channel::news(&desk.engine, &desk.person(Who::Mia).await).await.unwrap()[0].fresh);
    assert_eq!(channel::news(&desk.engine, &desk.person(Who::Noor).await).await.unwrap()[0].kind, "breached");
}

#[sqlx::test(migrations = "../migrations")]
async fn reminders_come_after_then_every_at_most_and_end_with_the_answer(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let remind = Remind { after: Duration::hours(1), every: Some(Duration::hours(4)), most: 3 };
    let slot = desk.ask(&agent, NewSlot { remind: Some(remind), ..asking() }).await.unwrap();
    for (hours, count) in [(0, 0), (1, 1), (3, 1), (1, 2), (4, 3), (20, 3)] {
        desk.clock.advance(Duration::hours(hours));
        timer::due(&desk.engine).await.unwrap();
        assert_eq!(kinds(&desk, &slot).await.len(), count, "after {hours} hours more");
    }
    assert_eq!(desk.count("select count(*) from timer").await, 0);
    // An outage that missed two is caught up for with one.
    let slot = desk.ask(&agent, named("o", NewSlot { remind: Some(remind), ..asking() })).await.unwrap();
    desk.clock.advance(Duration::hours(10));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!(kinds(&desk, &slot).await.len(), 1);
    // Answered, nothing is due any more.
    desk.answer(Who::Mia, slot.id, json!("Because.")).await.unwrap();
    assert_eq!(desk.count("select count(*) from timer").await, 0);
    desk.clock.advance(Duration::days(9));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn the_most_specific_policy_decides_and_what_the_question_says_goes_before(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let form = |agent: &str, kind: &str, priority: &str, target: &str| PolicyForm {
        agent: agent.to_owned(),
        kind: kind.to_owned(),
        priority: priority.to_owned(),
        target: target.to_owned(),
        ..PolicyForm::default()
    };
    for form in [
        form("", "", "", "8h"),
        form("", "question", "", "7h"),
        form("Refunds", "", "", "6h"),
        form("Refunds", "", "urgent", "1h"),
    ] {
        policy(&desk, form).await;
    }
    let due = async |name: &str, new: NewSlot| {
        let slot = desk.ask(&agent, named(name, new)).await.unwrap();
        slot.due_at.unwrap() - slot.opened_at
    };
    assert_eq!(due("a", asking()).await, Duration::hours(6));
    assert_eq!(due("b", NewSlot { priority: slot::Priority::Urgent, ..asking() }).await, Duration::hours(1));
    assert_eq!(due("c", NewSlot { target: Some(Duration::minutes(5)), ..asking() }).await, Duration::minutes(5));
    let other = desk.outside_agent("Other").await;
    let slot = desk.ask(&other, named("d", asking())).await.unwrap();
    assert_eq!(slot.due_at.unwrap() - slot.opened_at, Duration::hours(7));
    // Only an administrator changes them, and what makes no sense is said per field.
    let refusal = policy::save(&desk.engine, &desk.person(Who::Noor).await, &form("", "", "", "8h")).await.unwrap_err();
    assert_eq!(refusal.code(), "forbidden");
    let ada = desk.person(Who::Ada).await;
    for (form, pointer) in [
        (form("", "", "", "soon"), "/target"),
        (form("", "", "", ""), "/target"),
        (form("Nobody", "", "", "1h"), "/agent"),
        (PolicyForm { at_risk_percent: "100".into(), ..form("", "", "", "1h") }, "/at_risk_percent"),
        (PolicyForm { remind_every: "1h".into(), ..form("", "", "", "1h") }, "/remind_after"),
    ] {
        let refusal = policy::save(&desk.engine, &ada, &form).await.unwrap_err();
        assert_eq!(refusal.errors()[0].pointer, pointer, "{form:?}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_change_of_settings_is_undone_and_done_again_but_never_over_a_later_one(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let ada = desk.person(Who::Ada).await;
    let form = |target: &str| PolicyForm { kind: "approval".into(), target: target.into(), ..PolicyForm::default() };
    let targets = async || {
        let settings = settings::settings(&desk.engine).await.unwrap();
        settings.policies.iter().map(|policy| policy.target.unwrap().num_hours()).collect::<Vec<_>>()
    };
    let undo = async |change| settings::undo(&desk.engine, &ada, change).await;
    let added = policy::save(&desk.engine, &ada, &form("60m")).await.unwrap();
    let changed = policy::save(&desk.engine, &ada, &form("2h")).await.unwrap();
    // The first was changed since.
    assert_eq!(undo(added).await.unwrap_err().code(), "invalid");
    let undone = undo(changed).await.unwrap();
    assert_eq!(targets().await, [1]);
    undo(undone).await.unwrap();
    assert_eq!(targets().await, [2]);
    let id = settings::settings(&desk.engine).await.unwrap().policies[0].id;
    let removed = policy::remove(&desk.engine, &ada, id).await.unwrap();
    assert_eq!(targets().await, [0; 0]);
    undo(removed).await.unwrap();
    assert_eq!(targets().await, [2]);
    let new = policy::save(&desk.engine, &ada, &PolicyForm { kind: "human".into(), ..form("5h") }).await.unwrap();
    undo(new).await.unwrap();
    assert_eq!(targets().await, [2]);

    let site = CalendarForm { zone: "Asia/Tokyo".into(), ..CalendarForm::default() };
    let save = async |owner| calendar::save(&desk.engine, &ada, owner, Some(&site.read().unwrap())).await.unwrap();
    let zone = async || settings::settings(&desk.engine).await.unwrap().site.zone.name();
    let before = zone().await;
    let moved = save(Owner::Site).await;
    assert_eq!(zone().await, "Asia/Tokyo");
    undo(moved).await.unwrap();
    assert_eq!(zone().await, before);
    // Another's change, somebody's own calendar, and what is no change of settings.
    let noor = desk.person(Who::Noor).await;
    assert_eq!(settings::undo(&desk.engine, &noor, new).await.unwrap_err().code(), "forbidden");
    let own = save(Owner::Person(ada.id())).await;
    assert_eq!(undo(own).await.unwrap_err().code(), "not_found");
    assert_eq!(undo(1).await.unwrap_err().code(), "not_found");
    assert_eq!(undo(i64::MAX).await.unwrap_err().code(), "not_found");
}

#[sqlx::test(migrations = "../migrations")]
async fn business_time_runs_by_the_sites_calendar_or_the_persons_own_and_both_clocks_are_kept(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    policy(&desk, PolicyForm { target: "4h".into(), business: true, ..PolicyForm::default() }).await;
    // The test's clock stands at Monday, 9:00 UTC.
    let week = ["9-18", "9-18", "9-18", "9-18", "9-18", "", ""].map(str::to_owned);
    let site = CalendarForm { zone: "UTC".into(), week: week.clone(), holidays: "2031-03-10 Site day".into() };
    let save = async |who: Who, owner: Owner, form: &CalendarForm| {
        calendar::save(&desk.engine, &desk.person(who).await, owner, Some(&form.read().unwrap())).await
    };
    assert_eq!(save(Who::Noor, Owner::Site, &site).await.unwrap_err().code(), "forbidden");
    save(Who::Ada, Owner::Site, &site).await.unwrap();
    desk.clock.advance(Duration::days(4) + Duration::minutes(7 * 60 + 40)); // Friday 16:40
    let slot = desk.ask(&agent, asking()).await.unwrap();
    // Monday is a holiday, so Tuesday 11:40.
    assert_eq!(slot.due_at.unwrap().to_rfc3339(), "2031-03-11T11:40:00+00:00");
    let own = CalendarForm {
        zone: "UTC".into(),
        week: ["", "", "", "", "16-18", "9-12", ""].map(str::to_owned),
        holidays: String::new(),
    };
    assert_eq!(save(Who::Noor, Owner::Person(desk.id(Who::Mia)), &own).await.unwrap_err().code(), "not_found");
    save(Who::Mia, Owner::Person(desk.id(Who::Mia)), &own).await.unwrap();
    let saturday = desk.ask(&agent, named("s", asking())).await.unwrap();
    assert_eq!(saturday.due_at.unwrap().to_rfc3339(), "2031-03-08T11:40:00+00:00");
    desk.clock.advance(Duration::days(1));
    desk.answer(Who::Mia, saturday.id, json!("Because.")).await.unwrap();
    let answered = desk.slot(saturday.id).await;
    assert_eq!(answered.waited_business, Some(Duration::minutes(80 + 180).num_seconds()));
    assert_eq!(answered.waited(desk.engine.clock.now()), Duration::days(1));
    // The receipt says how long people were waited for.
    let task = engine::task::get(&desk.engine, &desk.person(Who::Noor).await, saturday.task_id).await.unwrap();
    assert_eq!(task.waited, Duration::days(1));
}

#[sqlx::test(migrations = "../migrations")]
async fn late_questions_go_up_the_ladder_to_the_sponsor_and_then_to_the_managers(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    policy(
        &desk,
        PolicyForm { target: "1h".into(), escalate_after: "2h".into(), reassign: true, ..PolicyForm::default() },
    )
    .await;
    let slot = desk.ask(&agent, asking()).await.unwrap();
    desk.clock.advance(Duration::hours(1));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!(desk.slot(slot.id).await.asked, ["noor@layby.example"]);
    assert_eq!(desk.answer(Who::Mia, slot.id, json!("late")).await.unwrap_err().code(), "not_found");
    desk.clock.advance(Duration::hours(2));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!(desk.slot(slot.id).await.asked, ["role:manager"]);
    assert_eq!(kinds(&desk, &slot).await, ["at_risk", "breached", "escalated", "escalated", "escalated"]);
    assert_eq!(desk.count("select count(*) from timer").await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_moved_due_date_needs_a_reason_is_recorded_and_takes_what_is_pending_with_it(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = NewSlot { target: Some(Duration::hours(4)), expires_in: Some(Duration::hours(8)), ..asking() };
    let slot = desk.ask(&agent, new).await.unwrap();
    let now = desk.engine.clock.now();
    let moved = async |actor: Actor, to: Moved, reason: &str| {
        let mut tx = desk.engine.begin().await.unwrap();
        let done = slot::move_due(&mut tx, &actor, slot.id, to, reason).await;
        if done.is_ok() {
            tx.commit().await.unwrap();
        }
        done
    };
    let (mia, noor, sam) = (desk.actor(Who::Mia).await, desk.actor(Who::Noor).await, desk.actor(Who::Sam).await);
    let later = Moved::Due(now + Duration::hours(40));
    assert_eq!(moved(sam, later, "x").await.unwrap_err().code(), "not_found");
    assert_eq!(moved(mia, later, "x").await.unwrap_err().code(), "not_yours");
    assert_eq!(moved(noor.clone(), later, " ").await.unwrap_err().errors()[0].pointer, "/reason");
    assert_eq!(moved(noor.clone(), Moved::Due(now), "x").await.unwrap_err().errors()[0].pointer, "/due_at");
    moved(noor, later, "The customer is away.").await.unwrap();
    moved(Actor::Agent(agent), Moved::Expires(now + Duration::hours(80)), "So are we.").await.unwrap();
    desk.clock.advance(Duration::hours(20));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 0, "nothing of the old times fires");
    desk.clock.advance(Duration::hours(30));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 2);
    let late = desk.slot(slot.id).await;
    assert_eq!((late.warned_at, late.breached_at), (Some(now + Duration::hours(30)), Some(now + Duration::hours(40))));
    desk.clock.advance(Duration::hours(30));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!(desk.slot(slot.id).await.status, Status::Expired);
    assert_eq!(kinds(&desk, &slot).await, ["due_moved", "due_moved", "at_risk", "breached", "expired"]);
}

#[sqlx::test(migrations = "../migrations")]
async fn deposit_against_expiry_and_stop_on_two_instances_thousands_of_times_one_wins(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    let rounds = 40;
    let (mut answered, mut expired, mut stopped) = (0, 0, 0);
    for round in 0..rounds {
        let mut slots = Vec::new();
        for n in 0..50 {
            let new = NewSlot { expires_in: Some(Duration::seconds(1)), ..asking() };
            slots.push(desk.ask(&agent, named(format!("{round}.{n}"), new)).await.unwrap());
        }
        desk.clock.advance(Duration::seconds(2));
        let mia = desk.actor(Who::Mia).await;
        let noor = desk.person(Who::Noor).await;
        let answers = async {
            for (n, slot) in slots.iter().enumerate() {
                if n % 5 == 4 {
                    let mut tx = desk.engine.begin().await.unwrap();
                    engine::task::stop(&mut tx, &noor, slot.task_id, "Enough.").await.unwrap();
                    tx.commit().await.unwrap();
                    continue;
                }
                let mut tx = desk.engine.single().await.unwrap();
                let done = slot::deposit(&mut tx, &mia, slot.id, Some(1), json!("yes"), None).await;
                tx.commit().await.unwrap();
                let code = done.map(|_| "ok").unwrap_or_else(|refusal| refusal.code());
                let status = desk.slot(slot.id).await.status;
                assert!(
                    matches!((code, status), ("ok", Status::Answered) | ("expired", Status::Expired)),
                    "{code} {status:?}"
                );
            }
        };
        // The schedulers begin from both ends of a round at once.
        let (_, one, two) = tokio::join!(answers, timer::due(&desk.engine), timer::due(&second));
        one.unwrap();
        two.unwrap();
        for slot in slots {
            match desk.slot(slot.id).await.status {
                Status::Answered => answered += 1,
                Status::Expired => expired += 1,
                Status::Cancelled => stopped += 1,
                Status::Waiting => panic!("nobody ended it"),
            }
        }
    }
    assert_eq!(answered + expired + stopped, rounds * 50);
    assert!(answered > 0 && expired > 0, "{answered} {expired} {stopped}");
    let twice = "select count(*) from (select object from audit where action in ('slot.answered', 'slot.expired', 'slot.cancelled') group by object having count(*) <> 1) twice";
    assert_eq!(desk.count(twice).await, 0);
    assert_eq!(desk.count("select count(*) from timer").await, 0);
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_burst_is_worked_off_by_all_instances_each_timer_once(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    for n in 0..60 {
        let remind = Remind { after: Duration::hours(1), every: None, most: 1 };
        desk.ask(&agent, named(n, NewSlot { remind: Some(remind), ..asking() })).await.unwrap();
    }
    // Two thousand more than one batch, of the same questions.
    sqlx::query("insert into timer (slot_id, kind, due_at, run_at) select slot_id, kind, due_at, run_at from timer, generate_series(1, 40)")
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    let due = desk.count("select count(*) from timer").await;
    desk.clock.advance(Duration::hours(2));
    let (one, two) = tokio::join!(timer::due(&desk.engine), timer::due(&second));
    assert_eq!(one.unwrap() + two.unwrap(), due as usize);
    assert_eq!(desk.count("select count(*) from record_line where kind = 'reminded'").await, due);
    assert_eq!(desk.count("select count(*) from outbox where type = 'slot.reminded'").await, due);
    assert_eq!(desk.count("select count(*) from notification").await, due);
    assert_eq!(desk.count("select count(*) from timer").await, 0);
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn however_postgres_plans_it_every_expiry_that_is_claimed_is_carried_out(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    // The plan that runs the claiming subquery once for each row of the table.
    let mut options = (*desk.engine.pool.connect_options()).clone();
    options = options.options([
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_hashagg", "off"),
        ("enable_indexscan", "off"),
        ("enable_bitmapscan", "off"),
        ("enable_sort", "off"),
        ("enable_material", "off"),
    ]);
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
    let engine = Engine { pool: pool.clone(), ..desk.engine.clone() };
    for n in 0..30 {
        desk.ask(&agent, named(n, NewSlot { expires_in: Some(Duration::hours(1)), ..asking() })).await.unwrap();
    }
    desk.clock.advance(Duration::hours(2));
    assert_eq!(timer::due(&engine).await.unwrap(), 30);
    assert_eq!(desk.count("select count(*) from slot where status = 'expired'").await, 30);
    pool.close().await;
}

/// Fails for one slot while it is told to.
struct Broken {
    slot: engine::ids::SlotId,
    broken: AtomicBool,
    delivered: AtomicUsize,
}

impl Channel for Broken {
    fn deliver<'a>(&'a self, _: &'a mut Tx, notices: &'a [Notice]) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            if self.broken.load(Ordering::SeqCst) && notices.iter().any(|notice| notice.slot == self.slot) {
                return Err(Refusal::Fault("the channel is down".into()));
            }
            self.delivered.fetch_add(notices.len(), Ordering::SeqCst);
            Ok(())
        })
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_timer_that_fails_holds_up_no_other_is_tried_again_and_then_shown_to_an_administrator(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let mut slots = Vec::new();
    for n in 0..5 {
        slots.push(desk.ask(&agent, named(n, NewSlot { target: Some(Duration::hours(1)), ..asking() })).await.unwrap());
    }
    let broken = Arc::new(Broken { slot: slots[2].id, broken: AtomicBool::new(true), delivered: AtomicUsize::new(0) });
    let engine = Engine { channel: broken.clone(), ..desk.engine.clone() };
    desk.clock.advance(Duration::minutes(50));
    assert_eq!(timer::due(&engine).await.unwrap(), 4, "the others fired");
    assert_eq!(broken.delivered.load(Ordering::SeqCst), 4);
    let ada = desk.person(Who::Ada).await;
    for _ in 0..20 {
        assert!(timer::failed::failed(&engine, &ada).await.unwrap().len() <= 2);
        desk.clock.advance(Duration::minutes(20));
        timer::due(&engine).await.unwrap();
    }
    let failed = timer::failed::failed(&engine, &ada).await.unwrap();
    assert_eq!(failed.iter().filter(|timer| timer.kind == "at_risk").count(), 1, "{failed:?}");
    assert!(failed[0].problem.contains("the channel is down"), "{failed:?}");
    assert_eq!(timer::failed::failed(&engine, &desk.person(Who::Noor).await).await.unwrap_err().code(), "forbidden");
    // Mended, and tried again by the administrator.
    broken.broken.store(false, Ordering::SeqCst);
    for timer in &failed {
        timer::failed::retry(&engine, &ada, timer.id).await.unwrap();
    }
    timer::due(&engine).await.unwrap();
    assert!(desk.slot(slots[2].id).await.warned_at.is_some());
    assert_eq!(desk.count("select count(*) from timer").await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_clock_that_jumps_an_hour_loses_nothing_and_does_nothing_twice(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = NewSlot {
        target: Some(Duration::minutes(90)),
        remind: Some(Remind { after: Duration::minutes(30), every: Some(Duration::minutes(30)), most: 3 }),
        expires_in: Some(Duration::hours(3)),
        on_expiry: OnExpiry::Tell,
        ..asking()
    };
    let slot = desk.ask(&agent, new).await.unwrap();
    for minutes in [40, 60, -60, 60, -30, 90, 30, -60, 90] {
        desk.clock.advance(Duration::minutes(minutes));
        timer::due(&desk.engine).await.unwrap();
    }
    let mut told = kinds(&desk, &slot).await;
    told.sort();
    assert_eq!(told, ["at_risk", "breached", "expired", "reminded", "reminded", "reminded"]);
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
        slots.push(desk.ask(&agent, named(n, asking())).await.unwrap());
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
    let slot = desk.ask(&agent, NewSlot { target: Some(Duration::hours(1)), ..asking() }).await.unwrap();
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
    let slot = desk.ask(&agent, NewSlot { remind: Some(remind), ..asking() }).await.unwrap();
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
