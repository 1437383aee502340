//! Tools that run in the program of whoever the work is for: the agent calls, the program answers (design section 4,
//! kind `client_tool`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::types::Json;

use super::tools;
use crate::{FieldError, Refusal, Tx, audit, ids::AgentId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of what the model hands in.
    #[serde(default)]
    pub arguments: Value,
    /// JSON Schema of what the program gives back.
    #[serde(default)]
    pub output: Option<Value>,
}

/// Sets the client tools that an agent of ours is offered. Refuses with `invalid` for a name that is taken or none.
pub async fn set_client_tools(tx: &mut Tx, by: &str, agent: AgentId, list: &[ClientTool]) -> Result<(), Refusal> {
    for (at, tool) in list.iter().enumerate() {
        let fits = (1..=64).contains(&tool.name.len())
            && tool.name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
        if !fits || tools::is_built_in(&tool.name) || list[..at].iter().any(|other| other.name == tool.name) {
            let detail = "A tool's name has letters, digits, _ and -, and is no other tool's.";
            return Err(Refusal::Invalid(vec![FieldError::new(format!("/{at}/name"), detail)]));
        }
    }
    let set = sqlx::query!("update agent set client_tools = $2 where id = $1 and inside", agent.0, Json(list) as _)
        .execute(tx.conn())
        .await?;
    if set.rows_affected() != 1 {
        return Err(Refusal::NotFound);
    }
    audit::write(tx, by, "agent.client_tools", &format!("agent:{agent}"), None).await?;
    Ok(())
}
