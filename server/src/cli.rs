//! The command line (`api.md`). Everything settable by flag is settable by `LAYBY_…`.

use std::{io::Read, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use engine::{
    Refusal,
    agent::{self, NewAgent, token::TokenOwner},
    clock,
    person::{self, NewPerson, Role},
};

use crate::{database::Database, keys, serve};

/// A failure as one sentence for whoever typed the command.
pub type Failure = String;

#[derive(Parser)]
#[command(name = "layby", version, about = "Agents ask people, and wait properly.")]
struct Cli {
    #[command(flatten)]
    at: DatabaseAt,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Clone)]
pub struct DatabaseAt {
    /// The Postgres to use (15 or newer); without it Layby starts a private one in its data folder
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true)]
    pub database_url: Option<String>,
    /// The folder of the private Postgres [default: the user's data folder]
    #[arg(long, env = "LAYBY_DATA", global = true)]
    pub data: Option<PathBuf>,
    /// The keys that seal secrets, 64 hexadecimal digits each, the newest first; the same for all instances [default: a
    /// file in the data folder, made on first start]
    #[arg(long, env = "LAYBY_SECRET_KEYS", global = true, hide_env_values = true)]
    pub secret_keys: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Start Layby
    Serve(ServeArgs),
    /// Bring the database's schema up to date
    Migrate,
    /// People
    #[command(subcommand)]
    Person(PersonCommand),
    /// Outside agents
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Tokens for programs
    #[command(subcommand)]
    Token(TokenCommand),
    /// The keys that seal secrets
    #[command(subcommand)]
    Key(KeyCommand),
    /// Check what Layby needs, and say what to do
    Doctor,
}

#[derive(Args, Clone)]
pub struct ServeArgs {
    /// Where to listen
    #[arg(long, env = "LAYBY_LISTEN", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// What people and links use, for example https://layby.example.com [default: http://<listen>]
    #[arg(long, env = "LAYBY_BASE_URL")]
    pub base_url: Option<String>,
    /// Add demonstration people, agents and claims
    #[arg(long, env = "LAYBY_DEMO")]
    pub demo: bool,
    /// API requests a second that one token may make; 0 for no limit
    #[arg(long, env = "LAYBY_RATE_LIMIT", default_value_t = 500)]
    pub rate_limit: u32,
    /// Connections to Postgres
    #[arg(long, env = "LAYBY_CONNECTIONS", default_value_t = 12)]
    pub connections: u32,
    /// A script for the scripted model, for tests
    #[arg(long, env = "LAYBY_SCRIPT", hide = true)]
    pub script: Option<PathBuf>,
}

