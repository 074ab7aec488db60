//! Kernel same-page merging, as the Linux kernel does it: a thread on the machines' cores compares and hashes.

use super::{Algorithm, Merges};
use crate::ksm::Software;
use crate::ksm::settings::{self, Knobs};
use crate::run::PassRun;
use crate::timed::settings as timed;
use sardonyx::settings::Settings;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    name: "ksm",
    line: "the kernel's thread compares pages and hashes them",
    source: "Linux, mm/ksm.c",
    keys: settings::rows,
    timed_keys: timed::of_thread,
    merges: Some(Merges {
        looks_into_pages: false,
        on_images: |images, chosen, settings| {
            Box::new(PassRun::new(images, chosen, search(settings), settings))
        },
        in_time: |start| {
            let search = search(start.settings);
            start.settle(search)
        },
        modules: |_, _| None,
    }),
};

fn search(settings: &Settings) -> Software {
    Software::new(Knobs::from_settings(settings).checksum)
}
