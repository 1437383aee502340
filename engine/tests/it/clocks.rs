//! Clocks: targets, warnings, breaches, reminders, the ladder, expiry; on any number of instances, whatever happens to them
//! (design section 7).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use chrono::{DateTime, Duration, NaiveDate, Utc};
use engine::{
    Actor, Engine, Refusal, Tx,
    agent::model::Reply,
    calendar::{self, CalendarForm, Owner},
    channel::{self, Channel, Notice},
    policy::{self, PolicyForm, Remind},
    settings,
    slot::{self, Moved, NewSlot, OnExpiry, Slot, Status},
    testing::{TestDesk, Who, approve, named, refund},
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
    // After an outage both fire at once, stamped with their own times.
    desk.clock.advance(Duration::hours(4));
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
    channel::seen(&desk.engine, &desk.person(Who::Mia).await, mias[0].id).await.unwrap();
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
    // The next comes when it would have come anyway: at the hours 1, 5, 9 and 13.
    let next: DateTime<Utc> =
        sqlx::query_scalar("select due_at from timer").fetch_one(&desk.engine.pool).await.unwrap();
    assert_eq!(next, slot.opened_at + Duration::hours(13));
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

    let week = ["9-18", "", "", "", "", "", ""].map(str::to_owned);
    let site = CalendarForm { zone: "Asia/Tokyo".into(), week, ..CalendarForm::default() };
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
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 3);
    let late = desk.slot(slot.id).await;
    assert_eq!((late.warned_at, late.breached_at), (Some(now + Duration::hours(30)), Some(now + Duration::hours(40))));
    desk.clock.advance(Duration::hours(30));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!(desk.slot(slot.id).await.status, Status::Expired);
    assert_eq!(kinds(&desk, &slot).await, ["due_moved", "due_moved", "at_risk", "breached", "escalated", "expired"]);
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
    let failed = async || timer::failed::failed(&engine, &ada).await.unwrap();
    // A short trouble is nobody's business.
    assert_eq!(failed().await.1, 0);
    for _ in 0..3 {
        desk.clock.advance(Duration::minutes(1));
        timer::due(&engine).await.unwrap();
    }
    let (shown, how_many) = failed().await;
    assert!(shown[0].problem.contains("the channel is down"), "{shown:?}");
    assert!((shown.len() as i64, shown[0].kind.as_str()) == (how_many, "at_risk"), "{shown:?}");
    assert!(shown[0].next_at.is_some_and(|at| at > desk.engine.clock.now()), "it is tried again by itself: {shown:?}");
    assert_eq!(timer::failed::failed(&engine, &desk.person(Who::Noor).await).await.unwrap_err().code(), "forbidden");
    // What is down for most of a day comes back by itself, at most an hour late; then it is given up.
    for (hours, given_up) in [(18, false), (12, true)] {
        for _ in 0..hours {
            desk.clock.advance(Duration::minutes(61));
            timer::due(&engine).await.unwrap();
        }
        assert_eq!(failed().await.0.iter().any(|timer| timer.next_at.is_none()), given_up, "after {hours} hours");
    }
    // Mended, and tried again by the administrator: one, and then all.
    broken.broken.store(false, Ordering::SeqCst);
    let (shown, how_many) = failed().await;
    assert_eq!(how_many, 2, "{shown:?}");
    timer::failed::retry(&engine, &ada, Some(shown[1].id)).await.unwrap();
    assert_eq!(failed().await.1, 1);
    timer::failed::retry(&engine, &ada, None).await.unwrap();
    assert_eq!(timer::failed::retry(&engine, &ada, None).await.unwrap_err().code(), "not_found");
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
    assert_eq!(told, ["at_risk", "breached", "escalated", "expired", "reminded", "reminded", "reminded"]);
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

#[sqlx::test(migrations = "../migrations")]
async fn on_breach_the_sponsor_hears_first_then_the_managers_and_a_sponsor_who_was_asked_is_passed_over(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    // Without a policy: the managers as long after the breach again as the answer might take.
    let slot = desk.ask(&agent, NewSlot { target: Some(Duration::hours(4)), ..asking() }).await.unwrap();
    let noors = NewSlot { ask: vec!["noor@layby.example".to_owned()], target: Some(Duration::hours(4)), ..asking() };
    let noors = desk.ask(&agent, named("n", noors)).await.unwrap();
    desk.clock.advance(Duration::hours(4));
    timer::due(&desk.engine).await.unwrap();
    let told = async |slot: &Slot| {
        let text = "select string_agg(text, ' ' order by id) from record_line where slot_id = $1 and kind in ('breached', 'escalated')";
        sqlx::query_scalar::<_, String>(text).bind(slot.id.0).fetch_one(&desk.engine.pool).await.unwrap()
    };
    assert_eq!(told(&slot).await, "The due date passed without an answer. Noor Haddad, the sponsor, was told.");
    assert_eq!(told(&noors).await, "The due date passed without an answer. The managers were told.");
    desk.clock.advance(Duration::hours(4));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 1, "the managers hear of the first, and once of the second");
    assert!(told(&slot).await.ends_with("Still without an answer after the due date. The managers were told."));
    // One breach is one event, however many are told of it.
    assert_eq!(desk.count("select count(*) from outbox where type = 'slot.breached'").await, 2);
}

