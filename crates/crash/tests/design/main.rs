//! A design's own loop, `make design DESIGN=NAME`: contents of every kind go in and come out, before and after a
//! restart, and some thousand power cuts lose nothing that the design promises to keep. Without `SARDONYX_DESIGN` all
//! designs go round, and two are cut. The model is a map from lines to contents.
//! A test of one design alone is a file here: `mod NAME;`.

use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, Stack};
use sardonyx::controller::layers::Guarantee;
use sardonyx::controller::{Class, Controller, Persist, Write};
use sardonyx::line::{Line, Logical};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::untimed::Untimed;
use sardonyx::plan::{At, Step};
use sardonyx::settings::Settings;
use sardonyx_crash::{History, Options, explain, explore};
use sardonyx_workload::{DurabilityKind, ProgramSpec, Sharing};

/// Lines of the medium of the round trip: few, so that lines are written again and places are used again.
const LINES: u64 = 256;
const WRITTEN: u64 = 96;
const KINDS: [&str; 12] = [
    "zeros",
    "ones",
    "one byte repeated",
    "one word repeated",
    "a counter",
    "text",
    "random",
    "one bit off an earlier one",
    "equal to an earlier one",
    "zeros but one byte",
    "half zeros",
    "ones but one bit",
];

fn asked() -> Option<String> {
    let name = std::env::var("SARDONYX_DESIGN").ok()?;
    if let Err(error) = Stack::named(&name) {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
    Some(name)
}

fn content(kind: usize, earlier: &Line, dice: &mut ChaCha8Rng) -> Line {
    let mut line = [0; 64];
    match KINDS[kind] {
        "zeros" => (),
        "ones" => line.fill(0xff),
        "one byte repeated" => line.fill(dice.random()),
        "one word repeated" => {
            let word: [u8; 8] = dice.random();
            line.as_chunks_mut::<8>().0.fill(word);
        }
        "a counter" => line[..8].copy_from_slice(&dice.random_range(0..64u64).to_le_bytes()),
        "text" => line.fill_with(|| b' ' + dice.random_range(0..95)),
        "random" => dice.fill(&mut line),
        "one bit off an earlier one" => {
            line = *earlier;
            line[dice.random_range(0..64)] ^= 1 << dice.random_range(0..8);
        }
        "equal to an earlier one" => line = *earlier,
        "zeros but one byte" => line[dice.random_range(0..64)] = dice.random_range(1..=255),
        "half zeros" => dice.fill(&mut line[32..]),
        "ones but one bit" => {
            line.fill(0xff);
            line[dice.random_range(0..64)] ^= 1 << dice.random_range(0..8);
        }
        kind => unreachable!("{kind}"),
    }
    line
}

/// A controller without an engine: each request is done before the next.
struct Rig {
    name: String,
    settings: Settings,
    layout: Layout,
    medium: Untimed,
    controller: Controller,
}

impl Rig {
    fn new(name: &str) -> Rig {
        let settings = Settings::default();
        let mut layout = Layout::new(LINES);
        Rig {
            controller: designs::build(name, &settings, &mut layout).expect("a design"),
            medium: Untimed::new(Image::new()),
            name: name.to_owned(),
            settings,
            layout,
        }
    }

    fn write(&mut self, line: u64, data: &Line, order: Persist) {
        let write = Write {
            order,
            ..Write::new(Logical(line), At::past(data))
        };
        let controller = &mut self.controller;
        self.medium.plan(|plan| controller.write(write, plan));
    }

    fn read(&mut self, line: u64) -> Option<Line> {
        let controller = &mut self.controller;
        let read = self
            .medium
            .plan(|plan| controller.read(Logical(line), Class::Data, Step::PAST, plan));
        read.value
    }

    /// An orderly end and a new start: the new controller knows the medium's bytes and nothing else.
    fn restart(&mut self) {
        let controller = &mut self.controller;
        self.medium.plan(|plan| controller.flush(plan));
        self.medium = Untimed::new(self.medium.left());
        let log = (Stack::named(&self.name).expect("a design").logging.lines)(&self.settings);
        let mut layout = Layout::new(self.layout.data_lines() - log);
        let recovered = self
            .medium
            .plan(|plan| designs::recover(&self.name, &self.settings, &mut layout, plan));
        self.controller = recovered.expect("a design");
        assert_eq!(
            layout.regions(),
            self.layout.regions(),
            "tables lie elsewhere after a restart"
        );
    }
}

/// Reads every line that was written and holds it against the model; the number of reads.
fn compared(rig: &mut Rig, model: &HashMap<u64, (usize, Line)>, when: &str) -> u64 {
    for (line, (kind, content)) in model {
        let read = rig.read(*line);
        assert_eq!(
            read,
            Some(*content),
            "{}: line {line}, {}, {when}",
            rig.name,
            KINDS[*kind]
        );
    }
    model.len() as u64
}

fn goes_round(name: &str, rounds: u64) {
    let mut rig = Rig::new(name);
    let mut model: HashMap<u64, (usize, Line)> = HashMap::new();
    let mut dice = ChaCha8Rng::seed_from_u64(sardonyx_property::seed().unwrap_or(1));
    let (mut earlier, mut reads, mut restarts) = ([7; 64], 0, 0);
    for number in 0..rounds * KINDS.len() as u64 {
        let kind = number as usize % KINDS.len();
        let line = dice.random_range(0..WRITTEN);
        let data = content(kind, &earlier, &mut dice);
        let order = if dice.random() {
            Persist::Relaxed
        } else {
            Persist::CounterAtomic
        };
        rig.write(line, &data, order);
        model.insert(line, (kind, data));
        if dice.random_range(0..4) == 0 {
            earlier = data;
        }
        let read = rig.read(line);
        assert_eq!(
            read,
            Some(data),
            "{name}: line {line}, {}, just written",
            KINDS[kind]
        );
        if number % 97 == 96 {
            reads += compared(&mut rig, &model, "later");
            rig.restart();
            restarts += 1;
            reads += compared(&mut rig, &model, "after a restart");
        }
    }
    assert!(
        restarts > 0 && reads > 200,
        "{name}: {restarts} restarts, {reads} reads"
    );
    println!(
        "{name}: {} kinds of contents, {reads} reads compared, {restarts} restarts",
        KINDS.len()
    );
}

/// The controller's own calls, without an engine.
#[test]
fn contents_of_every_kind_come_back() {
    match asked() {
        Some(name) => goes_round(&name, 100),
        None => designs::all().for_each(|design| goes_round(design.name, 20)),
    }
}

/// Programs on two cores, the power cut at every event; what the design promises is there after each cut.
fn is_cut(name: &str) {
    let promises = designs::guarantee(name).expect("a design");
    if promises == Guarantee::Nothing {
        println!("{name}: promises nothing after a power cut, and was not cut");
        return;
    }
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
    for (program, seed) in [("btree", 1), ("queue", 2), ("duplicates", 3)] {
        let spec = |core| ProgramSpec {
            name: program.into(),
            item_bytes: 64,
            footprint: 8192,
            transactions: 40,
            seed: 10 * seed + core,
            durability: DurabilityKind::on(&Stack::named(name).expect("a design")),
            sharing: Sharing::Interleaved { cores: 2 },
            ..ProgramSpec::default()
        };
        let specs: Vec<ProgramSpec> = (0..2).map(spec).collect();
        let history = History::record(&machine, name, &specs, seed).expect("it runs");
        let options = Options {
            recovery_cuts: 64,
            ..Options::default()
        };
        let found = explore(&history, &options, &|_| true).expect("nobody cancels");
        let stories = found
            .tally
            .first()
            .map(|first| explain(&history, first).join("\n"));
        let stories: Vec<String> = stories.collect();
        assert!(
            stories.is_empty(),
            "{name} on {program}:\n{}",
            stories.join("\n")
        );
        assert!(
            found.covered.cuts > 1000,
            "{name} on {program}: {:?}",
            found.covered
        );
        println!(
            "{name}: {program}, {} power cuts and {} in recoveries lose nothing of \"{}\"",
            found.covered.cuts,
            found.covered.recovery_cuts,
            promises.name()
        );
    }
}

#[test]
fn power_cuts_lose_nothing_that_is_promised() {
    match asked() {
        Some(name) => is_cut(&name),
        None => ["sca", "zero-lines"].into_iter().for_each(is_cut),
    }
}
