//! An outside agent: asks, waits in a long poll, and has its answer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{Args, Failure, client, per_second, spread};

const TABLES: &str = "select sum(pg_total_relation_size(t::regclass))::bigint
    from unnest(array['task', 'turn', 'slot', 'slot_candidate', 'record_line', 'audit', 'outbox']) t";

pub async fn measure(args: &Args, pool: &PgPool) -> Result<Value, Failure> {
    // Connections, plans and caches are warm before anything is measured.
    let warm = park(args, 320).await?.0;
    answer(args, warm).await?;

    let (bytes, memory) = (size(pool).await?, resident(args.pid)?);
    let (slots, parking) = park(args, args.count).await?;
    let (parked_bytes, parked_memory) = (size(pool).await? - bytes, resident(args.pid)? - memory);
    let (answered, resumed, answering) = answer(args, slots).await?;
    Ok(json!({
        "parks_per_second": per_second(args.count, parking),
        "answers_carried_on_per_second": per_second(args.count, answering),
        "answer_accepted_to_poll_returned": spread(resumed),
        "answer_sent_to_poll_returned": spread(answered),
        "postgres_bytes_per_parked_task": parked_bytes / args.count as i64,
        "server_memory_bytes_per_parked_task": parked_memory / args.count as i64,
    }))
}

/// Parks `count` questions; their ids, and how long it took.
async fn park(args: &Args, count: usize) -> Result<(Vec<String>, Duration), Failure> {
    let began = Instant::now();
    let workers = (0..args.at_once).map(|worker| {
        let args = args.clone();
        tokio::spawn(async move {
            let client = client()?;
            let mut slots = Vec::new();
            for n in (worker..count).step_by(args.at_once) {
                let body = json!({
                    "kind": "question", "message": format!("How much do we refund for A-{n}?"),
                    "schema": { "type": "number", "exclusiveMinimum": 0 }, "ask": ["mia@layby.example"],
                });
                let request =
                    client.post(format!("{}/api/v1/slots", args.url)).bearer_auth(&args.agent_token).json(&body);
                let slot: Value = request.send().await?.error_for_status()?.json().await?;
                slots.push(slot["id"].as_str().ok_or("a slot without an id")?.to_owned());
            }
            Ok::<_, Failure>(slots)
        })
    });
    let mut slots = Vec::new();
    for worker in futures::future::join_all(workers).await {
        slots.extend(worker??);
    }
    Ok((slots, began.elapsed()))
}

/// Each worker holds the long poll of its next slot, answers it and waits for the poll: the time from sending the
/// answer, and from its acceptance, to the poll's return.
async fn answer(args: &Args, slots: Vec<String>) -> Result<(Vec<Duration>, Vec<Duration>, Duration), Failure> {
    let began = Instant::now();
    let mut shares = vec![Vec::new(); args.at_once];
    for (n, slot) in slots.into_iter().enumerate() {
        shares[n % args.at_once].push(slot);
    }
    let workers = shares.into_iter().map(|share| {
        let args = args.clone();
        tokio::spawn(async move {
            let (asker, person) = (client()?, client()?);
            let mut times = Vec::new();
            for slot in share {
                let poll =
                    asker.get(format!("{}/api/v1/slots/{slot}?wait=55s", args.url)).bearer_auth(&args.agent_token);
                let poll = async {
                    let slot: Value = poll.send().await?.error_for_status()?.json().await?;
                    let returned = Instant::now();
                    if slot["answer"]["value"] == 40 {
                        Ok::<_, Failure>(returned)
                    } else {
                        Err(format!("not answered: {slot}").into())
                    }
                };
                let answer =
                    person.post(format!("{}/api/v1/slots/{slot}/answer", args.url)).bearer_auth(&args.person_token);
                let answer = async {
                    // The poll goes out first.
                    tokio::task::yield_now().await;
                    let sent = Instant::now();
                    answer.json(&json!({ "value": 40 })).send().await?.error_for_status()?;
                    Ok::<_, Failure>((sent, Instant::now()))
                };
                let (returned, answered) = tokio::try_join!(poll, answer)?;
                times.push((
                    returned.saturating_duration_since(answered.0),
                    returned.saturating_duration_since(answered.1),
                ));
            }
            Ok::<_, Failure>(times)
        })
    });
    let mut times = Vec::new();
    for worker in futures::future::join_all(workers).await {
        times.extend(worker??);
    }
    let took = began.elapsed();
    let (sent, accepted) = times.into_iter().unzip();
    Ok((sent, accepted, took))
}

async fn size(pool: &PgPool) -> Result<i64, Failure> {
    Ok(sqlx::query_scalar(TABLES).fetch_one(pool).await?)
}

/// Resident memory of a process, in bytes.
fn resident(pid: u32) -> Result<i64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<i64>()? * 1024)
}
