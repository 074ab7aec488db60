//! A timeline's events, read back: the slices of banks are the command log's commands, a request's parts are its
//! latency, arrows lead forward, and all of it is the same bytes again.

use std::collections::{BTreeMap, HashMap, HashSet};

use sardonyx::config::Machine;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::plan::command::{Command, CommandKind, CommandLog};
use sardonyx::trace::{Source, Spec, Synth};
use sardonyx_listeners::timeline::{Named, Timeline, TimelineWindow};
use serde_json::Value;

const WINDOW: TimelineWindow = TimelineWindow {
    first: Some(300),
    requests: 400,
};

fn run(machine: &Machine, design: &str) -> (Vec<u8>, Vec<Command>) {
    let spec = Spec {
        records: 1_500,
        footprint_lines: 1 << 10,
        mean_gap: 100,
        ..Spec::default()
    };
    let source = Source::from(Synth::new(spec, 7).expect("a valid spec"));
    let system = recordings::system(machine, design, vec![source], Options::default());
    let mut system = system.expect("a run");
    system.memory().observe(CommandLog::default());
    let timeline = Timeline::new(&machine.engine, WINDOW);
    system.memory().observe(timeline);
    system.run(&mut |_| true).expect("an outcome");
    let mut bytes = Vec::new();
    let timeline = system.memory().take::<Timeline>().expect("it listens");
    assert_eq!(timeline.requests(), 400, "{design}");
    let named = Named {
        name: design.to_owned(),
        number: 0,
    };
    timeline.write(&named, &mut bytes).expect("memory is room");
    let log = system.memory().take::<CommandLog>().expect("it listens");
    (bytes, log.by_channel())
}

#[derive(Debug)]
struct Slice {
    name: String,
    begin: u64,
    end: u64,
    notes: Value,
    within: Option<usize>,
    flows: [Vec<u64>; 2],
}

impl Slice {
    fn number(&self, name: &str) -> u64 {
        let number = self.notes[name].as_u64();
        number.unwrap_or_else(|| panic!("{name} of {self:?}"))
    }

    fn ns(&self, name: &str) -> f64 {
        let number = self.notes[name].as_f64();
        number.unwrap_or_else(|| panic!("{name} of {self:?}"))
    }
}

/// The slices of each track, by the last words of its process and its own name; those of one name lie one after the
/// other. Reads as Perfetto does: in the order of time, and events of one instant as they stand in the file. An arrow
/// belongs to the newest slice of its thread.
fn read(bytes: &[u8]) -> BTreeMap<(String, String), Vec<Vec<Slice>>> {
    let array = [b"[", bytes, b"]"].concat();
    let mut events: Vec<Value> = serde_json::from_slice(&array).expect("JSON");
    let ns = |event: &Value, of: &str| (event[of].as_f64().unwrap_or(0.0) * 1000.0).round() as u64;
    events.sort_by_key(|event| ns(event, "ts"));
    let mut names: HashMap<u64, &str> = HashMap::new();
    let mut tracks: HashMap<(u64, u64), Vec<Slice>> = HashMap::new();
    let mut arrows: HashSet<u64> = HashSet::new();
    for event in &events {
        let thread = [&event["pid"], &event["tid"]].map(|number| number.as_u64().unwrap_or(0));
        let (process, thread) = (thread[0], thread[1]);
        let slices = tracks.entry((process, thread)).or_default();
        let begin = ns(event, "ts");
        let word = |of: &str| event[of].as_str().expect("a word");
        match word("ph") {
            "M" if word("name").ends_with("_name") => {
                let before = names.insert(thread, event["args"]["name"].as_str().expect("a name"));
                assert!(before.is_none(), "{thread} twice");
            }
            "M" => assert!(event["args"]["sort_index"].is_u64()),
            "X" => {
                assert!(names.contains_key(&process) && names.contains_key(&thread));
                let end = begin + ns(event, "dur");
                let whole = slices.iter().rposition(|slice| slice.within.is_none());
                let within = whole.filter(|_| word("cat") == "latency");
                if let Some(whole) = within {
                    assert!(begin >= slices[whole].begin && end <= slices[whole].end);
                } else if let Some(whole) = whole {
                    assert!(begin >= slices[whole].end, "slices of one thread overlap");
                }
                slices.push(Slice {
                    name: word("name").to_owned(),
                    begin,
                    end,
                    notes: event["args"].clone(),
                    within,
                    flows: Default::default(),
                });
            }
            arrow @ ("s" | "f") => {
                let id = event["id"].as_u64().expect("a number");
                let slice = slices.last_mut().expect("an arrow has a slice");
                assert_eq!((slice.begin, word("bp")), (begin, "e"), "{slice:?}");
                let begins = arrow == "s";
                assert_eq!(
                    begins,
                    arrows.insert(id),
                    "arrow {id} ends before it begins"
                );
                slice.flows[usize::from(!begins)].push(id);
            }
            "C" => assert!(event["args"]["accesses"].is_u64(), "a depth"),
            other => panic!("an event of kind {other}"),
        }
    }
    let mut by_name: BTreeMap<_, Vec<Vec<Slice>>> = BTreeMap::new();
    for ((process, thread), slices) in tracks {
        if slices.is_empty() {
            continue;
        }
        let process = names[&process].rsplit(": ").next().expect("a name");
        let key = (process.to_owned(), names[&thread].to_owned());
        by_name.entry(key).or_default().push(slices);
    }
    by_name
}

