//! `/claims`: expense claims with their questions and their review.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use engine::{
    FieldError, Refusal,
    claim::{self, CATEGORIES, CURRENCIES, Claim, ClaimForm, Review, ReviewState},
    file,
    ids::ClaimId,
    slot, task,
};
use http::StatusCode;
use leptos::prelude::*;

use super::{Fields, field, slot as slots};
use crate::{
    components::{Alert, Input, TextArea, Wrong, ago, error_at},
    context::Cx,
    page::{Frame, log, page, refused, status},
};

const SHOWN: i64 = 100;

pub(crate) async fn list(cx: Cx) -> Response {
    let claims = match claim::list(&cx.engine, cx.person(), None, SHOWN).await {
        Ok(claims) => claims,
        Err(refusal) => return refused(&cx, &refusal),
    };
    let all = cx.person().sees_all();
    page(&cx, StatusCode::OK, Frame { title: "Claims", live: if all { "tasks" } else { "inbox" } }, move || {
        let list = if claims.is_empty() {
            view! { <div class="empty"><p>"You have filed no claim yet."</p></div> }.into_any()
        } else {
            let lines = claims.into_iter().map(|claim| line(claim, all)).collect_view();
            view! { <ol class="lines" data-keys="true">{lines}</ol> }.into_any()
        };
        view! {
            <div class="heading"><h1>"Claims"</h1><a class="button" href="/claims/new">"New claim"</a></div>
            {list}
        }
        .into_any()
    })
}

fn line(claim: Claim, all: bool) -> impl IntoView {
    let state = claim.review.as_ref().map(state_words).unwrap_or_default();
    let filer = all.then(|| format!("{} · ", claim.filer));
    view! {
        <li><a href=format!("/claims/{}", claim.id)>{claim.merchant} " " <span class="amount">{claim.amount.to_string()}</span></a>
            <small>{filer}{claim.category}" · "{claim.spent_on.to_string()}" · "{state}</small></li>
    }
}

fn state_words(review: &Review) -> String {
    match (review.state, &review.verdict) {
        (ReviewState::Running, _) => "being reviewed".to_owned(),
        (ReviewState::Waiting, _) => {
            format!("waits for {}", review.waiting_on.clone().unwrap_or_else(|| "an answer".to_owned()))
        }
        (ReviewState::Completed, Some(verdict)) if verdict == "approve" => "approved".to_owned(),
        (ReviewState::Completed, _) => "needs a look".to_owned(),
        (ReviewState::Failed, _) => "review failed".to_owned(),
    }
}

pub(crate) async fn new(cx: Cx) -> Response {
    let form =
        ClaimForm { currency: "EUR".to_owned(), spent_on: cx.now.date_naive().to_string(), ..ClaimForm::default() };
    form_page(&cx, StatusCode::OK, form, Vec::new())
}

pub(crate) async fn file(cx: Cx, Fields(fields): Fields) -> Response {
    let form = ClaimForm {
        spent_on: field(&fields, "spent_on"),
        merchant: field(&fields, "merchant"),
        amount: field(&fields, "amount"),
        currency: field(&fields, "currency"),
        category: field(&fields, "category"),
        explanation: field(&fields, "explanation"),
    };
    match filed(&cx, form.clone()).await {
        Ok(id) => Redirect::to(&format!("/claims/{id}")).into_response(),
        Err(refusal) => {
            log(&refusal);
            form_page(&cx, status(&refusal), form, refusal.errors().to_vec())
        }
    }
}

async fn filed(cx: &Cx, form: ClaimForm) -> Result<ClaimId, Refusal> {
    let mut tx = cx.engine.begin().await?;
    let id = claim::file(&mut tx, cx.person(), form).await?;
    tx.commit().await?;
    Ok(id)
}

fn form_page(cx: &Cx, status: StatusCode, form: ClaimForm, errors: Vec<FieldError>) -> Response {
    page(cx, status, Frame { title: "New claim", live: "" }, move || {
        let wrong = (!status.is_success()).then(|| match errors.len() {
            0 => "The claim could not be filed; nothing you typed is lost. Please try again.".to_owned(),
            1 => "One thing needs another look.".to_owned(),
            many => format!("{many} things need another look."),
        });
        let select = |name: &'static str, label: &'static str, choices: &[&'static str], value: &str| {
            let error = error_at(&errors, &format!("/{name}"));
            let mut choices = choices.to_vec();
            choices.retain(|choice| !choice.is_empty());
            let options = choices
                .into_iter()
                .map(|choice| view! { <option value=choice selected=choice == value>{choice}</option> })
                .collect_view();
            let first = (name == "category").then(|| view! { <option value="">"Choose …"</option> });
            view! {
                <div class="field">
                    <label for=name>{label}</label>
                    <select id=name name=name required=true aria-invalid=error.is_some().then_some("true")
                        aria-describedby=format!("{name}-wrong")>{first}{options}</select>
                    <Wrong id=format!("{name}-wrong") sentence=error/>
                </div>
            }
        };
        let explanation = error_at(&errors, "/explanation");
        view! {
            <p class="crumbs"><a href="/claims">"Claims"</a></p>
            <h1>"New claim"</h1>
            {wrong.map(|sentence| view! { <Alert sentence=sentence/> })}
            <form method="post" action="/claims/new" id="new-claim" data-typed="true" class="card">
                <Input name="merchant" label="Who was paid" value=&form.merchant required=true errors=&errors/>
                <div class="row">
                    <Input name="amount" label="Amount" value=&form.amount required=true inputmode="decimal" errors=&errors/>
                    {select("currency", "Currency", &CURRENCIES, &form.currency)}
                </div>
                <div class="row">
                    <Input name="spent_on" label="Spent on" kind="date" value=&form.spent_on required=true errors=&errors/>
                    {select("category", "Category", &CATEGORIES, &form.category)}
                </div>
                <div class="field">
                    <label for="explanation">"What it was for (may stay empty)"</label>
                    <TextArea name="explanation".to_owned() id="explanation".to_owned() value=form.explanation.clone()
                        wrong=explanation.is_some() described_by="explanation-help explanation-wrong".to_owned()/>
                    <p class="faint" id="explanation-help">"A good explanation saves you a question from the Auditor."</p>
                    <Wrong id="explanation-wrong".to_owned() sentence=explanation/>
                </div>
                <button>"File the claim"</button>
            </form>
        }
        .into_any()
    })
}

