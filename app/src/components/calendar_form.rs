//! The fields of a calendar: the site's and a person's own.

use engine::{FieldError, calendar::CalendarForm};
use leptos::prelude::*;

use super::{TextArea, Wrong, error_at};
use crate::pages::field;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// What was typed.
pub(crate) fn read(fields: &[(String, String)]) -> CalendarForm {
    CalendarForm {
        zone: field(fields, "zone"),
        week: std::array::from_fn(|at| field(fields, &format!("week{at}"))),
        holidays: field(fields, "holidays").replace("\r\n", "\n"),
    }
}

pub(crate) fn inputs(form: &CalendarForm, errors: &[FieldError]) -> AnyView {
    let zone_wrong = error_at(errors, "/zone");
    let days = DAYS.iter().enumerate().map(|(at, day)| {
        let id = format!("week{at}");
        let wrong = error_at(errors, &format!("/week/{at}"));
        view! {
            <div class="field">
                <label for=id.clone()>{*day}</label>
                <input type="text" id=id.clone() name=id.clone() value=form.week[at].clone() autocomplete="off"
                    aria-invalid=wrong.is_some().then_some("true") aria-describedby=format!("{id}-wrong")/>
                <Wrong id=format!("{id}-wrong") sentence=wrong/>
            </div>
        }
    });
    let days = days.collect_view();
    let wrong = error_at(errors, "/holidays");
    view! {
        <div class="field">
            <label for="zone">"Time zone"</label>
            <input type="text" id="zone" name="zone" value=form.zone.clone() required=true autocomplete="off"
                aria-invalid=zone_wrong.is_some().then_some("true") aria-describedby="zone-help zone-wrong"/>
            <p class="faint" id="zone-help">"For example Europe/Berlin."</p>
            <Wrong id="zone-wrong".to_owned() sentence=zone_wrong/>
        </div>
        <p class="faint">"Hours like 9-12:30, 13:30-18; a day off stays empty."</p>
        <div class="row">{days}</div>
        <div class="field">
            <label for="holidays">"Holidays, one to a line"</label>
            <TextArea name="holidays".to_owned() id="holidays".to_owned() value=form.holidays.clone() rows=5
                wrong=wrong.is_some() described_by="holidays-help holidays-wrong".to_owned()/>
            <p class="faint" id="holidays-help">"2026-12-24 Christmas Eve, or 12-25 Christmas for every year."</p>
            <Wrong id="holidays-wrong".to_owned() sentence=wrong/>
        </div>
    }
    .into_any()
}
