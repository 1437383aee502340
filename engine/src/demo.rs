//! The demonstration: people, and claims with something to ask about. Only with `--demo`.

use crate::{
    Engine, Refusal, Tx,
    claim::{self, ClaimForm},
    ids::PersonId,
    person::{self, Role},
};

pub const PASSWORD: &str = "layby-demo";

/// E-mail, name, roles, groups.
pub const PEOPLE: [(&str, &str, &[Role], &[&str]); 4] = [
    ("mia@layby.example", "Mia Lindqvist", &[Role::Person], &[]),
    ("sam@layby.example", "Sam Okafor", &[Role::Person], &["finance"]),
    ("noor@layby.example", "Noor Haddad", &[Role::Person, Role::Manager], &["finance"]),
    ("ada@layby.example", "Ada Novak", &[Role::Person, Role::Admin], &[]),
];

/// Filer, days ago, merchant, amount, currency, category, explanation.
const CLAIMS: [(usize, i64, &str, &str, &str, &str, &str); 9] = [
    (1, 9, "Deutsche Bahn", "129.90", "EUR", "travel", "Frankfurt to Berlin and back, customer workshop"),
    (1, 8, "Café “Zur Post”", "18.40", "EUR", "meals", "Lunch with a candidate"),
    (1, 8, "Café “Zur Post”", "18.40", "EUR", "meals", "Lunch with a candidate"),
    (1, 7, "Hotel Adlon Kempinski", "412.00", "EUR", "lodging", ""),
    (1, 6, "Hotel Sonne", "96.00", "EUR", "meals", "One night at the fair"),
    (0, 5, "Uber *TRIP 7F2K", "23.15", "EUR", "transport", ""),
    (0, 4, "Saturn Electro", "899.00", "EUR", "equipment", "Monitor for the home office"),
    (0, 3, "東急ハンズ", "5,480", "JPY", "supplies", "展示会の備品"),
    (2, 2, "Restaurant Borchardt", "286.50", "EUR", "meals", "Client dinner for four"),
];

/// Adds the people and the claims once; a second call finds them and does nothing.
pub async fn seed(engine: &Engine) -> Result<(), Refusal> {
    let mut tx = engine.begin().await?;
    // Two instances that start at once seed once.
    sqlx::query!("select pg_advisory_xact_lock(7122033101) as locked").fetch_one(tx.conn()).await?;
    let there =
        sqlx::query_scalar!(r#"select exists (select 1 from person where email = $1) as "there!""#, PEOPLE[0].0)
            .fetch_one(tx.conn())
            .await?;
    if there {
        return Ok(());
    }
    let people = people(&mut tx).await?;
    let today = tx.now().date_naive();
    for (filer, days, merchant, amount, currency, category, explanation) in CLAIMS {
        let form = ClaimForm {
            spent_on: (today - chrono::Duration::days(days)).to_string(),
            merchant: merchant.to_owned(),
            amount: amount.to_owned(),
            currency: currency.to_owned(),
            category: category.to_owned(),
            explanation: explanation.to_owned(),
        };
        let checked = claim::file::check(form, today)?;
        claim::file::insert(&mut tx, people[filer], PEOPLE[filer].1, checked).await?;
    }
    tx.commit().await
}

/// Adds the demonstration people and makes the manager the sponsor of the built-in agents.
pub(crate) async fn people(tx: &mut Tx) -> Result<Vec<PersonId>, Refusal> {
    let hash = person::add::hash_known(PASSWORD).await?;
    let mut people = Vec::new();
    for (email, name, roles, groups) in PEOPLE {
        let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        people.push(person::add::insert(tx, "system", email, name, roles, &groups, Some(&hash)).await?);
    }
    sqlx::query!("update agent set sponsor_id = $1 where sponsor_id is null", people[2].0).execute(tx.conn()).await?;
    Ok(people)
}
