//! An input of the forms that are ours, with its label, its help and what is wrong with it.

use engine::FieldError;
use leptos::prelude::*;

use super::{Wrong, error_at};

#[component]
pub(crate) fn Input<'a>(
    /// Of the field, and its id.
    name: &'static str,
    #[prop(into)] label: String,
    #[prop(default = "text")] kind: &'static str,
    #[prop(into, optional)] value: String,
    #[prop(optional)] required: bool,
    #[prop(optional)] autocomplete: Option<&'static str>,
    #[prop(optional)] inputmode: Option<&'static str>,
    #[prop(optional)] help: &'static str,
    /// Of the whole form.
    #[prop(optional)]
    errors: &'a [FieldError],
) -> AnyView {
    let error = error_at(errors, &format!("/{name}"));
    let help = (!help.is_empty()).then(|| view! { <p class="faint" id=format!("{name}-help")>{help}</p> });
    let described_by = match &help {
        Some(_) => format!("{name}-help {name}-wrong"),
        None => format!("{name}-wrong"),
    };
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input type=kind id=name name=name value=value required=required autocomplete=autocomplete inputmode=inputmode
                aria-invalid=error.is_some().then_some("true") aria-describedby=described_by/>
            {help}
            <Wrong id=format!("{name}-wrong") sentence=error/>
        </div>
    }
    .into_any()
}
