//! Sealing secrets: authenticated encryption from the moment of the deposit (design section 4). XChaCha20-Poly1305 with a
//! nonce of its own for each secret; the slot's id is bound in, so a sealed answer opens for its own slot only.

use std::{collections::VecDeque, sync::Arc};

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::{Refusal, clock, hex, ids::SlotId};

const NONCE: usize = 24;

/// An answer that only a key of the ring opens.
pub(crate) struct Sealed {
    pub key_id: String,
    /// Nonce, then ciphertext with its tag.
    pub bytes: Vec<u8>,
}

/// The keys: the first seals, all of them open, so that a new key can go in front and the old ones stay until nothing is
/// sealed with them any more.
#[derive(Clone)]
pub struct Keyring(Arc<VecDeque<SealingKey>>);

struct SealingKey {
    /// The first half of the key's SHA-256: says which key, and nothing about it.
    id: String,
    cipher: XChaCha20Poly1305,
}

impl Keyring {
    /// From keys of 64 hexadecimal digits, the newest first, separated by white space or commas. Err is a sentence that
    /// does not contain them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let keys = text
            .split(|letter: char| letter.is_whitespace() || letter == ',')
            .filter(|key| !key.is_empty())
            .map(|key| {
                let bytes = from_hex(key).filter(|bytes| bytes.len() == 32);
                let bytes =
                    bytes.ok_or("A sealing key has 64 hexadecimal digits; make one with: openssl rand -hex 32")?;
                let id = hex(&Sha256::digest(&bytes)[..8]);
                let cipher = XChaCha20Poly1305::new_from_slice(&bytes).map_err(|_| "A sealing key cannot be used.")?;
                Ok(SealingKey { id, cipher })
            })
            .collect::<Result<VecDeque<_>, &str>>()?;
        if keys.is_empty() { Err("There is no sealing key.".to_owned()) } else { Ok(Self(Arc::new(keys))) }
    }

    /// A ring of one new key, and the key as it is to be kept.
    pub fn generate() -> (Self, String) {
        let key = clock::random_hex(32);
        let ring = Self::parse(&key).unwrap_or_else(|_| Self(Arc::default()));
        (ring, key)
    }

    pub(crate) fn seal(&self, slot: SlotId, secret: &SecretString) -> Result<Sealed, Refusal> {
        let key = self.0.front().ok_or_else(|| Refusal::fault("there is no sealing key"))?;
        let mut bytes = vec![0; NONCE];
        clock::random_bytes(&mut bytes);
        let payload = Payload { msg: secret.expose_secret().as_bytes(), aad: slot.0.as_bytes() };
        let nonce = XNonce::try_from(bytes.as_slice()).map_err(|_| Refusal::fault("a nonce has another length"))?;
        let sealed = key.cipher.encrypt(&nonce, payload).map_err(|_| Refusal::fault("a secret could not be sealed"))?;
        bytes.extend(sealed);
        Ok(Sealed { key_id: key.id.clone(), bytes })
    }

    pub(crate) fn open(&self, slot: SlotId, sealed: &Sealed) -> Result<SecretString, Refusal> {
        let key = self.0.iter().find(|key| key.id == sealed.key_id).ok_or_else(|| {
            Refusal::fault(format!(
                "the secret is sealed with the key {}, which this instance does not have; give all instances the same \
                 LAYBY_SECRET_KEYS",
                sealed.key_id
            ))
        })?;
        let damaged = || Refusal::fault("a sealed secret is damaged");
        let (nonce, ciphertext) = sealed.bytes.split_at_checked(NONCE).ok_or_else(damaged)?;
        let nonce = XNonce::try_from(nonce).map_err(|_| damaged())?;
        let payload = Payload { msg: ciphertext, aad: slot.0.as_bytes() };
        let opened = key.cipher.decrypt(&nonce, payload).map_err(|_| damaged())?;
        String::from_utf8(opened).map(SecretString::from).map_err(|_| damaged())
    }

    /// The key that seals, by its id.
    pub(crate) fn newest(&self) -> &str {
        self.0.front().map_or("", |key| &key.id)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_secret_opens_for_its_own_slot_with_its_own_key_only_and_survives_a_new_key() {
        let ids = (SlotId(uuid::Uuid::from_u128(1)), SlotId(uuid::Uuid::from_u128(2)));
        let (ring, key) = Keyring::generate();
        let secret = SecretString::from("hunter2 \u{1f511}".to_owned());
        let sealed = ring.seal(ids.0, &secret).unwrap();
        assert!(!sealed.bytes.windows(7).any(|part| part == b"hunter2"));
        assert_ne!(ring.seal(ids.0, &secret).unwrap().bytes, sealed.bytes, "a nonce of its own each time");
        assert_eq!(ring.open(ids.0, &sealed).unwrap().expose_secret(), secret.expose_secret());
        assert!(ring.open(ids.1, &sealed).is_err());
        let (other, newer) = Keyring::generate();
        assert!(other.open(ids.0, &sealed).is_err());
        let rotated = Keyring::parse(&format!("{newer}\n{key}\n")).unwrap();
        assert_eq!(rotated.open(ids.0, &sealed).unwrap().expose_secret(), secret.expose_secret());
        assert_eq!(rotated.newest(), other.newest());
        let mut damaged = ring.seal(ids.0, &secret).unwrap();
        damaged.bytes[30] ^= 1;
        assert!(ring.open(ids.0, &damaged).is_err());
    }

    #[test]
    fn a_key_that_cannot_be_used_is_refused_without_being_shown() {
        for wrong in ["", "abc", &"zz".repeat(32), &"é".repeat(32)] {
            let sentence = Keyring::parse(wrong).err().unwrap();
            assert!(wrong.is_empty() || !sentence.contains(wrong), "{sentence}");
        }
    }
}
