//! Timers through faults: an instance dies in the middle of a batch, Postgres is restarted at once; nothing is lost and
//! nothing happens twice (design section 7; the program itself, over a Postgres of the test's own).

use std::{process::Stdio, time::Duration};

use engine::{slot::NewSlot, testing::TestDesk};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// Says where the database is, and restarts it as if its machine had lost power, each time it is told to.
const POSTGRES: &str = r#"
data=${DATABASE_URL##*host=}/data
as=(); [ "$(id -u)" = 0 ] && as=(setpriv --reuid "$(stat -c %u "$data")" --regid "$(stat -c %g "$data")" --clear-groups --)
echo "$DATABASE_URL"
cd /
while read -r _; do "${as[@]}" "$LAYBY_PG_BIN/pg_ctl" -D "$data" -m immediate -w -l "$data/log" restart >/dev/null && echo restarted; done
"#;

struct Postgres {
    url: String,
    commands: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    process: Child,
}

impl Postgres {
    async fn start() -> Self {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut process = Command::new(format!("{root}/scripts/with-postgres"))
            .args(["bash", "-c", POSTGRES])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = said.next_line().await.unwrap().expect("Postgres starts");
        Self { url, commands: process.stdin.take().unwrap(), said, process }
    }

    async fn restart(&mut self) {
        self.commands.write_all(b"restart\n").await.unwrap();
        assert_eq!(self.said.next_line().await.unwrap().as_deref(), Some("restarted"));
    }

    /// Ends it and takes its folder away.
    async fn stop(mut self) {
        drop(self.commands);
        self.process.wait().await.unwrap();
    }
}

fn instance(url: &str, fault: Option<&str>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_layby"));
    command
        .arg("serve")
        .env("DATABASE_URL", url)
        .env("LAYBY_DATA", std::env::temp_dir().join(format!("layby-clocks-{}", std::process::id())))
        .env("LAYBY_LISTEN", "127.0.0.1:0")
        .env("LAYBY_CONNECTIONS", "6")
        .env("LAYBY_LOG", "off")
        .stdout(Stdio::null())
        .kill_on_drop(true);
    if let Some(fault) = fault {
        command.env("LAYBY_FAULT", fault);
    }
    command.spawn().unwrap()
}

/// A number, asked until the database answers: it may just be coming back.
async fn number(pool: &PgPool, sql: &str) -> i64 {
    for _ in 0..400 {
        if let Ok(number) = sqlx::query_scalar(sql).fetch_one(pool).await {
            return number;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the database does not come back");
}

/// Whether it stands still, as after SIGSTOP.
fn stands_still(process: &Child) -> bool {
    let Some(id) = process.id() else { return false };
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") T "))
}

/// Works off a burst with two instances, of which one dies or stands still at `fault`, and some restarts of Postgres.
async fn survives(fault: &str, restarts: usize) {
    let mut postgres = Postgres::start().await;
    let pool = PgPoolOptions::new()
        .max_connections(5)
        .acquire_timeout(Duration::from_secs(1))
        .connect(&postgres.url)
        .await
        .unwrap();
    engine::MIGRATIONS.run(&pool).await.unwrap();
    let desk = TestDesk::new(pool.clone(), Vec::new()).await;
    let agent = desk.outside_agent("Refunds").await;
    for n in 0..100 {
        let new =
            NewSlot { ask: vec!["mia@layby.example".into()], name: Some(n.to_string()), ..NewSlot::question("Why?") };
        desk.ask(&agent, new).await.unwrap();
    }
    // Sixty reminders of each question, in waves of half a second.
    sqlx::query(
        "insert into timer (slot_id, kind, due_at, run_at, nth)
         select id, 'remind', clock_timestamp() + n / 10 * interval '500 milliseconds',
                clock_timestamp() + n / 10 * interval '500 milliseconds', n
         from slot, generate_series(1, 60) n",
    )
    .execute(&pool)
    .await
    .unwrap();
    let mut first = instance(&postgres.url, Some(fault));
    let mut second = instance(&postgres.url, None);
    let stops = fault.ends_with(":stop");
    let (mut died, mut restarted) = (false, 0);
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let left = number(&pool, "select count(*) from timer").await;
        if !died && stops {
            died = stands_still(&first);
        } else if !died && first.try_wait().unwrap().is_some() {
            died = true;
            first = instance(&postgres.url, None);
        }
        if restarted < restarts && left < 5_000 - 1_500 * restarted as i64 {
            postgres.restart().await;
            restarted += 1;
        }
        if left == 0 && restarted == restarts {
            break;
        }
    }
    assert_eq!((died, restarted), (true, restarts), "it died at {fault}, and Postgres was restarted");
    assert_eq!(number(&pool, "select count(*) from timer").await, 0);
    if stops {
        // It goes on, finds its batch gone, and fires what comes: one reminder more, of its own.
        second.kill().await.unwrap();
        let id = first.id().unwrap().to_string();
        Command::new("kill").args(["-CONT", &id]).status().await.unwrap();
        sqlx::query("insert into timer (slot_id, kind, due_at, run_at, nth) select id, 'remind', now(), now(), 61 from slot limit 1")
            .execute(&pool)
            .await
            .unwrap();
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if number(&pool, "select count(*) from timer").await == 0 {
                break;
            }
        }
    }
    // Each reminder took effect once, in record, events and news alike.
    for told in [
        "select count(*) from record_line where kind = 'reminded'",
        "select count(*) from (select distinct slot_id, text from record_line where kind = 'reminded') each",
        "select count(*) from outbox where type = 'slot.reminded'",
        "select count(*) from notification",
    ] {
        assert_eq!(number(&pool, told).await, 6_000 + i64::from(stops), "{told}");
    }
    first.kill().await.unwrap();
    second.kill().await.unwrap();
    pool.close().await;
    postgres.stop().await;
}

#[tokio::test]
async fn an_instance_killed_in_the_middle_of_a_batch_loses_no_timer_and_fires_none_twice() {
    survives("timers.before_commit:2", 0).await;
}

#[tokio::test]
async fn timers_survive_a_kill_after_the_commit_and_restarts_of_postgres() {
    survives("timers.after_commit:2", 2).await;
}

#[tokio::test]
async fn an_instance_that_stands_still_in_the_middle_of_a_batch_holds_nothing_up_and_writes_nothing_when_it_goes_on() {
    survives("timers.before_commit:2:stop", 0).await;
}
