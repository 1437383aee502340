//! How the program starts, refuses to, and stops: with a private Postgres of its own.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

fn layby(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_layby"));
    command.args(args).env_remove("DATABASE_URL").env("LAYBY_DATA", folder).env("LAYBY_LOG", "off").kill_on_drop(true);
    command
}

/// Starts a server and answers its address.
async fn serve(folder: &Path, listen: &str) -> (Child, String) {
    let mut command = layby(folder, &["serve", "--demo"]);
    let mut child = command.env("LAYBY_LISTEN", listen).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().expect("the server says where it is");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, line.strip_prefix("Layby is at http://").unwrap().to_owned())
}

/// What a command that fails says on standard error: one sentence, nothing else.
async fn refusal(mut command: Command) -> String {
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

async fn signal(child: &mut Child, signal: &str) {
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
    tokio::time::timeout(Duration::from_secs(20), child.wait()).await.expect("it stops").unwrap();
}

fn postgres_runs(folder: &Path) -> bool {
    folder.join("postgres/postmaster.pid").exists()
}

#[tokio::test]
async fn it_starts_beside_nothing_says_what_is_in_the_way_and_stops_all_it_started() {
    let folder = std::env::temp_dir().join(format!("layby-start-{}", std::process::id()));
    let (mut server, address) = serve(&folder, "127.0.0.1:0").await;

    let mut second = layby(&folder, &["serve"]);
    second.env("LAYBY_LISTEN", "127.0.0.1:0");
    assert!(refusal(second).await.contains("Another Layby is running with the data in"));
    let mut port = layby(&folder, &["serve"]);
    port.env("LAYBY_LISTEN", &address);
    assert!(refusal(port).await.contains("Something is listening on"));

    // Commands work beside it, and what they refuse is a sentence.
    let added = layby(&folder, &["agent", "add", "Refunds", "--outside", "--sponsor", "noor@layby.example"]);
    assert!({ added }.output().await.unwrap().status.success());
    let again = layby(&folder, &["agent", "add", "Refunds", "--outside", "--sponsor", "noor@layby.example"]);
    assert!(refusal(again).await.contains("There is an agent of this name already."));

    // Killed at once, it leaves its Postgres; the next start takes that over, with the same data.
    signal(&mut server, "-KILL").await;
    assert!(postgres_runs(&folder));
    let (mut server, _) = serve(&folder, "127.0.0.1:0").await;
    let token = layby(&folder, &["token", "create", "--agent", "Refunds", "--scope", "ask"]).output().await.unwrap();
    assert!(String::from_utf8(token.stdout).unwrap().starts_with("lby_"));
    signal(&mut server, "-TERM").await;
    assert!(!postgres_runs(&folder));

    // And with nothing running, a command brings the database up for itself, and down again.
    assert!(layby(&folder, &["doctor"]).output().await.unwrap().status.success());
    assert!(!postgres_runs(&folder));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_one_clear_sentence_without_its_password() {
    let folder = std::env::temp_dir();
    for (url, sentence) in [
        ("nonsense", "DATABASE_URL is not the address of a Postgres"),
        ("postgres://layby:geheim@127.0.0.1:1/layby", "does not let us in"),
    ] {
        let mut command = layby(&folder, &["migrate"]);
        command.env("DATABASE_URL", url);
        let said = refusal(command).await;
        assert!(said.contains(sentence) && !said.contains("geheim"), "{said}");
    }
    let nowhere = layby(Path::new("/proc/layby"), &["migrate"]);
    assert!(refusal(nowhere).await.contains("cannot be made"));
}
