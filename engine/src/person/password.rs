//! Passwords: argon2id in PHC form, off the async threads (OWASP password storage, NIST SP 800-63B-4).

use std::sync::LazyLock;

use argon2::{
    Argon2, PasswordHasher, PasswordVerifier,
    password_hash::{PasswordHash, SaltString},
};

use crate::{FieldError, Refusal};

/// Compared against when nobody has that address, so that both take the same time.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash_now("nobody has this password").unwrap_or_default());

/// Refuses what is too short, too long or known to be guessed first. `about` are words that a guess would begin with.
pub(super) fn check(password: &str, pointer: &str, about: &[&str]) -> Result<(), FieldError> {
    let length = password.chars().count();
    if length < 8 {
        return Err(FieldError::new(pointer, "Use at least 8 characters."));
    }
    if length > 256 {
        return Err(FieldError::new(pointer, "Use at most 256 characters."));
    }
    if zxcvbn::zxcvbn(password, about).score() < zxcvbn::Score::Two {
        return Err(FieldError::new(
            pointer,
            "This password is among the first that somebody would guess. Three or four unrelated words make a good one.",
        ));
    }
    Ok(())
}

/// Hashes; takes some 20 ms of a blocking thread.
pub(super) async fn hash(password: &str) -> Result<String, Refusal> {
    let password = password.to_owned();
    tokio::task::spawn_blocking(move || hash_now(&password))
        .await
        .map_err(|error| Refusal::fault(error.to_string()))?
        .ok_or_else(|| Refusal::fault("the password could not be hashed"))
}

/// Whether `password` is the one of `hash`; with no hash it takes as long and says no.
pub(super) async fn verify(password: &str, hash: Option<String>) -> Result<bool, Refusal> {
    let password = password.to_owned();
    tokio::task::spawn_blocking(move || {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODY.clone());
        let fits = PasswordHash::new(&hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        known && fits
    })
    .await
    .map_err(|error| Refusal::fault(error.to_string()))
}

fn hash_now(password: &str) -> Option<String> {
    let mut salt = [0; 16];
    crate::clock::random_bytes(&mut salt);
    let salt = SaltString::encode_b64(&salt).ok()?;
    Argon2::default().hash_password(password.as_bytes(), &salt).ok().map(|hash| hash.to_string())
}
