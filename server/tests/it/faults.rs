//! The program dies at a commit boundary, starts again, and nothing is lost or done twice.

use std::{process::Stdio, sync::Arc, time::Duration};

use engine::{
    Actor, Engine, Tx,
    agent::token::{self, TokenOwner},
    claim::{self, ClaimForm},
    clock::DatabaseClock,
    ids::SlotId,
    seal::Keyring,
    testing::{TestDesk, Who},
};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgPool};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

const SCRIPT: &str = r#"[
    {"calls": [{"id": "c", "name": "ask_person", "arguments": {"question": "What was it for?"}}]},
    {"calls": [{"id": "c", "name": "hand_back", "arguments": {"verdict": "approve", "summary": "Fine."}}]}
]"#;

struct Program {
    child: Child,
    url: String,
}

/// Starts the real program over the database; None when it died before it listened.
async fn start(pool: &PgPool, folder: &std::path::Path, fault: Option<&str>) -> Option<Program> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_layby"));
    command
        .arg("serve")
        .env("DATABASE_URL", pool.connect_options().to_url_lossy().as_str())
        .env("LAYBY_LISTEN", "127.0.0.1:0")
        .env("LAYBY_CONNECTIONS", "5")
        .env("LAYBY_SCRIPT", folder.join("script.json"))
        .env("LAYBY_SCRIPT_LOG", folder.join("asked"))
        .env("LAYBY_DATA", folder)
        .env("LAYBY_LOG", "off")
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    if let Some(fault) = fault {
        command.env("LAYBY_FAULT", fault);
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap()?;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Some(Program { child, url: line.strip_prefix("Layby is at ").unwrap().to_owned() })
}

async fn number(pool: &PgPool, sql: &str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

/// A claim for a lunch of today.
fn lunch(tx: &Tx, explanation: &str) -> ClaimForm {
    ClaimForm {
        spent_on: tx.now().date_naive().to_string(),
        merchant: "Borchardt".to_owned(),
        amount: "86.50".to_owned(),
        currency: "EUR".to_owned(),
        category: "meals".to_owned(),
        explanation: explanation.to_owned(),
    }
}

/// Files a claim, answers its question and sees the work finished, with one death at `point` on the way.
async fn survives(pool: PgPool, point: &str) {
    TestDesk::new(pool.clone(), Vec::new()).await;
    let engine = Engine::new(pool.clone(), Arc::new(DatabaseClock::new(&pool).await.unwrap()), Keyring::generate().0);
    let folder = std::env::temp_dir().join(format!("layby-fault-{}", engine.ids.next()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("script.json"), SCRIPT).unwrap();
    let mut tx = engine.begin().await.unwrap();
    let scopes = vec!["answer".to_owned(), "read".to_owned()];
    let token =
        token::create(&mut tx, "system", TokenOwner::Person("mia@layby.example".to_owned()), scopes).await.unwrap();
    tx.commit().await.unwrap();
    let Some(Actor::Person(mia)) = token::actor(&engine, &token).await.unwrap() else { panic!("the token is Mia's") };

    let mut program = start(&pool, &folder, Some(point)).await;
    let mut tx = engine.begin().await.unwrap();
    let form = lunch(&tx, "");
    claim::file(&mut tx, &mia, form).await.unwrap();
    tx.commit().await.unwrap();

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut accepted = 0;
    let mut deaths = 0;
    for _ in 0..1_200 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        let dead = match &mut program {
            Some(program) => program.child.try_wait().unwrap().is_some(),
            None => true,
        };
        if dead {
            deaths += 1;
            program = start(&pool, &folder, None).await;
        }
        let waiting: Option<uuid::Uuid> =
            sqlx::query_scalar("select id from slot where status = 'waiting'").fetch_optional(&pool).await.unwrap();
        if let (Some(slot), Some(program)) = (waiting, &program) {
            let answer = client.post(format!("{}/api/v1/slots/{slot}/answer", program.url)).bearer_auth(&token);
            // A connection that breaks says nothing: the same answer is sent again while the slot still waits.
            if let Ok(response) = answer.json(&json!({ "value": "A client dinner" })).send().await {
                accepted += usize::from(response.status() == 200);
            }
        }
        if number(&pool, "select count(*) from task where status = 'done'").await == 1 && deaths > 0 {
            break;
        }
    }
    assert_eq!(deaths, 1, "the program died at {point}, once");
    assert!(accepted <= 1);
    assert_eq!(
        number(&pool, "select count(*) from task where status = 'done' and model_calls = 2 and questions = 1").await,
        1
    );
    let answers: Vec<Value> =
        sqlx::query_scalar("select answer from slot where status = 'answered'").fetch_all(&pool).await.unwrap();
    assert_eq!(answers, [json!("A client dinner")]);
    assert_eq!(number(&pool, "select count(*) from slot").await, 1);
    assert_eq!(number(&pool, "select count(*) from turn where kind = 'result'").await, 1);
    assert_eq!(number(&pool, "select count(*) from turn where kind = 'reply'").await, 2);
    for kind in ["asked", "answered", "finished"] {
        assert_eq!(
            number(&pool, &format!("select count(*) from record_line where kind = '{kind}'")).await,
            1,
            "{kind}"
        );
    }
    assert_eq!(number(&pool, "select count(*) from audit where action = 'slot.answered'").await, 1);
    // A reply is asked for again only if it was never logged.
    let asked = std::fs::read_to_string(folder.join("asked")).unwrap().lines().count();
    assert_eq!(asked, if point == "reply.before_commit" { 3 } else { 2 }, "times the model was called");
    std::fs::remove_dir_all(folder).unwrap();
}

const PROPOSES: &str = r#"[
    {"calls": [{"id": "c", "name": "categorise_claim", "arguments": {"category": "events"}}]},
    {"calls": [{"id": "c", "name": "hand_back", "arguments": {"verdict": "approve", "summary": "Fine."}}]}
]"#;

