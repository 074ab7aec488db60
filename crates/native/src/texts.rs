//! Sources as users write them: a file, a recording or a program by its name, `synth:NAME`, `mix:TRACE,..`.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use sardonyx::trace;
use sardonyx_base::names::did_you_mean;
use sardonyx_workload as workload;

use crate::sources::{MixSource, Program, Source, SynthSource, TraceSource};
use crate::{bad, read};

/// Before the name of a generated trace.
const SYNTH: &str = "synth:";
/// The generated trace that is like another.
const LIKE: &str = "like";
/// Before traces that run together, each on a core of its own.
const MIX: &str = "mix:";

/// The recordings that come with the package: by name, and those of threads, which run only with `--threads`.
#[derive(FromPyObject)]
pub struct Recorded(BTreeMap<String, PathBuf>, BTreeMap<String, PathBuf>);

impl Recorded {
    /// The path of the recording that `text` names, unless it is a file: that comes first.
    fn path_of(&self, text: &str) -> String {
        let Recorded(plain, threaded) = self;
        let found = plain.get(text).or_else(|| threaded.get(text));
        let found = found.filter(|_| !Path::new(text).is_file());
        found.map_or(text.to_owned(), |path| path.display().to_string())
    }
}

/// The programs' names.
fn programs() -> impl Iterator<Item = &'static str> {
    workload::all().iter().map(|program| program.name)
}

/// An error unless the name is one of those known; `place` says first where it was given.
pub fn check_known(place: &str, kind: &str, name: &str, known: &[&str]) -> PyResult<()> {
    if known.contains(&name) {
        return Ok(());
    }
    let (meant, known) = (did_you_mean(name, known), known.join(", "));
    Err(bad(format!(
        "{place}there is no {kind} \"{name}\"; {meant}known: {known}"
    )))
}

/// Sources by the shortest names that tell them apart: stem, else file name, else path. A program is one if no file is
/// called so, and has the `sizes` given.
pub fn named(
    texts: &[String],
    limit: Option<u64>,
    sizes: Option<&Program>,
    recordings: &Recorded,
) -> PyResult<Vec<(String, Source)>> {
    if texts.is_empty() {
        return Err(bad("no trace given; name at least one file, or synth:NAME"));
    }
    let is_program = |text: &str| {
        sizes.is_some() && programs().any(|name| name == text) && !Path::new(text).exists()
    };
    let is_made = |text: &str| text.starts_with(SYNTH) || text.starts_with(MIX) || is_program(text);
    let part = |found: Option<&std::ffi::OsStr>| {
        found.map_or(String::new(), |part| part.to_string_lossy().into_owned())
    };
    let stem = |text: &String| match is_made(text) {
        true => text.clone(),
        false => part(Path::new(text).file_stem()),
    };
    let readings: [&dyn Fn(&String) -> String; 3] = [
        &stem,
        &|text| part(Path::new(text).file_name()),
        &String::clone,
    ];
    let differ = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let names = readings
        .iter()
        .map(|name_of| texts.iter().map(name_of).collect())
        .find(differ);
    let Some(names) = names else {
        let mut seen = BTreeSet::new();
        let mut twice = texts.iter().filter(|text| !seen.insert(*text));
        let twice = twice.next().expect("two are the same");
        return Err(bad(format!("{twice}: given twice; name each trace once")));
    };
    let sources = texts.iter().map(|text| match sizes {
        Some(sizes) if is_program(text) => Ok(Source::Program(Program {
            name: text.clone(),
            ..sizes.clone()
        })),
        _ => parse(text, limit, recordings),
    });
    let sources: Vec<Source> = sources.collect::<PyResult<_>>()?;
    Ok(names.into_iter().zip(sources).collect())
}

