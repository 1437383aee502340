//! Who did what, append only (design section 10).

use serde_json::Value;

use crate::{Refusal, Tx};

/// Writes one line in the transaction of what it tells. `actor` and `object` are keys such as "person:<id>".
pub(crate) async fn write(
    tx: &mut Tx,
    actor: &str,
    action: &str,
    object: &str,
    detail: Option<Value>,
) -> Result<(), Refusal> {
    let now = tx.now();
    sqlx::query!(
        "insert into audit (at, actor, action, object, detail) values ($1, $2, $3, $4, $5)",
        now,
        actor,
        action,
        object,
        detail,
    )
    .execute(tx.conn())
    .await?;
    Ok(())
}
