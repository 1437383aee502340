//! `layby serve`: everything that runs, and how it ends.

use std::time::Duration;

use axum::serve::ListenerExt;
use engine::{
    agent::{self, model::Models},
    demo, person,
    seal::Keyring,
    timer,
};
use tokio::{net::TcpListener, signal::unix, sync::watch};

use crate::{
    cli::{DatabaseAt, Failure, ServeArgs, sentences},
    database::Database,
    http::{self, HttpConfig},
    keys, postgres,
};

/// How long requests that are under way may take after a signal.
const GRACE: Duration = Duration::from_secs(10);

/// Runs until SIGINT or SIGTERM, then stops everything that it started.
pub async fn serve(at: DatabaseAt, args: ServeArgs) -> Result<(), Failure> {
    logs();
    let models = match &args.script {
        Some(path) => Models::scripted(path)?,
        None => Models::standard(),
    };
    let listener = TcpListener::bind(args.listen).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "Something is listening on {} already: is Layby running? Choose another address with LAYBY_LISTEN.",
            args.listen
        ),
        _ => format!("Layby cannot listen on {}: {error}.", args.listen),
    })?;
    // Held until the end: one server over one private database.
    let _lock = match at.database_url {
        None => Some(postgres::lock(&postgres::folder(at.data.as_deref()))?),
        Some(_) => None,
    };
    let mut database = Database::open(&at, args.connections).await?;
    database.adopt();
    let served = match keys::ring(&at) {
        Ok(keys) => run(&database, keys, &args, models, listener).await,
        Err(failure) => Err(failure),
    };
    database.close().await;
    served
}

async fn run(
    database: &Database,
    keys: Keyring,
    args: &ServeArgs,
    models: Models,
    listener: TcpListener,
) -> Result<(), Failure> {
    let engine = database.engine(keys).await?;
    if args.demo {
        demo::seed(&engine).await.map_err(|refusal| sentences(&refusal))?;
    }
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let base_url = args.base_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let (stop, stopping) = watch::channel(false);
    let config = HttpConfig {
        base_url: base_url.trim_end_matches('/').to_owned(),
        rate_limit: args.rate_limit,
        shutdown: stopping.clone(),
    };
    let router = http::router(engine.clone(), config).await?;
    tokio::spawn(engine.wakes.clone().exchange(engine.pool.clone()));
    tokio::spawn(http::catch_lost_wake_ups(engine.clone(), stopping.clone()));
    let work = tokio::spawn(agent::work::run(engine.clone(), models, stopping.clone()));
    let expiry = tokio::spawn(timer::run(engine.clone(), stopping.clone()));

    println!("Layby is at {base_url}");
    if args.demo {
        println!("Sign in as one of these, with the password {}:", demo::PASSWORD);
        for (email, name, roles, _) in demo::PEOPLE {
            let role = roles.last().map_or("person", |role| role.as_str());
            println!("  {email:<22} {name} ({role})");
        }
    } else if let Some(code) = person::setup::new_code(&engine).await.map_err(|refusal| sentences(&refusal))? {
        println!("Make the first administrator at {base_url}/setup with the one-time code {code}");
    }

    let mut ended = stopping.clone();
    let listener = listener.tap_io(|connection| {
        // An answer is one small packet: waiting to fill it only delays it.
        let _ = connection.set_nodelay(true);
    });
    let http = axum::serve(listener, router.into_make_service_with_connect_info::<std::net::SocketAddr>())
        .with_graceful_shutdown(async move {
            let _ = ended.wait_for(|stop| *stop).await;
        });
    let http = tokio::spawn(http.into_future());
    signal().await?;
    println!("Layby is stopping.");
    let _ = stop.send(true);
    let finished = async {
        let _ = http.await;
        let _ = work.await;
        let _ = expiry.await;
    };
    tokio::select! {
        _ = tokio::time::timeout(GRACE, finished) => {}
        // Somebody who signals twice wants it now; what is durable is durable.
        _ = signal() => {}
    }
    Ok(())
}

async fn signal() -> Result<(), Failure> {
    let wrong = |error: std::io::Error| format!("Signals cannot be heard: {error}.");
    let mut terminate = unix::signal(unix::SignalKind::terminate()).map_err(wrong)?;
    let mut interrupt = unix::signal(unix::SignalKind::interrupt()).map_err(wrong)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn logs() {
    let filter = std::env::var("LAYBY_LOG").unwrap_or_else(|_| "info,sqlx=warn,tower_sessions=warn".to_owned());
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let json = std::env::var("LAYBY_LOG_FORMAT").is_ok_and(|format| format == "json");
    // Fails only when logs were set up before, in a test.
    let _ = if json { logs.json().try_init() } else { logs.with_ansi(false).try_init() };
}