#[sqlx::test(migrations = "../migrations")]
async fn news_is_told_once_to_those_who_can_still_act_and_what_comes_while_they_read_stays_new(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let remind = Remind { after: Duration::hours(1), every: Some(Duration::hours(1)), most: 9 };
    let ask = ["mia@layby.example", "sam@layby.example", "noor@layby.example", "role:manager"];
    let slot = desk.ask(&agent, NewSlot { remind: Some(remind), ..refund(&ask, 2) }).await.unwrap();
    desk.clock.advance(Duration::hours(1));
    timer::due(&desk.engine).await.unwrap();
    let news = async |who| channel::news(&desk.engine, &desk.person(who).await).await.unwrap();
    assert_eq!(news(Who::Noor).await.len(), 1, "as herself and as a manager: once");
    let seen = news(Who::Mia).await;
    // Somebody has had their say, somebody wants none: the reminders of both are gone, and no more come.
    desk.decide(Who::Sam, slot.id, slot.revision, approve()).await.unwrap();
    desk.decline(Who::Noor, slot.id).await.unwrap();
    desk.clock.advance(Duration::hours(1));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!((news(Who::Sam).await.len(), news(Who::Noor).await.len()), (0, 0));
    assert_eq!(desk.count("select count(*) from notification where kind = 'reminded'").await, 4 + 2);
    channel::seen(&desk.engine, &desk.person(Who::Mia).await, seen[0].id).await.unwrap();
    let fresh: Vec<bool> = news(Who::Mia).await.into_iter().map(|news| news.fresh).collect();
    assert_eq!(fresh, [true, false], "the second came while she read the first");
}

#[sqlx::test(migrations = "../migrations")]
async fn whoever_a_question_climbs_to_hears_of_it_and_expiry_tells_the_time_that_held(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = NewSlot { expires_in: Some(Duration::hours(1)), on_expiry: OnExpiry::Escalate, ..asking() };
    desk.ask(&agent, new).await.unwrap();
    desk.clock.advance(Duration::hours(1));
    timer::due(&desk.engine).await.unwrap();
    let noors = channel::news(&desk.engine, &desk.person(Who::Noor).await).await.unwrap();
    assert_eq!(noors.iter().map(|news| news.kind.as_str()).collect::<Vec<_>>(), ["escalated"]);

    let slot =
        desk.ask(&agent, named("m", NewSlot { expires_in: Some(Duration::hours(1)), ..asking() })).await.unwrap();
    let mut tx = desk.engine.begin().await.unwrap();
    let noor = desk.actor(Who::Noor).await;
    let later = Moved::Expires(slot.opened_at + Duration::hours(5));
    slot::move_due(&mut tx, &noor, slot.id, later, "They are at sea.").await.unwrap();
    tx.commit().await.unwrap();
    // Found only after an outage: the deadline counts, not when somebody noticed.
    desk.clock.advance(Duration::hours(50));
    timer::due(&desk.engine).await.unwrap();
    let lines = slot::history(&desk.engine, &slot).await.unwrap();
    assert_eq!(lines.last().unwrap().text, "Nobody answered within 5 hours.");
}

