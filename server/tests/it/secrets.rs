//! A secret leaves no trace: not in the database, not in the logs, not in a page or a reply but the one that hands it out.

use std::process::Stdio;

use engine::{
    agent::{
        self, NewAgent,
        token::{self, TokenOwner},
    },
    testing::TestDesk,
};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgPool, Row};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

const SECRET: &str = "correct horse battery staple 4711";

/// The whole database, every row of every table as text, and every bytea as it is.
async fn dump(pool: &PgPool) -> String {
    let tables = "select format('%I', relname) from pg_stat_user_tables";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(pool).await.unwrap();
    let mut all = String::new();
    for table in tables {
        let rows = sqlx::query(&format!("select t::text as line from {table} t")).fetch_all(pool).await.unwrap();
        rows.iter().for_each(|row| all.push_str(row.get::<String, _>("line").as_str()));
    }
    all
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[sqlx::test(migrations = "../migrations")]
async fn a_secret_is_handed_out_once_and_leaves_no_trace_in_database_or_logs(pool: PgPool) {
    let desk = TestDesk::new(pool.clone(), Vec::new()).await;
    let mut tx = desk.engine.begin().await.unwrap();
    let new = NewAgent { name: "Mailer".into(), purpose: String::new(), sponsor_email: "noor@layby.example".into() };
    agent::add(&mut tx, "system", new).await.unwrap();
    let scopes = |list: &[&str]| list.iter().map(|&scope| scope.to_owned()).collect::<Vec<_>>();
    let asker =
        token::create(&mut tx, "system", TokenOwner::Agent("Mailer".into()), scopes(&["ask", "read"])).await.unwrap();
    let mia =
        token::create(&mut tx, "system", TokenOwner::Person("mia@layby.example".into()), scopes(&["answer", "read"]))
            .await
            .unwrap();
    tx.commit().await.unwrap();

    let folder = std::env::temp_dir().join(format!("layby-secret-{}", desk.engine.ids.next()));
    std::fs::create_dir_all(&folder).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_layby"))
        .arg("serve")
        .env("DATABASE_URL", pool.connect_options().to_url_lossy().as_str())
        .env("LAYBY_DATA", &folder)
        .env("LAYBY_LISTEN", "127.0.0.1:0")
        .env("LAYBY_CONNECTIONS", "5")
        .env("LAYBY_LOG", "trace")
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap().strip_prefix("Layby is at ").unwrap().to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |token: &str, path: &str, key: Option<&str>, body: Value| {
        let mut request = client.post(format!("{url}/api/v1{path}")).bearer_auth(token).json(&body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };

    let ask = json!({ "kind": "question", "message": "The mailbox's password?", "secret": true, "ask": ["mia@layby.example"] });
    let (_, slot) = post(&asker, "/slots", None, ask).await;
    let id = serde_json::from_str::<Value>(&slot).unwrap()["id"].as_str().unwrap().to_owned();
    let (answer, take) = (format!("/slots/{id}/answer"), format!("/slots/{id}/secret"));
    assert_eq!(post(&asker, &take, None, json!({})).await.0, 422, "nobody has answered yet");
    // A refusal and a repeated request are the likeliest leaks.
    let refused = post(&mia, &answer, Some("k"), json!({ "value": SECRET, "note": "x".repeat(5_000) })).await;
    assert_eq!(refused.0, 422);
    assert_eq!(post(&mia, &answer, Some("k"), json!({ "value": SECRET })).await.0, 200);
    assert_eq!(
        post(&mia, &answer, Some("k"), json!({ "value": SECRET })).await.0,
        200,
        "the same request, the same reply"
    );
    let held = dump(&pool).await;
    assert!(held.contains(&id) && !held.contains(SECRET) && !held.contains(&hex(SECRET)), "sealed while it waits");
    for token in [&asker, &mia] {
        let read = client.get(format!("{url}/api/v1/slots/{id}")).bearer_auth(token).send().await.unwrap();
        let slot: Value = read.json().await.unwrap();
        assert_eq!(slot["answer"], json!({ "value": null, "secret": true }));
    }
    assert_eq!(post(&mia, &take, None, json!({})).await.0, 403);
    // Two at once: one gets it.
    let (one, two) = tokio::join!(post(&asker, &take, Some("t"), json!({})), post(&asker, &take, Some("t"), json!({})));
    let (got, late) = if one.0 == 200 { (one, two) } else { (two, one) };
    assert_eq!(serde_json::from_str::<Value>(&got.1).unwrap(), json!({ "value": SECRET }));
    assert_eq!(late.0, 410, "{}", late.1);
    assert!(late.1.contains("already_taken"));

    program.kill().await.unwrap();
    let after = dump(&pool).await;
    let logs = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(logs.len() > 1_000, "the log is there to be searched");
    for (place, text) in [("database", &after), ("logs", &logs)] {
        for trace in [SECRET.to_owned(), hex(SECRET), SECRET.replace(' ', "+"), SECRET.replace(' ', "%20")] {
            assert!(!text.contains(&trace), "{place} has {trace}");
        }
    }
    assert_eq!(sqlx::query_scalar::<_, i64>("select count(*) from sealed_secret").fetch_one(&pool).await.unwrap(), 0);
    let key = folder.join("keys").join("secrets");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&key).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[sqlx::test(migrations = "../migrations")]
async fn a_new_key_takes_over_and_the_old_one_is_forgotten(pool: PgPool) {
    let folder = std::env::temp_dir().join(format!("layby-keys-{}", engine::clock::random_hex(8)));
    let run = async |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_layby"))
            .args(args)
            .env("DATABASE_URL", pool.connect_options().to_url_lossy().as_str())
            .env("LAYBY_DATA", &folder)
            .output()
            .await
            .unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.success(), said)
    };
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("keys").join("secrets");
    assert!(run(&["key", "rotate"]).await.0);
    let keys = |path: &std::path::Path| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!(keys(&path), 2, "the first key, made on the way, and the new one");
    let (done, said) = run(&["key", "reseal"]).await;
    assert!(done, "{said}");
    assert_eq!(keys(&path), 1);
    // A key that others can read is refused, with what to do.
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let (done, said) = run(&["key", "reseal"]).await;
    assert!(!done && said.contains("chmod 600"), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}