/// A file, a recording by name, `synth:NAME[:RECORDS[:SEED]]`, `synth:like:TRACE[:TIMES[:RECORDS[:SEED]]]`, or
/// `mix:TRACE,TRACE,..` of such.
fn parse(text: &str, limit: Option<u64>, recordings: &Recorded) -> PyResult<Source> {
    if let Some(members) = text.strip_prefix(MIX) {
        let members = members.split(',').map(str::trim);
        let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
        if members.len() < 2 || members.iter().any(|member| member.starts_with(MIX)) {
            return Err(bad(format!(
                "{text}: is not of the form {MIX}TRACE,TRACE,..; name two traces or more"
            )));
        }
        let members = members
            .iter()
            .map(|member| parse(member, limit, recordings));
        let sources = members.collect::<PyResult<_>>()?;
        return Ok(Source::Mix(MixSource { sources }));
    }
    let Some(made) = text.strip_prefix(SYNTH) else {
        let path = recordings.path_of(text);
        return Ok(Source::Trace(TraceSource {
            path,
            limit,
            window: None,
        }));
    };
    let (name, rest) = made.split_once(':').unwrap_or((made, ""));
    if name == LIKE {
        return like(text, rest, limit, recordings);
    }
    let ladder = trace::locality_ladder();
    let known: Vec<&str> = ladder.iter().map(|spec| &*spec.name).collect();
    check_known(&format!("{text}: "), "generator", name, &known)?;
    let form = format!("{SYNTH}NAME[:RECORDS[:SEED]]");
    let given = made.split(':').skip(1).collect::<Vec<_>>();
    let [records, seed] = numbers(text, &given, &form, "give whole numbers")?;
    Ok(Source::Synth(SynthSource {
        records,
        seed: seed.unwrap_or(0),
        limit,
        ..SynthSource::named(name.to_owned())
    }))
}

/// A trace that is like another: `TRACE[:TIMES[:RECORDS[:SEED]]]`.
fn like(text: &str, words: &str, limit: Option<u64>, recordings: &Recorded) -> PyResult<Source> {
    let (form, example) = (
        format!("{SYNTH}{LIKE}:TRACE[:TIMES[:RECORDS[:SEED]]]"),
        format!("as in {SYNTH}{LIKE}:redis:4"),
    );
    let mut words = words.split(':');
    let trace = words.next().unwrap_or_default();
    let given: Vec<&str> = words.collect();
    let [times, records, seed] = numbers(text, &given, &form, &example)?;
    if trace.is_empty() || times == Some(0) {
        return Err(bad(format!("{text}: is not of the form {form}; {example}")));
    }
    let path = recordings.path_of(trace);
    check_file(&path, &format!(", {example}"), recordings)?;
    let times = times.unwrap_or(1);
    let path = PathBuf::from(path);
    let stem = path.file_stem().unwrap_or_default().display();
    let named = SynthSource::named(format!("{LIKE}-{stem}-x{times}"));
    Ok(Source::Synth(SynthSource {
        like: Some(path),
        times,
        records,
        seed: seed.unwrap_or(0),
        limit,
        ..named
    }))
}

/// The numbers of a generated trace, of which those at the end may be left out.
fn numbers<const N: usize>(
    text: &str,
    given: &[&str],
    form: &str,
    remedy: &str,
) -> PyResult<[Option<u64>; N]> {
    let whole = |part: &&str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u64>().ok()).flatten()
    };
    let read: Option<Vec<u64>> = given.iter().map(whole).collect();
    match read.filter(|read| read.len() <= N) {
        Some(read) => Ok(std::array::from_fn(|at| read.get(at).copied())),
        None => Err(bad(format!("{text}: is not of the form {form}; {remedy}"))),
    }
}

/// An error unless there is such a file; `otherwise` ends the remedy.
fn check_file(path: &str, otherwise: &str, Recorded(plain, _): &Recorded) -> PyResult<()> {
    let place = Path::new(path);
    if path.is_empty() {
        return Err(bad(format!(
            "the trace's name is empty; give a trace file{otherwise}"
        )));
    }
    if place.is_dir() {
        return Err(bad(format!(
            "{path}: is a directory; name the trace files in it"
        )));
    }
    if place.exists() {
        return Ok(());
    }
    let recorded = plain.keys().map(String::as_str);
    let known = workload::all().iter().map(|program| program.name);
    let known: Vec<&str> = recorded.chain(known).collect();
    let meant = match otherwise {
        "" => String::new(),
        _ => did_you_mean(path, &known).replace('"', ""),
    };
    Err(bad(format!(
        "{path}: there is no such file; {meant}give a trace file{otherwise}"
    )))
}

