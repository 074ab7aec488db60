//! What a comparison comes to: its points, the jobs that they share, what runs beside mixes. A comparison is what
//! `compare` is asked, or points that Python lists; all can be checked here before the first run.
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use pyo3::prelude::*;
use sardonyx::config::Machine;
use sardonyx::controller::designs as registry;
use sardonyx::controller::designs::Stack;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::asked::simulator::Compare;
use crate::machines;
use crate::simulate::{self, Job, SampleQuestion};
use crate::sources::{Program, Source};
use crate::texts::{self, Recorded};
use crate::{bad, read};

/// A run as results name it: `variant` is what is set for it on top of the machine that all share.
#[derive(Deserialize)]
struct Point {
    trace: String,
    #[serde(default)]
    variant: Map<String, Value>,
    job: Job,
}

impl Point {
    fn label(&self) -> String {
        let settings = self.variant.iter().map(|(key, value)| {
            let short = key.split_once('.').map_or(&**key, |(_, rest)| rest);
            match value {
                Value::String(text) => format!(" {short}={text}"),
                other => format!(" {short}={other}"),
            }
        });
        let settings: String = settings.collect();
        format!("{} {}{settings}", self.trace, self.job.design)
    }
}

/// Points on one machine.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Points {
    machine: String,
    overrides: Vec<(String, String)>,
    points: Vec<Point>,
}

/// The runs that points share, and those of each trace of a mix alone, which several mixes may share.
#[derive(Default)]
struct Shared {
    jobs: Vec<Value>,
    alone: Vec<Value>,
    /// The numbers of those alone, by what is asked.
    known: HashMap<String, usize>,
}

impl Shared {
    /// The number of a run that is new.
    fn add(&mut self, point: &Point) -> PyResult<usize> {
        let mut beside = Vec::new();
        for one in point.job.alone() {
            let number = *self.known.entry(text(&one)?).or_insert(self.alone.len());
            if number == self.alone.len() {
                let trace = one.source.name();
                let label = format!("{trace} {}, alone", one.design);
                (self.alone).push(json!({"label": label, "trace": trace, "job": one}));
            }
            beside.push(number);
        }
        (self.jobs).push(json!({"label": point.label(), "job": point.job, "alone": beside}));
        Ok(self.jobs.len() - 1)
    }
}

/// Each point, the runs they come to, and every trace; checked if asked for.
#[pyfunction]
pub fn plan(
    py: Python<'_>,
    points_json: &str,
    recordings: Recorded,
    checked: bool,
) -> PyResult<String> {
    let asked: Points = read(points_json)?;
    if checked {
        check(py, &asked, &recordings)?;
    }
    planned(&asked)
}

/// What `compare` is asked, planned and checked, with `notes` on what the user may not expect.
#[pyfunction]
pub fn comparison(py: Python<'_>, asked_json: &str, recordings: Recorded) -> PyResult<String> {
    let asked = points_of(&read(asked_json)?, &recordings)?;
    check(py, &asked, &recordings)?;
    planned(&asked)
}

/// The designs, none of them twice; an error if one is unknown.
#[pyfunction]
pub fn check_designs(names: Vec<String>) -> PyResult<Vec<String>> {
    let known: Vec<&str> = registry::all().map(|design| design.name).collect();
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if name.contains(['+', '@', '!']) {
            Stack::named(&name).map_err(bad)?;
        } else {
            texts::check_known("--designs: ", "design", &name, &known)?;
        }
        if !found.contains(&name) {
            found.push(name);
        }
    }
    match found.is_empty() {
        true => Err(bad(format!(
            "--designs: none given; the designs are {}",
            known.join(", ")
        ))),
        false => Ok(found),
    }
}

