//! A site: one or more instances over one database, each a real server with its own pool and wake-ups.

use engine::{
    agent::{
        self,
        model::Models,
        token::{self, TokenOwner},
    },
    demo::{PASSWORD, PEOPLE},
    testing::{TestDesk, Who},
};
use serde_json::Value;
use server::http::{HttpConfig, router};
use sqlx::PgPool;
use tokio::sync::watch;

pub struct Site {
    pub client: reqwest::Client,
    pub urls: Vec<String>,
    /// The token of an outside agent.
    pub agent: String,
    pub pool: PgPool,
    desk: TestDesk,
    stop: watch::Sender<bool>,
    pools: Vec<PgPool>,
}

impl Site {
    pub async fn start(pool: PgPool, instances: usize) -> Self {
        let desk = TestDesk::new(pool.clone(), Vec::new()).await;
        let (stop, stopping) = watch::channel(false);
        let mut urls = Vec::new();
        let mut pools = Vec::new();
        for _ in 0..instances {
            let engine = desk.second_instance().await;
            pools.push(engine.pool.clone());
            tokio::spawn(engine.wakes.clone().exchange(engine.pool.clone()));
            tokio::spawn(agent::work::run(engine.clone(), Models::standard(), stopping.clone()));
            tokio::spawn(server::http::catch_lost_wake_ups(engine.clone(), stopping.clone()));
            let config =
                HttpConfig { base_url: "http://127.0.0.1".to_owned(), rate_limit: 0, shutdown: stopping.clone() };
            let router = router(engine, config).await.unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("http://{}", listener.local_addr().unwrap()));
            let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
            tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        }
        desk.outside_agent("Refunds").await;
        let client = reqwest::Client::builder()
            .cookie_store(true)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .unwrap();
        let mut site = Self { client, urls, agent: String::new(), pool, desk, stop, pools };
        site.agent = site.token(TokenOwner::Agent("Refunds".to_owned()), &["ask", "read"]).await;
        site
    }

    async fn token(&self, owner: TokenOwner, scopes: &[&str]) -> String {
        let mut tx = self.desk.engine.begin().await.unwrap();
        let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let token = token::create(&mut tx, "system", owner, scopes).await.unwrap();
        tx.commit().await.unwrap();
        token
    }

    pub async fn person_token(&self, who: Who) -> String {
        let scopes: &[&str] = if who == Who::Noor { &["answer", "read", "manage"] } else { &["answer", "read"] };
        self.token(TokenOwner::Person(PEOPLE[who as usize].0.to_owned()), scopes).await
    }

    pub async fn ask(&self, body: Value) -> Value {
        let request = self.client.post(format!("{}/api/v1/slots", self.urls[0])).bearer_auth(&self.agent).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 201);
        response.json().await.unwrap()
    }

    pub async fn post(&self, token: &str, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.post(format!("{}/api/v1{path}", self.urls[0])).bearer_auth(token).json(&body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub async fn fetch(&self, token: &str, path: &str) -> reqwest::Response {
        self.client.get(format!("{}/api/v1{path}", self.urls[0])).bearer_auth(token).send().await.unwrap()
    }

    pub async fn get(&self, token: &str, path: &str) -> Value {
        self.fetch(token, path).await.json().await.unwrap()
    }

    pub async fn upload(&self, token: &str, name: &str, bytes: &[u8]) -> (u16, Value) {
        let request = self.client.post(format!("{}/api/v1/files", self.urls[0])).query(&[("name", name)]);
        let response = request.bearer_auth(token).body(bytes.to_vec()).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Lets time pass, and what falls due meanwhile happen.
    pub async fn advance(&self, by: chrono::Duration) {
        self.desk.clock.advance(by);
        self.desk.settle().await;
    }

    pub async fn sign_in(&self, who: Who) {
        let form = [("email", PEOPLE[who as usize].0), ("password", PASSWORD), ("next", "/")];
        let response = self.client.post(format!("{}/sign-in", self.urls[0])).form(&form).send().await.unwrap();
        assert_eq!(response.status(), 303);
    }

    pub async fn stop(self) {
        self.stop.send(true).unwrap();
        for pool in self.pools {
            pool.close().await;
        }
    }
}
