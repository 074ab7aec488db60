//! What a command is asked, declared once: a Rust type whose fields have their defaults, ranges and help, from which the
//! command line, the functions in Python and their types are made.
//!
//! A field's help is its doc comment, its range `schemars(range(..))`. `schemars(extend(..))` says the rest:
//! `requires` names the options of which one has to be given for it to do anything, `needed` that it has to be given itself,
//! `argument` that it has no name on the command line, `called` its name there if it is another one, `also` a second one,
//! `rare` that only `--help-all` tells of it, `short` its letter, and `value` the word for its value. Left out: what only one command can check, which is its own.

mod declared;
mod kinds;

pub use declared::declared;
pub use kinds::{Bytes, Document, Names, Pairs, Place, Range, Seconds};

use sardonyx_base::sizes;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Declares a question: a struct whose fields have their defaults beside them, or those of their types. After its fields
/// may stand those that only `--help-all` tells of.
#[macro_export]
macro_rules! question {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$says:meta])* $field:ident: $kind:ty $(= $default:expr)?),* $(,)?
    } $(rare {
        $($(#[$rarely:meta])* $rare:ident: $of:ty $(= $usual:expr)?),* $(,)?
    })?) => {
        $(#[$about])*
        #[derive(Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$says])* pub $field: $kind,)*
            $($($(#[$rarely])* #[schemars(extend("rare" = true))] pub $rare: $of,)*)?
        }

        impl Default for $name {
            fn default() -> $name {
                $name {
                    $($field: $crate::question!(@default $($default)?),)*
                    $($($rare: $crate::question!(@default $($usual)?),)*)?
                }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $value:expr) => { $value };
}

/// The largest whole number that an option takes: 2^63, less what a floating-point number cannot hold.
const LARGEST: f64 = 9_223_372_036_854_774_784.0;

/// What a command is asked.
pub trait Question: DeserializeOwned + JsonSchema {
    /// Refuses what the fields' declarations cannot say: options that do nothing in this form of the command, values that do
    /// not go together.
    ///
    /// # Errors
    /// In one line that names the option and the remedy.
    fn check(&self, _given: &Given) -> Result<(), String> {
        Ok(())
    }
}

/// The options that were given, each by its name and as users write it; the others have their defaults.
#[derive(Debug)]
pub struct Given(Vec<(String, String)>);

impl Given {
    /// Refuses those of the options that were given, for they do nothing in this `form` of the command.
    ///
    /// # Errors
    /// One of them was given.
    pub fn idle(&self, options: &[&str], form: &str) -> Result<(), String> {
        let idle = (self.0.iter()).filter(|(name, _)| options.contains(&name.as_str()));
        let idle: Vec<String> = idle.map(|(_, said)| said.clone()).collect();
        refused(&idle, form)
    }
}

/// Reads a question from JSON that holds what was given.
///
/// # Errors
/// In one line that names the option: it is unknown, its value is of another kind or out of its range, or it does nothing
/// without another one.
pub fn read<T: Question>(json: &str) -> Result<T, String> {
    let given: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    let schema = declared::<T>();
    let fields = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (name, value) in &given {
        let field = fields
            .get(name)
            .ok_or_else(|| format!("{}: there is no such option", option(name)))?;
        if let Some((value, wanted)) = misfit(value, field) {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            return Err(format!("{} {shown}: give {wanted}", said(name, field)));
        }
        // Alone, so that an error of a kind with its own words names its option.
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<T>(Value::Object(alone)) {
            let error = error.to_string();
            let between = if error.starts_with(':') { "" } else { " " };
            return Err(format!("{}{between}{error}", said(name, field)));
        }
    }
    let missing = fields
        .iter()
        .find(|(name, field)| field.get("needed").is_some() && !given.contains_key(*name));
    if let Some((name, field)) = missing {
        return Err(format!("{}: is missing", said(name, field)));
    }
    for (name, value) in &given {
        if !is_meant(value, &fields[name]) {
            continue;
        }
        let needs: Vec<&str> = needs(&fields[name]).collect();
        if !needs.is_empty() && !needs.iter().any(|need| is_on(given.get(*need))) {
            let needs: Vec<String> = needs
                .into_iter()
                .map(|need| said(need, &fields[need]))
                .collect();
            refused(&[option(name)], &format!("without {}", needs.join(" or ")))?;
        }
    }
    let meant = given
        .iter()
        .filter(|(name, value)| is_meant(value, &fields[*name]));
    let names = meant.map(|(name, value)| {
        let said = said(name, &fields[name]);
        let off = *value == Value::Bool(false);
        let said = if off {
            said.replacen("--", "--no-", 1)
        } else {
            said
        };
        (name.clone(), said)
    });
    let names = Given(names.collect());
    let given = Value::Object(set_keys(given, &fields));
    let question: T = serde_json::from_value(given).map_err(|error| error.to_string())?;
    question.check(&names)?;
    Ok(question)
}

/// Puts options that are keys of the machine among the pairs of `set`. What `set` says itself comes after them, and counts.
fn set_keys(mut given: Map<String, Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    for (name, field) in fields {
        let key = field.get("sets").and_then(Value::as_str);
        let Some((key, value)) = key.and_then(|key| Some((key, given.remove(name)?))) else {
            continue;
        };
        let Some(value) = value.as_str().map(str::to_owned) else {
            continue;
        };
        match given
            .entry("set")
            .or_insert_with(|| Value::Array(Vec::new()))
        {
            Value::Object(pairs) => _ = pairs.entry(key).or_insert(Value::String(value)),
            Value::Array(pairs) => pairs.insert(0, Value::String(format!("{key}={value}"))),
            _ => {}
        }
    }
    given
}

fn option(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// An option as users write it; an argument by its name.
fn said(name: &str, field: &Value) -> String {
    let called = field.get("called").and_then(Value::as_str);
    match field.get("argument") {
        Some(_) => name.to_owned(),
        None => option(called.unwrap_or(name)),
    }
}

fn refused(options: &[String], form: &str) -> Result<(), String> {
    match options {
        [] => Ok(()),
        [one] => Err(format!("{one}: does nothing {form}; leave it out")),
        more => Err(format!(
            "{}: do nothing {form}; leave them out",
            more.join(", ")
        )),
    }
}

fn needs(field: &Value) -> impl Iterator<Item = &str> {
    let requires = field.get("requires");
    let list = requires.and_then(Value::as_array).into_iter().flatten();
    list.chain(requires).filter_map(Value::as_str)
}

/// Whether an option was given to say something: `false` in the place of `false` is how a program leaves it out.
fn is_meant(value: &Value, field: &Value) -> bool {
    is_on(Some(value)) || field.get("default").is_some_and(|usual| usual != value)
}

/// Whether what was given of an option is more than nothing.
fn is_on(given: Option<&Value>) -> bool {
    match given {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}

/// The value that is of another kind than its field, or out of its range, and what to give in its place. Kinds of their
/// own ([`kinds`]) say that themselves.
fn misfit<'v>(value: &'v Value, field: &Value) -> Option<(&'v Value, String)> {
    let kinds: Vec<&str> = match field.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.and_then(Value::as_str).into_iter().collect(),
    };
    if value.is_null() && kinds.contains(&"null") {
        return None;
    }
    let words = choices(field);
    if !words.is_empty() {
        let known = value.as_str().is_some_and(|given| words.contains(&given));
        return (!known).then(|| (value, format!("one of {}", words.join(", "))));
    }
    if field.get("format").is_some_and(|format| format == "bytes") {
        let size = value.as_u64().or_else(|| sizes::parse(value.as_str()?))?;
        let within = number(Some(size as f64), "", field);
        return within.map(|wanted| {
            (
                value,
                format!("{} bytes", wanted.trim_start_matches(" of ")),
            )
        });
    }
    let wanted = match *kinds.first()? {
        _ if kinds.contains(&"string") && kinds.len() > 1 => None,
        "array" => match value {
            Value::Array(items) => {
                return items
                    .iter()
                    .find_map(|each| misfit(each, field.get("items")?));
            }
            _ if kinds.len() > 1 => None,
            _ => Some("a list".to_owned()),
        },
        "boolean" => (!value.is_boolean()).then(|| "true or false".to_owned()),
        "string" => (!value.is_string()).then(|| "a text".to_owned()),
        "integer" => {
            let whole = value.is_u64() || value.is_i64();
            number(value.as_f64().filter(|_| whole), "a whole number", field)
        }
        "number" => number(value.as_f64(), "a number", field),
        _ => None,
    };
    Some((value, wanted?))
}

/// The words of a field that is one of a few; a schema has those with help of their own one by one.
fn choices(field: &Value) -> Vec<&str> {
    let alone = field.get("const").and_then(Value::as_str);
    let listed = ["enum", "oneOf"].map(|name| field.get(name).and_then(Value::as_array));
    let [plain, told] = listed.map(|list| list.into_iter().flatten());
    let told = told.flat_map(choices);
    (plain.filter_map(Value::as_str).chain(told).chain(alone)).collect()
}

fn number(given: Option<f64>, what: &str, field: &Value) -> Option<String> {
    let bound = |name: &str| field.get(name).and_then(Value::as_f64);
    let most = match field.get("format").and_then(Value::as_str) {
        Some("uint32") => f64::from(u32::MAX),
        Some("double") => f64::MAX,
        _ => LARGEST,
    };
    let (least, most) = (
        bound("minimum").unwrap_or(-most),
        bound("maximum").unwrap_or(most),
    );
    if given.is_some_and(|given| (least..=most).contains(&given)) {
        return None;
    }
    let far = most >= LARGEST && given.is_none_or(|given| given <= most);
    Some(match (least == -most, far) {
        (true, true) => what.to_owned(),
        (false, true) => format!("{what}, {} or more", grouped(least)),
        (true, false) => format!("{what}, {} at most", grouped(most)),
        (false, false) => format!("{what} of {} to {}", grouped(least), grouped(most)),
    })
}

/// A bound with commas between its thousands.
fn grouped(bound: f64) -> String {
    let text = bound.to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.len();
    let each = whole.chars().enumerate().map(|(at, digit)| {
        let comma = at > 0 && (digits - at).is_multiple_of(3);
        format!("{}{digit}", if comma { "," } else { "" })
    });
    each.collect::<String>() + rest
}