fn machine(name: &str) -> Machine {
    Machine::load(name, &[] as &[(&str, &str)]).expect("a preset")
}

/// Breaks if a command is drawn that was not issued, or at another time, or not drawn although it falls into the
/// window, or if a bank does two things at once.
#[test]
fn a_banks_slices_are_its_commands() {
    let interrupted = [
        ("medium.pausing.policy", "both"),
        ("medium.geometry.banks", "2"),
    ];
    for (of, design, sets) in [
        ("esd", "esd", &[] as &[(&str, &str)]),
        ("sca", "sca", &[]),
        ("ddr4-2400", "baseline", &[]),
        ("esd", "baseline", &interrupted),
    ] {
        let machine = Machine::load(of, sets).expect("a preset");
        let clock = machine.engine.medium.timing.clock.ps();
        let (bytes, log) = run(&machine, design);
        let mut issued: HashMap<(String, String, String, u64), Command> = HashMap::new();
        for command in log {
            let name = match command.kind {
                CommandKind::Activate { .. } => "ACT",
                CommandKind::Precharge => "PRE",
                CommandKind::Read { .. } => "RD",
                CommandKind::Write { .. } => "WR",
                CommandKind::Pause => "PAUSE",
                CommandKind::Cancel => "CANCEL",
                CommandKind::Resume => "RESUME",
                CommandKind::PrechargeAll | CommandKind::Refresh => continue,
            };
            let channel = format!("channel {}", command.channel);
            let bank = format!("rank {} bank {}", command.rank, command.bank);
            issued.insert((channel, bank, name.to_owned(), command.cycle), command);
        }
        let tracks = read(&bytes);
        let requests = tracks
            .iter()
            .filter(|((_, name), _)| name.ends_with("requests"));
        let requests: Vec<&Slice> = requests
            .flat_map(|(_, lanes)| lanes.iter().flatten())
            .collect();
        let requests = requests.into_iter().filter(|slice| slice.within.is_none());
        let span = requests.fold((f64::MAX, 0.0f64), |span, slice| {
            (
                span.0.min(slice.ns("admitted_ns")),
                span.1.max(slice.ns("done_ns")),
            )
        });
        let mut drawn = HashSet::new();
        for ((channel, bank), lanes) in &tracks {
            if !bank.starts_with("rank ") || bank.ends_with("refresh") {
                continue;
            }
            assert_eq!(lanes.len(), 1, "{design}: {bank} does two things at once");
            let mut free = 0;
            for slice in &lanes[0] {
                assert!(slice.within.is_none() && slice.begin >= free, "{slice:?}");
                free = slice.end;
                let cycle = slice.number("cycle");
                let key = (channel.clone(), bank.clone(), slice.name.clone(), cycle);
                let command = issued.get(&key);
                let command = command.unwrap_or_else(|| panic!("{key:?} was not issued"));
                assert_eq!(slice.begin, cycle * clock / 1000);
                let done = (command.done * clock) as f64 / 1000.0;
                match command.kind {
                    CommandKind::Write { .. } if !sets.is_empty() => {
                        assert_eq!(slice.number("line"), command.place);
                        assert!(slice.ns("done_ns") >= done);
                    }
                    CommandKind::Read { .. } | CommandKind::Write { .. } => {
                        assert_eq!(slice.number("line"), command.place);
                        assert_eq!(slice.ns("done_ns"), done);
                    }
                    _ => {}
                }
                drawn.insert(key);
            }
        }
        let within = |cycle: u64| {
            let at = (cycle * clock) as f64 / 1000.0;
            (span.0..=span.1).contains(&at)
        };
        for (key, command) in &issued {
            let ends = command.done == 0 || within(command.done);
            if within(command.cycle) && ends && command.done > 0 {
                assert!(drawn.contains(key), "{design}: {key:?} is not drawn");
            }
        }
        assert!(drawn.len() > 400, "{design}: {} commands", drawn.len());
        let resumed = drawn.iter().any(|(_, _, name, _)| name == "RESUME");
        assert_eq!(resumed, !sets.is_empty());
    }
}

