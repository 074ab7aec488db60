//! The seam below encryption: a storey in one file that keeps a tag of every line of the medium beside it,
//! in one group with the line, and compares. It refuses nothing that is honest, in any run and after any
//! cut; what it flips itself is seen as not authentic by the crash explorer and as an error by a run.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Integrity, Refuses};
use sardonyx::line::{Line, Place};
use sardonyx::machine::RunError;
use sardonyx::machine::recordings::{self, Options};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::guard::Guard;
use sardonyx::plan::storey::Storey;
use sardonyx::plan::{At, Fetched, Plan, Queue, Step, Written};
use sardonyx::trace::{Source, Spec, Synth};
use sardonyx_crash::{Kind, Options as CrashOptions};

use crate::small_runs::{Small, explored};

const PER_LINE: u64 = 8;

/// When a bit of what the medium returns is inverted.
#[derive(Clone, Copy, PartialEq)]
enum Flip {
    Never,
    AfterACut,
    InARun,
}

/// The first life is over, so what recovers now recovers from a cut.
static CUT: AtomicBool = AtomicBool::new(false);

struct Tags {
    /// Each region of the layout, with the first of its tags.
    regions: Vec<(Region, u64)>,
    tags: Region,
    flip: Flip,
    reads: u64,
}

fn build(flip: Flip, layout: &mut Layout) -> Option<Box<dyn Guard>> {
    let data = Region {
        name: "data",
        first: Place(0),
        lines: layout.data_lines(),
    };
    let (mut regions, mut tags) = (Vec::new(), 0);
    for region in std::iter::once(&data).chain(layout.regions()) {
        regions.push((region.clone(), tags));
        tags += region.lines;
    }
    Some(Box::new(Tags {
        regions,
        tags: layout.reserve_sparse("tags", tags.div_ceil(PER_LINE)),
        flip,
        reads: 0,
    }))
}

/// No hash that anybody should use: any change of one bit changes it.
fn tag(place: Place, line: &Line, sideband: Option<[u8; 8]>) -> u64 {
    let words = line.as_chunks::<8>().0.iter().chain(sideband.iter());
    words.fold(place.0 + 1, |tag, word| {
        (tag ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ tag >> 31
    })
}

impl Tags {
    /// The line of the tag of `place`, and which of it.
    fn tag_of(&self, place: Place) -> (Place, usize) {
        let (region, first) = (self.regions.iter())
            .find(|(region, _)| region.contains(place))
            .expect("every line is in a region");
        let number = first + place.0 - region.first.0;
        (
            self.tags.line(number / PER_LINE),
            (number % PER_LINE) as usize,
        )
    }
}

impl Storey for Tags {}

impl Guard for Tags {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        let (at, number) = self.tag_of(place);
        let kept = plan.read(at, after);
        let Some(mut line) = got.value else {
            return got;
        };
        self.reads += 1;
        let flips = match self.flip {
            Flip::Never => false,
            Flip::AfterACut => CUT.load(Ordering::Relaxed) && self.reads.is_multiple_of(50),
            Flip::InARun => self.reads == 50,
        };
        line[7] ^= u8::from(flips);
        let words = kept.value.unwrap_or([0; 64]);
        let kept_tag = u64::from_le_bytes(words.as_chunks().0[number]);
        let at = plan.both(got.at, kept.at);
        if tag(place, &line, plan.peek_sideband(place)) != kept_tag {
            plan.refuse(place);
            return At::new(None, at);
        }
        At::new(Some(line), at)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        let (at, number) = self.tag_of(place);
        let mut words = [0; 64];
        let beside = written.beside(place, plan);
        words[number * 8..][..8]
            .copy_from_slice(&tag(place, written.line.value, beside).to_le_bytes());
        let data = At::new(&words, written.line.at);
        let kept = plan.write_words(at, data, 1 << number, None, Step::PAST, Queue::Data);
        plan.group(&[written.stored, kept]);
        plan.both(written.stored.done, kept.done)
    }
}

