use chrono::Duration;
use engine::{
    Actor,
    agent::token::{self, TokenOwner},
    demo::PASSWORD,
    person::{self, NewPerson, Role, SignInRefusal},
    testing::{TestDesk, Who},
};
use sqlx::PgPool;

#[sqlx::test(migrations = "../migrations")]
async fn sign_in_is_throttled_per_network_without_locking_the_person_out_elsewhere(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let engine = &desk.engine;
    for _ in 0..8 {
        let wrong = person::sign_in(engine, "mia@layby.example", "wrong", "10.0.0.1", "").await;
        assert!(matches!(wrong, Err(SignInRefusal::Wrong)));
    }
    let right = person::sign_in(engine, "mia@layby.example", PASSWORD, "10.0.0.1", "").await;
    assert!(matches!(right, Err(SignInRefusal::TooMany { .. })));
    assert!(person::sign_in(engine, " MIA@layby.example ", PASSWORD, "10.0.0.2", "").await.is_ok());
    desk.clock.advance(Duration::minutes(16));
    assert!(person::sign_in(engine, "mia@layby.example", PASSWORD, "10.0.0.1", "").await.is_ok());
}

#[sqlx::test(migrations = "../migrations")]
async fn a_burst_of_tries_at_once_is_throttled_like_one_after_the_other(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let tries = (0..30).map(|_| person::sign_in(&desk.engine, "mia@layby.example", "wrong", "n", ""));
    let results = futures::future::join_all(tries).await;
    let looked_at = results.iter().filter(|result| matches!(result, Err(SignInRefusal::Wrong))).count();
    assert!(looked_at <= 8, "{looked_at} passwords were tried");
}

#[sqlx::test(migrations = "../migrations")]
async fn unknown_people_and_wrong_passwords_read_the_same(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let wrong = person::sign_in(&desk.engine, "mia@layby.example", "x", "n", "").await.err().unwrap();
    let unknown = person::sign_in(&desk.engine, "who@layby.example", "x", "n", "").await.err().unwrap();
    assert_eq!(wrong.to_string(), unknown.to_string());
}

#[sqlx::test(migrations = "../migrations")]
async fn a_session_ends_by_sign_out_disuse_disabling_and_a_new_password(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let engine = &desk.engine;
    let sign_in = || async { person::sign_in(engine, "mia@layby.example", PASSWORD, "n", "Firefox").await.unwrap() };
    let (first, second) = (sign_in().await, sign_in().await);
    assert_eq!(person::sign_ins(engine, &first.person).await.unwrap().len(), 2);
    person::sign_out(engine, first.sign_in).await.unwrap();
    assert!(person::session(engine, first.sign_in).await.unwrap().is_none());
    assert!(person::session(engine, second.sign_in).await.unwrap().is_some());

    // Nobody ends another's.
    let sam = desk.person(Who::Sam).await;
    assert_eq!(person::end_sign_in(engine, &sam, second.sign_in).await.unwrap_err().code(), "not_found");

    let third = sign_in().await;
    let refused = person::change_password(engine, &third.person, third.sign_in, "wrong", "short").await.unwrap_err();
    let pointers: Vec<_> = refused.errors().iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/old", "/new"]);
    person::change_password(engine, &third.person, third.sign_in, PASSWORD, "four quiet green bicycles").await.unwrap();
    assert!(person::session(engine, second.sign_in).await.unwrap().is_none());
    assert!(person::session(engine, third.sign_in).await.unwrap().is_some());

    desk.clock.advance(Duration::days(15));
    assert!(person::session(engine, third.sign_in).await.unwrap().is_none());
    sqlx::query("update person set disabled_at = now() where email = 'mia@layby.example'")
        .execute(&engine.pool)
        .await
        .unwrap();
    assert!(person::sign_in(engine, "mia@layby.example", "four quiet green bicycles", "n", "").await.is_err());
}

#[sqlx::test(migrations = "../migrations")]
async fn the_first_administrator_needs_the_code_and_there_is_one(pool: PgPool) {
    let engine = engine::Engine::new(
        pool,
        std::sync::Arc::new(engine::testing::TestClock::default()),
        engine::seal::Keyring::generate().0,
    );
    let code = person::setup::new_code(&engine).await.unwrap().unwrap();
    let new = || NewPerson {
        email: "ada@example.com".into(),
        name: "Ada".into(),
        roles: vec![],
        groups: vec![],
        password: Some("four quiet green bicycles".into()),
    };
    let refused = |result: Result<_, engine::Refusal>| {
        result.map(|_: engine::ids::PersonId| ()).unwrap_err().errors()[0].pointer.clone()
    };
    assert_eq!(refused(person::setup::set_up(&engine, "wrong", new()).await), "/code");
    let weak = NewPerson { password: Some("password1".into()), ..new() };
    assert_eq!(refused(person::setup::set_up(&engine, &code, weak).await), "/password");
    let other = NewPerson { email: "eve@example.com".into(), ..new() };
    let both = tokio::join!(person::setup::set_up(&engine, &code, new()), person::setup::set_up(&engine, &code, other));
    assert_eq!([both.0.is_ok(), both.1.is_ok()].iter().filter(|ok| **ok).count(), 1);
    assert!(!person::setup::needed(&engine).await.unwrap());
    assert!(person::setup::new_code(&engine).await.unwrap().is_none());
}

#[sqlx::test(migrations = "../migrations")]
async fn a_token_never_has_more_than_its_owner(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let create = |email: &str, scope: &str| {
        let (owner, scopes) = (TokenOwner::Person(email.to_owned()), vec![scope.to_owned()]);
        let engine = desk.engine.clone();
        async move {
            let mut tx = engine.begin().await.unwrap();
            let token = token::create(&mut tx, "system", owner, scopes).await;
            tx.commit().await.unwrap();
            token
        }
    };
    assert!(create("mia@layby.example", "manage").await.is_err());
    assert!(create("mia@layby.example", "ask").await.is_err());
    assert!(create("noor@layby.example", "manage").await.is_ok());
    let token = create("mia@layby.example", "answer").await.unwrap();
    match token::actor(&desk.engine, &token).await.unwrap() {
        Some(Actor::Person(person)) => assert_eq!(person.email(), "mia@layby.example"),
        other => panic!("{other:?}"),
    }
    // Only its hash is kept, and whoever is disabled has no token.
    let kept: Vec<u8> =
        sqlx::query_scalar("select hash from token limit 1").fetch_one(&desk.engine.pool).await.unwrap();
    assert_eq!(kept.len(), 32);
    sqlx::query("update person set disabled_at = now()").execute(&desk.engine.pool).await.unwrap();
    assert!(token::actor(&desk.engine, &token).await.unwrap().is_none());
    assert!(token::actor(&desk.engine, "lby_guess").await.unwrap().is_none());
}

#[sqlx::test(migrations = "../migrations")]
async fn a_person_is_added_once_with_checked_particulars(pool: PgPool) {
    let desk = TestDesk::new(pool, Vec::new()).await;
    let new = |email: &str, password: &str| NewPerson {
        email: email.into(),
        name: "Kim".into(),
        roles: vec![Role::Person],
        groups: vec!["legal".into()],
        password: Some(password.into()),
    };
    for (email, password, pointer) in [
        ("nonsense", "four quiet green bicycles", "/email"),
        ("kim@example.com", "12345678", "/password"),
        ("mia@layby.example", "four quiet green bicycles", "/email"),
    ] {
        let mut tx = desk.engine.begin().await.unwrap();
        assert_eq!(
            person::add(&mut tx, "system", new(email, password)).await.unwrap_err().errors()[0].pointer,
            pointer
        );
    }
}
