//! No mapping: a line lies at the place of its own number.
//! Source: ESD's Baseline, and every design here that does not deduplicate.
//! Left out: everything.

use crate::controller::layers::{About, Design, File, Mapping, Placement};
use crate::controller::{Class, Encryption, Layer, Storey, Write, stands_on_below};
use crate::line::{Line, Logical, Place};
use crate::plan::{Fetched, Plan, Step, Stored};

/// The layers and designs of this file.
pub static FILE: File<Mapping> = File {
    layers: &[Mapping {
        about: About {
            name: "identity",
            cut: "keeps nothing",
            ..About::EMPTY
        },
        build: |_, below, _| Box::new(Identity { below }),
        guarantee: |below| below,
        placement: |_, _| Placement::Home,
        shows: &[],
        zeros_apart: false,
        beside: None,
    }],
    designs: &[Design {
        name: "baseline",
        source: "ESD (HPCA 2023), Baseline",
        line: "counter-mode encryption, no deduplication",
        stack: "identity+per-line",
    }],
};

struct Identity {
    below: Encryption,
}

impl Storey for Identity {
    stands_on_below!();
}

impl Layer for Identity {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        self.below.read(Place(a.0), class, after, plan)
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        self.below.write(write.to(Place(write.at.0)), plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(Place(a.0), after, plan)
    }

    fn preload(&mut self, a: Logical, data: &Line, plan: &mut Plan) -> bool {
        self.below.preload(Place(a.0), data, plan)
    }

    fn peek(&self, a: Logical, plan: &Plan) -> Option<Line> {
        self.below.peek(Place(a.0), plan)
    }

    fn hint(&self, a: Logical, plan: &Plan) {
        self.below.hint(Place(a.0), plan);
    }
}
