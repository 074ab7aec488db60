//! The keys of a design: the texts that users set, and their values.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Design;
use crate::outcome::RunError;
use crate::parameters::Bracket;

/// A key of a design, as `recam.row_bits`.
#[derive(Debug, Serialize)]
pub struct Key {
    pub name: &'static str,
    #[serde(flatten)]
    pub kind: KeyKind,
    /// The text as users write it; `None` if it follows from other keys.
    pub default: Option<&'static str>,
    pub source: &'static str,
    pub line: &'static str,
    /// A key without this need has no effect.
    pub needs: Option<Needs>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum KeyKind {
    Bytes,
    Count {
        least: u32,
    },
    Flag,
    /// One of these words.
    Choice {
        words: &'static [&'static str],
    },
    /// A number, or a range as in `0.1-17`.
    Bracket,
}

/// The condition under which a key has an effect.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    Flag(&'static str),
    /// Files are written, not generated blocks.
    Files,
}

#[derive(Debug)]
pub struct Keys(Map<String, Value>, Vec<(String, Value)>);

impl Key {
    pub(super) const fn new(
        name: &'static str,
        kind: KeyKind,
        default: &'static str,
        source: &'static str,
        line: &'static str,
    ) -> Key {
        Key {
            name,
            kind,
            default: Some(default),
            source,
            line,
            needs: None,
        }
    }

    /// A key without a default of its own, whose value follows from other keys.
    pub(super) const fn follows(self) -> Key {
        Key {
            default: None,
            ..self
        }
    }

    pub(super) const fn needs(self, needs: Needs) -> Key {
        Key {
            needs: Some(needs),
            ..self
        }
    }

    /// Whether a text is its default, or another way to write that; an error is what to give.
    pub(crate) fn is_default(&self, text: &str) -> Result<bool, String> {
        let (value, _) = self.read(text)?;
        let default = self.default.map(|default| self.read(default));
        Ok(default.is_some_and(|default| default.is_ok_and(|(default, _)| default == value)))
    }

    /// The value for the design, and as reports show it; an error is what to give.
    fn read(&self, text: &str) -> Result<(Value, Value), String> {
        let plain = |value: Value| Ok((value.clone(), value));
        match self.kind {
            KeyKind::Bytes => match sardonyx_base::sizes::parse(text) {
                Some(bytes) => plain(json!(bytes)),
                None => Err(sardonyx_base::sizes::REMEDY.to_owned()),
            },
            KeyKind::Count { least } => match text.parse::<u32>() {
                Ok(count) if count >= least => plain(json!(count)),
                _ => Err(format!("give a whole number of at least {least}")),
            },
            KeyKind::Flag => match text {
                "true" => plain(json!(true)),
                "false" => plain(json!(false)),
                _ => Err("give true or false".to_owned()),
            },
            KeyKind::Choice { words } if words.contains(&text) => plain(json!(text)),
            KeyKind::Choice { words } => Err(format!("give {}", words.join(" or "))),
            KeyKind::Bracket => {
                let bracket = Bracket::parse(text)
                    .ok_or("give a number from 0, or two ends as in 0.1-17".to_owned())?;
                Ok((json!(bracket), json!(bracket.to_string())))
            }
        }
    }
}

impl Keys {
    /// The design's keys, with these values set.
    ///
    /// # Errors
    /// The first that is unknown, or whose value makes no sense.
    pub fn parse(design: &Design, given: &[(String, String)]) -> Result<Keys, RunError> {
        let own = design.name;
        for (name, text) in given {
            if !design.keys.iter().any(|key| key.name == name) {
                let known: Vec<&str> = design.keys.iter().map(|key| key.name).collect();
                return Err(RunError::Bad(format!(
                    "{own}.{name} = {text}: there is no such key; known: {}",
                    known.join(", ")
                )));
            }
        }
        let (mut values, mut shown) = (Map::new(), Vec::new());
        for key in design.keys {
            let set = given.iter().rev().find(|(name, _)| name == key.name);
            let Some(text) = set.map(|(_, text)| text.as_str()).or(key.default) else {
                continue;
            };
            let (value, show) = key.read(text).map_err(|problem| {
                RunError::Bad(format!("{own}.{} = {text}: {problem}", key.name))
            })?;
            values.insert(key.name.to_owned(), value);
            shown.push((format!("{own}.{}", key.name), show));
        }
        Ok(Keys(values, shown))
    }

    /// Parses the values as the design's own type.
    ///
    /// # Panics
    /// If the design's file declares other keys than its type has.
    pub(super) fn read<T: DeserializeOwned>(&self) -> T {
        let value = Value::Object(self.0.clone());
        serde_json::from_value(value).expect("a type with the keys that are declared")
    }

    /// The values that reports show, in the order of the design's file; without those that follow from others.
    pub fn shown(&self) -> &[(String, Value)] {
        &self.1
    }
}