/// Every design on every trace, with every seed.
fn points_of(asked: &Compare, recordings: &Recorded) -> PyResult<Points> {
    let designs = check_designs(asked.designs.0.clone())?;
    let sizes = Program {
        item_bytes: asked.transaction_size.0,
        footprint: asked.footprint.0,
        transactions: asked.transactions,
        seed: asked.seed,
        ..Program::default()
    };
    let sources = texts::named(&asked.traces, asked.limit, Some(&sizes), recordings)?;
    let (warmup, warmup_share) = texts::warmup(asked.warmup.as_deref().unwrap_or("0"))?;
    let sample = asked.sample.as_deref();
    let sample = sample
        .map(|text| SampleQuestion::parse(text, asked.seed))
        .transpose()?;
    let mut overrides = asked.set.0.clone();
    let of_traces = [
        ("addresses", &asked.addresses),
        ("arrivals", &asked.arrivals),
    ];
    overrides.extend(
        (of_traces.into_iter()).filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))),
    );
    let mut points = Vec::new();
    for (trace, source) in &sources {
        for design in &designs {
            let point = |trace: String, source| Point {
                trace,
                variant: Map::new(),
                job: Job {
                    warmup,
                    warmup_share,
                    copies: asked.copies as u32,
                    distinct: f64::from(asked.distinct),
                    threads: asked.threads,
                    verify: asked.verify,
                    sample,
                    ..Job::of(source, design, &asked.machine, &overrides)
                },
            };
            match asked.seeds {
                None => points.push(point(trace.clone(), source.clone())),
                Some(number) => {
                    for (seed, source) in source.seeded(trace, number)? {
                        points.push(point(format!("{trace}, seed {seed}"), source));
                    }
                }
            }
        }
    }
    Ok(Points {
        machine: asked.machine.clone(),
        overrides,
        points,
    })
}

fn planned(asked: &Points) -> PyResult<String> {
    let points = &asked.points;
    // By their overrides: what of the machine decides a run.
    let mut effective: HashMap<&[(String, String)], String> = HashMap::new();
    for point in points {
        let overrides = &point.job.overrides[..];
        if !effective.contains_key(overrides) {
            let machine = Machine::load(&asked.machine, overrides).map_err(bad)?;
            let whole = machines::document(&machine);
            let decides = json!([whole["parameters"], whole["assumed"]]).to_string();
            effective.insert(overrides, decides);
        }
    }
    let (mut shared, mut numbers) = (Shared::default(), HashMap::new());
    let (mut told, mut traces, mut named) = (Vec::new(), Vec::new(), HashSet::new());
    for point in points {
        let job = &point.job;
        // A sweep passes the machine's own setting once, and that point is the plain run.
        let decides = &effective[&job.overrides[..]];
        let key = (text(&job.source)?, &*job.design, job.copies, decides);
        let number = match numbers.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(shared.add(point)?),
        };
        told.push(json!({
            "trace": point.trace,
            "design": job.design,
            "variant": point.variant,
            "job": number,
        }));
        if named.insert(&point.trace) {
            let (whole, source) = (job.source.whole(), &job.source);
            traces.push(json!({"name": point.trace, "source": source, "whole": whole}));
        }
    }
    let machine = Machine::load(&asked.machine, &asked.overrides).map_err(bad)?;
    Ok(json!({
        "machine": machines::document(&machine),
        "points": told,
        "jobs": shared.jobs,
        "alone": shared.alone,
        "traces": traces,
        "notes": texts::notes(points.iter().map(|point| &point.job.source)),
    })
    .to_string())
}

fn text(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(bad)
}

/// An error unless every machine can be had, every source be read, every program fits, and every sample can be taken.
/// The user may break it off between two of them.
fn check(py: Python<'_>, asked: &Points, recordings: &Recorded) -> PyResult<()> {
    let (points, mut machines) = (&asked.points, HashSet::new());
    let (mut sources, mut placed) = (HashSet::new(), HashSet::new());
    for Point { job, .. } in points {
        if machines.insert(&job.overrides) {
            Machine::load(&asked.machine, &job.overrides).map_err(bad)?;
        }
    }
    for Point { job, .. } in points {
        py.check_signals()?;
        if sources.insert(text(&job.source)?) {
            texts::check(&job.source, recordings)?;
        }
    }
    for Point { job, .. } in points {
        // The places of a trace's addresses, and its moments, do not depend on the design.
        let first = placed.insert((text(&job.source)?, &job.overrides, job.copies));
        let recorded = matches!(job.source, Source::Trace(_)) || job.threads;
        let every = matches!(job.source, Source::Program(_)) || job.sample.is_some();
        py.check_signals()?;
        if every || first && recorded {
            simulate::check(job)?;
        }
    }
    Ok(())
}
