//! From TOML text to settings by key, each with the line where it stands (TOML 1.1, tables and
//! dotted keys alike). Every name is checked here against the table of keys.
//! Left out: what a value may be, which `layers` checks once the file's `extends` is known.

use std::rc::Rc;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, KeyPlace, Result};
use super::names::{self, Form};
use super::ranges::WrittenValue;
use crate::settings::Row;

/// The name under which a file, or `--set`, names the machine whose medium is the near one.
pub(super) const NEAR_EXTENDS: &str = "near.extends";

#[derive(Clone, Debug)]
pub(super) enum Raw {
    /// Digits in a radix, without underscores.
    Integer(String, u32),
    /// A float as written, without underscores.
    Float(String),
    Bool(bool),
    Text(String),
    /// The right side of `--set key=value`, whose type is whatever the key wants.
    Bare(String),
    /// Something no key takes: an array, a date.
    Other(&'static str),
}

impl std::fmt::Display for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Raw::Integer(digits, 16) => write!(f, "0x{digits}"),
            Raw::Integer(digits, 8) => write!(f, "0o{digits}"),
            Raw::Integer(digits, 2) => write!(f, "0b{digits}"),
            Raw::Integer(digits, _) => f.write_str(digits),
            Raw::Float(text) | Raw::Bare(text) => f.write_str(text),
            Raw::Bool(value) => write!(f, "{value}"),
            Raw::Text(text) => write!(f, "{text:?}"),
            Raw::Other(name) => write!(f, "a TOML {name}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The value as it was written, before its key's unit and range are applied.
    pub raw: Raw,
    pub form: Form,
    pub place: KeyPlace,
}

/// One file, its names checked and its values not.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub name: Option<String>,
    pub source: Option<String>,
    pub extends: Option<(String, KeyPlace)>,
    /// The machine whose medium is the near one.
    pub near: Option<(String, KeyPlace)>,
    pub settings: Vec<(&'static Row, Setting)>,
    /// The `[assumed]` table: key, reason, alternative values, place.
    pub assumed: Vec<(&'static Row, String, Option<WrittenValue>, KeyPlace)>,
}

pub(super) fn document(text: &str, file: &str) -> Result<Document> {
    let mut reader = Reader {
        text,
        file: file.into(),
        out: Document::default(),
    };
    let table = DeTable::parse(text).map_err(|error| ConfigError {
        line: error.span().map(|span| reader.line(span.start)),
        ..ConfigError::file(
            file,
            format!("is not TOML: {}", error.message().replace('\n', ", ")),
            "mend the syntax",
        )
    })?;
    reader.table("", table.get_ref())?;
    Ok(reader.out)
}

struct Reader<'t> {
    text: &'t str,
    file: Rc<str>,
    out: Document,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    fn place(&self, offset: usize) -> KeyPlace {
        KeyPlace {
            file: self.file.clone(),
            line: Some(self.line(offset)),
        }
    }

    fn table(&mut self, section: &str, table: &DeTable<'_>) -> Result<()> {
        for (key, value) in table {
            let path = joined(section, key.get_ref());
            let place = self.place(key.span().start);
            match value.get_ref() {
                DeValue::Table(assumed) if path == "assumed" => self.assumed("", assumed)?,
                DeValue::Array(media) if path == "media" => {
                    for medium in media {
                        self.medium(medium.get_ref(), self.place(medium.span().start))?;
                    }
                }
                DeValue::Table(inner) => {
                    if names::first_of(&path).is_none() {
                        return Err(unknown(&place, &path));
                    }
                    self.table(&path, inner)?;
                }
                leaf => self.leaf(&path, leaf, place)?,
            }
        }
        Ok(())
    }

    /// Reads one of a list of media: `near`, whose keys are those under that name, or `far`, the machine's own.
    fn medium(&mut self, medium: &DeValue<'_>, place: KeyPlace) -> Result<()> {
        let bad = |problem: &str| {
            let remedy =
                "write [[media]] with name = \"near\" (or \"far\"), extends = \"ddr4-2400\"";
            Err(ConfigError::key(&place, "media", problem, remedy))
        };
        let DeValue::Table(medium) = medium else {
            return bad("holds something that is no table");
        };
        let mut medium = medium.clone();
        let name = medium.remove("name");
        let section = match name.as_ref().map(|name| name.get_ref()) {
            Some(DeValue::String(name)) if name == "near" => "near",
            Some(DeValue::String(name)) if name == "far" => "",
            Some(_) => return bad("has a name that is neither near nor far"),
            None => return bad("has a medium without a name"),
        };
        if section.is_empty() && medium.contains_key("design") {
            return bad("has a design of the far medium, which each command names (--designs)");
        }
        self.table(section, &medium)
    }

    fn leaf(&mut self, path: &str, value: &DeValue<'_>, place: KeyPlace) -> Result<()> {
        if let "name" | "source" | "extends" | NEAR_EXTENDS = path {
            let text = self.text_of(path, value, &place)?;
            match path {
                "name" => self.out.name = Some(text),
                "source" => self.out.source = Some(text),
                NEAR_EXTENDS => self.out.near = Some((text, place)),
                _ => self.out.extends = Some((text, place)),
            }
            return Ok(());
        }
        let (key, form) = find(path, &place)?;
        let mut settings = self.out.settings.iter();
        if let Some((_, given)) = settings.find(|(known, _)| known.name == key.name) {
            let [own, other] = match form {
                Form::Own => [form, given.form],
                _ => [given.form, form],
            };
            let names = [own, other].map(|form| form.name(key));
            return Err(ConfigError::key(
                &place,
                path,
                format!("is given twice, as {}", names.join(" and as ")),
                "keep exactly one of the two",
            ));
        }
        let raw = raw(value);
        self.out.settings.push((key, Setting { raw, form, place }));
        Ok(())
    }

    fn assumed(&mut self, section: &str, table: &DeTable<'_>) -> Result<()> {
        for (key, value) in table {
            let path = joined(section, key.get_ref());
            let place = self.place(key.span().start);
            let (why, range) = match value.get_ref() {
                DeValue::Table(inner) if names::find(&path).is_some() => {
                    self.doubted(&path, inner, &place)?
                }
                DeValue::Table(inner) => {
                    self.assumed(&path, inner)?;
                    continue;
                }
                value => {
                    find(&path, &place)?;
                    (self.text_of(&path, value, &place)?, None)
                }
            };
            let (key, _) = find(&path, &place)?;
            self.out.assumed.push((key, why, range, place));
        }
        Ok(())
    }

    /// Reads an assumption with its alternatives: `why`, and `low`, `high` and `range`, or `inert`.
    fn doubted(
        &self,
        path: &str,
        table: &DeTable<'_>,
        place: &KeyPlace,
    ) -> Result<(String, Option<WrittenValue>)> {
        let form = "write { why = \"..\", low = .., high = .., range = \"why these\" } or \
                    { why = \"..\", inert = \"why it cannot matter\" }";
        let bad = |problem: String| Err(ConfigError::key(place, path, problem, form));
        let known = ["why", "low", "high", "range", "inert"];
        let mut given: [Option<&DeValue<'_>>; 5] = [None; 5];
        for (key, value) in table {
            let Some(at) = known.iter().position(|known| known == key.get_ref()) else {
                return bad(format!(
                    "has \"{}\", which no assumption has",
                    key.get_ref()
                ));
            };
            given[at] = Some(value.get_ref());
        }
        let text = |value: &DeValue<'_>| self.text_of(path, value, place);
        let [why, low, high, range, inert] = given;
        let Some(why) = why else {
            return bad("is assumed without a why".to_owned());
        };
        let range = match (low, high, range, inert) {
            (Some(low), Some(high), Some(range), None) => Some(WrittenValue::Between {
                low: raw(low),
                high: raw(high),
                form: names::find(path).map_or(Form::Own, |(_, form)| form),
                why: text(range)?,
            }),
            (None, None, None, Some(inert)) => Some(WrittenValue::Inert(text(inert)?)),
            (None, None, None, None) => None,
            _ => return bad("has half a range".to_owned()),
        };
        Ok((text(why)?, range))
    }

    fn text_of(&self, path: &str, value: &DeValue<'_>, at: &KeyPlace) -> Result<String> {
        match value {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text.to_string()),
            DeValue::String(_) => Err(ConfigError::key(at, path, "is empty", "say something")),
            other => Err(ConfigError::key(
                at,
                path,
                format!("is a TOML {}, not a string", other.type_str()),
                "write it in quotes",
            )),
        }
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::Integer(digits) => Raw::Integer(digits.as_str().into(), digits.radix()),
        DeValue::Float(text) => Raw::Float(text.as_str().into()),
        DeValue::Boolean(value) => Raw::Bool(*value),
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Array(_) => Raw::Other("array"),
        DeValue::Datetime(_) => Raw::Other("date"),
        DeValue::Table(_) => Raw::Other("table"),
    }
}

fn joined(section: &str, key: &str) -> String {
    match section {
        "" => key.to_owned(),
        _ => format!("{section}.{key}"),
    }
}

pub(super) fn find(path: &str, place: &KeyPlace) -> Result<(&'static Row, Form)> {
    names::find(path).ok_or_else(|| unknown(place, path))
}

fn unknown(place: &KeyPlace, path: &str) -> ConfigError {
    if let Some(first) = names::first_of(path) {
        let remedy = format!("name a key of it, such as {first}");
        return ConfigError::key(place, path, "is a section, not a value", remedy);
    }
    let near = names::nearest_keys(path);
    let remedy = if near.is_empty() {
        "`sardonyx show esd` prints every key".to_owned()
    } else {
        format!("the nearest known keys are {}", near.join(", "))
    };
    ConfigError::key(place, path, "is not a known key", remedy)
}
