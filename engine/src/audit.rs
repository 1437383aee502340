//! Who did what, append only (design section 10).

use serde_json::Value;

use crate::{Refusal, Tx};

/// Writes one line in the transaction of what it tells, and answers its id. `actor` and `object` are keys such as
/// "person:<id>".
pub(crate) async fn write(
    tx: &mut Tx,
    actor: &str,
    action: &str,
    object: &str,
    detail: Option<Value>,
) -> Result<i64, Refusal> {
    let now = tx.now();
    let id = sqlx::query_scalar!(
        "insert into audit (at, actor, action, object, detail) values ($1, $2, $3, $4, $5) returning id",
        now,
        actor,
        action,
        object,
        detail,
    )
    .fetch_one(tx.conn())
    .await?;
    Ok(id)
}
