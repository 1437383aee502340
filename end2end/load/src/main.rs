//! Parks questions and answers them, some at a time, through HTTP, and prints what it measured as JSON. Started by
//! `end2end/bench.sh` against a server of its own.

mod inbox;
mod inside;
mod outside;

use std::time::Duration;

use clap::Parser;
use serde_json::{Value, json};
use sqlx::PgPool;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser, Clone)]
struct Args {
    #[arg(long)]
    url: String,
    #[arg(long)]
    agent_token: String,
    /// Of mia@layby.example, scope answer.
    #[arg(long)]
    person_token: String,
    #[arg(long, env = "DATABASE_URL")]
    database_url: String,
    /// The server's process, for its memory.
    #[arg(long)]
    pid: u32,
    #[arg(long, default_value_t = 2_000)]
    count: usize,
    #[arg(long, default_value_t = 16)]
    at_once: usize,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let pool = PgPool::connect(&args.database_url).await?;
    let outside = outside::measure(&args, &pool).await?;
    let inside = inside::measure(&args, &pool).await?;
    let inbox = inbox::measure(&args, &pool).await?;
    let all =
        json!({ "count": args.count, "at_once": args.at_once, "outside": outside, "inside": inside, "inbox": inbox });
    println!("{all:#}");
    Ok(())
}

/// A client with connections of its own, as each worker has.
fn client() -> Result<reqwest::Client, Failure> {
    Ok(reqwest::Client::builder()
        .no_proxy()
        .cookie_store(true)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build()?)
}

/// p50, p99 and the largest of some durations, in milliseconds.
fn spread(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)));
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| (time.as_secs_f64() * 100_000.0).round() / 100.0);
    json!({ "p50_ms": ms(at(0.5)), "p99_ms": ms(at(0.99)), "max_ms": ms(times.last()) })
}

fn per_second(count: usize, time: Duration) -> f64 {
    (count as f64 / time.as_secs_f64()).round()
}
