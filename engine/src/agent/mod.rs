//! Agents: named workers (design section 5). Inside, Layby runs the loop; outside, somebody's own program asks.

pub mod add;
mod advance;
mod ask;
pub mod built_in;
pub mod client_tool;
mod conversation;
mod lease;
pub mod model;
pub mod permit;
mod propose;
pub mod token;
mod tools;
pub mod work;

pub use add::{NewAgent, add};
pub use built_in::ensure_built_in;
pub use client_tool::{ClientTool, set_client_tools};
pub use permit::{Rule, permit};
