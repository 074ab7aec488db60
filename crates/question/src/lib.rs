//! What a command is asked, declared once: a Rust type whose fields have their defaults, ranges and help, from which the
//! command line, the functions in Python and their types are made.
//!
//! A field's help is its doc comment, its range `schemars(range(..))`. `schemars(extend(..))` says the rest:
//! `requires` names the options without which it does nothing (one of them has to be given; `"of=none"` asks for that
//! value), `needed` that it has to be given, `called` its name where the field has another, `argument` that it has no name on the command line, `rare` that only `--help-all` tells of it, `short` its letter,
//! `also` another name, `value` the word for its value, `completes` what its value is chosen from.
//! Left out: what only one command can check, which is its own.

mod declared;
mod kinds;

pub use declared::declared;
pub use kinds::{Bytes, Names, Pairs};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Declares a question: a struct whose fields have their defaults beside them, or those of their types.
#[macro_export]
macro_rules! question {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$says:meta])* $field:ident: $kind:ty $(= $default:expr)?),* $(,)?
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$says])* pub $field: $kind),*
        }

        impl Default for $name {
            fn default() -> $name {
                $name {
                    $($field: $crate::question!(@default $($default)?)),*
                }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $value:expr) => { $value };
}

/// A range beyond this is the machine's, and no limit that a user meets.
const FAR: f64 = 2_147_483_648.0;

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

/// The names of the options that were given, the others having their defaults.
#[derive(Debug)]
pub struct Given(Vec<String>);

impl Given {
    /// Refuses those of the options that were given, for they do nothing in this `form` of the command.
    ///
    /// # Errors
    /// One of them was given.
    pub fn idle(&self, options: &[&str], form: &str) -> Result<(), String> {
        let idle = self
            .0
            .iter()
            .filter(|name| options.contains(&name.as_str()));
        refused(
            &idle.map(|name| option(name, None)).collect::<Vec<_>>(),
            form,
        )
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
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>();
    let fields = schema
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (name, value) in &given {
        let field = fields
            .get(name)
            .ok_or_else(|| format!("{}: there is no such option", option(name, None)))?;
        in_range(&option(name, Some(field)), value, field)?;
    }
    let missing = fields
        .iter()
        .find(|(name, field)| field.get("needed").is_some() && !given.contains_key(*name));
    if let Some((name, field)) = missing {
        return Err(format!("{}: is missing", said(name, Some(field))));
    }
    let idle = given.keys().filter(|name| !in_use(&fields[*name], &given));
    if let Some(name) = idle.clone().next() {
        let form = format!(
            "without {}",
            needs(&fields[name])
                .map(option_of)
                .collect::<Vec<_>>()
                .join(" or ")
        );
        return Err(refused(&[option(name, fields.get(name))], &form).expect_err("it is idle"));
    }
    let names = Given(given.keys().cloned().collect());
    for (name, value) in &given {
        // One by one, so that an error names its option.
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if let Some(error) = misfit::<T>(alone) {
            let shown = match value {
                Value::Array(_) | Value::Object(_) => String::new(),
                Value::String(text) => format!(" {text}"),
                other => format!(" {other}"),
            };
            let pairs = fields[name].get("format").and_then(Value::as_str) == Some("pairs");
            let between = if pairs { " " } else { ": " };
            return Err(format!(
                "{}{shown}{between}{error}",
                said(name, fields.get(name))
            ));
        }
    }
    let question: T =
        serde_json::from_value(Value::Object(given)).map_err(|error| error.to_string())?;
    question.check(&names)?;
    Ok(question)
}

/// What is wrong with one field; a field that is missing besides is not wrong.
fn misfit<T: DeserializeOwned>(alone: Map<String, Value>) -> Option<String> {
    let error = serde_json::from_value::<T>(Value::Object(alone))
        .err()?
        .to_string();
    (!error.starts_with("missing field")).then_some(error)
}

fn option(name: &str, field: Option<&Value>) -> String {
    let called = field
        .and_then(|field| field.get("called"))
        .and_then(Value::as_str);
    format!("--{}", called.unwrap_or(name).replace('_', "-"))
}

/// An option as users write it; an argument by the word for it.
fn said(name: &str, field: Option<&Value>) -> String {
    let argument = field.and_then(|field| field.get("argument")).is_some();
    if argument {
        name.to_owned()
    } else {
        option(name, field)
    }
}

fn option_of(need: &str) -> String {
    need.split_once('=').map_or_else(
        || option(need, None),
        |(name, value)| format!("{} {value}", option(name, None)),
    )
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

/// Whether an option does something beside those that are given.
fn in_use(field: &Value, given: &Map<String, Value>) -> bool {
    let mut needs = needs(field).peekable();
    needs.peek().is_none()
        || needs.any(|need| match need.split_once('=') {
            Some((name, value)) => given.get(name).and_then(Value::as_str) == Some(value),
            None => given
                .get(need)
                .is_some_and(|given| !matches!(given, Value::Null | Value::Bool(false))),
        })
}

/// Refuses a number out of its range, and what is no number where one has to be.
fn in_range(option: &str, value: &Value, field: &Value) -> Result<(), String> {
    let kinds: Vec<&str> = match field.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    if kinds.contains(&"array")
        && let (Value::Array(items), Some(item)) = (value, field.get("items"))
    {
        return items
            .iter()
            .try_for_each(|each| in_range(option, each, item));
    }
    let whole = kinds.contains(&"integer");
    if kinds.contains(&"string") || !(whole || kinds.contains(&"number")) || value.is_null() {
        return Ok(());
    }
    let bound = |name: &str| field.get(name).and_then(Value::as_f64);
    let (least, most) = (
        bound("minimum"),
        bound("maximum").filter(|most| *most < FAR),
    );
    let given = value
        .as_f64()
        .filter(|_| !whole || value.is_u64() || value.is_i64());
    let beyond = bound("maximum").unwrap_or(9.3e18);
    if given.is_some_and(|given| least.is_none_or(|least| given >= least) && given <= beyond) {
        return Ok(());
    }
    let what = if whole { "a whole number" } else { "a number" };
    let range = match (least, most) {
        (Some(least), Some(most)) => format!(" of {} to {}", grouped(least), grouped(most)),
        (Some(least), None) => format!(", {} or more", grouped(least)),
        (None, Some(most)) => format!(", {} at most", grouped(most)),
        (None, None) => String::new(),
    };
    let shown = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    Err(format!("{option} {shown}: give {what}{range}"))
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