/// Breaks if the parts under a request do not add up to it, or if an arrow leads back or nowhere.
#[test]
fn parts_fill_a_request_and_arrows_lead_forward() {
    let machines = [
        ("esd", "esd"),
        ("sca", "sca"),
        ("cxl", "dewrite"),
        ("optane", "baseline"),
    ];
    for (of, design) in machines {
        let (bytes, _) = run(&machine(of), design);
        let tracks = read(&bytes);
        let mut begins: HashMap<u64, u64> = HashMap::new();
        let mut ends: HashMap<u64, u64> = HashMap::new();
        let mut requests = 0;
        for ((_, name), lanes) in &tracks {
            for slices in lanes {
                for (number, slice) in slices.iter().enumerate() {
                    begins.extend(slice.flows[0].iter().map(|flow| (*flow, slice.begin)));
                    ends.extend(slice.flows[1].iter().map(|flow| (*flow, slice.begin)));
                    if !name.ends_with("requests") || slice.within.is_some() {
                        continue;
                    }
                    requests += 1;
                    let parts = slices.iter().filter(|part| part.within == Some(number));
                    let filled = parts.fold(slice.begin, |at, part| {
                        assert_eq!(part.begin, at, "{design}: a hole before {part:?}");
                        part.end
                    });
                    assert_eq!(filled, slice.end, "{design}: {slice:?}");
                }
            }
        }
        assert_eq!(requests, 400, "{design}");
        assert!(begins.len() > 400, "{design}: {} arrows", begins.len());
        assert_eq!(begins.len(), ends.len(), "{design}");
        for (flow, from) in &begins {
            assert!(ends[flow] >= *from, "{design}: arrow {flow} leads back");
        }
        let units = tracks
            .keys()
            .filter(|(parent, _)| parent == "units")
            .count();
        assert!(design == "baseline" || units > 0, "{design} uses no unit");
    }
}

/// Breaks if hashing or anything else of the host orders events.
#[test]
fn the_same_run_is_the_same_bytes() {
    let machine = machine("esd");
    assert_eq!(run(&machine, "esd").0, run(&machine, "esd").0);
}