macro_rules! tagged {
    ($name:literal, $flip:expr) => {
        Integrity {
            about: About {
                name: $name,
                cut: "each tag is atomic with its line",
                ..About::EMPTY
            },
            build: |_, layout| build($flip, layout),
            promises: Refuses::NOTHING,
            settles_groups: true,
            registers: |_| 0,
            power_fail: None,
        }
    };
}

static KNOWN: [Integrity; 3] = [
    tagged!("tags", Flip::Never),
    tagged!("flips-after-a-cut", Flip::AfterACut),
    tagged!("flips-in-a-run", Flip::InARun),
];

fn know() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        KNOWN
            .iter()
            .map(AnyLayer::Integrity)
            .for_each(designs::register)
    });
}

fn crash(design: &str, cores: u64) -> Vec<(Kind, String)> {
    know();
    let run = Small {
        cores,
        ..Small::BTREE
    };
    let history = run.run(design);
    let flips = design.ends_with("@flips-after-a-cut"); // the only ones that look at it, one test
    if flips {
        CUT.store(true, Ordering::Relaxed);
    }
    let found = explored(&history, &CrashOptions::default());
    assert!(found.covered.cuts > 1000, "{design}: {:?}", found.covered);
    let kinds = found.tally.kinds.into_iter();
    let kinds = kinds.map(|(kind, (_, first))| (kind, first.what)).collect();
    if flips {
        CUT.store(false, Ordering::Relaxed);
    }
    kinds
}

#[test]
fn an_honest_medium_is_believed_after_every_cut_under_every_kind_of_layer() {
    for design in [
        "identity+no-encryption@tags",
        "fca@tags",
        "sca@tags",
        "co-located@tags",
        "esd-sound+fca@tags",
        "esd+sca@tags",
    ] {
        let found = crash(design, 2);
        assert!(found.is_empty(), "{design}: {found:?}");
    }
}

#[test]
fn a_bit_flipped_below_encryption_is_not_authentic_after_a_cut() {
    for design in ["sca", "esd-sound+fca", "co-located"] {
        let found = crash(&format!("{design}@flips-after-a-cut"), 1);
        let refused = found.iter().find(|(kind, _)| *kind == Kind::NotAuthentic);
        let (_, what) = refused.unwrap_or_else(|| panic!("{design}: {found:?}"));
        assert!(what.contains("not authentic"), "{what}");
    }
}

fn run(design: &str) -> Result<(), RunError> {
    know();
    let spec = Spec {
        records: 4_000,
        footprint_lines: 1 << 9,
        mean_gap: 200,
        ..Spec::default()
    };
    let source = Source::from(Synth::new(spec, 7).expect("a valid spec"));
    let machine = Machine::load("esd", &[] as &[(&str, &str)]).expect("a machine");
    let mut system = recordings::system(&machine, design, vec![source], Options::default())?;
    system.run(&mut |_| true).map(|_| ())
}

#[test]
fn a_bit_flipped_below_encryption_ends_a_run_with_the_place() {
    for stack in ["esd", "baseline", "dewrite", "co-located"] {
        run(&format!("{stack}@tags")).unwrap_or_else(|error| panic!("{error}"));
        match run(&format!("{stack}@flips-in-a-run")) {
            Err(error @ RunError::NotAuthentic { .. }) => {
                let said = error.to_string();
                assert!(
                    said.contains("is not authentic") && said.contains(" of "),
                    "{said}"
                );
            }
            other => panic!("{stack}: {:?}", other.map_err(|error| error.to_string())),
        }
    }
}

#[test]
fn integrities_are_named_behind_an_at_sign() {
    know();
    assert!(designs::Stack::named("sca@none").is_ok());
    let unknown = designs::Stack::named("sca@nosuch").err().expect("an error");
    assert!(unknown.to_string().contains("tags"), "{unknown}");
}
