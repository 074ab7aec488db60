//! The keys that are the library's own, `host.*`: the machine's are in docs/simulator/configuration.md.

use sardonyx::machine::hosted::{HostOptions, Posted, Unwritten};

use crate::contents::Drawn;
use crate::problem::{Problem, problem};

/// The values of the host's own keys.
pub struct Settings<'p> {
    pub options: HostOptions,
    /// The contents of writes for which the host gives no bytes.
    pub contents: Drawn,
    /// The log of requests and answers.
    pub log: Option<&'p str>,
    pub machine: Vec<(String, String)>,
}

/// The keys and what they take.
pub const KEYS: [(&str, &str); 9] = [
    ("host.sources", "a number: who sends requests, from 0 on"),
    ("host.writes_answered", "accepted or array"),
    ("host.unwritten", "zeros or noise"),
    ("host.power_cut", "no or yes"),
    ("host.keep", "yes or no"),
    ("host.warmup", "a number of requests"),
    ("host.contents", "last, drawn:NUMBER or trace:FILE"),
    ("host.log", "a file to write requests and answers to"),
    ("host.seed", "a number, for what is drawn"),
];

/// Reads `key=value` pairs.
pub fn read<'p>(pairs: &[&'p str]) -> Result<Settings<'p>, Problem> {
    let mut settings = Settings {
        options: HostOptions::default(),
        contents: Drawn::default(),
        log: None,
        machine: Vec::new(),
    };
    let (mut contents, mut seed) = ("last", None);
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return problem(format!("\"{pair}\": give KEY=VALUE"));
        };
        let options = &mut settings.options;
        match key {
            "host.sources" => options.sources = number(key, value)? as usize,
            "host.writes_answered" => {
                options.posted = named(key, value, &Posted::ALL, Posted::name)?;
            }
            "host.unwritten" => {
                options.unwritten = named(key, value, &Unwritten::ALL, Unwritten::name)?;
            }
            "host.power_cut" => {
                options.journal = *named(key, value, &["no", "yes"], |word| word)? == *"yes";
            }
            "host.keep" => {
                options.keep = *named(key, value, &["no", "yes"], |word| word)? == *"yes";
            }
            "host.warmup" => options.warmup = number(key, value)?,
            "host.contents" => contents = value,
            "host.log" => settings.log = Some(value),
            "host.seed" => seed = Some(number(key, value)?),
            _ if key.starts_with("host.") => {
                let known = KEYS.map(|(key, takes)| format!("{key} ({takes})"));
                return problem(format!("there is no {key}; there are {}", known.join(", ")));
            }
            _ => settings.machine.push((key.to_owned(), value.to_owned())),
        }
    }
    settings.contents = Drawn::named(contents, seed)?;
    Ok(settings)
}

fn number(key: &str, value: &str) -> Result<u64, Problem> {
    let number = value.parse();
    number.map_err(|_| Problem(format!("{key}={value}: give a whole number from 0 on")))
}

fn named<T: Copy>(
    key: &str,
    value: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Problem> {
    let found = all.iter().copied().find(|one| name(*one) == value);
    found.ok_or_else(|| {
        let all: Vec<_> = all.iter().map(|one| name(*one)).collect();
        Problem(format!("{key}={value}: give {}", all.join(" or ")))
    })
}
