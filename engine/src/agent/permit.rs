//! What an agent may do by itself (design section 5, permits).

use serde::{Deserialize, Serialize};

use crate::{Refusal, Tx, audit, ids::AgentId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Rule {
    /// Does it.
    Alone,
    /// Proposes it: a person approves the exact arguments first.
    Propose,
    /// Is not offered it.
    Never,
}

impl Rule {
    fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Propose => "propose",
            Self::Never => "never",
        }
    }
}

/// Sets what an agent may do with a tool.
pub async fn permit(tx: &mut Tx, by: &str, agent: AgentId, tool: &str, rule: Rule) -> Result<(), Refusal> {
    sqlx::query!(
        "insert into permit (agent_id, tool, rule) values ($1, $2, $3)
         on conflict (agent_id, tool) do update set rule = excluded.rule",
        agent.0,
        tool,
        rule.as_str()
    )
    .execute(tx.conn())
    .await?;
    let detail = serde_json::json!({ "tool": tool, "rule": rule });
    audit::write(tx, by, "agent.permit", &format!("agent:{agent}"), Some(detail)).await?;
    Ok(())
}
