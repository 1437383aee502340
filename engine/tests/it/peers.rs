//! Faults that users of other systems met (`peers`), each one that ours must never meet.

use engine::{
    slot::{self, NewSlot},
    task::Status,
    testing::{TestDesk, Who, asks, hands_back},
};
use serde_json::json;
use sqlx::PgPool;

#[sqlx::test(migrations = "../migrations")]
async fn an_old_answer_never_answers_a_later_question(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("First?"), asks("Second?"), hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let first = desk.waiting(claim).await.remove(0);
    desk.answer(Who::Mia, first.id, json!("one")).await.unwrap();
    desk.settle().await;
    // The first answer, sent again (a double click, a retried request), is told so and touches nothing else.
    let again = desk.answer(Who::Mia, first.id, json!("one")).await.unwrap_err();
    assert_eq!(again.code(), "already_answered");
    let second = desk.waiting(claim).await.remove(0);
    assert_eq!((second.message.as_str(), second.answer), ("Second?", None));
    assert_eq!(desk.task_of(claim).await.status, Status::Waiting);
}

#[sqlx::test(migrations = "../migrations")]
async fn no_answer_can_come_before_the_wait_exists(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let agent = desk.outside_agent("Refunds").await;
    // Asking and parking are one: whoever can read the slot finds its task parked.
    let slot =
        desk.ask(&agent, NewSlot { ask: vec!["mia@layby.example".into()], ..NewSlot::question("Yes?") }).await.unwrap();
    let parked: bool = sqlx::query_scalar("select status = 'waiting' and open_slots = 1 from task where id = $1")
        .bind(slot.task_id.0)
        .fetch_one(&desk.engine.pool)
        .await
        .unwrap();
    assert!(parked);
}

#[sqlx::test(migrations = "../migrations")]
async fn an_answered_slot_never_leaves_its_run_stuck(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("Why?"), hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    desk.answer(Who::Mia, slot.id, json!("Because.")).await.unwrap();
    // The deposit itself made the work ready; no second act is needed for any instance to find it.
    let ready: i64 = sqlx::query_scalar("select count(*) from task where status = 'working' and ready_at is not null")
        .fetch_one(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(ready, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_time_out_is_never_recorded_as_a_persons_no(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("Why?"), hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    desk.clock.advance(chrono::Duration::days(3));
    desk.settle().await;
    let slot = slot::list::of_claim(&desk.engine, claim).await.unwrap().remove(0);
    assert_eq!((slot.status, slot.answer, slot.answered_by), (slot::Status::Expired, None, None));
}

#[sqlx::test(migrations = "../migrations")]
async fn what_waits_can_always_be_found(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("Why?")]).await;
    desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let manager = desk.person(Who::Noor).await;
    let filter = engine::task::TaskFilter { status: Some(Status::Waiting), before: None, limit: 50 };
    let waiting = engine::task::list(&desk.engine, &manager, filter).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].waiting_on.as_deref(), Some("an answer from Mia Lindqvist"));
}
