//! What is written down of a run while it goes on, and where.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use sardonyx::medium::params::EngineParams;
use sardonyx_listeners::commands::CommandLines;
use sardonyx_listeners::requests::Requests;
use sardonyx_listeners::timeline::{Named, Timeline, TimelineWindow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bad;

/// A file for the timeline of a run: process ``number`` of a file of several, called ``name``. It has so many
/// ``requests`` from number ``first`` on, or from the first that counts.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimelineFile {
    path: PathBuf,
    name: String,
    #[serde(default)]
    number: u32,
    first: Option<u64>,
    requests: u64,
}

impl TimelineFile {
    pub(crate) fn listener(&self, engine: &EngineParams) -> Timeline {
        let window = TimelineWindow {
            first: self.first,
            requests: self.requests,
        };
        Timeline::new(engine, window)
    }

    pub(crate) fn write(&self, timeline: Timeline) -> PyResult<()> {
        if timeline.requests() == 0 {
            return Err(bad(format!(
                "--timeline-window: begins at request {}, and {} has {}; name an earlier one",
                self.first.unwrap_or(0),
                self.name,
                timeline.admitted()
            )));
        }
        let named = Named {
            name: self.name.clone(),
            number: self.number,
        };
        let failed = |error| bad(format!("{}: {error}", self.path.display()));
        let mut to = BufWriter::new(File::create(&self.path).map_err(failed)?);
        timeline.write(&named, &mut to).map_err(failed)?;
        to.flush().map_err(failed)
    }
}

/// A file for the commands of a run, as DRAMPower reads them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandsFile {
    path: PathBuf,
}

impl CommandsFile {
    pub(crate) fn listener(&self, engine: &EngineParams) -> PyResult<CommandLines> {
        if engine.medium.buffer.is_some() {
            let bare = "--commands: a module with a buffer keeps its commands to itself; name a machine without one, as in \
                 --machine ddr4-2400";
            return Err(bad(bare.to_owned()));
        }
        let made = CommandLines::create(&self.path, engine);
        made.map_err(|error| bad(format!("{}: {error}", self.path.display())))
    }

    pub(crate) fn write(&self, lines: CommandLines) -> PyResult<()> {
        let written = lines.finish();
        let (count, unknown) =
            written.map_err(|error| bad(format!("{}: {error}", self.path.display())))?;
        if unknown > 0 {
            eprintln!(
                "sardonyx: {}: {unknown} of {count} commands move bytes that the trace does not have; they are zeros there",
                self.path.display()
            );
        }
        Ok(())
    }
}

/// A file for the requests of a run on `trace`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestsFile {
    path: PathBuf,
    trace: String,
}

impl RequestsFile {
    pub(crate) fn listener(&self, design: &str) -> PyResult<Requests> {
        let made = Requests::create(&self.path, &self.trace, design);
        made.map_err(|error| bad(format!("{}: {error}", self.path.display())))
    }

    pub(crate) fn write(&self, requests: Requests) -> PyResult<()> {
        let written = requests.finish();
        written.map_err(|error| bad(format!("{}: {error}", self.path.display())))
    }
}
