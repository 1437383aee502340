//! The API's share of the kinds, as `api.md` has them: approvals, cancel, reassign, resolve, expiry, files.

use engine::testing::Who;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::support::Site;

/// A PNG of one pixel.
pub const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\xdac\xfc\xff\x9fa\0\x05\x83\x02\x7f\x1f\xfd\xc8\xf8\0\0\0\0IEND\xaeB`\x82";

fn refund() -> Value {
    json!({
        "kind": "approval", "message": "Refund 40 EUR?", "ask": ["mia@layby.example", "sam@layby.example"],
        "action": { "tool": "refund", "arguments": { "order": "A-17", "amount": 40 }, "editable": ["/amount"] },
    })
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[sqlx::test(migrations = "../migrations")]
async fn an_approval_is_given_with_its_revision_and_read_back_with_what_runs(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let (mia, sam) = (site.person_token(Who::Mia).await, site.person_token(Who::Sam).await);
    let slot = site.ask(with(refund(), json!({ "needs": 2 }))).await;
    let path = format!("/slots/{}", slot["id"].as_str().unwrap());
    assert_eq!(slot["digest"].as_str().unwrap().len(), 64);
    let answer = format!("{path}/answer");
    let (status, problem) = site.post(&mia, &answer, json!({ "value": { "decision": "approve" } })).await;
    assert_eq!(
        (status, &problem["code"], &problem["errors"][0]["pointer"]),
        (422, &json!("invalid"), &json!("/revision"))
    );
    let outside =
        json!({ "value": { "decision": "approve", "arguments": { "order": "B", "amount": 40 } }, "revision": 1 });
    let (status, problem) = site.post(&mia, &answer, outside).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/value/arguments")));
    let (status, done) = site.post(&mia, &answer, json!({ "value": { "decision": "approve" }, "revision": 1 })).await;
    assert_eq!((status, &done["status"], &done["still_needs"]), (200, &json!("waiting"), &json!(1)));
    let edited =
        json!({ "value": { "decision": "approve", "arguments": { "order": "A-17", "amount": 30 } }, "revision": 1 });
    site.post(&sam, &answer, edited).await;
    let (status, stale) = site.post(&mia, &answer, json!({ "value": { "decision": "approve" }, "revision": 1 })).await;
    assert_eq!((status, &stale["code"]), (409, &json!("stale")));
    let (status, _) = site.post(&mia, &answer, json!({ "value": { "decision": "approve" }, "revision": 2 })).await;
    assert_eq!(status, 200);
    let slot = site.get(&site.agent, &path).await;
    assert_eq!(slot["answer"]["arguments"], json!({ "order": "A-17", "amount": 30 }));
    assert_eq!((&slot["answer"]["edited"], &slot["votes"][1]["by"]), (&json!(true), &json!("mia@layby.example")));

    let slot = site.ask(with(refund(), json!({ "name": "no" }))).await;
    let path = format!("/slots/{}", slot["id"].as_str().unwrap());
    let no = json!({ "value": { "decision": "reject", "reason": "Too much." }, "revision": 1 });
    assert_eq!(site.post(&mia, &format!("{path}/answer"), no).await.0, 200);
    let slot = site.get(&site.agent, &path).await;
    assert_eq!((&slot["answer"]["value"]["reason"], &slot["answer"]["arguments"]), (&json!("Too much."), &Value::Null));
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn cancel_reassign_and_resolve_do_what_the_contract_says_for_whom_it_says(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let (mia, sam, noor) =
        (site.person_token(Who::Mia).await, site.person_token(Who::Sam).await, site.person_token(Who::Noor).await);
    let question =
        |name: &str| json!({ "kind": "question", "message": "Why?", "name": name, "ask": ["mia@layby.example"] });
    let slot = site.ask(question("a")).await;
    let path = format!("/slots/{}", slot["id"].as_str().unwrap());
    for (token, call, body, expected) in [
        (&mia, "cancel", json!({ "reason": "x" }), (403, "not_yours")),
        (&sam, "cancel", json!({ "reason": "x" }), (404, "not_found")),
        (&site.agent, "cancel", json!({ "reason": " " }), (422, "invalid")),
        (&site.agent, "cancel", json!({}), (422, "invalid")),
        (&site.agent, "reassign", json!({ "to": "sam@layby.example", "reason": "x" }), (403, "forbidden")),
        (&mia, "reassign", json!({ "to": "nobody@x.example", "reason": "x" }), (422, "invalid")),
        (&mia, "reassign", json!({ "to": "sam@layby.example", "reason": "" }), (422, "invalid")),
    ] {
        let (status, problem) = site.post(token, &format!("{path}/{call}"), body.clone()).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{call} {body}: {problem}");
    }
    assert_eq!(
        site.post(&mia, &format!("{path}/reassign"), json!({ "to": "sam@layby.example", "reason": "Sam knows." }))
            .await
            .0,
        200
    );
    assert_eq!(site.get(&site.agent, &path).await["asked"], json!(["sam@layby.example"]));
    assert_eq!(site.post(&site.agent, &format!("{path}/cancel"), json!({ "reason": "Settled." })).await.0, 200);
    assert_eq!(site.get(&site.agent, &path).await["outcome"]["reason"], json!("Settled."));
    assert_eq!(
        site.post(&noor, &format!("{path}/cancel"), json!({ "reason": "x" })).await.1["code"],
        json!("cancelled")
    );

    let first = site.ask(question("b")).await;
    let task = first["task_id"].as_str().unwrap();
    let second = site.ask(with(question("c"), json!({ "task_id": task, "schema": { "type": "integer" } }))).await;
    let resolve = format!("/tasks/{task}/resolve");
    let answers = |value: Value| json!({ "answers": [{ "slot_id": first["id"], "value": "Because." }, { "slot_id": second["id"], "value": value }] });
    let (status, problem) = site.post(&mia, &resolve, answers(json!("two"))).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/answers/1/value")));
    assert_eq!(
        site.get(&site.agent, &format!("/slots/{}", first["id"].as_str().unwrap())).await["status"],
        json!("waiting")
    );
    let (status, done) = site.post(&mia, &resolve, answers(json!(2))).await;
    assert_eq!((status, &done["items"][1]["status"]), (200, &json!("answered")), "{done}");
    let (status, late) = site.post(&mia, &resolve, answers(json!(2))).await;
    assert_eq!(
        (status, &late["code"], &late["errors"][0]["pointer"]),
        (409, &json!("already_answered"), &json!("/answers/0"))
    );
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_due_date_is_moved_by_who_may_and_reminders_are_taken(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let (mia, noor) = (site.person_token(Who::Mia).await, site.person_token(Who::Noor).await);
    let question = json!({
        "kind": "question", "message": "Why?", "ask": ["mia@layby.example"], "target": "4h",
        "remind": { "after": "1h", "every": "4h", "most": 3 },
    });
    let slot = site.ask(question).await;
    let path = format!("/slots/{}", slot["id"].as_str().unwrap());
    let due = |body: Value| with(json!({ "reason": "They are away." }), body);
    let at = "2031-03-05T12:00:00Z";
    for (token, body, expected) in [
        (&mia, due(json!({ "due_at": at })), (403, "forbidden")),
        (&noor, due(json!({})), (422, "invalid")),
        (&noor, due(json!({ "due_at": at, "expires_at": at })), (422, "invalid")),
        (&noor, due(json!({ "due_at": "tomorrow" })), (422, "invalid")),
        (&noor, json!({ "due_at": at, "reason": " " }), (422, "invalid")),
        (&site.agent, due(json!({ "due_at": "2020-01-01T00:00:00Z" })), (422, "invalid")),
    ] {
        let (status, problem) = site.post(token, &format!("{path}/due"), body.clone()).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{body}: {problem}");
    }
    assert_eq!(site.post(&site.agent, &format!("{path}/due"), due(json!({ "due_at": at }))).await.0, 200);
    assert_eq!(site.get(&mia, &path).await["due_at"], json!(at));
    let bad = json!({ "kind": "question", "message": "x", "remind": { "after": "soon" } });
    assert_eq!(site.post(&site.agent, "/slots", bad).await.1["errors"][0]["pointer"], json!("/remind/after"));
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn files_go_both_ways_are_what_their_content_says_and_are_seen_by_who_may(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let (mia, sam) = (site.person_token(Who::Mia).await, site.person_token(Who::Sam).await);
    let (status, page) = site.upload(&site.agent, "../a\"b.html", b"<script>alert(1)</script>").await;
    assert_eq!(status, 201, "{page}");
    assert_eq!(site.upload(&mia, "x.png", b"<script>alert(1)</script>").await.0, 422);
    assert_eq!(site.upload(&mia, "x.exe", b"MZ\x90\0").await.0, 422);
    assert_eq!(site.upload(&mia, "x.png", b"").await.0, 422);
    let huge = vec![b'%'; 10_000_001];
    assert_eq!(site.upload(&mia, "x.pdf", &huge).await.0, 422);
    let slot = site.ask(json!({
        "kind": "question", "message": "The receipt?", "ask": ["mia@layby.example"], "attachments": [page["id"]],
        "schema": { "type": "object", "required": ["receipt"], "properties": { "receipt": { "type": "string", "format": "file", "contentMediaType": "image/png" } } },
    })).await;
    let path = format!("/slots/{}", slot["id"].as_str().unwrap());
    // Used once: another question cannot have it too.
    let again = json!({ "kind": "question", "message": "Again?", "attachments": [page["id"]] });
    assert_eq!(site.post(&site.agent, "/slots", again).await.1["errors"][0]["pointer"], json!("/attachments"));
    let got = site.fetch(&mia, &format!("/files/{}", page["id"].as_str().unwrap())).await;
    assert_eq!(got.headers()["content-type"], "text/plain");
    let disposition = got.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert!(disposition.starts_with("attachment; filename=\"ab.html\""), "{disposition}");
    assert_eq!(got.headers()["x-content-type-options"], "nosniff");
    assert_eq!(site.fetch(&sam, &format!("/files/{}", page["id"].as_str().unwrap())).await.status(), 404);

    let (_, picture) = site.upload(&mia, "receipt.png", PIXEL).await;
    let (_, pdf) = site.upload(&mia, "receipt.pdf", b"%PDF-1.7\n").await;
    let (_, other) = site.upload(&sam, "other.png", PIXEL).await;
    let answer = |id: &Value| json!({ "value": { "receipt": id } });
    for (id, detail) in
        [(&pdf["id"], "type image/png"), (&other["id"], "Choose a file"), (&json!("none"), "Choose a file")]
    {
        let (status, problem) = site.post(&mia, &format!("{path}/answer"), answer(id)).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/value/receipt")));
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
    }
    assert_eq!(site.post(&mia, &format!("{path}/answer"), answer(&picture["id"])).await.0, 200);
    let slot = site.get(&site.agent, &path).await;
    assert_eq!(slot["answer"]["files"][0]["name"], json!("receipt.png"));
    let got = site.fetch(&site.agent, &format!("/files/{}", picture["id"].as_str().unwrap())).await;
    assert_eq!(got.headers()["content-type"], "image/png");
    assert_eq!(got.bytes().await.unwrap().as_ref(), PIXEL);
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_expired_with_a_default_carries_it_and_says_so(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let slot = site.ask(json!({
        "kind": "question", "message": "Which way?", "ask": ["mia@layby.example"], "expires_in": "1h", "on_expiry": "default",
        "default": "post", "options": [{ "value": "post", "label": "By post" }, { "value": "shop", "label": "In the shop" }],
    })).await;
    site.advance(chrono::Duration::hours(2)).await;
    let slot = site.get(&site.agent, &format!("/slots/{}", slot["id"].as_str().unwrap())).await;
    assert_eq!((&slot["status"], &slot["answer"]), (&json!("expired"), &json!({ "value": "post", "defaulted": true })));
    assert_eq!(slot["outcome"]["by"], Value::Null);
    let bad = json!({ "kind": "question", "message": "x", "expires_in": "1h", "on_expiry": "default", "default": 7, "options": [{ "value": 1, "label": "One" }] });
    assert_eq!(site.post(&site.agent, "/slots", bad).await.1["errors"][0]["pointer"], json!("/default"));
    site.stop().await;
}
