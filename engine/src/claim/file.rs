//! Filing a claim: checks what was typed, and starts its review in the same transaction.

use chrono::NaiveDate;

use super::{CATEGORIES, review};
use crate::{
    FieldError, Refusal, Tx,
    actor::PersonActor,
    audit,
    ids::{ClaimId, PersonId},
    money,
};

/// A claim as it was typed.
#[derive(Clone, Debug, Default)]
pub struct ClaimForm {
    pub spent_on: String,
    pub merchant: String,
    pub amount: String,
    pub currency: String,
    pub category: String,
    pub explanation: String,
}

/// Files a claim and starts its review. Needs a transaction. Refuses with `invalid`: a pointer per field
/// (/spent_on, /merchant, /amount, /currency, /category, /explanation).
pub async fn file(tx: &mut Tx, filer: &PersonActor, form: ClaimForm) -> Result<ClaimId, Refusal> {
    let today = tx.now().date_naive();
    let checked = check(form, today)?;
    insert(tx, filer.id, &filer.name, checked).await
}

/// A claim whose particulars have been checked.
pub(crate) struct Checked {
    spent_on: NaiveDate,
    merchant: String,
    amount_micros: i64,
    currency: String,
    category: String,
    explanation: String,
}

pub(crate) fn check(form: ClaimForm, today: NaiveDate) -> Result<Checked, Refusal> {
    let mut errors = Vec::new();
    let mut wrong = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    let spent_on = NaiveDate::parse_from_str(form.spent_on.trim(), "%Y-%m-%d").ok();
    match spent_on {
        None => wrong("/spent_on", "Write the day it was spent, for example 2026-11-30.".to_owned()),
        // A day's grace: today began earlier east of here.
        Some(day) if day > today + chrono::Duration::days(1) => {
            wrong("/spent_on", "This day is in the future: a claim is for what was spent.".to_owned());
        }
        Some(day) if day < today - chrono::Duration::days(3_650) => {
            wrong("/spent_on", "This is more than ten years ago: check the year.".to_owned());
        }
        Some(_) => {}
    }
    let merchant = one_line(&form.merchant);
    match merchant.chars().count() {
        0 => wrong("/merchant", "Say who was paid.".to_owned()),
        1..=200 => {}
        _ => wrong("/merchant", "Write at most 200 characters.".to_owned()),
    }
    let currency = form.currency.trim().to_uppercase();
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
        wrong("/currency", "Choose a currency: three letters, for example EUR.".to_owned());
    }
    let amount = money::parse(&form.amount, &currency);
    if let Err(detail) = &amount {
        wrong("/amount", detail.clone());
    }
    if !CATEGORIES.contains(&form.category.as_str()) {
        wrong("/category", "Choose a category.".to_owned());
    }
    let explanation = form.explanation.replace("\r\n", "\n").trim().to_owned();
    if explanation.chars().count() > 4_000 {
        wrong("/explanation", "Write at most 4,000 characters.".to_owned());
    }
    if explanation.contains('\0') || merchant.contains('\0') {
        wrong("/explanation", "A text cannot contain the character U+0000.".to_owned());
    }
    match (spent_on, amount) {
        (Some(spent_on), Ok(amount_micros)) if errors.is_empty() => {
            Ok(Checked { spent_on, merchant, amount_micros, currency, category: form.category, explanation })
        }
        _ => Err(Refusal::Invalid(errors)),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) async fn insert(tx: &mut Tx, filer: PersonId, filer_name: &str, claim: Checked) -> Result<ClaimId, Refusal> {
    let id: ClaimId = tx.new_id();
    let now = tx.now();
    sqlx::query!(
        "insert into claim (id, filer_id, spent_on, merchant, amount_micros, currency, category, explanation, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        id.0,
        filer.0,
        claim.spent_on,
        claim.merchant,
        claim.amount_micros,
        claim.currency,
        claim.category,
        claim.explanation,
        now,
    )
    .execute(tx.conn())
    .await?;
    let by = format!("person:{filer}");
    audit::write(tx, &by, "claim.filed", &format!("claim:{id}"), None).await?;
    review::start(tx, id, 1, &by, &format!("{filer_name} filed this claim, and its review began.")).await?;
    Ok(id)
}
