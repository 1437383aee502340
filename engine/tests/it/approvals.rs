//! Approvals: what is shown is what runs, once; k of n; nobody decides for themselves; and what the loop does with them.

use engine::{
    agent::{
        self, ClientTool, Rule,
        model::{Call, Reply},
    },
    ids::{ClaimId, TaskId},
    slot::{self, Kind, NewSlot, Slot, Status},
    task,
    testing::{TestDesk, Who, approve, approve_amount, calls, hands_back, refund, reject},
};
use serde_json::{Value, json};
use sqlx::PgPool;

const NONE: Vec<Reply> = Vec::new();
const THREE: [&str; 3] = ["mia@layby.example", "sam@layby.example", "noor@layby.example"];

async fn category(desk: &TestDesk, claim: ClaimId) -> String {
    desk.claim(claim).await.category
}

async fn results(desk: &TestDesk, task: TaskId) -> Vec<Value> {
    sqlx::query_scalar("select body from turn where task_id = $1 and kind = 'result' order by seq")
        .bind(task.0)
        .fetch_all(&desk.engine.pool)
        .await
        .unwrap()
}

fn proposes(category: &str) -> Reply {
    calls("categorise_claim", json!({ "category": category }))
}

async fn proposed(desk: &TestDesk) -> (ClaimId, Slot) {
    let claim = desk.file_claim(Who::Mia, "Dinner").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    (claim, slot)
}

#[sqlx::test(migrations = "../migrations")]
async fn an_edit_is_the_persons_makes_a_new_digest_and_is_what_the_agent_gets(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, refund(&THREE, 1)).await.unwrap();
    desk.decide(Who::Mia, slot.id, 1, approve_amount(30)).await.unwrap();
    let kept = desk.slot(slot.id).await;
    assert_eq!(Value::Object(kept.arguments().unwrap().clone()), json!({ "order": "A-17", "amount": 30 }));
    assert_ne!(kept.digest, slot.digest);
    assert_eq!(
        kept.digest.unwrap(),
        slot::action::digest("refund", json!({ "amount": 30, "order": "A-17" }).as_object().unwrap())
    );
    assert_eq!(kept.edited_by.as_deref(), Some("Mia Lindqvist"));
    // What was asked stays readable beside it.
    assert_eq!(Value::Object(kept.action.unwrap().arguments), json!({ "order": "A-17", "amount": 40 }));
    assert!(desk.record(slot.task_id).await.iter().any(|line| line.contains("amount from 40 to 30")));
}

#[sqlx::test(migrations = "../migrations")]
async fn two_of_three_approve_nobody_counts_twice_and_one_no_ends_it(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, refund(&THREE, 2)).await.unwrap();
    assert_eq!(desk.decide(Who::Mia, slot.id, 1, approve()).await.unwrap().still, Some(1));
    assert_eq!(desk.decide(Who::Mia, slot.id, 1, approve()).await.unwrap_err().code(), "not_yours");
    assert_eq!((desk.inbox(Who::Mia).await, desk.inbox(Who::Sam).await), (0, 1), "who voted has nothing left to do");
    assert_eq!(desk.slot(slot.id).await.votes.len(), 1);
    assert_eq!(desk.decide(Who::Sam, slot.id, 1, approve()).await.unwrap().still, None);
    let done = desk.slot(slot.id).await;
    assert_eq!((done.status, done.votes.len(), done.is_approved()), (Status::Answered, 2, true));

    let slot = desk.ask(&agent, NewSlot { name: Some("no".into()), ..refund(&THREE, 3) }).await.unwrap();
    desk.decide(Who::Mia, slot.id, 1, approve()).await.unwrap();
    desk.decide(Who::Sam, slot.id, 1, reject("Too much.")).await.unwrap();
    let done = desk.slot(slot.id).await;
    assert_eq!((done.status, done.is_approved()), (Status::Answered, false));
    assert_eq!(desk.decide(Who::Noor, slot.id, 1, approve()).await.unwrap_err().code(), "already_answered");
}