/// An error unless the source can be opened and read.
pub fn check(source: &Source, recordings: &Recorded) -> PyResult<()> {
    match source {
        Source::Mix(_) => source
            .members()
            .iter()
            .try_for_each(|member| check(member, recordings)),
        Source::Program(program) => program.info().map(|_| ()),
        Source::Trace(file) => {
            let names: Vec<&str> = recordings.0.keys().map(String::as_str).collect();
            let recorded = match &names[..] {
                [] => String::new(),
                names => format!(", a recording ({})", names.join(", ")),
            };
            let otherwise = format!("{recorded}, a program, or {SYNTH}NAME to generate one");
            check_file(&file.path, &otherwise, recordings)?;
            source.first()
        }
        Source::Synth(_) => source.first(),
    }
}

/// A line if a generated trace ends before its `limit`: what to name for more.
pub fn beyond(source: &Source) -> Option<String> {
    let Source::Synth(SynthSource {
        name,
        records,
        seed,
        limit: Some(limit),
        like: None,
        ..
    }) = source
    else {
        return None;
    };
    let mut ladder = trace::locality_ladder().into_iter();
    let own = ladder
        .find(|spec| spec.name == *name)
        .map(|spec| spec.records);
    let records = records.or(own).filter(|records| limit > records)?;
    let seed = match seed {
        0 => String::new(),
        seed => format!(":{seed}"),
    };
    Some(format!(
        "--limit {limit}: {SYNTH}{name} has {records} records and all of them run; \
         {SYNTH}{name}:{limit}{seed} has more"
    ))
}

/// The sources that texts name: pairs of a name and a source. No file is opened.
#[pyfunction]
pub fn sources(
    texts: Vec<String>,
    limit: Option<u64>,
    sizes_json: Option<&str>,
    recordings: Recorded,
) -> PyResult<String> {
    let sizes: Option<Program> = sizes_json.map(read).transpose()?;
    let found = named(&texts, limit, sizes.as_ref(), &recordings)?;
    serde_json::to_string(&found).map_err(bad)
}

/// An error unless each source can be opened and read; lines about those that end before their `limit`.
#[pyfunction]
pub fn check_sources(sources_json: &str, recordings: Recorded) -> PyResult<Vec<String>> {
    let sources: Vec<Source> = read(sources_json)?;
    sources
        .iter()
        .try_for_each(|source| check(source, &recordings))?;
    Ok(notes(&sources))
}

/// An error unless there is such a file.
#[pyfunction]
pub fn check_trace_file(path: &str, recordings: Recorded) -> PyResult<()> {
    check_file(path, "", &recordings)
}

/// What to say of sources that end before their `limit`, each once.
pub fn notes<'s>(sources: impl IntoIterator<Item = &'s Source>) -> Vec<String> {
    let members = sources.into_iter().flat_map(Source::members);
    let mut seen = BTreeSet::new();
    members
        .filter_map(beyond)
        .filter(|line| seen.insert(line.clone()))
        .collect()
}

/// Requests, and a share of the run, from `20000` or `50%`.
#[pyfunction]
pub fn warmup(text: &str) -> PyResult<(u64, f64)> {
    let number = text.trim();
    let share = number
        .strip_suffix('%')
        .and_then(|share| share.parse::<f64>().ok());
    let requests = number.bytes().all(|byte| byte.is_ascii_digit());
    let requests = requests.then(|| number.parse::<i64>().ok()).flatten();
    match (requests, share.map(|share| share / 100.0)) {
        (Some(requests), _) => Ok((requests.unsigned_abs(), 0.0)),
        (None, Some(share)) if (0.0..1.0).contains(&share) => Ok((0, share)),
        _ => Err(bad(format!(
            "--warmup {text}: is neither a number of requests nor a share below 100%; for example --warmup 20000 or \
             --warmup 50%"
        ))),
    }
}
