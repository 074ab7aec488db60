//! Kinds of values that users write as text: sizes, lists of names, pairs of a key and its value. Each is read from the text
//! or from what the text means, so that a command line and a program in Python ask alike.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use sardonyx_base::sizes;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::grouped;

/// What follows a pair that is none.
const PAIR: &str = "not of the form KEY=VALUE; for example --set esd.efit_bytes=65536";

/// Declares how a kind looks in a schema.
#[macro_export]
macro_rules! looks {
    ($kind:ty: $schema:tt) => {
        impl schemars::JsonSchema for $kind {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

/// A number of bytes: 4096, or "4K".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes(pub u64);

looks!(Bytes: {"type": ["integer", "string"], "format": "bytes"});

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let (text, bytes) = match Written::deserialize(from) {
            Ok(Written::Number(bytes)) => return Ok(Bytes(bytes)),
            Ok(Written::Text(text)) => (text.clone(), sizes::parse(&text)),
            Err(_) => (String::new(), None),
        };
        let problem = || D::Error::custom(format_args!("{text}: {}", sizes::REMEDY));
        bytes.map(Bytes).ok_or_else(problem)
    }
}

impl Bytes {
    /// Refuses fewer than `least` and more than `most` bytes.
    ///
    /// # Errors
    /// They are; it names the option.
    pub fn within(self, option: &str, least: u64, most: u64) -> Result<(), String> {
        if (least..=most).contains(&self.0) {
            return Ok(());
        }
        let [least, most] = [least, most].map(|bytes| grouped(bytes as f64));
        Err(format!("{option} {}: give {least} to {most} bytes", self.0))
    }
}

/// A time in seconds: 90, or "90s", "10m", "2h".
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Seconds(pub f64);

looks!(Seconds: {"type": ["number", "string"], "format": "seconds"});

/// The longest time that can be written.
const LONGEST: f64 = 999_999.0 * 3600.0;

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = serde_json::Value::deserialize(from)?;
        let (text, seconds) = match given.as_str() {
            Some(text) => (text.to_owned(), parsed(text)),
            None => (given.to_string(), given.as_f64()),
        };
        let problem = || {
            D::Error::custom(format_args!(
                "{text}: is not a duration; give 90s, 10m or 2h"
            ))
        };
        let seconds = seconds.filter(|seconds| (0.0..=LONGEST).contains(seconds));
        seconds.map(Seconds).ok_or_else(problem)
    }
}

/// Seconds from whole numbers of seconds, minutes or hours.
fn parsed(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let digits = (1..=6).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    Some(digits.then(|| number.parse::<f64>().ok())?? * unit)
}

/// What is known to lie between two numbers: "0.1-17"; or one number, which is both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range(pub f64, pub f64);

looks!(Range: {"type": ["array", "number", "string"], "items": {"type": "number"}, "format": "range"});

impl Range {
    /// Two ends, the lower first; none is below 0 or without end.
    pub fn parse(text: &str) -> Option<Range> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        Range::between(low.parse().ok()?, high.parse().ok()?)
    }

    fn between(low: f64, high: f64) -> Option<Range> {
        (0.0 <= low && low <= high && high.is_finite()).then_some(Range(low, high))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{}-{}", self.0, self.1)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
            Ends(f64, f64),
        }
        let (text, range) = match Written::deserialize(from) {
            Ok(Written::Number(one)) => (one.to_string(), Range::between(one, one)),
            Ok(Written::Ends(low, high)) => (format!("{low}-{high}"), Range::between(low, high)),
            Ok(Written::Text(text)) => (text.clone(), Range::parse(&text)),
            Err(_) => (String::new(), None),
        };
        let problem = || {
            D::Error::custom(format_args!(
                "{text}: give a number from 0, or two ends as in 0.1-17"
            ))
        };
        range.ok_or_else(problem)
    }
}

/// A file or a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place(pub PathBuf);

looks!(Place: {"type": "string", "format": "path"});

impl Deref for Place {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let path = PathBuf::deserialize(from)?;
        if path.as_os_str().is_empty() {
            let problem = ": the name is empty; give one, or \".\" for the current directory";
            return Err(D::Error::custom(problem));
        }
        Ok(Place(path))
    }
}

/// A file, or what it would hold.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// Its name.
    File(Place),
    /// Its tables.
    Held(serde_json::Map<String, serde_json::Value>),
}

looks!(Document: {"type": ["string", "object"], "format": "document"});

impl Default for Document {
    fn default() -> Document {
        Document::File(Place::default())
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(from)? {
            serde_json::Value::Object(held) => Ok(Document::Held(held)),
            other => Place::deserialize(other)
                .map(Document::File)
                .map_err(D::Error::custom),
        }
    }
}

/// Names in their order, none of them twice: a list, or one text with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names(pub Vec<String>);

looks!(Names: {"type": ["array", "string"], "items": {"type": "string"}, "format": "names"});

impl Names {
    /// The names in a text, with commas between them.
    pub fn of(text: &str) -> Names {
        Names::once(text.split(','))
    }

    fn once<'t>(words: impl Iterator<Item = &'t str>) -> Names {
        let mut names: Vec<String> = Vec::new();
        for name in words.map(str::trim) {
            if !name.is_empty() && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Names(names)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            List(Vec<String>),
        }
        let Names(names) = match Written::deserialize(from) {
            Ok(Written::Text(text)) => Names::of(&text),
            Ok(Written::List(list)) => Names::once(list.iter().map(String::as_str)),
            Err(_) => return Err(D::Error::custom(": give names, separated by commas")),
        };
        if names.is_empty() {
            return Err(D::Error::custom(": none given; give one at least"));
        }
        Ok(Names(names))
    }
}

/// Keys and their values, in their order: texts KEY=VALUE, or a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pairs(pub Vec<(String, String)>);

looks!(Pairs: {"type": ["array", "object"], "items": {"type": "string"}, "format": "pairs"});

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("KEY=VALUE")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pairs, A::Error> {
        /// As users write a pair, and as a whole question has it.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Pair {
            Text(String),
            Parts(String, String),
        }
        let mut pairs = Vec::new();
        while let Some(pair) = list.next_element::<Pair>()? {
            let text = match pair {
                Pair::Parts(key, value) => {
                    pairs.push((key, value));
                    continue;
                }
                Pair::Text(text) => text,
            };
            let parts = text
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()));
            match parts.filter(|(key, value)| !key.is_empty() && !value.is_empty()) {
                Some((key, value)) => pairs.push((key.to_owned(), value.to_owned())),
                None => return Err(A::Error::custom(format_args!("{text}: {PAIR}"))),
            }
        }
        Ok(Pairs(pairs))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = table.next_entry::<String, serde_json::Value>()? {
            let text = match value {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            };
            pairs.push((key, text));
        }
        Ok(Pairs(pairs))
    }
}