#[sqlx::test(migrations = "../migrations")]
async fn an_edit_among_several_voids_the_votes_for_what_was_asked_before(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let slot = desk.ask(&agent, refund(&THREE, 2)).await.unwrap();
    desk.decide(Who::Mia, slot.id, 1, approve()).await.unwrap();
    assert_eq!(desk.decide(Who::Sam, slot.id, 1, approve_amount(10)).await.unwrap().still, Some(1));
    let changed = desk.slot(slot.id).await;
    assert_eq!((changed.revision, changed.votes.len()), (2, 1));
    // Noor has the page from before: what she saw is not what would run.
    assert_eq!(desk.decide(Who::Noor, slot.id, 1, approve()).await.unwrap_err().code(), "stale");
    // Mia approved something else, so hers is a new decision.
    desk.decide(Who::Mia, slot.id, 2, approve()).await.unwrap();
    let done = desk.slot(slot.id).await;
    assert_eq!((done.is_approved(), done.arguments().unwrap()["amount"].clone()), (true, json!(10)));
}

#[sqlx::test(migrations = "../migrations")]
async fn of_many_votes_at_once_on_two_instances_exactly_as_many_count_as_are_needed(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let second = desk.second_instance().await;
    for round in 0..15 {
        let slot = desk.ask(&agent, NewSlot { name: Some(round.to_string()), ..refund(&THREE, 2) }).await.unwrap();
        let votes =
            [Who::Mia, Who::Sam, Who::Noor, Who::Mia, Who::Sam, Who::Noor].into_iter().enumerate().map(|(n, who)| {
                let engine = if n % 2 == 0 { desk.engine.clone() } else { second.clone() };
                let desk = &desk;
                async move {
                    let actor = desk.actor(who).await;
                    let mut tx = engine.single().await.unwrap();
                    let result = slot::deposit(&mut tx, &actor, slot.id, Some(1), approve(), None).await;
                    tx.commit().await.unwrap();
                    result
                }
            });
        let results = futures::future::join_all(votes).await;
        let counted: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        assert_eq!(counted.len(), 2, "{results:?}");
        assert_eq!(counted.iter().filter(|deposited| deposited.still.is_none()).count(), 1);
        let done = desk.slot(slot.id).await;
        assert_eq!((done.status, done.votes.len()), (Status::Answered, 2));
        assert_ne!(done.votes[0].id, done.votes[1].id);
    }
    second.pool.close().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn nobody_approves_what_is_for_themselves_in_any_role_or_group(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![proposes("travel"), hands_back("Done.")]).await;
    // Noor files a claim herself: the proposal about it goes to the sponsor, who is Noor, and so to the managers, who
    // are Noor as well. Nobody can: the alarm says so, and her own yes is refused all the same.
    let claim = desk.file_claim(Who::Noor, "Dinner").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    assert_eq!(slot.kind, Kind::Approval);
    assert!(slot.alarm.is_some());
    let own = desk.decide(Who::Noor, slot.id, 1, approve()).await.unwrap_err();
    assert_eq!(own.code(), "not_yours");
    assert!(own.to_string().contains("nobody approves what they asked for themselves"), "{own}");
    // Nor does she choose who decides it: another manager does.
    assert_eq!(desk.reassign(Who::Noor, slot.id, "sam@layby.example").await.unwrap_err().code(), "not_yours");
    sqlx::query("insert into person_role (person_id, role) values ($1, 'manager')")
        .bind(desk.id(Who::Sam).0)
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(desk.reassign(Who::Sam, slot.id, "noor@layby.example").await.unwrap_err().errors()[0].pointer, "/to");
    desk.decide(Who::Sam, slot.id, 1, approve()).await.unwrap();
    desk.settle().await;
    assert_eq!(category(&desk, claim).await, "travel");
}

