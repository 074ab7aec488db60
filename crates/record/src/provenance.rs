//! The description in a trace of how it was recorded.

use std::path::Path;

use sardonyx_recorder::caches::Geometry;
use sardonyx_recorder::frames::{PAGE_BYTES, Reuse};
use sardonyx_recorder::options::{Clearing, KernelTime, Level};
use sardonyx_trace::{self as trace, Provenance};
use serde_json::{Value, json};

use crate::pages::PageFrames;
use crate::request::{Request, Window};

fn address_space(request: &Request) -> (Value, Option<Value>) {
    if request.level == Level::Cpu {
        let space = match request.pages {
            PageFrames::Virtual => json!("virtual"),
            PageFrames::Sequential => json!("frames in order of first touch"),
            PageFrames::Random { seed, frames } => json!({"frames": frames, "seed": seed}),
            PageFrames::PageMap => json!("frames of the kernel's page map"),
        };
        return (space, None);
    }
    let mut frames = match request.pages {
        PageFrames::Virtual | PageFrames::Sequential => json!({
            "numbers": "in order of first touch",
            "reuse": match request.reuse {
                Reuse::LastFreed => "last freed first",
                Reuse::FirstFreed => "first freed first",
                Reuse::Never => "never",
            },
        }),
        PageFrames::Random { seed, frames } => {
            json!({"numbers": "random", "of": frames, "seed": seed})
        }
        PageFrames::PageMap => json!({"numbers": "of the kernel's page map"}),
    };
    frames["page_bytes"] = PAGE_BYTES.into();
    frames["clearing"] = match request.clearing {
        Clearing::WholeLines => "whole lines, not fetched".into(),
        Clearing::Fetched => "lines fetched, then stored to".into(),
        Clearing::Unrecorded => "not recorded".into(),
    };
    if request.clearing != Clearing::Unrecorded {
        let KernelTime { fault, line } = request.kernel;
        frames["kernel_instructions"] = json!({"fault": fault, "line": line});
    }
    (json!("frames"), Some(frames))
}

pub fn provenance(request: &Request, index: usize) -> Provenance {
    let words = request.program.iter();
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let cache = |g: Geometry| json!({"bytes": g.bytes, "ways": g.ways});
    let caches = &request.caches;
    let mut provenance = Provenance {
        program: Path::new(&request.program[0])
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        description: words.join(" "),
        level: match request.level {
            Level::Memory => trace::Level::Memory,
            Level::Cpu => trace::Level::Cpu,
        },
        ..Provenance::default()
    };
    let more = &mut provenance.more;
    if request.level == Level::Memory {
        let shown = json!({
            "l1": cache(caches.l1), "l2": cache(caches.l2), "llc": caches.llc.map(cache),
            "llc_policy": if caches.inclusive { "inclusive" } else { "non-inclusive" },
            "cores": caches.cores, "replacement": "lru", "write": "back, allocate",
        });
        more.insert("caches".into(), shown);
    }
    let (space, frames) = address_space(request);
    more.insert("address_space".into(), space);
    if let Some(frames) = frames {
        more.insert("frames".into(), frames);
    }
    if request.level == Level::Cpu && request.pc {
        more.insert("calls".into(), true.into());
        more.insert("rest_microseconds".into(), request.rest.into());
    }
    more.insert("line_bytes".into(), 64.into());
    more.insert("recorder".into(), env!("CARGO_PKG_VERSION").into());
    if request.skip_instructions > 0 || request.window != Window::default() {
        let shown = json!({
            "skip_instructions": request.skip_instructions, "skip": request.window.skip,
            "limit": request.window.limit, "limit_instructions": request.window.instructions,
        });
        more.insert("window".into(), shown);
    }
    if index > 0 {
        more.insert("child".into(), index.into());
    }
    provenance
}
