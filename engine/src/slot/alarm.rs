//! The alarm: when nobody who was asked can answer, the sponsor and the managers are asked too, at once, instead of a wait
//! that nobody ends (design section 4, who is asked).

use super::{
    Kind, Slot, Status,
    asked::{self, Asked},
    reassign::{Handover, hand_to},
};
use crate::{
    Engine, Refusal, Tx,
    ids::{AgentId, Id, PersonId, SlotId},
};

/// What decides how many people can answer.
pub(super) struct Reach<'a> {
    pub kind: Kind,
    pub keys: &'a [String],
    /// Who has no say in it.
    pub barred: Option<PersonId>,
    /// Who had their say already.
    pub without: &'a [PersonId],
}

impl<'a> Reach<'a> {
    pub(super) fn of(slot: &Slot, keys: &'a [String]) -> Self {
        Self { kind: slot.kind, keys, barred: slot.barred(), without: &[] }
    }
}

/// How many active people stand behind the keys and may answer.
pub(super) async fn reachable(tx: &mut Tx, reach: &Reach<'_>) -> Result<i64, Refusal> {
    let ids = |prefix: &str| -> Vec<uuid::Uuid> {
        reach.keys.iter().filter_map(|key| key.strip_prefix(prefix)?.parse().ok()).collect()
    };
    let roles: Vec<String> = reach.keys.iter().filter_map(|key| Some(key.strip_prefix("role:")?.to_owned())).collect();
    let without: Vec<_> = reach.without.iter().map(|id| id.uuid()).collect();
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from (
               select id from person where id = any($1)
               -- A seat counts once: its cover's only where its holder is gone.
               union select cover_id from person
                     where id = any($1) and covered and (disabled_at is not null or $6)
                       and id is distinct from $4 and id <> all($5)
               union select person_id from group_member where group_id = any($2)
               union select person_id from person_role where role = any($3)
           ) who join person p on p.id = who.id
           where p.disabled_at is null and p.id is distinct from $4 and p.id <> all($5)
             and (not $6 or exists (select 1 from person_role r
                                    where r.person_id = p.id and r.role in ('manager', 'admin')))"#,
        &ids("person:"),
        &ids("group:"),
        &roles,
        reach.barred.map(|id| id.0),
        &without,
        reach.kind == Kind::Human,
    )
    .fetch_one(tx.conn())
    .await?)
}

/// Whoever was asked, and, when too few of them can answer, also the sponsor and the managers, with the sentence that says
/// so.
pub(super) async fn asked_enough(
    tx: &mut Tx,
    agent: AgentId,
    asked: Asked,
    kind: Kind,
    for_id: Option<PersonId>,
    needs: i32,
) -> Result<(Asked, Option<String>), Refusal> {
    // The ordinary question to somebody who is there needs no further look.
    if kind == Kind::Question && asked.anybody {
        return Ok((asked, None));
    }
    let barred = for_id.filter(|_| kind.is_for_others());
    let found = reachable(tx, &Reach { kind, keys: &asked.keys, barred, without: &[] }).await?;
    if found >= i64::from(needs) {
        return Ok((asked, None));
    }
    let alarm = sentence(&asked.words, found, needs);
    Ok((wider(tx, agent, &asked.names, barred).await?, Some(alarm)))
}

fn sentence(words: &str, found: i64, needs: i32) -> String {
    match found {
        0 => format!("{words} cannot answer this now, so the sponsor and the managers are asked too."),
        _ => format!(
            "This needs {needs} approvals and only {found} of those asked can give one, so the sponsor and the managers \
             are asked too."
        ),
    }
}

/// Those who were asked, the sponsor and the managers.
async fn wider(tx: &mut Tx, agent: AgentId, names: &[String], barred: Option<PersonId>) -> Result<Asked, Refusal> {
    let sponsor = asked::sponsor(tx, agent).await?.filter(|sponsor| sponsor.assignee != barred);
    let mut names = names.to_vec();
    names.extend(sponsor.into_iter().flat_map(|sponsor| sponsor.names));
    names.push("role:manager".to_owned());
    asked::named(tx, &names).await
}

