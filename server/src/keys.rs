//! The keys that seal secrets: from `LAYBY_SECRET_KEYS`, or a file in the data folder that is made on first start and that
//! only its owner can read.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use engine::{Engine, Refusal, seal::Keyring, slot};

use crate::{
    cli::{DatabaseAt, Failure},
    postgres,
};

fn file(at: &DatabaseAt) -> PathBuf {
    postgres::folder(at.data.as_deref()).join("keys").join("secrets")
}

/// The ring of a server: the configured keys, else those of the file, which is made when it is not there.
pub fn ring(at: &DatabaseAt) -> Result<Keyring, Failure> {
    if let Some(keys) = &at.secret_keys {
        return Keyring::parse(keys).map_err(|detail| format!("LAYBY_SECRET_KEYS cannot be used. {detail}"));
    }
    let path = file(at);
    if !path.exists() {
        let (_, key) = Keyring::generate();
        match write_new(&path, &key) {
            Ok(()) => {}
            // Another start was first.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(format!(
                    "The key that seals secrets cannot be kept in {}: {error}. Choose another folder with LAYBY_DATA, or \
                     give the key with LAYBY_SECRET_KEYS.",
                    path.display()
                ));
            }
        }
    }
    read(&path)
}

/// The ring of a command that seals nothing: what is there, and nothing is made.
pub fn ring_if_any(at: &DatabaseAt) -> Result<Keyring, Failure> {
    match at.secret_keys.is_some() || file(at).exists() {
        true => ring(at),
        false => Ok(Keyring::generate().0),
    }
}

fn read(path: &Path) -> Result<Keyring, Failure> {
    let wrong = |error: std::io::Error| format!("{} cannot be read: {error}.", path.display());
    let mode = fs::metadata(path).map_err(wrong)?.mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "{} can be read by others than its owner, and it opens every secret. Take that away with: chmod 600 {}",
            path.display(),
            path.display()
        ));
    }
    let text = fs::read_to_string(path).map_err(wrong)?;
    Keyring::parse(&text).map_err(|detail| format!("{} cannot be used. {detail}", path.display()))
}

/// Written beside and linked into place, so that nobody ever reads half a key and an existing file stays.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = folder.join(format!("secrets.{}", std::process::id()));
    write(&beside, text)?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    linked
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let beside = path.with_extension("new");
    write(&beside, text)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|error| format!("{} cannot be written: {error}.", path.display()))
}

fn own_file(at: &DatabaseAt) -> Result<PathBuf, Failure> {
    match at.secret_keys {
        None => Ok(file(at)),
        Some(_) => Err("The keys come from LAYBY_SECRET_KEYS: put the new one in front there (openssl rand -hex 32), \
                        restart every instance, then run `layby key reseal` and take the old ones out."
            .to_owned()),
    }
}

/// Puts a new key in front. The old ones stay, so that what they sealed still opens.
pub fn rotate(at: &DatabaseAt) -> Result<String, Failure> {
    let path = own_file(at)?;
    ring(at)?;
    let old = fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}.", path.display()))?;
    let (_, key) = Keyring::generate();
    replace(&path, &format!("{key}\n{}", old.trim_end()))?;
    Ok("A new key is in front. Restart every running Layby, then run `layby key reseal`.".to_owned())
}

/// Seals everything with the newest key and forgets the older ones of the file.
pub async fn reseal(at: &DatabaseAt, engine: &Engine) -> Result<String, Refusal> {
    let count = slot::secret::reseal(engine, &engine.keys).await?;
    if at.secret_keys.is_some() {
        return Ok(format!("{count} secrets were sealed again. The older keys can be taken out of LAYBY_SECRET_KEYS."));
    }
    let path = file(at);
    let text = fs::read_to_string(&path).map_err(|error| Refusal::Fault(error.into()))?;
    let newest = text.lines().next().unwrap_or_default();
    replace(&path, newest).map_err(|failure| Refusal::Fault(failure.into()))?;
    Ok(format!("{count} secrets were sealed again, and the older keys are gone."))
}