#[sqlx::test(migrations = "../migrations")]
async fn what_was_approved_runs_once_and_an_edit_runs_as_edited(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![proposes("travel"), hands_back("Done.")]).await;
    let (claim, slot) = proposed(&desk).await;
    assert_eq!((slot.kind, slot.assignee_id), (Kind::Approval, Some(desk.id(Who::Noor))));
    assert_eq!(category(&desk, claim).await, "meals", "nothing runs before the yes");
    let edited = json!({ "decision": "approve", "arguments": { "category": "nonsense" } });
    assert_eq!(
        desk.decide(Who::Noor, slot.id, 1, edited).await.unwrap_err().errors()[0].pointer,
        "/arguments/category"
    );
    let edited = json!({ "decision": "approve", "arguments": { "category": "events" } });
    desk.decide(Who::Noor, slot.id, 1, edited).await.unwrap();
    assert_eq!(category(&desk, claim).await, "meals", "approving and running are two things");
    desk.settle().await;
    assert_eq!(category(&desk, claim).await, "events");
    let task = desk.task_of(claim).await;
    assert_eq!((task.status, task.questions), (task::Status::Done, 0), "a proposal is no question");
    let results = results(&desk, task.id).await;
    assert_eq!(results.len(), 1);
    assert_eq!((&results[0]["arguments"], &results[0]["edited"]), (&json!({ "category": "events" }), &json!(true)));
    assert!(desk.slot(slot.id).await.used_at.is_some());
    assert_eq!(desk.script.times_asked(), 2);
}

