//! Pieces that pages are made of.

mod action;
mod answer_form;
pub(crate) mod calendar_form;
mod field;
mod input;
mod question;
mod typed;

pub(crate) use answer_form::{AnswerForm, has_file, inputs};
pub(crate) use input::Input;
pub(crate) use question::{Place, Question, prefix};
pub(crate) use typed::Typed;

use chrono::{DateTime, Utc};
use engine::{FieldError, duration, file::File};
use leptos::prelude::*;

/// Text as it may stand in an element or a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// A text area that shows `value` and nothing else: Leptos 0.8 does not escape a text area's children.
#[component]
pub(crate) fn TextArea(
    name: String,
    id: String,
    value: String,
    #[prop(default = 4)] rows: u8,
    #[prop(default = false)] required: bool,
    #[prop(default = String::new())] described_by: String,
    #[prop(default = false)] wrong: bool,
    #[prop(default = None)] min: Option<u64>,
    #[prop(default = None)] max: Option<u64>,
) -> impl IntoView {
    // A browser drops the first line feed in a text area, so one of our own goes before it.
    let inner = format!("\n{}", escape(&value));
    view! {
        <textarea name=name id=id rows=rows.to_string() required=required minlength=min.map(|min| min.to_string())
            maxlength=max.map(|max| max.to_string()) aria-invalid=wrong.then_some("true")
            aria-describedby=(!described_by.is_empty()).then_some(described_by) inner_html=inner></textarea>
    }
}

/// Words that were typed into a form that is not there any more.
#[component]
pub(crate) fn WhatWasTyped(words: String) -> impl IntoView {
    view! { <div class="typed" data-test="typed"><p>"What you had typed:"</p><blockquote>{words}</blockquote></div> }
}

/// A sentence that says what is wrong.
#[component]
pub(crate) fn Alert(sentence: String) -> impl IntoView {
    view! { <div class="alert" role="alert" tabindex="-1" data-test="refusal"><p>{sentence}</p></div> }
}

/// What is wrong with one field, beside it.
#[component]
pub(crate) fn Wrong(id: String, sentence: Option<String>) -> impl IntoView {
    sentence.map(|sentence| view! { <p class="wrong" id=id>{sentence}</p> })
}

/// The sentence for the field at `pointer`.
pub(crate) fn error_at(errors: &[FieldError], pointer: &str) -> Option<String> {
    errors.iter().find(|error| error.pointer == pointer).map(|error| error.detail.clone())
}

/// The sentence for the field at `pointer`, or for a part of it.
pub(crate) fn error_under(errors: &[FieldError], pointer: &str) -> Option<String> {
    error_at(errors, pointer).or_else(|| {
        let inner = format!("{pointer}/");
        errors.iter().find(|error| error.pointer.starts_with(&inner)).map(|error| error.detail.clone())
    })
}

/// Files: pictures as pictures, the rest to download.
pub(crate) fn attached(files: &[File]) -> Option<AnyView> {
    let each = files.iter().map(|file| {
        let href = format!("/files/{}", file.id);
        let size = match file.size {
            0..1_000 => format!("{} bytes", file.size),
            1_000..1_000_000 => format!("{} kB", file.size / 1_000),
            _ => format!("{:.1} MB", f64::from(file.size) / 1e6),
        };
        let picture = (file.is_picture() && !file.from_asker).then(|| {
            view! { <img src=href.clone() alt=file.name.clone() loading="lazy"/> }
        });
        view! {
            <li>
                {picture}
                <a href=format!("{href}?download") data-turbo="false">{file.name.clone()}</a> " " <small>{size}</small>
            </li>
        }
    });
    (!files.is_empty()).then(|| view! { <ul class="files" aria-label="Files">{each.collect_view()}</ul> }.into_any())
}

/// "3 hours ago", with the full time in the reader's zone on hover.
pub(crate) fn ago(at: DateTime<Utc>, now: DateTime<Utc>, zone: &str) -> impl IntoView + use<> {
    let words = match (now - at).num_seconds() {
        ..60 => "just now".to_owned(),
        _ => format!("{} ago", duration::words(now - at)),
    };
    moment(at, zone, words)
}