#[sqlx::test(migrations = "../migrations")]
async fn a_reminder_does_not_wait_for_an_expiry_whose_task_is_held_and_questions_without_timers_get_them(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let held = desk.ask(&agent, NewSlot { expires_in: Some(Duration::hours(1)), ..asking() }).await.unwrap();
    let remind = Remind { after: Duration::hours(1), every: None, most: 1 };
    let reminded = desk.ask(&agent, named("r", NewSlot { remind: Some(remind), ..asking() })).await.unwrap();
    // As an older version asks: it knows of no timers.
    let new = NewSlot { expires_in: Some(Duration::hours(2)), target: Some(Duration::hours(1)), ..asking() };
    let old = desk.ask(&agent, named("o", new)).await.unwrap();
    sqlx::query("delete from timer where slot_id = $1").bind(old.id.0).execute(&desk.engine.pool).await.unwrap();
    let mut holder = desk.engine.pool.begin().await.unwrap();
    sqlx::query("select from task where id = $1 for update").bind(held.task_id.0).execute(&mut *holder).await.unwrap();
    desk.clock.advance(Duration::hours(3));
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let scheduler = tokio::spawn(timer::run(desk.engine.clone(), stopping));
    let until = async |what: &str, met: &dyn Fn(Vec<String>, Status, Status) -> bool| {
        for _ in 0..200 {
            let told = kinds(&desk, &reminded).await;
            if met(told, desk.slot(held.id).await.status, desk.slot(old.id).await.status) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{what}");
    };
    until("the reminder fires", &|told, held, _| told == ["reminded"] && held == Status::Waiting).await;
    holder.rollback().await.unwrap();
    until("both expire", &|_, held, old| (held, old) == (Status::Expired, Status::Expired)).await;
    assert!(desk.slot(old.id).await.breached_at.is_some());
    stop.send(true).unwrap();
    scheduler.await.unwrap();
}

#[sqlx::test(migrations = "../migrations")]
async fn an_expiry_does_not_overtake_the_breach_that_somebody_else_is_firing(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let new = NewSlot { expires_in: Some(Duration::hours(2)), target: Some(Duration::hours(1)), ..asking() };
    let slot = desk.ask(&agent, new).await.unwrap();
    let mut other = desk.engine.pool.begin().await.unwrap();
    let held = "select from timer where slot_id = $1 and kind = 'breach' for update";
    sqlx::query(held).bind(slot.id.0).execute(&mut *other).await.unwrap();
    desk.clock.advance(Duration::hours(3));
    timer::due(&desk.engine).await.unwrap();
    assert_eq!(desk.slot(slot.id).await.status, Status::Waiting);
    other.rollback().await.unwrap();
    timer::due(&desk.engine).await.unwrap();
    let ended = desk.slot(slot.id).await;
    assert_eq!((ended.status, ended.breached_at), (Status::Expired, Some(slot.opened_at + Duration::hours(1))));
}

#[sqlx::test(migrations = "../migrations")]
async fn work_waits_since_its_first_open_question_not_since_its_latest(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let first = desk.ask(&agent, asking()).await.unwrap();
    desk.clock.advance(Duration::hours(1));
    let second = NewSlot { task_id: Some(first.task_id), ..named("second", asking()) };
    desk.ask(&agent, second).await.unwrap();
    desk.clock.advance(Duration::hours(1));
    desk.answer(Who::Mia, first.id, json!("Because.")).await.unwrap();
    let noor = desk.person(Who::Noor).await;
    let task = async || engine::task::get(&desk.engine, &noor, first.task_id).await.unwrap();
    assert_eq!(task().await.waiting_since, Some(first.opened_at));
    assert_eq!(task().await.waited, Duration::zero());
}

#[test]
fn a_calendar_that_makes_no_sense_is_refused_in_a_sentence() {
    let week = ["9-18", "", "", "", "", "", ""].map(str::to_owned);
    let form = |change: &dyn Fn(&mut CalendarForm)| {
        let mut form = CalendarForm { zone: "UTC".into(), week: week.clone(), holidays: String::new() };
        change(&mut form);
        form.read().map(|_| ()).map_err(|errors| errors.into_iter().map(|error| error.pointer).collect::<Vec<_>>())
    };
    assert!(form(&|_| {}).is_ok());
    for (pointer, change) in [
        ("/zone", &(|form: &mut CalendarForm| form.zone = "Mars/Olympus".into()) as &dyn Fn(&mut CalendarForm)),
        ("/week/0", &|form| form.week = Default::default()),
        ("/week/0", &|form| form.week[0] = "9-65535".into()),
        ("/week/0", &|form| form.week[0] = "1093:0-12".into()),
        ("/week/1", &|form| form.week[1] = "22-6".into()),
        ("/holidays", &|form| form.holidays = "12-32 Nothing".into()),
        ("/holidays", &|form| form.holidays = "9999-12-24 Too late".into()),
        ("/holidays", &|form| form.holidays = (0..1_001).map(|n| format!("{}-01-01\n", 1950 + n)).collect()),
        ("/holidays", &|form| form.holidays = "nonsense\n".repeat(50_000)),
    ] {
        assert_eq!(form(change), Err(vec![pointer.to_owned()]));
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn where_the_calendar_never_comes_so_far_the_plain_clock_counts(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    policy(
        &desk,
        PolicyForm { target: "4h".into(), remind_after: "1h".into(), business: true, ..PolicyForm::default() },
    )
    .await;
    // Every Monday has hours, and every day is a holiday.
    let days = NaiveDate::from_ymd_opt(2000, 1, 1).unwrap().iter_days().take(366);
    let holidays = days.map(|day| day.format("%m-%d\n").to_string()).collect();
    let form = CalendarForm { zone: "UTC".into(), week: ["9-18", "", "", "", "", "", ""].map(str::to_owned), holidays };
    calendar::save(&desk.engine, &desk.person(Who::Ada).await, Owner::Site, Some(&form.read().unwrap())).await.unwrap();
    let slot = desk.ask(&agent, asking()).await.unwrap();
    assert_eq!(slot.due_at, Some(slot.opened_at + Duration::hours(4)));
    desk.clock.advance(Duration::hours(1));
    assert_eq!(timer::due(&desk.engine).await.unwrap(), 1);
}
