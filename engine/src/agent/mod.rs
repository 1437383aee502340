//! Agents: named workers (design section 5). Inside, Layby runs the loop; outside, somebody's own program asks.

pub mod add;
mod advance;
pub mod built_in;
mod conversation;
mod lease;
pub mod model;
pub mod token;
mod tools;
pub mod work;

pub use add::{NewAgent, add};
pub use built_in::ensure_built_in;
