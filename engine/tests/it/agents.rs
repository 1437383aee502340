use chrono::Duration;
use engine::{
    agent::{self, model::Models},
    slot::Status as SlotStatus,
    task::Status,
    testing::{TestDesk, Who, asks, calls, hands_back, says},
};
use serde_json::json;
use sqlx::PgPool;

async fn results(desk: &TestDesk) -> Vec<serde_json::Value> {
    sqlx::query_scalar("select body from turn where kind = 'result' order by seq")
        .fetch_all(&desk.engine.pool)
        .await
        .unwrap()
}

#[sqlx::test(migrations = "../migrations")]
async fn a_month_passes_nothing_runs_and_the_model_was_called_once(pool: PgPool) {
    let desk =
        TestDesk::new(pool, vec![asks("True the wheel, or replace it?"), hands_back("Replace the wheel.")]).await;
    // Not part of a process, whose wait has a deadline of its own.
    let claim = desk.file_claim(Who::Mia, "").await;
    sqlx::query("update process set within_seconds = 86400 * 365").execute(&desk.engine.pool).await.unwrap();
    desk.settle().await;
    let task = desk.task_of(claim).await;
    assert_eq!((task.status, task.waiting_on.as_deref()), (Status::Waiting, Some("an answer from Mia Lindqvist")));

    desk.clock.advance(Duration::days(30));
    desk.settle().await;
    assert_eq!(desk.script.times_asked(), 1);
    let idle: i64 = sqlx::query_scalar("select count(*) from task where leased_by is not null or ready_at is not null")
        .fetch_one(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(idle, 0, "nothing holds a wait");

    let slot = desk.waiting(claim).await.remove(0);
    desk.answer(Who::Mia, slot.id, json!("Replace it. The rim is cracked too.")).await.unwrap();
    desk.settle().await;
    let task = desk.task_of(claim).await;
    assert_eq!((task.status, task.model_calls, task.questions), (Status::Done, 2, 1));
    assert_eq!(task.result.unwrap()["summary"], "Replace the wheel.");
    assert!(desk.record(task.id).await.contains(&"Mia Lindqvist answered after 30 days.".to_owned()));
    // The answer is the result of the very call that asked.
    let turns: Vec<(String, Option<String>)> =
        sqlx::query_as("select kind, call_id from turn order by seq").fetch_all(&desk.engine.pool).await.unwrap();
    let turns: Vec<_> = turns.iter().map(|(kind, call)| (kind.as_str(), call.as_deref())).collect();
    assert_eq!(turns, [("instruction", None), ("reply", None), ("result", Some("2.1")), ("reply", None)]);
    assert_eq!(results(&desk).await[0]["answer"], "Replace it. The rim is cracked too.");
    assert_eq!(results(&desk).await[0]["said"], "Mia Lindqvist answered after 30 days.");
}

#[sqlx::test(migrations = "../migrations")]
async fn an_answer_may_raise_another_question(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("What was it for?"), asks("Who came?"), hands_back("Fine.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    for answer in ["Dinner", "Two clients"] {
        let slot = desk.waiting(claim).await.remove(0);
        desk.answer(Who::Mia, slot.id, json!(answer)).await.unwrap();
        desk.settle().await;
    }
    let task = desk.task_of(claim).await;
    assert_eq!((task.status, task.questions, task.model_calls), (Status::Done, 2, 3));
}

#[sqlx::test(migrations = "../migrations")]
async fn an_agent_that_keeps_nothing_is_refused_when_it_asks(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("What was it for?"), hands_back("Without an answer.")]).await;
    sqlx::query("update agent set memory = 'none'").execute(&desk.engine.pool).await.unwrap();
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    assert_eq!(desk.task_of(claim).await.status, Status::Done);
    let told = results(&desk).await[0]["error"].as_str().unwrap().to_owned();
    assert!(told.contains("memory = \"persistent\""), "{told}");
    let slots: i64 = sqlx::query_scalar("select count(*) from slot").fetch_one(&desk.engine.pool).await.unwrap();
    assert_eq!(slots, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn past_the_most_questions_the_model_is_told_and_finishes_without(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("One?"), asks("Two?"), hands_back("Enough.")]).await;
    sqlx::query("update agent set most = 1").execute(&desk.engine.pool).await.unwrap();
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    desk.answer(Who::Mia, slot.id, json!("1")).await.unwrap();
    desk.settle().await;
    assert_eq!(desk.task_of(claim).await.status, Status::Done);
    assert!(results(&desk).await[1]["error"].as_str().unwrap().contains("Finish without asking more"));
}

