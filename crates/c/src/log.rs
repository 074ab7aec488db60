//! The log of a coupling (`host.log`): the controller's requests and answers, and what the adapter and the application
//! note of the same requests. `sardonyx check-host` compares them. Left out: the comparison.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{LazyLock, Mutex};

use sardonyx::machine::hosted::{AnswerKind, Told};

use crate::problem::{Problem, problem};
use crate::{SARDONYX_APPLICATION, SARDONYX_ASKED, SARDONYX_DONE, SARDONYX_PORT, sardonyx_request};

pub const HEAD: &str = "view,event,tag,ps,bytes";

static OPEN: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

pub struct HostLog {
    path: String,
    file: BufWriter<File>,
}

impl HostLog {
    /// Makes a new log; while another memory writes it, `PATH.2` and so on.
    pub fn new(path: &str) -> Result<HostLog, Problem> {
        let mut open = OPEN.lock().unwrap_or_else(|poison| poison.into_inner());
        let more = (2..).map(|number: u32| format!("{path}.{number}"));
        let mut names = std::iter::once(path.to_owned()).chain(more);
        let path = names.find(|name| !open.contains(name));
        let path = path.expect("there are names without end");
        let file = File::create(&path);
        let file = file.map_err(|why| Problem(format!("host.log={path}: {why}")))?;
        open.insert(path.clone());
        drop(open);
        let mut log = HostLog {
            path,
            file: BufWriter::with_capacity(1 << 18, file),
        };
        log.line(HEAD)?;
        Ok(log)
    }

    /// Notes a request to the controller at `ps`, and whether the controller took it.
    pub fn asked(
        &mut self,
        request: &sardonyx_request,
        ps: u64,
        taken: bool,
    ) -> Result<(), Problem> {
        let event = if taken { "asked" } else { "refused" };
        let (tag, size) = (request.tag, request.size);
        self.line(&format!("controller,{event},{tag},{ps},{size}"))
    }

    /// Notes an answer of the controller.
    pub fn told(&mut self, told: &Told) -> Result<(), Problem> {
        if !matches!(told.what, AnswerKind::Read | AnswerKind::Written) {
            return Ok(());
        }
        let (tag, ps, size) = (told.tag, told.answered.ps(), told.part.1);
        self.line(&format!("controller,done,{tag},{ps},{size}"))
    }

    /// Notes what the adapter or the application tells.
    pub fn noted(
        &mut self,
        view: u32,
        event: u32,
        tag: u64,
        ps: u64,
        bytes: u32,
    ) -> Result<(), Problem> {
        let view = match view {
            SARDONYX_PORT => "port",
            SARDONYX_APPLICATION => "application",
            _ => {
                return problem(format!(
                    "view {view}: give SARDONYX_PORT or SARDONYX_APPLICATION"
                ));
            }
        };
        let event = match event {
            SARDONYX_ASKED => "asked",
            SARDONYX_DONE => "done",
            _ => {
                return problem(format!(
                    "event {event}: give SARDONYX_ASKED or SARDONYX_DONE"
                ));
            }
        };
        self.line(&format!("{view},{event},{tag},{ps},{bytes}"))
    }

    /// Writes everything to the file, with a last line that says that nothing is missing up to `ps`.
    pub fn flush(&mut self, ps: u64) -> Result<(), Problem> {
        self.line(&format!("controller,end,0,{ps},0"))?;
        let done = self.file.flush();
        done.map_err(|why| Problem(format!("host.log={}: {why}", self.path)))
    }

    fn line(&mut self, line: &str) -> Result<(), Problem> {
        let done = writeln!(self.file, "{line}");
        done.map_err(|why| Problem(format!("host.log={}: {why}", self.path)))
    }
}

impl Drop for HostLog {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(|poison| poison.into_inner());
        open.remove(&self.path);
    }
}
