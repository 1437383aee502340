//! What an agent of ours can call.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{advance::Work, model::ToolSpec, permit::Rule};
use crate::{Engine, Refusal, Tx, claim::CATEGORIES, ids::ClaimId, money::Money, wake::Topic};

pub(super) const ASK_PERSON: &str = "ask_person";
pub(super) const HAND_BACK: &str = "hand_back";
pub(super) const READ_CLAIM: &str = "read_claim";
pub(super) const HAND_OVER: &str = "hand_over";
pub(super) const CATEGORISE: &str = "categorise_claim";

pub(super) fn is_built_in(name: &str) -> bool {
    [ASK_PERSON, HAND_BACK, READ_CLAIM, HAND_OVER, CATEGORISE].contains(&name)
}

/// The arguments of `ask_person`.
#[derive(Debug, Deserialize)]
pub(super) struct AskPerson {
    pub question: String,
    #[serde(default)]
    pub context: String,
    #[serde(default)]
    pub options: Vec<String>,
}

/// The arguments of `hand_over`.
#[derive(Debug, Deserialize)]
pub(super) struct HandOver {
    pub reason: String,
    #[serde(default)]
    pub context: String,
}

/// The arguments of `hand_back`.
#[derive(Debug, Deserialize)]
pub(super) struct HandBack {
    #[serde(default)]
    pub verdict: String,
    pub summary: String,
}

/// The tools of a task: asking only for an agent that may, the claim's only when there is one, never what it may not.
pub(super) fn offered(work: &Work) -> Vec<ToolSpec> {
    let spec = |name: &'static str, description: &'static str, arguments: Value| ToolSpec {
        name: name.into(),
        description: description.into(),
        arguments,
    };
    let mut tools = vec![spec(
        HAND_BACK,
        "Hand back the finished work: your verdict and a summary of one or two sentences.",
        json!({
            "type": "object",
            "properties": { "verdict": { "enum": ["approve", "query"] }, "summary": { "type": "string" } },
            "required": ["summary"],
        }),
    )];
    if work.claim_id.is_some() {
        tools.push(spec(
            READ_CLAIM,
            "Read the claim, what is usual for its category, and other claims for the same charge.",
            json!({ "type": "object", "properties": {} }),
        ));
    }
    if work.claim_id.is_some() && work.rule(CATEGORISE) != Rule::Never {
        tools.push(spec(CATEGORISE, "Put the claim into another category.", categorise_schema()));
    }
    if work.may_choose {
        tools.push(spec(
            ASK_PERSON,
            "Ask a person one focused question, with the context they need and, when the answer is one of a few, the \
             options. The work waits until they answer.",
            json!({
                "type": "object",
                "properties": {
                    "question": { "type": "string" },
                    "context": { "type": "string" },
                    "options": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["question"],
            }),
        ));
        tools.push(spec(
            HAND_OVER,
            "Hand the work to a manager, who finishes it or writes to you and gives it back: for what no answer can settle.",
            json!({
                "type": "object",
                "properties": { "reason": { "type": "string" }, "context": { "type": "string" } },
                "required": ["reason"],
            }),
        ));
    }
    tools.extend(work.client_tools.iter().map(|tool| ToolSpec {
        name: tool.name.clone().into(),
        description: tool.description.clone().into(),
        arguments: tool.arguments.clone(),
    }));
    tools
}

/// What `categorise_claim` takes.
pub(super) fn categorise_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "category": { "title": "Category", "enum": CATEGORIES } },
        "required": ["category"],
        "additionalProperties": false,
    })
}

/// Puts a claim into a category, in the transaction that logs it.
pub(super) async fn categorise(tx: &mut Tx, claim: ClaimId, category: &str) -> Result<(), Refusal> {
    let changed =
        sqlx::query!("update claim set category = $2 where id = $1", claim.0, category).execute(tx.conn()).await?;
    if changed.rows_affected() != 1 {
        return Err(Refusal::fault("the claim of a review is gone"));
    }
    tx.wake(Topic::Claim(claim));
    Ok(())
}

/// What the Auditor reads of a claim. Filers' words are data: they are handed on as they were typed.
pub(super) async fn read_claim(engine: &Engine, id: ClaimId) -> Result<Value, Refusal> {
    let claim = sqlx::query!(
        r#"select c.spent_on, to_char(c.spent_on, 'FMDay') as "weekday!", c.merchant, c.amount_micros, c.currency,
                  c.category, c.explanation, p.name as filer
           from claim c join person p on p.id = c.filer_id where c.id = $1"#,
        id.0,
    )
    .fetch_one(&engine.pool)
    .await?;
    let same_charge = sqlx::query!(
        r#"select c.spent_on, p.name as filer, c.created_at from claim c join person p on p.id = c.filer_id
           where lower(c.merchant) = lower($2) and c.amount_micros = $3 and c.currency = $4 and c.spent_on = $5
             -- Of two claims for one charge the later one is the duplicate.
             and c.id < $1
           order by c.id limit 5"#,
        id.0,
        claim.merchant,
        claim.amount_micros,
        claim.currency,
        claim.spent_on,
    )
    .fetch_all(&engine.pool)
    .await?;
    let usual = usual(engine, id, &claim.category, &claim.currency).await?;
    let same_charge: Vec<_> = same_charge
        .into_iter()
        .map(|other| json!({ "filer": other.filer, "spent_on": other.spent_on, "filed_on": other.created_at.date_naive() }))
        .collect();
    Ok(json!({
        "filer": claim.filer,
        "spent_on": claim.spent_on,
        "weekday": claim.weekday,
        "merchant": claim.merchant,
        "amount": Money::new(claim.amount_micros, claim.currency.clone()).to_string(),
        "amount_micros": claim.amount_micros,
        "category": claim.category,
        "explanation": claim.explanation,
        "usual_micros": usual,
        "usual": usual.map(|micros| Money::new(micros, claim.currency).to_string()),
        "same_charge": same_charge,
    }))
}

/// What is usual for a category: the median of the claims in it, or, where there are few, what most companies pay.
async fn usual(engine: &Engine, except: ClaimId, category: &str, currency: &str) -> Result<Option<i64>, Refusal> {
    let known = sqlx::query!(
        r#"select count(*) as "count!", percentile_disc(0.5) within group (order by amount_micros) as median
           from (select amount_micros from claim
                 where category = $1 and currency = $2 and id <> $3 and amount_micros > 0
                 order by id desc limit 500) recent"#,
        category,
        currency,
        except.0,
    )
    .fetch_one(&engine.pool)
    .await?;
    if known.count >= 10 {
        return Ok(known.median);
    }
    // Euro, and what is near it; for other currencies nothing is said rather than something wrong.
    let near = matches!(currency, "EUR" | "USD" | "GBP" | "CHF");
    let euros = match category {
        "travel" => 400,
        "lodging" => 180,
        "meals" => 60,
        "transport" => 50,
        "equipment" => 300,
        "software" => 200,
        "supplies" => 60,
        "phone" => 60,
        "events" => 500,
        _ => 50,
    };
    Ok(near.then_some(euros * 1_000_000))
}