/// An approved action runs once, whichever side of its commit the program dies on.
async fn runs_once(pool: PgPool, point: &str) {
    let desk = TestDesk::new(pool.clone(), Vec::new()).await;
    let folder = std::env::temp_dir().join(format!("layby-fault-{}", desk.engine.ids.next()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("script.json"), PROPOSES).unwrap();
    // Filed by the real clock: the program's loop knows no other.
    let engine = Engine::new(pool.clone(), Arc::new(DatabaseClock::new(&pool).await.unwrap()), Keyring::generate().0);
    let mut tx = engine.begin().await.unwrap();
    let form = lunch(&tx, "Dinner");
    claim::file(&mut tx, &desk.person(Who::Mia).await, form).await.unwrap();
    tx.commit().await.unwrap();
    let mut program = start(&pool, &folder, Some(point)).await;
    let (mut deaths, mut approved) = (0, 0);
    for _ in 0..1_200 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        if program.as_mut().is_none_or(|program| program.child.try_wait().unwrap().is_some()) {
            deaths += 1;
            program = start(&pool, &folder, None).await;
        }
        let waiting = "select id from slot where status = 'waiting' and kind = 'approval'";
        if let Some(slot) = sqlx::query_scalar(waiting).fetch_optional(&pool).await.unwrap() {
            let actor = desk.actor(Who::Noor).await;
            let mut tx = engine.single().await.unwrap();
            let yes = engine::testing::approve();
            engine::slot::deposit(&mut tx, &actor, SlotId(slot), Some(1), yes, None).await.unwrap();
            tx.commit().await.unwrap();
            approved += 1;
        }
        if deaths > 0 && number(&pool, "select count(*) from task where status = 'done'").await == 1 {
            break;
        }
    }
    assert_eq!((deaths, approved), (1, 1), "at {point}");
    assert_eq!(number(&pool, "select count(*) from claim where category = 'events'").await, 1);
    assert_eq!(number(&pool, "select count(*) from slot where used_at is not null").await, 1);
    assert_eq!(number(&pool, "select count(*) from turn where kind = 'result'").await, 1);
    assert_eq!(
        number(&pool, "select count(*) from record_line where text like '%put the claim into events%'").await,
        1
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[sqlx::test(migrations = "../migrations")]
async fn a_death_before_an_approved_action_is_committed_runs_it_once(pool: PgPool) {
    runs_once(pool, "execute.before_commit").await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_death_after_an_approved_action_was_committed_runs_it_once(pool: PgPool) {
    runs_once(pool, "execute.after_commit").await;
}

macro_rules! deaths {
    ($($name:ident $point:literal)*) => {$(
        #[sqlx::test(migrations = "../migrations")]
        async fn $name(pool: PgPool) {
            survives(pool, $point).await;
        }
    )*};
}

deaths! {
    a_death_after_the_lease_loses_nothing "lease.after_commit"
    a_death_before_a_reply_is_logged_loses_nothing "reply.before_commit"
    a_death_after_a_reply_is_logged_loses_nothing "reply.after_commit"
    a_death_before_asking_loses_nothing "ask.before_commit"
    a_death_before_parking_loses_nothing "park.before_commit"
    a_death_after_parking_loses_nothing "park.after_commit"
    a_death_before_the_deposit_loses_nothing "deposit.before_commit"
    a_death_after_the_deposit_loses_nothing "deposit.after_commit"
    a_death_before_the_end_loses_nothing "finish.before_commit"
    a_death_after_the_end_loses_nothing "finish.after_commit"
}
