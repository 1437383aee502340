//! The ladder: whoever was asked (0), the agent's sponsor (1), the managers (2). A rung counts only when enough people on it
//! can answer.

use super::{
    Slot,
    alarm::{Reach, reachable},
    asked::{self, Asked},
};
use crate::{Refusal, Tx, ids::PersonId};

/// The first rung from `from` up on which enough people can answer, without those who had their say; None when there is
/// none.
pub(super) async fn from(
    tx: &mut Tx,
    slot: &Slot,
    from: i16,
    without: &[PersonId],
) -> Result<Option<(Asked, i16)>, Refusal> {
    for rung in from.max(1)..=2 {
        let asked = match rung {
            // A sponsor who was asked in the first place has let it pass.
            1 => asked::sponsor(tx, slot.agent_id).await?.filter(|sponsor| sponsor.assignee != slot.assignee_id),
            _ => Some(asked::managers(tx).await?),
        };
        let Some(asked) = asked else { continue };
        if is_enough(tx, slot, &asked, without).await? {
            return Ok(Some((asked, rung)));
        }
    }
    Ok(None)
}

/// Whether as many of `asked` can answer as are still needed.
pub(super) async fn is_enough(tx: &mut Tx, slot: &Slot, asked: &Asked, without: &[PersonId]) -> Result<bool, Refusal> {
    let reach = Reach { without, ..Reach::of(slot, &asked.keys) };
    Ok(reachable(tx, &reach).await? >= slot.still_needs())
}