#[derive(Subcommand)]
enum PersonCommand {
    /// Add a person; prints a first password unless one is given
    Add {
        email: String,
        #[arg(long)]
        name: String,
        /// person, manager or admin; may be given several times
        #[arg(long, default_value = "person")]
        role: Vec<String>,
        #[arg(long)]
        group: Vec<String>,
        /// Read the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// Take somebody's access away: sessions and tokens end, and their questions find somebody else
    Disable { email: String },
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Put a new key in front; the old ones still open what they sealed
    Rotate,
    /// Seal everything with the newest key; after that the old ones can go
    Reseal,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Add an outside agent: somebody's own program
    Add {
        name: String,
        /// The agent's loop is outside Layby (the only kind that is added here)
        #[arg(long, required = true)]
        outside: bool,
        /// The e-mail address of whoever its questions go to when it names nobody
        #[arg(long)]
        sponsor: String,
        #[arg(long, default_value = "")]
        purpose: String,
    },
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token and print it, once
    Create {
        #[arg(long, conflicts_with = "person", required_unless_present = "person")]
        agent: Option<String>,
        #[arg(long)]
        person: Option<String>,
        /// ask, read (agents); answer, read, manage, admin (people); may be given several times
        #[arg(long, required = true)]
        scope: Vec<String>,
    },
}

/// Runs the command; a failure is one sentence on standard error and exit code 1.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("layby: the program could not start its threads: {error}.");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("layby: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Serve(args) => serve::serve(cli.at, args).await,
        Command::Migrate => with_engine(&cli.at, async |_| Ok("The schema is up to date.".to_owned())).await,
        Command::Doctor => crate::database::doctor(&cli.at).await,
        Command::Person(PersonCommand::Add { email, name, role, group, password_stdin }) => {
            let roles = role
                .iter()
                .map(|role| Role::parse(role).ok_or(format!("There is no role “{role}”: person, manager or admin.")))
                .collect::<Result<Vec<_>, _>>()?;
            let (password, made) = first_password(password_stdin)?;
            with_engine(&cli.at, async |engine| {
                let mut tx = engine.begin().await?;
                let new = NewPerson { email: email.clone(), name, roles, groups: group, password: Some(password.clone()) };
                person::add(&mut tx, "system", new).await?;
                tx.commit().await?;
                Ok(if made { format!("{email} can sign in with the password {password}") } else { format!("{email} was added.") })
            })
            .await
        }
        Command::Person(PersonCommand::Disable { email }) => {
            with_engine(&cli.at, async |engine| {
                let mut tx = engine.begin().await?;
                person::disable(&mut tx, "system", &email).await?;
                tx.commit().await?;
                Ok(format!("{email} can no longer sign in."))
            })
            .await
        }
        Command::Key(KeyCommand::Rotate) => {
            println!("{}", keys::rotate(&cli.at)?);
            Ok(())
        }
        Command::Key(KeyCommand::Reseal) => {
            let at = cli.at.clone();
            with_engine(&cli.at, async |engine| keys::reseal(&at, engine).await).await
        }
        Command::Agent(AgentCommand::Add { name, outside: _, sponsor, purpose }) => {
            with_engine(&cli.at, async |engine| {
                let mut tx = engine.begin().await?;
                agent::add(&mut tx, "system", NewAgent { name: name.clone(), purpose, sponsor_email: sponsor }).await?;
                tx.commit().await?;
                Ok(format!("{name} was added. Make its token with: layby token create --agent '{name}' --scope ask --scope read"))
            })
            .await
        }
        Command::Token(TokenCommand::Create { agent, person, scope }) => {
            let owner = match (agent, person) {
                (Some(agent), _) => TokenOwner::Agent(agent),
                (None, Some(person)) => TokenOwner::Person(person),
                (None, None) => return Err("Say whose token it is: --agent NAME or --person EMAIL.".to_owned()),
            };
            with_engine(&cli.at, async |engine| {
                let mut tx = engine.begin().await?;
                let token = agent::token::create(&mut tx, "system", owner, scope).await?;
                tx.commit().await?;
                Ok(token)
            })
            .await
        }
    }
}

/// The password and whether it was made here.
fn first_password(from_stdin: bool) -> Result<(String, bool), Failure> {
    if !from_stdin {
        return Ok((clock::random_hex(8), true));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| format!("The password could not be read: {error}."))?;
    Ok((text.trim_end_matches(['\n', '\r']).to_owned(), false))
}

/// Runs one verb over the database, also beside a running server, and prints what it answers.
async fn with_engine(
    at: &DatabaseAt,
    verb: impl AsyncFnOnce(&engine::Engine) -> Result<String, Refusal>,
) -> Result<(), Failure> {
    let database = Database::open(at, 2).await?;
    let result = match keys::ring_if_any(at) {
        Ok(keys) => match database.engine(keys).await {
            Ok(engine) => verb(&engine).await.map_err(|refusal| sentences(&refusal)),
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    };
    database.close().await;
    println!("{}", result?);
    Ok(())
}

/// Every sentence of a refusal; the cause too when the fault is ours.
pub fn sentences(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Fault(cause) => format!("{refusal} ({cause})"),
        _ if refusal.errors().is_empty() => refusal.to_string(),
        _ => refusal.errors().iter().map(|error| error.detail.as_str()).collect::<Vec<_>>().join(" "),
    }
}