#[sqlx::test(migrations = "../migrations")]
async fn stuck_work_asks_one_person_once_and_then_fails(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![says("An hour, I think.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    assert!(slot.message.contains("is stuck"), "{}", slot.message);
    assert_eq!(desk.script.times_asked(), 2);
    desk.answer(Who::Mia, slot.id, json!("Hand the result back.")).await.unwrap();
    desk.settle().await;
    let task = desk.task_of(claim).await;
    assert_eq!((task.status, task.questions), (Status::Failed, 1));
    let advice: i64 = sqlx::query_scalar(
        "select count(*) from turn where kind = 'advice' and body->>'answer' = 'Hand the result back.'",
    )
    .fetch_one(&desk.engine.pool)
    .await
    .unwrap();
    assert_eq!(advice, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_limit_of_turns_or_money_stops_the_work(pool: PgPool) {
    let reply = engine::agent::model::Reply { cost_micros: 60_000, ..calls("read_claim", json!({})) };
    let desk = TestDesk::new(pool, vec![reply]).await;
    sqlx::query("update agent set max_turns = 3").execute(&desk.engine.pool).await.unwrap();
    let turns = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let task = desk.task_of(turns).await;
    assert_eq!((task.status, task.model_calls), (Status::Stopped, 3));
    sqlx::query("update agent set max_turns = 20, budget_micros = 100000").execute(&desk.engine.pool).await.unwrap();
    let money = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let task = desk.task_of(money).await;
    assert_eq!((task.status, task.model_calls, task.cost.micros), (Status::Stopped, 2, 120_000));
    assert_eq!(task.problem.as_deref(), Some("The budget was used up."));
}

#[sqlx::test(migrations = "../migrations")]
async fn two_questions_of_one_turn_with_the_same_id_are_two_slots_and_both_are_needed(pool: PgPool) {
    let mut both = asks("One?");
    both.calls.extend(asks("Two?").calls); // the model says "call_1" twice
    let desk = TestDesk::new(pool, vec![both, hands_back("Fine.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let slots = desk.waiting(claim).await;
    assert_eq!(slots.len(), 2);
    desk.answer(Who::Mia, slots[0].id, json!("2")).await.unwrap();
    desk.settle().await;
    assert_eq!(desk.task_of(claim).await.status, Status::Waiting);
    desk.answer(Who::Mia, slots[1].id, json!("1")).await.unwrap();
    desk.settle().await;
    assert_eq!(desk.task_of(claim).await.status, Status::Done);
    let calls: Vec<String> = sqlx::query_scalar("select call_id from turn where kind = 'result' order by call_id")
        .fetch_all(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(calls, ["2.1", "2.2"]);
}

/// A model during whose call the task is stopped.
#[derive(Clone)]
struct StoppedMeanwhile(std::sync::Arc<tokio::sync::Notify>, std::sync::Arc<tokio::sync::Notify>);

impl agent::model::Model for StoppedMeanwhile {
    fn answer<'a>(
        &'a self,
        _: agent::model::Request<'a>,
    ) -> futures::future::BoxFuture<'a, Result<agent::model::Reply, agent::model::ModelError>> {
        Box::pin(async move {
            self.0.notify_one();
            self.1.notified().await;
            Ok(hands_back("Too late."))
        })
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_reply_that_arrives_after_the_stop_writes_nothing(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let (called, answer) =
        (std::sync::Arc::new(tokio::sync::Notify::new()), std::sync::Arc::new(tokio::sync::Notify::new()));
    let models = Models::only(StoppedMeanwhile(called.clone(), answer.clone()));
    let claim = desk.file_claim(Who::Mia, "").await;
    let task = desk.task_of(claim).await;
    let stopping = async {
        called.notified().await;
        desk.stop(Who::Mia, task.id, "I filed it by mistake.").await.unwrap();
        answer.notify_one();
    };
    let (worked, ()) = tokio::join!(agent::work::run_until_quiet(&desk.engine, &models), stopping);
    worked.unwrap();
    let task = desk.task_of(claim).await;
    assert_eq!((task.status, task.model_calls, task.result), (Status::Cancelled, 0, None));
    let turns: i64 = sqlx::query_scalar("select count(*) from turn").fetch_one(&desk.engine.pool).await.unwrap();
    assert_eq!(turns, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn work_of_a_dead_instance_is_taken_over_and_the_old_owner_writes_nothing(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![hands_back("By the second.")]).await;
    let (called, answer) =
        (std::sync::Arc::new(tokio::sync::Notify::new()), std::sync::Arc::new(tokio::sync::Notify::new()));
    let hung = Models::only(StoppedMeanwhile(called.clone(), answer.clone()));
    let claim = desk.file_claim(Who::Mia, "").await;
    let takeover = async {
        called.notified().await;
        desk.settle().await;
        assert_eq!(desk.task_of(claim).await.model_calls, 0, "a living lease is respected");
        desk.clock.advance(Duration::seconds(10));
        desk.settle().await;
        assert_eq!(desk.task_of(claim).await.status, Status::Done);
        answer.notify_one();
    };
    let (worked, ()) = tokio::join!(agent::work::run_until_quiet(&desk.engine, &hung), takeover);
    worked.unwrap();
    let task = desk.task_of(claim).await;
    assert_eq!((task.model_calls, task.result.unwrap()["summary"].as_str()), (1, Some("By the second.")));
}

#[sqlx::test(migrations = "../migrations")]
async fn the_work_goes_on_at_either_instance(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![asks("Why?"), hands_back("Fine.")]).await;
    let second = desk.second_instance().await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    desk.answer(Who::Mia, slot.id, json!("Because.")).await.unwrap();
    agent::work::run_until_quiet(&second, &desk.models).await.unwrap();
    assert_eq!(desk.task_of(claim).await.status, Status::Done);
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_wake_up_that_never_arrives_delays_the_work_and_loses_nothing(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![hands_back("Fine.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await; // announced before anybody listens
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let receipt = desk.engine.wakes.subscribe([engine::wake::Topic::Claim(claim)]);
    let running = tokio::spawn(agent::work::run(desk.engine.clone(), desk.models.clone(), stopped));
    while desk.task_of(claim).await.status != Status::Done {
        receipt.woken().await;
    }
    stop.send(true).unwrap();
    running.await.unwrap();
    assert!(desk.waiting(claim).await.is_empty());
    let _ = SlotStatus::Waiting;
}
