//! What assumed values may plausibly be instead. A range stands where the value does: beside a default
//! in the code, or in the `[assumed]` table of a machine's file. A key of words, or a flag, needs none.
//! Left out: what the other values do to figures, which Python's `sensitivity` runs.

use serde_json::json;

use crate::medium::mapping::{AddressMapping, MAPPING};
use crate::medium::params::Geometry;
use crate::settings::{Allowed, Doubt, Row, Setting as _, Settings, Value};

use super::Range;
use super::error::{ConfigError, KeyPlace, Result};
use super::layers::value;
use super::names::Form;
use super::read::{Raw, Setting};
use super::write::literal;

impl Range {
    /// A document with `{"low", "high", "whole", "why"}` (values as `--set` takes them, and whether only whole numbers
    /// are allowed), with `{"others"}`, or with `{"inert"}`.
    pub fn document(&self) -> serde_json::Value {
        match self {
            Range::Between {
                low,
                high,
                whole,
                why,
            } => json!({"low": low, "high": high, "whole": whole, "why": why}),
            Range::Others(words) => json!({"others": words}),
            Range::Inert(why) => json!({"inert": why}),
        }
    }
}

/// A range as a machine's file writes it.
#[derive(Clone, Debug)]
pub(super) enum WrittenValue {
    /// The values `low`, `high` and `range`. They are in the form in which the key is written.
    Between {
        low: Raw,
        high: Raw,
        form: Form,
        why: String,
    },
    Inert(String),
}

/// The range that the key's declaration gives for `value` on a machine of these settings; `None` if `value` lies
/// outside.
pub fn declared(key: &Row, value: Value, settings: &Settings) -> Option<Range> {
    match key.doubt {
        Some(Doubt::Inert(why)) => Some(Range::Inert(why.to_owned())),
        Some(Doubt::Between(low, high, why)) => {
            let bare = |text: &str| Raw::Bare(text.to_owned());
            between(
                key,
                value,
                [&bare(low), &bare(high)],
                Form::Own,
                why,
                &Settings::default(),
            )
            .ok()
        }
        None if key.name == MAPPING.name() => Some(maps(key.kind, value, settings)),
        None => others(key.kind, value),
    }
}

/// The other orders of an address that this geometry can tell apart: of those that give one map, one is left.
fn maps(kind: Allowed, current: Value, settings: &Settings) -> Range {
    let geometry = Geometry::from_settings(settings);
    let groups = settings.named("medium.geometry.groups");
    let shown = |value| {
        let mapping = AddressMapping::from_value(value).in_groups(groups);
        mapping.shown(&geometry)
    };
    let (mut seen, mut left) = (vec![shown(current)], Vec::new());
    if let Allowed::Text { tried, .. } = kind {
        for word in tried {
            let map = shown(Value::Word(word));
            if !seen.contains(&map) {
                seen.push(map);
                left.push((*word).to_owned());
            }
        }
    }
    Range::Others(left)
}

pub(super) fn of_file(
    key: &'static Row,
    current: Value,
    written: &WrittenValue,
    place: &KeyPlace,
    settings: &Settings,
) -> Result<Range> {
    match written {
        WrittenValue::Inert(why) => Ok(Range::Inert(why.clone())),
        WrittenValue::Between {
            low,
            high,
            form,
            why,
        } => between(key, current, [low, high], *form, why, settings)
            .map_err(|(problem, remedy)| ConfigError::key(place, key.name, problem, remedy)),
    }
}

fn others(kind: Allowed, current: Value) -> Option<Range> {
    let words: Vec<String> = match (kind, current) {
        (Allowed::Bool, Value::Bool(flag)) => vec![(!flag).to_string()],
        (Allowed::Word(words) | Allowed::Text { tried: words, .. }, Value::Word(word)) => {
            let others = words.iter().filter(|other| **other != word);
            others.map(|other| (*other).to_owned()).collect()
        }
        _ => return None,
    };
    Some(Range::Others(words))
}

fn between(
    key: &Row,
    current: Value,
    [low, high]: [&Raw; 2],
    form: Form,
    why: &str,
    settings: &Settings,
) -> Result<Range, (String, String)> {
    let number = |raw: &Raw, what: &str| {
        let setting = Setting {
            raw: raw.clone(),
            form,
            place: KeyPlace {
                file: "".into(),
                line: None,
            },
        };
        let remedy = || format!("allowed: {}", key.kind.range());
        let value = value(key, &setting, settings)
            .map_err(|problem| (format!("its {what}: {problem}"), remedy()))?;
        match size(value) {
            Some(size) => Ok((size, literal(value))),
            None => Err((
                format!("its {what} is {raw}, but the key takes words"),
                "leave low and high out: its other words are its range".to_owned(),
            )),
        }
    };
    let (least, low) = number(low, "low")?;
    let (most, high) = number(high, "high")?;
    let own = size(current);
    if least >= most || own.is_none_or(|own| own < least || own > most) {
        let problem = format!(
            "its value, {}, is not between {low} and {high}",
            literal(current)
        );
        let remedy = "give a low below and a high above it; one of them may be the value";
        return Err((problem, remedy.to_owned()));
    }
    Ok(Range::Between {
        low,
        high,
        whole: matches!(current, Value::Int(_)),
        why: why.to_owned(),
    })
}

fn size(value: Value) -> Option<u128> {
    match value {
        Value::Int(n) => Some(n.into()),
        Value::Time(time) => Some(time.ps().into()),
        Value::Energy(energy) => Some(energy.fj().into()),
        Value::Bool(_) | Value::Word(_) => None,
    }
}
