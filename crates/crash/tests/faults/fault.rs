//! A fault as a row of data, and what each piece of the crash explorer reports of it under a small plan.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, AnyLayer, Stack};
use sardonyx_crash::{
    Attacks, Cuts, History, Kind, Options, Trial, Verdict, attack, audit, enumerate, explore,
    know_planted_faults, secrecy,
};
use sardonyx_workload::{DurabilityKind, ProgramSpec};

use crate::plans::Plan;

/// A layer with a fault, and the same layer with the fault switched off.
pub struct Layers {
    pub wrong: AnyLayer,
    pub right: AnyLayer,
}

/// What makes the wrong stack.
#[derive(Clone, Copy)]
pub enum Maker {
    /// Layers; the faulty one has the fault's name.
    Layers(fn(&'static str) -> Layers),
    /// The fault of this name that `sardonyx crash run --self-test` plants at a seam of the stack.
    Planted(&'static str),
}

/// One thing that is wrong, where it is tried, and what must report it.
pub struct Fault {
    pub name: &'static str,
    pub meaning: &'static str,
    pub maker: Maker,
    /// The stack, with a star where a faulty layer stands.
    pub stack: &'static str,
    pub plan: Plan,
    /// The kinds of violations that must be reported, and the pieces of the explorer that report them.
    pub by: &'static [(Check, &'static [Kind])],
}

/// Names the slips of a layer of the tests' own, the first of which is none.
macro_rules! slips {
    ($(#[$about:meta])* $Slip:ident { $($slip:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $Slip { $($slip),+ }

        impl $Slip {
            /// All, by number.
            pub const ALL: &'static [$Slip] = &[$($Slip::$slip),+];
        }
    };
}
pub(crate) use slips;

/// The maker of a row: `planted[NAME]`, `maker(SLIP)` of a layer of the tests' own, or `maker[TYPE]` around a right one.
macro_rules! layers {
    (planted[$name:literal]) => {
        $crate::fault::Maker::Planted($name)
    };
    ($maker:ident ($slip:ident)) => {
        $crate::fault::Maker::Layers($maker::<{ Slip::$slip as usize }>)
    };
    ($maker:ident [$Wrong:ident]) => {
        $crate::fault::Maker::Layers($maker::<$Wrong>)
    };
}
pub(crate) use layers;

/// Rows of faults of one stack and one plan: name, layers, meaning, and the kinds that each check reports.
macro_rules! rows {
    ($stack:expr, $plan:expr; $(
        $name:literal $maker:ident $which:tt
            $meaning:literal [$($check:ident: $($kind:ident)+),+]
    )+) => {
        &[$($crate::fault::Fault {
            name: $name,
            meaning: $meaning,
            maker: $crate::fault::layers!($maker $which),
            stack: $stack,
            plan: $plan,
            by: &[$(($crate::fault::Check::$check, &[$(sardonyx_crash::Kind::$kind),+])),+],
        }),+]
    };
}
pub(crate) use rows;

/// The pieces of the explorer. Each looks by itself, so each can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Check {
    /// What a cut leaves, the recovery from it, and the lives after it.
    Cuts,
    /// Only the lives after a cut.
    Lives,
    /// The order in which the run's writes became durable.
    Order,
    /// What the run shows without a cut: pads, what lies in clear, and requests that no run comes to.
    Requests,
    /// An attacker who writes.
    Attacks,
    /// Attacks of which none is drawn.
    Enumerated,
}

impl Check {
    /// What it looks at, for the docs.
    pub fn looks_at(self) -> &'static str {
        match self {
            Check::Cuts => {
                "every cut: recovery, the program's recovery, the lines that the cut can have changed; lives after a cut"
            }
            Check::Lives => "only lives after a cut",
            Check::Order => {
                "the order in which a run's writes became durable: pairs, marks, the array"
            }
            Check::Requests => {
                "without a cut: pads, plaintext, keys, widths, contents of each class, a full medium, many sharers"
            }
            Check::Attacks => {
                "drawn changes of the medium, after cuts, in recoveries and between requests"
            }
            Check::Enumerated => {
                "every bit that a MAC covers, all pairs of words, of regions and of bits of a place, replays of each field"
            }
        }
    }

    /// Those that report by themselves: later lives report among the cuts.
    pub const ALL: [Check; 5] = [
        Check::Cuts,
        Check::Order,
        Check::Requests,
        Check::Attacks,
        Check::Enumerated,
    ];
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub cuts: u64,
    /// The kinds of violations that each piece of the explorer has reported.
    pub found: BTreeMap<Check, BTreeSet<Kind>>,
    /// Why the run could not begin or go on.
    pub ended: Option<String>,
}

impl Outcome {
    /// What is reported if `off` are switched off.
    pub fn without(&self, off: &[Check]) -> BTreeMap<Check, BTreeSet<Kind>> {
        let mut found = self.found.clone();
        found.retain(|check, _| !off.contains(check));
        if off.contains(&Check::Lives) {
            found.remove(&Check::Cuts);
        }
        found
    }

    pub fn by(&self, check: Check) -> BTreeSet<Kind> {
        let check = if check == Check::Lives {
            Check::Cuts
        } else {
            check
        };
        self.found.get(&check).cloned().unwrap_or_default()
    }

