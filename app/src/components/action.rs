//! The action that an approval is about: exactly what runs, readable and as JSON, with what people changed.

use engine::{
    pointer,
    slot::{Kind, Slot},
    unseen::is_unseen,
};
use leptos::prelude::*;
use serde_json::Value;

/// The tool, its arguments in a table, the same as JSON with the digest, and who approved so far.
pub(crate) fn action(slot: &Slot) -> Option<AnyView> {
    let (action, arguments) = (slot.action.as_ref()?, slot.arguments()?.clone());
    let edits = slot.edits();
    let rows = arguments.iter().map(|(name, value)| {
        let pointer = pointer::child("", name);
        let before = edits.iter().find(|edit| edit.pointer == pointer).map(|edit| {
            view! { <del><span class="sr-only">"before: "</span>{shown(&edit.before)}</del> " → " }
        });
        view! { <tr><th scope="row">{visible(name)}</th><td>{before}<span class="argument">{shown(value)}</span></td></tr> }
    });
    let rows = rows.collect_view();
    let inner = edits.iter().filter(|edit| edit.pointer.matches('/').count() > 1).map(|edit| {
        view! { <li>{visible(edit.pointer.trim_start_matches('/'))} ": " <del>{shown(&edit.before)}</del> " → " {shown(&edit.after)}</li> }
    });
    let inner = inner.collect::<Vec<_>>();
    let inner = (!inner.is_empty()).then(|| view! { <ul class="plain">{inner}</ul> });
    let changed = (!edits.is_empty()).then(|| {
        let who = slot.edited_by.clone().unwrap_or_else(|| "Somebody".to_owned());
        view! { <p class="notice">{who} " changed what was asked."</p> }
    });
    let json = visible(&format!("{:#}", Value::Object(arguments)));
    let digest = slot.digest.clone().filter(|_| slot.kind == Kind::Approval);
    let digest = digest.map(|digest| view! { <p class="faint">"SHA-256 of what runs: " <code>{digest}</code></p> });
    let used = slot.used_at.filter(|_| slot.is_approved()).map(|_| view! { <p class="faint">"It has run, once."</p> });
    Some(
        view! {
            <div class="action" data-test="action">
                <p><b>{action.tool.clone()}</b></p>
                <div class="wide"><table><tbody>{rows}</tbody></table></div>
                {inner}
                {changed}
                {used}
                <details id=format!("json-{}", slot.id)><summary>"The same as JSON"</summary><pre>{json}</pre>{digest}</details>
            </div>
        }
        .into_any(),
    )
}

/// The votes of an approval that needs several.
pub(crate) fn votes(slot: &Slot) -> Option<AnyView> {
    if slot.needs < 2 {
        return None;
    }
    let names = slot.votes.iter().map(|vote| vote.name.as_str()).collect::<Vec<_>>().join(", ");
    let so_far = match slot.votes.len() {
        0 => format!("Needs {} approvals; nobody has approved yet.", slot.needs),
        count => format!("{count} of {} approvals: {names}.", slot.needs),
    };
    let notes = slot.votes.iter().filter_map(|vote| {
        let note = vote.note.clone()?;
        Some(view! { <p class="faint">{vote.name.clone()} ": " {note}</p> })
    });
    let notes = notes.collect_view();
    Some(view! {
        <p class="votes" data-test="votes">
            <progress max=slot.needs.to_string() value=slot.votes.len().to_string() aria-label="Approvals so far"></progress>
            " " {so_far}
        </p>
        {notes}
    }
    .into_any())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "(empty)".to_owned(),
        // A text that reads like another kind of value is told apart from it.
        Value::String(text) if serde_json::from_str::<Value>(text).is_ok() || matches!(text.as_str(), "yes" | "no") => {
            format!("“{}”", visible(text))
        }
        Value::String(text) => visible(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "(nothing)".to_owned(),
        other => visible(&other.to_string()),
    }
}

/// The text with what cannot be seen made visible, else another argument could be shown than the one that runs.
fn visible(text: &str) -> String {
    let hidden = |letter: char| is_unseen(letter) && !matches!(letter, '\n' | '\t');
    text.replace("\r\n", "\n").chars().fold(String::new(), |mut shown, letter| {
        if hidden(letter) {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
        } else {
            shown.push(letter);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_hides_no_letter_from_whoever_approves_it() {
        assert_eq!(shown(&Value::from("pay\u{202e}42\u{200b}\r")), "pay⟨U+202E⟩42⟨U+200B⟩⟨U+000D⟩");
        assert_eq!(shown(&Value::from("two\nlines, ärger, 東")), "two\nlines, ärger, 東");
        assert_eq!((shown(&Value::from(40)), shown(&Value::from("40"))), ("40".to_owned(), "“40”".to_owned()));
        assert_eq!((shown(&Value::Bool(true)), shown(&Value::from("yes"))), ("yes".to_owned(), "“yes”".to_owned()));
    }
}
