//! The built-in model: plain rules that need no key. It reads the claim, asks about what the record cannot explain, one
//! question at a time, and hands back a verdict. Everything it knows is in the conversation.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{Call, Model, ModelError, Reply, Request};
use crate::agent::{
    conversation::{Turn, TurnKind, called},
    tools::{ASK_PERSON, CATEGORISE, HAND_BACK, READ_CLAIM},
};

pub(super) struct Rules;

impl Model for Rules {
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { Ok(next(request.turns)) })
    }
}

/// The next reply, from the conversation alone.
fn next(turns: &[Turn]) -> Reply {
    let results = || turns.iter().filter(|turn| turn.kind == TurnKind::Result);
    if turns.iter().any(|turn| turn.kind == TurnKind::Advice && turn.call_id.is_some()) {
        let said = turns.iter().rev().find_map(|turn| turn.body.get("answer")?.as_str()).unwrap_or_default();
        return hand_back("query", &format!("This claim needs another look. The advice was: “{said}”"));
    }
    let Some(claim) = results().find_map(|turn| turn.body.get("claim")) else {
        return call("I will read the claim first.", READ_CLAIM, json!({}));
    };
    // A category that the merchant's name contradicts is proposed once, whatever comes of it.
    let called = |turn: &&Turn, name: &str| called(turns, turn).as_deref() == Some(name);
    if let Some(category) = better_category(claim)
        && !results().any(|turn| called(&turn, CATEGORISE))
    {
        return call("The category does not fit the merchant.", CATEGORISE, json!({ "category": category }));
    }
    let answers: Vec<&Value> = results().filter(|turn| called(turn, ASK_PERSON)).map(|turn| &turn.body).collect();
    let questions = questions(claim);
    match questions.get(answers.len()) {
        // Told that it may ask no more, it finishes with what it has.
        Some(_) if answers.iter().any(|answer| answer.get("error").is_some()) => verdict(claim, &questions, &answers),
        Some(question) => {
            let arguments =
                json!({ "question": question.text, "context": question.context, "options": question.options });
            call("The record does not explain this, so I ask.", ASK_PERSON, arguments)
        }
        None => verdict(claim, &questions, &answers),
    }
}

/// The category that the merchant's name tells, when it is another than the claim's.
fn better_category(claim: &Value) -> Option<&'static str> {
    const TOLD: [(&str, &str); 6] = [
        ("hotel", "lodging"),
        ("pension", "lodging"),
        ("bahn", "travel"),
        ("airlines", "travel"),
        ("taxi", "transport"),
        ("restaurant", "meals"),
    ];
    let text = |key: &str| claim.get(key).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let (merchant, category) = (text("merchant"), text("category"));
    let (_, told) = TOLD.iter().find(|(part, _)| merchant.contains(part))?;
    (*told != category).then_some(told)
}

struct Question {
    text: String,
    context: String,
    options: &'static [&'static str],
}

const SEPARATE: &str = "Two separate purchases";
const MISTAKE: &str = "The same one, filed twice by mistake";

/// What the record cannot explain.
fn questions(claim: &Value) -> Vec<Question> {
    let text = |key: &str| claim.get(key).and_then(Value::as_str).unwrap_or_default();
    let micros = claim.get("amount_micros").and_then(Value::as_i64).unwrap_or_default();
    let (amount, merchant, day) = (text("amount"), text("merchant"), text("spent_on"));
    let mut questions = Vec::new();
    if let Some(other) = claim.get("same_charge").and_then(|list| list.get(0)) {
        let filer = other.get("filer").and_then(Value::as_str).unwrap_or("Somebody");
        questions.push(Question {
            text: format!("{filer} has already filed {amount} at {merchant} on {day}. Is this another purchase?"),
            context: String::new(),
            options: &[SEPARATE, MISTAKE],
        });
    }
    // A refund or a free trial costs nobody anything.
    if micros <= 0 {
        return questions;
    }
    let weekend = matches!(text("weekday"), "Saturday" | "Sunday");
    let round = micros >= 50_000_000 && micros % 50_000_000 == 0;
    if text("explanation").is_empty() {
        let mut oddities = Vec::new();
        if weekend {
            oddities.push(format!("it was spent on a {}", text("weekday")));
        }
        if round {
            oddities.push("it is a round amount".to_owned());
        }
        let context = match oddities.as_slice() {
            [] => "The claim has no explanation.".to_owned(),
            odd => format!("The claim has no explanation, and {}.", odd.join(" and ")),
        };
        questions.push(Question {
            text: format!("What was the {amount} at {merchant} on {day} for?"),
            context,
            options: &[],
        });
    }
    let usual = claim.get("usual_micros").and_then(Value::as_i64);
    if let Some(usual) = usual.filter(|usual| micros > usual * 3) {
        let times = micros / usual.max(1);
        questions.push(Question {
            text: format!("{amount} is {times} times what is usual for {}. Who agreed to it?", text("category")),
            context: format!("Usual for {}: about {}.", text("category"), text("usual")),
            options: &[],
        });
    }
    questions
}

fn verdict(claim: &Value, questions: &[Question], answers: &[&Value]) -> Reply {
    let text = |key: &str| claim.get(key).and_then(Value::as_str).unwrap_or_default();
    let unanswered = answers.iter().any(|answer| answer.get("answer").is_none());
    if unanswered || answers.len() < questions.len() {
        return hand_back("query", "Not everything about this claim could be explained; a manager should look at it.");
    }
    let said = |answer: &&Value| answer.get("answer").and_then(Value::as_str).unwrap_or_default().to_owned();
    if answers.iter().any(|answer| said(answer) == MISTAKE) {
        return hand_back("query", "This charge was filed twice by mistake; this claim should not be paid.");
    }
    match answers {
        [] => {
            let why = match text("explanation") {
                "" => "There is nothing to pay out.",
                _ => "The record explains it, and the amount is not unusual.",
            };
            hand_back("approve", &format!("{} at {}: approved. {why}", text("amount"), text("merchant")))
        }
        [.., last] => {
            let who = last.get("said").and_then(Value::as_str).unwrap_or("It was explained.");
            hand_back(
                "approve",
                &format!("{} at {}: approved. {who} “{}”", text("amount"), text("merchant"), said(last)),
            )
        }
    }
}

fn hand_back(verdict: &str, summary: &str) -> Reply {
    call("", HAND_BACK, json!({ "verdict": verdict, "summary": summary }))
}

fn call(text: &str, name: &str, arguments: Value) -> Reply {
    let call = Call { id: "call".to_owned(), name: name.to_owned(), arguments };
    Reply { text: text.to_owned(), calls: vec![call], ..Reply::default() }
}
