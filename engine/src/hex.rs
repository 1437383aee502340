//! Bytes as people and addresses write them.

/// Two digits a byte, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
