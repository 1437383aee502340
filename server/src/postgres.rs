//! The private Postgres: started in the data folder when there is no `DATABASE_URL`, stopped by whoever started it.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Output,
};

use sqlx::postgres::PgConnectOptions;
use tokio::process::Command;

use crate::cli::Failure;

/// A running private server. `ours` when this process started it.
pub struct Private {
    folder: PathBuf,
    sockets: PathBuf,
    bin: PathBuf,
    user: Option<String>,
    ours: bool,
}

/// The folder of a Layby without `DATABASE_URL`.
pub fn folder(given: Option<&Path>) -> PathBuf {
    if let Some(given) = given {
        return std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    }
    // As root the server runs as somebody else, who could not enter root's home.
    if is_root() {
        return PathBuf::from("/var/lib/layby");
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    std::env::var_os("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from).join("layby")
}

/// Makes sure that one `layby serve` at a time uses the folder; the lock ends with the process.
pub fn lock(folder: &Path) -> Result<File, Failure> {
    make_folder(folder)?;
    let path = folder.join("serve.lock");
    let file = File::create(&path).map_err(|error| format!("{} cannot be written: {error}.", path.display()))?;
    file.try_lock().map_err(|_| {
        format!("Another Layby is running with the data in {}. Stop it first, or give this one another folder with LAYBY_DATA.", folder.display())
    })?;
    Ok(file)
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        format!("The data folder {} cannot be made: {error}. Choose another with LAYBY_DATA.", folder.display())
    })?;
    if is_root() {
        // The user that Postgres runs as passes through, and reads nothing here.
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o711));
    }
    Ok(())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

impl Private {
    /// Takes over a server that runs in the folder already, or starts one.
    pub async fn start(given: Option<&Path>) -> Result<Self, Failure> {
        let folder = folder(given);
        make_folder(&folder)?;
        let bin = binaries()?;
        let user = is_root().then(unprivileged_user).transpose()?;
        let mut private = Self { sockets: sockets(&folder), folder, bin, user, ours: false };
        let data = private.folder.join("postgres");
        if private.pg_ctl(&["status", "-D", &text(&data)]).await?.status.success() {
            return Ok(private);
        }
        for path in [&private.folder.join("log"), &private.sockets, &data] {
            private.own_folder(path).await?;
        }
        if !data.join("PG_VERSION").exists() {
            let made = private
                .run("initdb", &["-D", &text(&data), "-U", "layby", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"])
                .await?;
            if !made.status.success() {
                return Err(format!(
                    "The private database could not be made in {}: {}",
                    data.display(),
                    last_line(&made)
                ));
            }
        }
        // Only by its socket, in a folder that only its user enters: no port, no password.
        let options = format!(
            "-k '{}' -c listen_addresses='' -c max_connections=100 -c shared_buffers=128MB -c unix_socket_permissions=0777",
            private.sockets.display()
        );
        let log = private.folder.join("log/postgres.log");
        let started =
            private.pg_ctl(&["start", "-D", &text(&data), "-l", &text(&log), "-w", "-t", "60", "-o", &options]).await?;
        if !started.status.success() {
            return Err(format!("The private Postgres did not start; {} says why.", log.display()));
        }
        private.ours = true;
        Ok(private)
    }

    pub fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass().socket(&self.sockets).username("layby").database("postgres")
    }

    /// The one who serves stops the server at its end, even when another had started it.
    pub fn adopt(&mut self) {
        self.ours = true;
    }

    /// Stops the server if it is this process's.
    pub async fn stop(self) {
        if self.ours {
            let data = text(&self.folder.join("postgres"));
            let _ = self.pg_ctl(&["stop", "-D", &data, "-m", "fast", "-w", "-t", "20"]).await;
        }
    }

    async fn own_folder(&self, path: &Path) -> Result<(), Failure> {
        let wrong = |error: &dyn std::fmt::Display| format!("{} cannot be made: {error}.", path.display());
        fs::create_dir_all(path).map_err(|error| wrong(&error))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|error| wrong(&error))?;
        if let Some(user) = &self.user {
            let owned = Command::new("chown").arg(user).arg(path).output().await.map_err(|error| wrong(&error))?;
            if !owned.status.success() {
                return Err(wrong(&last_line(&owned)));
            }
        }
        Ok(())
    }

    async fn pg_ctl(&self, args: &[&str]) -> Result<Output, Failure> {
        self.run("pg_ctl", args).await
    }

    async fn run(&self, program: &str, args: &[&str]) -> Result<Output, Failure> {
        let path = self.bin.join(program);
        let mut command = match &self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups", "--"]).arg(&path);
                command
            }
            None => Command::new(&path),
        };
        // The server that pg_ctl leaves behind must not hold our pipes open.
        if program == "pg_ctl" {
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        } else {
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        }
        command.args(args).current_dir("/").stdin(std::process::Stdio::null());
        let child = command.spawn().map_err(|error| format!("{} could not be run: {error}.", path.display()))?;
        child.wait_with_output().await.map_err(|error| format!("{} could not be run: {error}.", path.display()))
    }
}

/// A socket's path has at most 107 bytes; a longer folder gets a short one beside it.
fn sockets(folder: &Path) -> PathBuf {
    let near = folder.join("run");
    if near.as_os_str().len() < 80 {
        return near;
    }
    let digest = <sha2::Sha256 as sha2::Digest>::digest(folder.as_os_str().as_encoded_bytes());
    std::env::temp_dir().join(format!("layby-{}", engine::hex(&digest[..4])))
}

fn unprivileged_user() -> Result<String, Failure> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    ["postgres", "nobody"]
        .into_iter()
        .find(|name| users.lines().any(|line| line.starts_with(&format!("{name}:"))))
        .map(str::to_owned)
        .ok_or_else(|| "Postgres cannot run as root, and there is no user postgres or nobody to run it as.".to_owned())
}

/// The newest Postgres of this machine, 15 or newer.
fn binaries() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("LAYBY_PG_BIN") {
        return Ok(PathBuf::from(given));
    }
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        bin.join("initdb").exists().then_some((version, bin))
    });
    match installed.max_by_key(|(version, _)| *version) {
        Some((version, _)) if version < 15 => {
            return Err(format!("The newest Postgres here is version {version}; Layby needs 15 or newer."));
        }
        Some((_, bin)) => return Ok(bin),
        None => {}
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
        .ok_or_else(|| {
            "There is no Postgres on this machine: install it (Debian: apt-get install postgresql) or set DATABASE_URL."
                .to_owned()
        })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no reason was given").to_owned()
}