    fn add(&mut self, check: Check, kinds: impl IntoIterator<Item = Kind>) {
        for kind in kinds {
            self.found.entry(check).or_default().insert(kind);
        }
    }
}

/// A name that lives as long as the program, as those of layers do.
pub fn named(first: &str, second: &str) -> &'static str {
    Box::leak(format!("{first}-{second}").into_boxed_str())
}

/// Registers `layer` unless a layer of its kind and name is known.
fn know(layer: AnyLayer) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().expect("no panic in here");
    let same =
        |known: AnyLayer| known.kind() == layer.kind() && known.about().name == layer.about().name;
    if !designs::layers().any(same) {
        designs::register(layer);
    }
}

impl Fault {
    pub fn wrong(&self) -> String {
        match self.maker {
            Maker::Layers(layers) => self.stack_with(layers(self.name).wrong),
            Maker::Planted(name) => {
                know_planted_faults();
                format!("{}!{name}", self.stack)
            }
        }
    }

    /// The stack with nothing wrong in it; the same layer around a right one if a layer is wrong.
    pub fn right(&self) -> String {
        match self.maker {
            Maker::Layers(layers) => self.stack_with(layers(self.name).right),
            Maker::Planted(_) => self.stack.to_owned(),
        }
    }

    /// The pieces of the explorer that report it.
    pub fn checks(&self) -> Vec<Check> {
        self.by.iter().map(|(check, _)| *check).collect()
    }

    /// The verdict of the plan that `sardonyx crash run` makes, with seed 1.
    pub fn under_the_default_plan(&self) -> Verdict {
        let design = self.wrong();
        let stack = Stack::named(&design).expect("it is registered");
        let trial = Trial {
            machine: "sca".into(),
            overrides: Vec::new(),
            design,
            program: "queue".into(),
            durability: DurabilityKind::on(&stack),
            seed: 1,
            cores: None,
            transactions: None,
            item_bytes: None,
            footprint: None,
            options: Options {
                attacks: Attacks::unless_said(&stack),
                ..Options::default()
            },
            thorough: None,
            until_exercised: false,
            shorten: false,
            only_first: false,
        };
        let tried = trial.answer(&|_, _| true).expect("a design and a program");
        tried.expect("nobody ends it").verdict
    }

    fn stack_with(&self, layer: AnyLayer) -> String {
        know(layer);
        self.stack.replace('*', layer.about().name)
    }
}

impl Plan {
    /// The plan's run over `stack`, and what each piece of the explorer has found in it.
    pub fn outcome(&self, stack: &str) -> Outcome {
        // An assertion of the simulator's own ends the run as an error does.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.explored(stack)));
        outcome.unwrap_or_else(|_| Outcome {
            ended: Some("an assertion has failed".into()),
            ..Outcome::default()
        })
    }

    fn explored(&self, name: &str) -> Outcome {
        let stack = Stack::named(name).expect("a stack");
        let spec = |core| ProgramSpec {
            name: self.program.into(),
            item_bytes: self.item_bytes,
            footprint: self.footprint,
            transactions: self.transactions,
            seed: self.seed + core,
            durability: DurabilityKind::on(&stack),
            sharing: self.sharing,
            contents: self.contents,
        };
        let specs: Vec<ProgramSpec> = (0..self.cores).map(spec).collect();
        let machine = Machine::load("sca", self.settings).expect("a machine");
        let mut outcome = Outcome::default();
        let history = match History::record(&machine, name, &specs, self.seed) {
            Ok(history) => history,
            Err(error) => {
                outcome.ended = Some(error.to_string());
                return outcome;
            }
        };
        let options = Options {
            cuts: Cuts::Sample(self.cuts),
            recovery_cuts: self.recovery_cuts,
            full_life_in: self.full_life_in,
            threads: 1,
            ..Options::default()
        };
        let explored = explore(&history, &options, &|_| true).expect("nobody ends it");
        outcome.cuts = explored.covered.cuts;

        let mut order = audit::array_writes(&history);
        order.extend(audit::pairs(&history, options.platform));
        order.extend(audit::marks(&history));
        let requests = secrecy::within(&history, &secrecy::Looked::default(), &RefCell::default());
        // The explorer adds these to what it has found at the cuts.
        let mut at_cuts = explored.tally.kinds;
        for violation in order.iter().chain(&requests) {
            let (count, _) = at_cuts.get_mut(&violation.kind).expect("it has been found");
            *count -= 1;
        }
        let at_cuts = at_cuts.into_iter().filter(|(_, (count, _))| *count > 0);
        outcome.add(Check::Cuts, at_cuts.map(|(kind, _)| kind));
        outcome.add(Check::Order, order.iter().map(|violation| violation.kind));
        outcome.add(
            Check::Requests,
            requests.iter().map(|violation| violation.kind),
        );

        if Attacks::unless_said(&stack).is_some() {
            let attacks = Attacks {
                looks: 8,
                each: self.attacks,
                one: None,
            };
            let attacked = attack(&history, &options, attacks);
            let unnoticed = attacked.violations(stack.integrity.promises);
            outcome.add(Check::Attacks, unnoticed.map(|_| Kind::Undetected));
        }
        if self.enumerates {
            let rows = enumerate(&stack, &machine.settings);
            let unnoticed = rows.iter().filter(|row| row.is_unkept());
            outcome.add(Check::Enumerated, unnoticed.map(|_| Kind::Undetected));
        }
        outcome
    }
}
