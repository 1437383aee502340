//! The agents that come with Layby.

use crate::{Engine, Refusal, claim::review::AUDITOR, ids::AgentId};

/// Makes sure that the built-in agents are there; their settings, once made, are an admin's.
pub async fn ensure_built_in(engine: &Engine) -> Result<(), Refusal> {
    let mut tx = engine.begin().await?;
    let id: AgentId = tx.new_id();
    let now = tx.now();
    sqlx::query!(
        "insert into agent (id, name, inside, purpose, prompt, about, created_at) values ($1, $2, true, $3, $4, $5, $6)
         on conflict (lower(name)) do nothing",
        id.0,
        AUDITOR,
        "Reviews expense claims and asks about a charge that nobody can explain from the record.",
        "You review expense claims. Read the claim first. When the record cannot explain a charge, ask the person who \
         filed it one focused question instead of guessing. When you know enough, hand back your verdict with a summary \
         of one or two sentences.",
        "Whether a charge that the record cannot explain was for the company.",
        now,
    )
    .execute(tx.conn())
    .await?;
    tx.commit().await
}