#[sqlx::test(migrations = "../migrations")]
async fn an_approval_whose_arguments_were_changed_underneath_never_runs(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![proposes("travel"), hands_back("Done.")]).await;
    let (claim, slot) = proposed(&desk).await;
    desk.decide(Who::Noor, slot.id, 1, approve()).await.unwrap();
    // Somebody with access to the database writes other arguments under the approval.
    sqlx::query("update slot set arguments = '{\"category\": \"phone\"}' where id = $1")
        .bind(slot.id.0)
        .execute(&desk.engine.pool)
        .await
        .unwrap();
    desk.settle().await;
    assert_eq!(category(&desk, claim).await, "meals");
    assert!(
        results(&desk, desk.task_of(claim).await.id).await[0]["error"].as_str().unwrap().contains("not what would run")
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_permit_lets_an_agent_act_alone_or_never(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![proposes("travel"), hands_back("Done.")]).await;
    let first = desk.file_claim(Who::Mia, "Dinner").await;
    let auditor = desk.task_of(first).await.agent_id;
    for (rule, after) in [(Rule::Alone, "travel"), (Rule::Never, "meals")] {
        let mut tx = desk.engine.begin().await.unwrap();
        agent::permit(&mut tx, "system", auditor, "categorise_claim", rule).await.unwrap();
        tx.commit().await.unwrap();
        let claim = desk.file_claim(Who::Mia, "Dinner").await;
        desk.settle().await;
        assert_eq!(category(&desk, claim).await, after);
        assert_eq!(desk.task_of(claim).await.status, task::Status::Done);
    }
    assert_eq!(desk.count("select count(*) from slot").await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn several_of_one_turn_are_answered_all_or_none(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let first =
        desk.ask(&agent, NewSlot { ask: vec!["mia@layby.example".into()], ..NewSlot::question("Why?") }).await.unwrap();
    let more = |name: &str, new: NewSlot| NewSlot { task_id: Some(first.task_id), name: Some(name.to_owned()), ..new };
    let number = NewSlot {
        schema: Some(json!({ "type": "integer" })),
        ask: vec!["mia@layby.example".into()],
        ..NewSlot::question("How many?")
    };
    let second = desk.ask(&agent, more("n", number)).await.unwrap();
    let third = desk.ask(&agent, more("a", refund(&["mia@layby.example"], 1))).await.unwrap();
    let mia = desk.actor(Who::Mia).await;
    let resolve = async |values: [Value; 3]| {
        let slots = [first.id, second.id, third.id];
        let answers =
            slots.into_iter().zip(values).map(|(slot, value)| slot::Resolved { slot, revision: Some(1), value });
        let mut tx = desk.engine.begin().await.unwrap();
        let resolved = slot::resolve(&mut tx, &mia, first.task_id, answers.collect()).await;
        if resolved.is_ok() {
            tx.commit().await.unwrap();
        }
        resolved
    };
    let failed = resolve([json!("Because."), json!("three"), json!({ "decision": "reject" })]).await.unwrap_err();
    let pointers: Vec<_> = failed.refusal.errors().iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/answers/1/value", "/answers/2/value/reason"], "all that is wrong is said at once");
    assert_eq!(desk.count("select count(*) from slot where status = 'answered'").await, 0);
    assert_eq!(desk.count("select count(*) from record_line where kind = 'answered'").await, 0);
    resolve([json!("Because."), json!(3), reject("Not this one.")]).await.unwrap();
    assert_eq!(desk.count("select count(*) from slot where status = 'answered'").await, 3);
    assert_eq!(desk.count("select count(*) from task where status = 'working' and open_slots = 0").await, 1);
    let late = resolve([json!("x"), json!(4), approve()]).await.unwrap_err();
    assert_eq!((late.at, late.refusal.code()), (Some(0), "already_answered"));
}

#[sqlx::test(migrations = "../migrations")]
async fn a_manager_takes_work_over_and_gives_it_back_or_finishes_it(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![calls("ask_person", json!({ "question": "Why?" })), hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let question = desk.waiting(claim).await.remove(0);
    let task = question.task_id;
    assert_eq!(desk.take_over(Who::Mia, task).await.unwrap_err().code(), "forbidden");
    assert_eq!(desk.take_over(Who::Sam, task).await.unwrap_err().code(), "not_found");
    let takeover = desk.take_over(Who::Noor, task).await.unwrap();
    assert_eq!(desk.take_over(Who::Ada, task).await.unwrap_err().code(), "task_ended");
    // Given back with words: they stand in the conversation, and the question that was open still is.
    desk.answer(Who::Noor, takeover, json!({ "messages": ["Mind the guest list."] })).await.unwrap();
    let advice: Value = sqlx::query_scalar("select body from turn where task_id = $1 and kind = 'advice'")
        .bind(task.0)
        .fetch_one(&desk.engine.pool)
        .await
        .unwrap();
    assert_eq!(advice["answer"], json!("Mind the guest list."));
    assert_eq!(desk.task_of(claim).await.status, task::Status::Waiting);
    // Taken over again and finished: the work is done, with the open question withdrawn.
    let takeover = desk.take_over(Who::Noor, task).await.unwrap();
    desk.answer(Who::Noor, takeover, json!({ "result": { "verdict": "approve", "summary": "I know this dinner." } }))
        .await
        .unwrap();
    let done = desk.task_of(claim).await;
    assert_eq!(
        (done.status, done.result.unwrap()["summary"].clone()),
        (task::Status::Done, json!("I know this dinner."))
    );
    assert_eq!(desk.slot(question.id).await.status, Status::Cancelled);
    desk.settle().await;
    assert_eq!(desk.script.times_asked(), 1, "nothing ran after the takeover");
    assert_eq!(done.questions, 1, "a takeover is no question");
}

#[sqlx::test(migrations = "../migrations")]
async fn an_agent_hands_its_work_over_and_goes_on_with_what_it_is_told(pool: PgPool) {
    let desk = TestDesk::new(
        pool,
        vec![calls("hand_over", json!({ "reason": "The customer wants a person." })), hands_back("Done.")],
    )
    .await;
    let claim = desk.file_claim(Who::Mia, "").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    assert_eq!(
        (slot.kind, slot.asked.clone()),
        (Kind::Human, vec!["role:manager".to_owned(), "role:admin".to_owned()])
    );
    assert_eq!(desk.answer(Who::Mia, slot.id, json!({ "result": "x" })).await.unwrap_err().code(), "not_yours");
    desk.answer(Who::Ada, slot.id, json!({ "messages": ["I called them. Approve it."] })).await.unwrap();
    desk.settle().await;
    assert_eq!(desk.task_of(claim).await.status, task::Status::Done);
    assert_eq!(results(&desk, slot.task_id).await[0]["messages"], json!(["I called them. Approve it."]));
}

#[sqlx::test(migrations = "../migrations")]
async fn a_clients_tool_gives_its_output_to_the_very_call(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![calls("scan_receipt", json!({ "page": 1 })), hands_back("Done.")]).await;
    let first = desk.file_claim(Who::Mia, "x").await;
    let auditor = desk.task_of(first).await.agent_id;
    let tool = ClientTool {
        name: "scan_receipt".to_owned(),
        description: "Scan the receipt.".to_owned(),
        arguments: json!({ "type": "object" }),
        output: Some(json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } })),
    };
    let mut tx = desk.engine.begin().await.unwrap();
    let taken = ClientTool { name: "ask_person".to_owned(), ..tool.clone() };
    assert!(agent::set_client_tools(&mut tx, "system", auditor, &[taken]).await.is_err());
    agent::set_client_tools(&mut tx, "system", auditor, &[tool]).await.unwrap();
    tx.commit().await.unwrap();
    let claim = desk.file_claim(Who::Mia, "Dinner").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    assert_eq!((slot.kind, slot.action.as_ref().unwrap().tool.as_str()), (Kind::ClientTool, "scan_receipt"));
    desk.answer(Who::Mia, slot.id, json!({ "text": "Total 86.50" })).await.unwrap();
    desk.settle().await;
    assert_eq!(results(&desk, slot.task_id).await[0]["answer"], json!({ "text": "Total 86.50" }));
    assert_eq!(desk.task_of(claim).await.status, task::Status::Done);
}