/// Looks again at every waiting slot that asked one of `keys`, after somebody was disabled or left a group, and raises the
/// alarm where nobody can answer any more. Needs a transaction.
pub(crate) async fn raise(tx: &mut Tx, keys: &[String]) -> Result<(), Refusal> {
    let ids = sqlx::query_scalar!(
        // Many tasks are locked here, in the order in which the timers lock theirs.
        r#"select id as "id: SlotId" from slot
           where id in (select slot_id from slot_candidate where candidate = any($1)) order by task_id, id"#,
        keys
    )
    .fetch_all(tx.conn())
    .await?;
    for id in ids {
        let Some(slot) = super::lock(tx, id).await? else { continue };
        if slot.status == Status::Waiting && slot.alarm.is_none() {
            raise_for(tx, &slot).await?;
        }
    }
    Ok(())
}

/// Raises the alarm for waiting slots that too few can answer any more without anybody having said so: who was asked while
/// they were being disabled, a group or a role that was emptied, a cover that is gone. Answers how many.
pub async fn sweep(engine: &Engine) -> Result<usize, Refusal> {
    let mut conn = engine.pool.acquire().await?;
    let ids = sqlx::query_scalar!(
        r#"
        with behind as materialized (
            select key, p.id from acting_person p cross join unnest(p.keys) key
        ), manned as materialized (
            select key, count(*) as people from behind group by key
        ), thin as materialized (
            -- Where those of one key are enough, whoever had their say or is barred, nobody is looked at one by one.
            select s.id, s.task_id, s.kind, s.needs, s.votes, s.declined
            from slot s join slot_candidate c on c.slot_id = s.id left join manned m on m.key = c.candidate
            where s.status = 'waiting' and s.alarm is null
            group by s.id
            having coalesce(max(m.people), 0) < s.needs + cardinality(s.declined) + 2 * jsonb_array_length(s.votes)
                                                + (s.kind in ('approval', 'human'))::int
        )
        select thin.id as "id: SlotId"
        from thin join task t on t.id = thin.task_id join slot_candidate c on c.slot_id = thin.id
        left join behind b on b.key = c.candidate and b.id <> all(thin.declined)
            and (thin.kind not in ('approval', 'human') or b.id is distinct from t.for_id)
            and not thin.votes @> jsonb_build_array(jsonb_build_object('id', b.id))
        group by thin.id, thin.needs, thin.votes
        having count(distinct b.id) < thin.needs - jsonb_array_length(thin.votes)
        order by thin.id limit 500
        "#
    )
    .fetch_all(&mut *conn)
    .await?;
    drop(conn);
    let mut raised = 0;
    for id in ids {
        let mut tx = engine.begin().await?;
        let Some(slot) = super::lock(&mut tx, id).await? else { continue };
        // What was found is looked at again with the task held: another instance may have been here.
        if slot.status == Status::Waiting && slot.alarm.is_none() && raise_for(&mut tx, &slot).await? {
            raised += 1;
        }
        tx.commit().await?;
    }
    Ok(raised)
}

/// False when enough people can answer it.
async fn raise_for(tx: &mut Tx, slot: &Slot) -> Result<bool, Refusal> {
    let without = slot.spent();
    let found = reachable(tx, &Reach { without: &without, ..Reach::of(slot, &slot.candidates) }).await?;
    if found >= slot.still_needs() {
        return Ok(false);
    }
    let said = sentence(slot.asked_words(), found, slot.needs);
    let asked = wider(tx, slot.agent_id, &slot.asked, slot.barred()).await?;
    let handover = Handover { alarm: Some(&said), ..Handover::new(slot, "alarm", &said) };
    hand_to(tx, slot, asked, handover).await?;
    Ok(true)
}
