//! The program from outside: real servers on loopback, spoken to over HTTP.

mod clocks;
mod faults;
mod kinds;
mod secrets;
mod starting;
mod support;

use engine::testing::Who;
use serde_json::{Value, json};
use sqlx::PgPool;
use support::Site;

#[sqlx::test(migrations = "../migrations")]
async fn of_fifty_deposits_at_once_on_two_instances_one_wins_and_the_others_are_told_who(pool: PgPool) {
    let site = Site::start(pool, 2).await;
    let slot = site.ask(json!({ "kind": "question", "message": "Refund?", "ask": ["group:finance"] })).await;
    let tokens = [site.person_token(Who::Sam).await, site.person_token(Who::Noor).await];
    let tries = (0..50).map(|n| {
        let url = format!("{}/api/v1/slots/{}/answer", site.urls[n % 2], slot["id"].as_str().unwrap());
        let request =
            site.client.post(url).bearer_auth(&tokens[n / 2 % 2]).json(&json!({ "value": format!("answer {n}") }));
        async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.json::<Value>().await.unwrap())
        }
    });
    let answers = futures::future::join_all(tries).await;
    assert_eq!(answers.iter().filter(|(status, _)| *status == 200).count(), 1);
    let losers: Vec<_> = answers.iter().filter(|(status, _)| *status == 409).collect();
    assert_eq!(losers.len(), 49);
    for (_, problem) in losers {
        assert_eq!(problem["code"], "already_answered");
        assert!(problem["detail"].as_str().unwrap().contains("answered this first"), "{problem}");
    }
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn an_answer_at_one_instance_ends_the_long_poll_at_the_other(pool: PgPool) {
    let site = Site::start(pool, 2).await;
    let slot = site.ask(json!({ "kind": "question", "message": "How much?", "schema": { "type": "number" }, "ask": ["mia@layby.example"] })).await;
    let id = slot["id"].as_str().unwrap();
    let poll = site.client.get(format!("{}/api/v1/slots/{id}?wait=55s", site.urls[1])).bearer_auth(&site.agent).send();
    let answer = async {
        let token = site.person_token(Who::Mia).await;
        let answer = site.client.post(format!("{}/api/v1/slots/{id}/answer", site.urls[0]));
        let answered = answer.bearer_auth(token).json(&json!({ "value": 40 })).send().await.unwrap();
        assert_eq!(answered.status(), 200);
    };
    let (polled, ()) = tokio::join!(poll, answer);
    let slot: Value = polled.unwrap().json().await.unwrap();
    assert_eq!(
        (&slot["status"], &slot["answer"]["value"], &slot["outcome"]["by"]),
        (&json!("answered"), &json!(40), &json!("mia@layby.example"))
    );
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn the_api_refuses_with_problem_details_and_a_stable_code(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let slot = site.ask(json!({ "kind": "question", "message": "Refund?", "ask": ["mia@layby.example"] })).await;
    let answer = format!("/slots/{}/answer", slot["id"].as_str().unwrap());
    let (mia, sam) = (site.person_token(Who::Mia).await, site.person_token(Who::Sam).await);
    let question = |extra: Value| {
        let mut body = json!({ "kind": "question", "message": "Why?" });
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    };
    let agent = site.agent.clone();
    for (token, path, body, status, code, pointer) in [
        (None, "/slots", question(json!({})), 401, "unauthorized", None),
        (Some("lby_wrong"), "/slots", question(json!({})), 401, "unauthorized", None),
        (Some(mia.as_str()), "/slots", question(json!({})), 403, "forbidden", None),
        (Some(&agent), "/slots", question(json!({ "expires": "24h" })), 422, "invalid", Some("/expires")),
        (Some(&agent), "/slots", question(json!({ "expires_in": "soon" })), 422, "invalid", Some("/expires_in")),
        (Some(&agent), "/slots", question(json!({ "ask": ["nobody@x.example"] })), 422, "invalid", Some("/ask/0")),
        (Some(&agent), "/slots", question(json!({ "kind": "approval" })), 422, "invalid", Some("/action")),
        (Some(&agent), "/slots", json!({ "kind": "question" }), 422, "invalid", Some("/message")),
        (Some(&agent), answer.as_str(), json!({ "value": "x" }), 403, "forbidden", None),
        (Some(&sam), answer.as_str(), json!({ "value": "x" }), 404, "not_found", None),
        (Some(&mia), answer.as_str(), json!({ "value": 7 }), 422, "invalid_answer", Some("/value")),
        (Some(&mia), answer.as_str(), json!({ "value": "x", "revision": 9 }), 409, "stale", None),
        (Some(&mia), answer.as_str(), json!({ "value": "nul \0" }), 422, "invalid", Some("")),
        (Some(&agent), "/slots", question(json!({ "context": "x".repeat(2_000_000) })), 413, "too_large", None),
        (Some(&mia), "/nowhere", json!({}), 404, "not_found", None),
    ] {
        let mut request = site.client.post(format!("{}/api/v1{path}", site.urls[0])).json(&body);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path} {body}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!((&problem["status"], &problem["code"]), (&json!(status), &json!(code)), "{path} {body}: {problem}");
        assert_eq!(problem["errors"][0]["pointer"].as_str(), pointer, "{path} {body}: {problem}");
    }
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn the_same_idempotency_key_gives_the_same_answer_once(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let post = |message: &str| {
        let request = site.client.post(format!("{}/api/v1/slots", site.urls[0])).bearer_auth(&site.agent);
        let request = request.header("idempotency-key", "k-1").json(&json!({ "kind": "question", "message": message }));
        async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.json::<Value>().await.unwrap())
        }
    };
    let (first, second) = tokio::join!(post("Why?"), post("Why?"));
    assert_eq!((first.0, second.0), (201, 201));
    assert_eq!(first.1["id"], second.1["id"]);
    let other = post("Something else?").await;
    assert_eq!((other.0, &other.1["code"]), (409, &json!("idempotency_mismatch")));
    let tasks: i64 = sqlx::query_scalar("select count(*) from task").fetch_one(&site.pool).await.unwrap();
    assert_eq!(tasks, 1);
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn another_sites_page_can_change_nothing_and_ours_run_no_inline_script(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    let foreign = site.client.post(format!("{}/sign-in", site.urls[0])).header("sec-fetch-site", "cross-site");
    let foreign = foreign.form(&[("email", "mia@layby.example"), ("password", "layby-demo")]).send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    assert!(foreign.headers().get("set-cookie").is_none());
    site.sign_in(Who::Noor).await;
    for path in ["/", "/claims", "/claims/new", "/tasks", "/account", "/nowhere"] {
        let response = site.client.get(format!("{}{path}", site.urls[0])).send().await.unwrap();
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert!(response.headers().contains_key("x-request-id"));
        let html = response.text().await.unwrap();
        assert!(html.trim_end().ends_with("</html>"), "{path}");
        assert_eq!(html.matches("<script").count(), 1, "{path}");
        assert!(!html.contains("<style") && !html.contains(" style="), "{path}");
    }
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_is_no_form_is_refused_with_a_page_and_a_strange_character_is_no_fault(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    site.sign_in(Who::Sam).await;
    let url = format!("{}/claims/new", site.urls[0]);
    let (form, kind) = ("application/x-www-form-urlencoded", "content-type");
    for (body, kind_of, status) in [
        (b"\xff=%ff&merchant".to_vec(), form, 422),
        (b"{}".to_vec(), "application/json", 415),
        (Vec::new(), form, 422),
        (b"merchant=a%00b&amount=%00&explanation=%00".to_vec(), form, 422),
        (vec![b'a'; 2_000_000], form, 413),
    ] {
        let response = site.client.post(&url).header(kind, kind_of).body(body.clone()).send().await.unwrap();
        assert_eq!(response.status(), status, "{:?}", &body[..body.len().min(40)]);
        let html = response.text().await.unwrap();
        assert!(html.contains("<h1>") && html.trim_end().ends_with("</html>"), "{html}");
    }
    site.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn every_page_sends_a_stranger_to_the_sign_in_page(pool: PgPool) {
    let site = Site::start(pool, 1).await;
    for path in ["/", "/claims", "/claims/new", "/tasks", "/account", "/slots/x", "/claims/x", "/tasks/x"] {
        let response = site.client.get(format!("{}{path}", site.urls[0])).send().await.unwrap();
        assert_eq!(response.status(), 303, "{path}");
        assert!(response.headers()["location"].to_str().unwrap().starts_with("/sign-in?next=/"), "{path}");
    }
    for path in ["/claims/new", "/slots/x", "/tasks/x/stop", "/claims/x/restart", "/account", "/account/password"] {
        let response =
            site.client.post(format!("{}{path}", site.urls[0])).form(&[("reason", "x")]).send().await.unwrap();
        assert_eq!(response.status(), 303, "{path}");
    }
    assert_eq!(site.client.get(format!("{}/live?topics=inbox", site.urls[0])).send().await.unwrap().status(), 401);
    site.stop().await;
}
