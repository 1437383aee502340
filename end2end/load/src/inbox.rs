//! The inbox of somebody with 10,000 open questions.

use std::time::Instant;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{Args, Failure, client, inside::sign_in, per_second, spread};

const OPEN: i64 = 10_000;
const REQUESTS: usize = 4_000;

pub async fn measure(args: &Args, pool: &PgPool) -> Result<Value, Failure> {
    fill(pool).await?;
    let client = client()?;
    sign_in(args, &client).await?;
    let page = client.get(&args.url).send().await?.error_for_status()?.text().await?;
    let began = Instant::now();
    let workers = (0..args.at_once).map(|_| {
        let (client, url, requests) = (client.clone(), args.url.clone(), REQUESTS / args.at_once);
        tokio::spawn(async move {
            let mut times = Vec::with_capacity(requests);
            for _ in 0..requests {
                let sent = Instant::now();
                client.get(&url).send().await?.error_for_status()?.bytes().await?;
                times.push(sent.elapsed());
            }
            Ok::<_, Failure>(times)
        })
    });
    let mut times = Vec::new();
    for worker in futures::future::join_all(workers).await {
        times.extend(worker??);
    }
    let took = began.elapsed();
    Ok(json!({
        "open_slots": OPEN,
        "lines": page.matches("data-test=\"inbox-line\"").count(),
        "html_bytes": page.len(),
        "requests_per_second": per_second(times.len(), took),
        "latency": spread(times),
    }))
}

/// 10,000 open slots of mixed urgency, as asking would have left them.
async fn fill(pool: &PgPool) -> Result<(), Failure> {
    let slots = "
        with agent as (select id from agent where not inside limit 1),
        person as (select id from person where email = 'mia@layby.example'),
        made as (
            select gen_random_uuid() as task, gen_random_uuid() as slot, n from generate_series(1, $1) n
        ), tasks as (
            insert into task (id, agent_id, title, status, questions, open_slots, created_at, updated_at)
            select task, agent.id, 'Refund for order ' || n, 'waiting', 1, 1, now(), now() from made, agent
        ), slots as (
            insert into slot (id, task_id, agent_id, name, kind, message, asked, candidates, waiting_on, priority, opened_at, due_at)
            select slot, task, agent.id, 'q', 'question', 'How much do we refund for the order A-' || n || ', which arrived late?',
                   array['mia@layby.example'], array['person:' || person.id], 'an answer from Mia', n % 4,
                   now() - n * interval '1 minute', now() + (n % 500 - 100) * interval '1 hour'
            from made, agent, person
        )
        insert into slot_candidate (slot_id, candidate, priority, due_at, opened_at)
        select slot, 'person:' || person.id, n % 4, now() + (n % 500 - 100) * interval '1 hour', now() - n * interval '1 minute'
        from made, person";
    sqlx::query(slots).bind(OPEN as i32).execute(pool).await?;
    sqlx::raw_sql("vacuum analyze slot; ").execute(pool).await?;
    for table in ["task", "slot_candidate"] {
        sqlx::raw_sql(&format!("vacuum analyze {table}")).execute(pool).await?;
    }
    Ok(())
}
