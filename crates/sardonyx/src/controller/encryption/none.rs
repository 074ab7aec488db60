//! No encryption: lines go to the medium as they are.
//! Source: SCA's `no-encryption`.
//! Left out: counters, and so everything that a counter-atomic write demands.

use crate::controller::layers::{About, Counters, Design, File, Guarantee, Policy};
use crate::controller::{Class, Encryption, Layer, Storey, Write};
use crate::line::{Line, Place};
use crate::plan::{Fetched, Plan, Step, Stored};

/// The layers and designs of this file.
pub static FILE: File<Policy> = File {
    layers: &[Policy {
        about: About {
            name: "no-encryption",
            cut: "keeps nothing",
            ..About::EMPTY
        },
        build: |_, _| build(),
        guarantee: Guarantee::EveryLine,
        counters: Counters::None,
        keeps: None,
    }],
    designs: &[Design {
        name: "no-encryption",
        source: "SCA (HPCA 2018)",
        line: "plaintext lines at their own places",
        stack: "identity+no-encryption",
    }],
};

/// Builds the layer that does not encrypt.
pub fn build() -> Encryption {
    Box::new(NoEncryption)
}

struct NoEncryption;

impl Storey for NoEncryption {}

impl Layer for NoEncryption {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        plan.read(a, after)
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        plan.write(write.at, write.data, write.gate)
    }

    fn preload(&mut self, a: Place, data: &Line, plan: &mut Plan) -> bool {
        let new = plan.peek(a).is_none();
        if new {
            plan.preload(a, None, |line| *line = *data);
        }
        new
    }

    fn peek(&self, a: Place, plan: &Plan) -> Option<Line> {
        plan.peek(a)
    }

    fn hint(&self, a: Place, plan: &Plan) {
        plan.touch_ahead(a);
    }
}
