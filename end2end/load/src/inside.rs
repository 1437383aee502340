//! One of our own agents: the scripted model asks once per claim, and is called again with the answer.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{Args, Failure, client, spread};

const CLAIMS: usize = 400;

pub async fn measure(args: &Args, pool: &PgPool) -> Result<Value, Failure> {
    let client = client()?;
    sign_in(args, &client).await?;
    for n in 0..CLAIMS {
        let form = [
            ("merchant", format!("Hotel {n}")),
            ("amount", "61.50".to_owned()),
            ("currency", "EUR".to_owned()),
            ("spent_on", "2026-01-05".to_owned()),
            ("category", "lodging".to_owned()),
            ("explanation", String::new()),
        ];
        client.post(format!("{}/claims/new", args.url)).form(&form).send().await?.error_for_status()?;
    }
    let waiting = "select s.id::text from slot s join task t on t.id = s.task_id
                   where t.claim_id is not null and t.for_id = (select id from person where email = 'mia@layby.example')
                     and s.status = 'waiting'";
    let mut slots: Vec<String> = Vec::new();
    for _ in 0..600 {
        slots = sqlx::query_scalar(waiting).fetch_all(pool).await?;
        if slots.len() >= CLAIMS {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // At a pace that leaves no queue: what is measured is the time to resume, not the wait for a free hand.
    let mut shares = vec![Vec::new(); 2];
    for (n, slot) in slots.iter().enumerate() {
        shares[n % 2].push(slot.clone());
    }
    let workers = shares.into_iter().map(|share| {
        let args = args.clone();
        tokio::spawn(async move {
            let client = crate::client()?;
            for slot in share {
                let answer =
                    client.post(format!("{}/api/v1/slots/{slot}/answer", args.url)).bearer_auth(&args.person_token);
                answer.json(&json!({ "value": "A night in Berlin" })).send().await?.error_for_status()?;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<_, Failure>(())
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker??;
    }
    // Both times are the database's: the slot closed, and the model's reply to the answer logged.
    let resumed = "select (extract(epoch from r.created_at - s.closed_at) * 1000000)::bigint
                   from slot s join turn r on r.task_id = s.task_id and r.kind = 'reply' and r.created_at >= s.closed_at
                   where s.id::text = any($1)";
    let mut times: Vec<i64> = Vec::new();
    for _ in 0..600 {
        times = sqlx::query_scalar(resumed).bind(&slots).fetch_all(pool).await?;
        if times.len() >= slots.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let times = times.into_iter().map(|micros| Duration::from_micros(micros.max(0) as u64)).collect::<Vec<_>>();
    Ok(json!({
        "claims": slots.len(),
        "answer_kept_to_model_replied": spread(times),
    }))
}

pub async fn sign_in(args: &Args, client: &reqwest::Client) -> Result<(), Failure> {
    let form = [("email", "mia@layby.example"), ("password", "layby-demo"), ("next", "/")];
    let response = client.post(format!("{}/sign-in", args.url)).form(&form).send().await?;
    if response.status() != 303 { Err(format!("signing in answered {}", response.status()).into()) } else { Ok(()) }
}