/// Two proposals in one turn.
pub fn two_proposals() -> Reply {
    let call = |category: &str| Call {
        id: "same".to_owned(),
        name: "categorise_claim".to_owned(),
        arguments: json!({ "category": category }),
    };
    Reply { calls: vec![call("travel"), call("events")], ..Reply::default() }
}

#[sqlx::test(migrations = "../migrations")]
async fn peers_one_rejection_never_throws_away_the_approved_siblings(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![two_proposals(), hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "Dinner").await;
    desk.settle().await;
    let mut slots = desk.waiting(claim).await;
    slots.sort_by_key(|slot| slot.id);
    assert_eq!(slots.len(), 2, "the same id twice from a model is two calls");
    desk.decide(Who::Noor, slots[0].id, 1, reject("No.")).await.unwrap();
    desk.settle().await;
    assert_eq!(category(&desk, claim).await, "meals", "the other is still open");
    desk.decide(Who::Noor, slots[1].id, 1, approve()).await.unwrap();
    desk.settle().await;
    assert_eq!(category(&desk, claim).await, "events");
    let results = results(&desk, slots[0].task_id).await;
    assert_eq!(results.iter().filter(|result| result["rejected"] == json!(true)).count(), 1);
    assert_eq!(results.iter().filter(|result| result["done"] == json!(true)).count(), 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn peers_a_rejected_tool_never_runs(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![proposes("travel"), hands_back("Done.")]).await;
    let (claim, slot) = proposed(&desk).await;
    desk.decide(Who::Noor, slot.id, 1, reject("It was a dinner.")).await.unwrap();
    desk.settle().await;
    assert_eq!(category(&desk, claim).await, "meals");
    let result = results(&desk, slot.task_id).await.remove(0);
    assert_eq!((&result["rejected"], &result["reason"]), (&json!(true), &json!("It was a dinner.")));
    assert_eq!(desk.slot(slot.id).await.used_at, None);
    assert_eq!(desk.task_of(claim).await.status, task::Status::Done, "the agent goes on, told why");
}

#[sqlx::test(migrations = "../migrations")]
async fn peers_a_stale_id_never_approves_whatever_is_pending_by_then(pool: PgPool) {
    let desk = TestDesk::new(pool, vec![proposes("travel"), proposes("events"), hands_back("Done.")]).await;
    let (claim, first) = proposed(&desk).await;
    desk.decide(Who::Noor, first.id, 1, reject("No.")).await.unwrap();
    desk.settle().await;
    let second = desk.waiting(claim).await.remove(0);
    assert_ne!(second.id, first.id);
    // The yes for the first comes late: it is refused, and the second still waits.
    assert_eq!(desk.decide(Who::Noor, first.id, 1, approve()).await.unwrap_err().code(), "already_answered");
    desk.settle().await;
    assert_eq!(desk.slot(second.id).await.status, Status::Waiting);
    assert_eq!(category(&desk, claim).await, "meals");
}

#[sqlx::test(migrations = "../migrations")]
async fn peers_numbers_and_letters_survive_the_way_through_storage(pool: PgPool) {
    let desk = TestDesk::new(pool, NONE).await;
    let agent = desk.outside_agent("Refunds").await;
    let arguments = json!({
        "tenth": 0.1, "large": 9007199254740991_i64, "small": 1e-7, "zero": -0.0, "whole": 40.0, "text": "ü 東 \u{1f600} \"\\",
        "nested": [{ "b": null, "a": [true, "1", 1] }],
    });
    let mut new = refund(&["mia@layby.example"], 1);
    let action = new.action.as_mut().unwrap();
    action.arguments = arguments.as_object().cloned().unwrap();
    action.editable = Vec::new();
    let slot = desk.ask(&agent, new).await.unwrap();
    let kept = desk.slot(slot.id).await;
    assert_eq!(kept.digest.clone().unwrap(), slot::action::digest("refund", kept.arguments().unwrap()));
    assert_eq!(kept.arguments().unwrap()["text"], arguments["text"]);
    // An edit never turns a number into a text.
    let slot =
        desk.ask(&agent, NewSlot { name: Some("edit".into()), ..refund(&["mia@layby.example"], 1) }).await.unwrap();
    let text = json!({ "decision": "approve", "arguments": { "order": "A-17", "amount": "30" } });
    assert_eq!(desk.decide(Who::Mia, slot.id, 1, text).await.unwrap_err().code(), "invalid_answer");
}

#[sqlx::test(migrations = "../migrations")]
async fn what_was_approved_with_an_edit_runs_so_whatever_the_permit_says_by_then(pool: PgPool) {
    let mut both = calls("categorise_claim", json!({ "category": "travel" }));
    both.calls.extend(calls("ask_person", json!({ "question": "Who was there?" })).calls);
    let desk = TestDesk::new(pool, vec![both, hands_back("Done.")]).await;
    let claim = desk.file_claim(Who::Mia, "Dinner").await;
    desk.settle().await;
    let slots = desk.waiting(claim).await;
    let of = |kind| slots.iter().find(|slot| slot.kind == kind).unwrap();
    let edited = json!({ "decision": "approve", "arguments": { "category": "events" } });
    desk.decide(Who::Noor, of(Kind::Approval).id, 1, edited).await.unwrap();
    let mut tx = desk.engine.begin().await.unwrap();
    agent::permit(&mut tx, "system", slots[0].agent_id, "categorise_claim", Rule::Alone).await.unwrap();
    tx.commit().await.unwrap();
    desk.answer(Who::Mia, of(Kind::Question).id, json!("Nobody.")).await.unwrap();
    desk.settle().await;
    assert_eq!(desk.claim(claim).await.category, "events");
    assert!(desk.slot(of(Kind::Approval).id).await.used_at.is_some());
}

#[sqlx::test(migrations = "../migrations")]
async fn nobody_has_a_hand_in_the_decision_on_their_own_claim(pool: PgPool) {
    let script = vec![calls("categorise_claim", json!({ "category": "travel" })), hands_back("Done.")];
    let desk = TestDesk::new(pool, script).await;
    let claim = desk.file_claim(Who::Noor, "Dinner").await;
    desk.settle().await;
    let slot = desk.waiting(claim).await.remove(0);
    assert_eq!(desk.decide(Who::Noor, slot.id, 1, approve()).await.unwrap_err().code(), "not_yours");
    // Nor chooses who decides, nor takes the review over and ends it.
    assert_eq!(desk.reassign(Who::Noor, slot.id, "sam@layby.example").await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.take_over(Who::Noor, slot.task_id).await.unwrap_err().code(), "forbidden");
    let takeover = desk.take_over(Who::Ada, slot.task_id).await.unwrap();
    let result = json!({ "result": { "verdict": "approve", "summary": "Fine." } });
    assert_eq!(desk.answer(Who::Noor, takeover, result.clone()).await.unwrap_err().code(), "not_yours");
    assert_eq!(desk.reassign(Who::Ada, takeover, "noor@layby.example").await.unwrap_err().errors()[0].pointer, "/to");
    desk.answer(Who::Ada, takeover, result).await.unwrap();
    assert_eq!(desk.task_of(claim).await.status, engine::task::Status::Done);
}
