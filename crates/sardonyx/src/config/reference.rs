//! The reference page, `docs/reference/keys.md`, from what the program itself uses: designs, layers and keys.
//! A test compares the page with this.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::names::{Form, ROWS};
use super::{Machine, Range, keys, presets};
use crate::controller::designs::{self, AnyLayer, Stack};
use crate::controller::layers::{About, Design};
use crate::medium::near::is_of_medium;
use crate::settings::{Allowed, Origin, Row, Value};

/// The machine whose values are the machine keys' examples: the first preset.
const MACHINE: &str = "esd";

/// Writes the page.
///
/// # Panics
/// If a design or the first preset is broken, which tests rule out.
pub fn reference() -> String {
    let mut out = String::from(
        "# Reference\n\n\
         This page is written by the program (`config::reference`). After a change of a design or a key run\n\
         `UPDATE_REFERENCE=1 .venv/bin/python tools/rust_tests.py --only reference::`.\n\n\
         A key has its value on the machine `esd` and what else is allowed, its meaning, and its source.\n\n\
         ## Designs\n\n\
         | name | stack | what it is | source | promises after a power cut |\n|---|---|---|---|---|\n",
    );
    for design in designs::all() {
        let Design {
            name,
            source,
            line,
            stack,
        } = design;
        let promise = Stack::named(name).expect("a design").guarantee().name();
        let _ = writeln!(
            out,
            "| `{name}` | `{stack}` | {line} | {source} | {promise} |"
        );
    }
    for kind in designs::KINDS {
        let of_kind = designs::built_in().filter(|layer| layer.kind() == kind);
        layers(&mut out, kind, of_kind.map(AnyLayer::about));
    }
    keys_by_section(&mut out);
    out
}

fn layers(out: &mut String, kind: &str, layers: impl Iterator<Item = &'static About>) {
    let _ = writeln!(
        out,
        "\n## {}{}\n\n| name | what a power cut does to what it keeps | keys |\n|---|---|---|",
        kind[..1].to_uppercase(),
        &kind[1..],
    );
    let mut above = String::new();
    for about in layers {
        let rows = about.keys.iter().flat_map(|key| key.rows());
        let names: Vec<String> = rows.map(|row| format!("`{}`", row.name)).collect();
        let (name, cut, names) = (about.name, about.cut, names.join(" "));
        let names = once(&mut above, &names);
        let _ = writeln!(out, "| `{name}` | {cut} | {names} |");
    }
}

/// Rows of the keys whose names begin alike, and the text of the last row's cells.
#[derive(Default)]
struct Section {
    rows: String,
    range: String,
    source: String,
}

fn keys_by_section(out: &mut String) {
    let none: [(&str, &str); 0] = [];
    let machine = Machine::load(MACHINE, &none).expect("the first preset");
    let text = presets()[0].text;
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    for key in keys().filter(|key| !is_of_medium(key.name)) {
        let first = key.split().0.split('.').next().unwrap_or_default();
        let value = machine.settings.find(key.name).expect("every key has one");
        let value = match value {
            Value::Word(word) => word.to_owned(),
            other => super::write::literal(other),
        };
        let assumed = machine.assumed.iter().find(|a| a.parameter == key.name);
        let source = match (assumed, key.default) {
            (Some(assumed), _) => {
                format!(
                    "assumed: {}{}",
                    assumed.why,
                    otherwise(assumed.range.as_ref(), &key.kind)
                )
            }
            (None, Some((_, Origin::Source(source)))) => source.to_owned(),
            _ => comment(text, key).to_owned(),
        };
        let (name, meaning) = (key.name, key.meaning);
        let section = sections.entry(first.to_owned()).or_default();
        let allowed = key.kind.range();
        let range = allowed.strip_prefix("one of ").unwrap_or(&allowed);
        let range = range.replace(" from ", ", ").replace(" to ", "–");
        let range = once(&mut section.range, &range);
        let source = once(&mut section.source, &source);
        let _ = writeln!(
            section.rows,
            "* `{name}`: {value} ({range}). {meaning}. *{source}*"
        );
    }
    for (first, section) in &sections {
        let title = if first.is_empty() {
            "cores"
        } else {
            first.as_str()
        };
        let _ = write!(out, "\n## Keys: {title}\n\n{}", section.rows);
    }
}

/// The text, or a mark if the row above has the same.
fn once<'t>(above: &mut String, text: &'t str) -> &'t str {
    if above == text && text.chars().count() > 14 {
        return "as above";
    }
    text.clone_into(above);
    text
}

/// The alternatives of an assumed value, unless they are all values that are allowed; `sardonyx show` gives the reason.
fn otherwise(range: Option<&Range>, allowed: &Allowed) -> String {
    let others = match allowed {
        Allowed::Word(words) => words.len() - 1,
        Allowed::Bool => 1,
        _ => 0,
    };
    match range {
        Some(Range::Others(words)) if words.len() == others => String::new(),
        Some(Range::Between { low, high, .. }) => format!("; {low}–{high}"),
        Some(Range::Others(words)) => format!("; or {}", words.join(", ")),
        Some(Range::Inert(why)) => format!(". Changes no figure: {why}"),
        None => String::new(),
    }
}

fn comment<'t>(text: &'t str, key: &Row) -> &'t str {
    let (parent, name) = key.split();
    let mut here = parent.is_empty();
    let mut of_section = "";
    for line in text.lines() {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        let code = code.trim();
        if code.starts_with('[') {
            here = code == format!("[{parent}]");
            if here {
                of_section = comment.trim();
            }
        }
        let known = code.split_once('=').map(|(known, _)| known.trim());
        fn stem(key: &str) -> &str {
            key.trim_end_matches("_ns")
        }
        let written = |form: Form| form.name(key).rsplit('.').next().map(str::to_owned);
        let as_capacity = key.name == ROWS && known.map(str::to_owned) == written(Form::Capacity);
        let is_key = known.map(stem) == Some(stem(name)) || as_capacity;
        if here && is_key && !comment.is_empty() {
            return comment.trim();
        }
    }
    of_section
}
