//! Away, with a cover who answers meanwhile (design section 4, who is asked). `covered` says whether that is so now; it is
//! set and cleared when the times come, by any instance.

use chrono::{DateTime, NaiveDate, TimeZone, Utc};

use crate::{Engine, FieldError, Refusal, Tx, actor::PersonActor, audit, ids::PersonId, wake::Topic};

/// Somebody's absence: from the start of the first day to the end of the last, in their time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Away {
    pub from: DateTime<Utc>,
    /// None: until they say otherwise.
    pub until: Option<DateTime<Utc>>,
    pub cover: PersonId,
    pub cover_name: String,
    pub cover_email: String,
    /// The cover answers for them now.
    pub now: bool,
}

/// What somebody fills in: days as "2026-12-24" (the last may stay empty) and the cover's e-mail address.
#[derive(Clone, Debug, Default)]
pub struct AwayForm {
    pub from: String,
    pub until: String,
    pub cover: String,
}

/// The person's absence, present or to come.
pub async fn away(engine: &Engine, person: PersonId) -> Result<Option<Away>, Refusal> {
    let row = sqlx::query!(
        r#"select p.away_from, p.away_until, p.covered, c.id as "cover: PersonId", c.name, c.email
           from person p join person c on c.id = p.cover_id where p.id = $1"#,
        person.0
    )
    .fetch_optional(&engine.pool)
    .await?;
    Ok(row.and_then(|row| {
        Some(Away {
            from: row.away_from?,
            until: row.away_until,
            cover: row.cover,
            cover_name: row.name,
            cover_email: row.email,
            now: row.covered,
        })
    }))
}

/// Goes away. Refuses with `invalid` (pointers /from, /until, /cover).
pub async fn go_away(engine: &Engine, person: &PersonActor, form: &AwayForm) -> Result<(), Refusal> {
    let zone: chrono_tz::Tz = person.time_zone.parse().unwrap_or(chrono_tz::UTC);
    let midnight = |day: NaiveDate| {
        zone.from_local_datetime(&day.and_time(chrono::NaiveTime::MIN)).earliest().map(|at| at.with_timezone(&Utc))
    };
    let mut errors = Vec::new();
    let mut day = |pointer: &str, text: &str| match text.trim().parse::<NaiveDate>() {
        Ok(day) => Some(day),
        Err(_) => {
            errors.push(FieldError::new(pointer, "Write a date, for example 2026-12-24."));
            None
        }
    };
    let from = day("/from", &form.from);
    let until = if form.until.trim().is_empty() { None } else { day("/until", &form.until) };
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let cover = sqlx::query!(
        r#"select id as "id: PersonId", name from person where email = $1 and disabled_at is null"#,
        form.cover.trim().to_lowercase()
    )
    .fetch_optional(tx.conn())
    .await?;
    match &cover {
        None => errors.push(FieldError::new("/cover", "Choose who answers for you meanwhile.")),
        Some(cover) if cover.id == person.id => {
            errors.push(FieldError::new("/cover", "Choose somebody else: you are the one who is away."));
        }
        Some(_) => {}
    }
    if let (Some(from), Some(until)) = (from, until)
        && until < from
    {
        errors.push(FieldError::new("/until", "The last day comes after the first."));
    }
    let starts = from.and_then(midnight);
    // The last day is away to its end.
    let ends = until.and_then(|day| midnight(day.succ_opt()?));
    if ends.is_some_and(|ends| ends <= now) {
        errors.push(FieldError::new("/until", "This is over already."));
    }
    let (Some(starts), Some(cover), true) = (starts, cover, errors.is_empty()) else {
        return Err(Refusal::Invalid(errors));
    };
    sqlx::query!(
        "update person set away_from = $2, away_until = $3, cover_id = $4, covered = $5 where id = $1",
        person.id.0,
        starts,
        ends,
        cover.id.0,
        starts <= now
    )
    .execute(tx.conn())
    .await?;
    said(&mut tx, person.id, &cover.id, "person.away").await?;
    tx.wake(Topic::Clock);
    tx.commit().await
}

/// Is back, before the time is over or before it began.
pub async fn come_back(engine: &Engine, person: &PersonActor) -> Result<(), Refusal> {
    let mut tx = engine.begin().await?;
    let cover = sqlx::query_scalar!(r#"select cover_id as "cover: PersonId" from person where id = $1"#, person.id.0)
        .fetch_one(tx.conn())
        .await?;
    let Some(cover) = cover else { return Ok(()) };
    sqlx::query!(
        "update person set away_from = null, away_until = null, cover_id = null, covered = false where id = $1",
        person.id.0
    )
    .execute(tx.conn())
    .await?;
    said(&mut tx, person.id, &cover, "person.back").await?;
    tx.commit().await
}

async fn said(tx: &mut Tx, person: PersonId, cover: &PersonId, action: &str) -> Result<(), Refusal> {
    let key = format!("person:{person}");
    audit::write(tx, &key, action, &key, Some(serde_json::json!({ "cover": cover }))).await?;
    tx.wake(Topic::Inbox(key));
    tx.wake(Topic::Inbox(format!("person:{cover}")));
    Ok(())
}

/// Begins and ends every absence whose time has come; answers how many. Any instance may, as often as it likes.
pub async fn due(engine: &Engine) -> Result<usize, Refusal> {
    let mut tx = engine.begin().await?;
    let now = tx.now();
    let begun = sqlx::query!(
        r#"update person set covered = true
           where away_from <= $1 and (away_until is null or away_until > $1) and not covered and cover_id is not null
           returning id as "id: PersonId", cover_id as "cover!: PersonId""#,
        now
    )
    .fetch_all(tx.conn())
    .await?;
    for row in &begun {
        said(&mut tx, row.id, &row.cover, "person.cover_begins").await?;
    }
    let over = sqlx::query!(
        r#"with over as (
               select id, cover_id from person where away_until <= $1 and cover_id is not null for update
           )
           update person p set away_from = null, away_until = null, cover_id = null, covered = false
           from over where p.id = over.id
           returning p.id as "id: PersonId", over.cover_id as "cover!: PersonId""#,
        now
    )
    .fetch_all(tx.conn())
    .await?;
    for row in &over {
        said(&mut tx, row.id, &row.cover, "person.cover_ends").await?;
    }
    tx.commit().await?;
    Ok(begun.len() + over.len())
}