pub(crate) async fn show(cx: Cx, Path(id): Path<String>) -> Response {
    match read(&cx, &id).await {
        Ok(response) => response,
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn read(cx: &Cx, id: &str) -> Result<Response, Refusal> {
    let id: ClaimId = id.parse().map_err(|_| Refusal::NotFound)?;
    let claim = claim::get(&cx.engine, cx.person(), id).await?;
    let questions = slot::list::of_claim(&cx.engine, id).await?;
    let files = file::of_slots(&cx.engine, &questions.iter().map(|slot| slot.id).collect::<Vec<_>>()).await?;
    let lines = match &claim.review {
        Some(review) => task::record(&cx.engine, review.task_id).await?,
        None => Vec::new(),
    };
    let title = format!("{} {}", claim.merchant, claim.amount);
    let live = format!("claim:{id}");
    let may_restart = cx.person().is_manager();
    Ok(page(cx, StatusCode::OK, Frame { title: &title, live: &live }, || {
        let review = claim.review.clone().map(|review| review_picture(review, id, may_restart));
        let explanation =
            if claim.explanation.is_empty() { "None was given.".to_owned() } else { claim.explanation.clone() };
        view! {
            <p class="crumbs"><a href="/claims">"Claims"</a></p>
            <h1>{claim.merchant.clone()} " " <span class="amount">{claim.amount.to_string()}</span></h1>
            {slots::pending(&questions, &files, cx, &format!("/claims/{id}"))}
            {review}
            <dl class="facts card">
                <dt>"Filed by"</dt><dd>{claim.filer.clone()} " " {ago(claim.created_at, cx.now, cx.person().time_zone())}</dd>
                <dt>"Spent on"</dt><dd>{claim.spent_on.to_string()}</dd>
                <dt>"Category"</dt><dd>{claim.category.clone()}</dd>
                <dt>"What it was for"</dt><dd class="words">{explanation}</dd>
            </dl>
            {slots::history(&questions, &files, cx)}
            <h2>"What happened"</h2>
            {slots::timeline(lines, cx)}
        }
        .into_any()
    }))
}

/// The review as three steps, the present one marked, with words for each.
fn review_picture(review: Review, claim: ClaimId, may_restart: bool) -> impl IntoView {
    let failed = review.state == ReviewState::Failed;
    let last = match (review.state, review.verdict.as_deref()) {
        (ReviewState::Completed, Some("approve")) => "Approved",
        (ReviewState::Completed, _) => "Needs a look",
        (ReviewState::Failed, _) => "Failed",
        _ => "Decided",
    };
    let at = match review.state {
        ReviewState::Running => 1,
        ReviewState::Waiting => 2,
        ReviewState::Completed | ReviewState::Failed => 3,
    };
    let waiting = match review.state {
        ReviewState::Waiting => {
            format!("Waits for {}", review.waiting_on.clone().unwrap_or_else(|| "an answer".to_owned()))
        }
        _ => "Asks when needed".to_owned(),
    };
    let steps = ["Filed".to_owned(), "The Auditor reviews".to_owned(), waiting, last.to_owned()];
    let steps = steps.into_iter().enumerate().map(|(n, words)| {
        let class = if n < at {
            "past"
        } else if n == at {
            "now"
        } else {
            ""
        };
        view! { <li class=class aria-current=(n == at).then_some("step")>{words}</li> }
    });
    let restart = (failed && may_restart).then(|| {
        view! { <form method="post" action=format!("/claims/{claim}/restart")><button>"Review it again"</button></form> }
    });
    let attempt = (review.attempt > 1).then(|| format!(" (attempt {})", review.attempt));
    view! {
        <section class="card review" class:failed=failed data-test="review-state" data-state=review.state.as_str()>
            <h2>"Review" {attempt}</h2>
            <ol class="steps">{steps.collect_view()}</ol>
            {review.summary.map(|summary| view! { <p class="words">{summary}</p> })}
            {restart}
        </section>
    }
}

pub(crate) async fn restart(cx: Cx, Path(id): Path<String>) -> Response {
    match restarted(&cx, &id).await {
        Ok(()) => Redirect::to(&format!("/claims/{id}")).into_response(),
        Err(refusal) => refused(&cx, &refusal),
    }
}

async fn restarted(cx: &Cx, id: &str) -> Result<(), Refusal> {
    let id: ClaimId = id.parse().map_err(|_| Refusal::NotFound)?;
    let mut tx = cx.engine.begin().await?;
    claim::restart_review(&mut tx, cx.person(), id).await?;
    tx.commit().await
}