/// "in 2 days" or "5 minutes ago".
pub(crate) fn until(at: DateTime<Utc>, now: DateTime<Utc>, zone: &str) -> impl IntoView + use<> {
    let words = if at > now {
        format!("in {}", duration::words(at - now))
    } else {
        format!("{} ago", duration::words(now - at))
    };
    moment(at, zone, words)
}

fn moment(at: DateTime<Utc>, zone: &str, words: String) -> impl IntoView + use<> {
    let zone: chrono_tz::Tz = zone.parse().unwrap_or(chrono_tz::UTC);
    let full = at.with_timezone(&zone).format("%A, %-d %B %Y, %H:%M %Z").to_string();
    view! { <time datetime=at.to_rfc3339() title=full>{words}</time> }
}

/// Lists and quotations within each other that are shown as such.
const DEEPEST: usize = 20;

/// Markdown of an agent as harmless HTML: no raw HTML, no pictures, only links that leave in the open. What nests deeper
/// than anybody reads is shown as it was written, since cleaning it would take a time that grows with its square.
pub(crate) fn markdown(text: &str) -> String {
    use pulldown_cmark::{Event, Options, Parser, html};
    let parser = || Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut depth = 0_usize;
    let too_deep = parser().any(|event| {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    });
    if too_deep {
        return format!("<pre>{}</pre>", escape(text));
    }
    let events = parser().map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        other => other,
    });
    let mut rendered = String::new();
    html::push_html(&mut rendered, events);
    ammonia::Builder::default()
        .rm_tags(["img"])
        .url_schemes(["http", "https", "mailto"].into())
        .link_rel(Some("noopener noreferrer nofollow"))
        .clean(&rendered)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_area_never_ends_early() {
        let hostile = "\n</textarea><script>alert(1)</script>&amp;\"'";
        let html = Owner::new().with(|| {
            view! { <TextArea name="answer".to_owned() id="a".to_owned() value=hostile.to_owned()/> }
                .into_any()
                .to_html()
        });
        assert!(!html.contains("<script>"), "{html}");
        assert_eq!(html.matches("</textarea>").count(), 1, "{html}");
        assert!(html.contains("\n\n&lt;/textarea&gt;"), "the text's own first line feed is kept: {html}");
    }

    #[test]
    fn the_renderer_escapes_text_and_attributes() {
        let hostile = "\"><script>alert(1)</script>";
        let html = Owner::new().with(|| {
            view! { <p title=hostile.to_owned()>{hostile.to_owned()}</p><input value=hostile.to_owned()/> }
                .into_any()
                .to_html()
        });
        assert!(!html.contains("<script>"), "{html}");
        // In a quoted attribute only the quote and the ampersand can do harm.
        assert!(!html.contains("=\"\"><"), "{html}");
    }

    #[test]
    fn an_agents_markdown_never_runs() {
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "![x](https://example.com/pixel.png)",
            "[x](javascript:alert(1))",
            "<a href=\"javascript:alert(1)\">x</a>",
            "[x](data:text/html,<script>alert(1)</script>)",
        ] {
            let html = markdown(hostile);
            for danger in ["<script", "<img", "<a href=\"javascript", "<a href=\"data"] {
                assert!(!html.contains(danger), "{hostile} became {html}");
            }
        }
        assert!(markdown("| a |\n|---|\n| **b** |").contains("<strong>b</strong>"));
    }

    #[test]
    fn markdown_that_nests_without_end_is_shown_as_it_was_written() {
        for nested in [">".repeat(50_000), "*a **a ".repeat(10_000), "1. ".repeat(3_000)] {
            let html = markdown(&nested);
            assert!(html.starts_with("<pre>") || html.len() < 40 * nested.len(), "{}", &html[..200]);
            assert!(html.matches("<blockquote").count() <= DEEPEST);
        }
        assert!(markdown("> - a\n>   - b").contains("<li>b"));
    }
}
