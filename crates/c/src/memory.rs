//! One memory behind a handle: the hosted machine, and the state that only this border needs.

use std::ffi::CString;

use sardonyx::config::Machine;
use sardonyx::machine::hosted::{AnswerKind, HostRequest, HostRequestKind, Hosted, Told};
use sardonyx::machine::outcome;
use sardonyx::medium::image::Image;
use sardonyx::units::Time;
use sardonyx_crash::{Platform, survivors};
use serde_json::json;

use crate::contents::Drawn;
use crate::log::HostLog;
use crate::problem::{Problem, problem};
use crate::settings;
use crate::{
    SARDONYX_COUNTER_ATOMIC, SARDONYX_COUNTERS, SARDONYX_FENCED, SARDONYX_FLUSHED,
    SARDONYX_IN_ARRAY, SARDONYX_NEVER, SARDONYX_NOW, SARDONYX_PERSIST, SARDONYX_READ,
    SARDONYX_TELL_ARRAY, SARDONYX_WRITE, SARDONYX_WRITE_COUNTERS, sardonyx_answer,
    sardonyx_request,
};

const LINE: usize = 64;

pub struct Hosting {
    pub host: Hosted,
    contents: Drawn,
    left: Option<Image>,
    /// Set once `sardonyx_finish` has ended the input.
    finished: bool,
    /// The log, if requests and answers are logged.
    pub log: Option<HostLog>,
    unlogged: Option<Problem>,
    /// The text that the host got last.
    pub text: CString,
}

impl Hosting {
    /// A memory of `design` on `machine`, with `pairs` of keys and values.
    pub fn new(machine: &str, design: &str, pairs: &[&str]) -> Result<Hosting, Problem> {
        let settings = settings::read(pairs)?;
        let machine = Machine::load(machine, &settings.machine)?;
        let host = Hosted::new(&machine, design, settings.options)?;
        let log = settings.log.map(HostLog::new).transpose()?;
        Ok(Hosting {
            host,
            contents: settings.contents,
            left: None,
            finished: false,
            log,
            unlogged: None,
            text: CString::default(),
        })
    }

    /// Sends a request, with its bytes if it has any.
    pub fn send(
        &mut self,
        request: &sardonyx_request,
        bytes: Option<&[u8]>,
    ) -> Result<bool, Problem> {
        self.goes_on()?;
        let &sardonyx_request {
            address,
            tag,
            presented_ps,
            size,
            source,
            kind,
            flags,
            ..
        } = request;
        check_flags(kind, flags)?;
        let drawn;
        let kind = match (kind, bytes) {
            (SARDONYX_READ, _) => HostRequestKind::Read(size as usize),
            (SARDONYX_WRITE, bytes) => HostRequestKind::Write {
                bytes: match bytes {
                    Some(bytes) => bytes,
                    None => {
                        if !self.host.accepts()? {
                            let now = self.host.now().ps(); // what is drawn is drawn once
                            let log = self.log.as_mut();
                            log.map_or(Ok(()), |log| log.asked(request, now, false))?;
                            return Ok(false);
                        }
                        drawn = self.drawn(source, address)?;
                        let from = (address % LINE as u64) as usize;
                        let size = (size as usize).min(LINE + 1); // an error soon
                        drawn.get(from..from + size).unwrap_or_default()
                    }
                },
                persist: flags & SARDONYX_PERSIST != 0,
                counter_atomic: flags & SARDONYX_COUNTER_ATOMIC != 0,
                tell_array: flags & SARDONYX_TELL_ARRAY != 0,
            },
            _ => HostRequestKind::WriteCounters,
        };
        let asked = HostRequest {
            kind,
            address,
            source,
            tag,
            presented: (presented_ps != SARDONYX_NOW).then(|| Time::from_ps(presented_ps)),
        };
        let taken = self.host.send(&asked)?;
        if let Some(log) = &mut self.log {
            let ps = match presented_ps {
                SARDONYX_NOW => self.host.now().ps(),
                given => given,
            };
            // The request was taken, or not, all the same: the next call for an answer reports why it is not logged.
            self.unlogged = log.asked(request, ps, taken).err().or(self.unlogged.take());
        }
        Ok(taken)
    }

    /// Whether a request would be taken now.
    pub fn accepts(&mut self) -> Result<bool, Problem> {
        Ok(!self.finished && self.host.accepts()?)
    }

    /// An error after the end of the input.
    pub fn goes_on(&self) -> Result<(), Problem> {
        match self.finished {
            false => Ok(()),
            true => problem("sardonyx_finish has ended the input; nothing is taken after it"),
        }
    }

    pub fn finish(&mut self) -> Result<(), Problem> {
        self.finished = true;
        self.host.finish()?;
        self.flush_log()
    }

    /// The next answer, which is logged. If logging fails the answer is returned all the same; the next call reports
    /// the failure, and then nothing more is logged.
    pub fn answer(&mut self) -> Result<Option<Told>, Problem> {
        if let Some(problem) = self.unlogged.take() {
            self.log = None;
            return Err(problem);
        }
        let told = self.host.answer();
        if let (Some(log), Some(told)) = (&mut self.log, &told) {
            self.unlogged = log.told(told).err();
        }
        Ok(told)
    }

    /// Whether the next call for an answer returns a failure of the log instead.
    pub fn is_unlogged(&self) -> bool {
        self.unlogged.is_some()
    }

    /// Writes the log to its file, with a line that says that it is whole.
    pub fn flush_log(&mut self) -> Result<(), Problem> {
        let now = self.host.now().ps();
        self.log.as_mut().map_or(Ok(()), |log| log.flush(now))
    }

    fn drawn(&mut self, source: u32, address: u64) -> Result<[u8; LINE], Problem> {
        let (line, mut last) = (address / LINE as u64, [0; LINE]);
        if !self.contents.is_drawn() {
            self.host.peek(source, line * LINE as u64, &mut last)?;
        }
        Ok(self.contents.line(line, &last))
    }

    /// Moves the clock to the begin of the memory's next cycle.
    pub fn tick(&mut self) -> Result<(), Problem> {
        let cycle = self.host.cycle().ps();
        let next = self.host.now().ps() / cycle + 1;
        Ok(self.host.advance_to(Time::from_ps(next * cycle))?)
    }

    pub fn cut(&mut self, platform: &str, seed: u64) -> Result<(), Problem> {
        let known = Platform::ALL.into_iter().find(|one| one.name() == platform);
        let Some(platform) = known else {
            let all = Platform::ALL.map(Platform::name).join(", ");
            return problem(format!("platform \"{platform}\": give one of {all}"));
        };
        let (image, journal) = self.host.cut()?;
        let (machine, design) = (self.host.machine(), self.host.design());
        let left = survivors(machine, design, (image, &journal), platform, seed)?;
        self.left = Some(left);
        Ok(())
    }

    /// Recovers. Returns the numbers of lines kept and lost.
    pub fn recover(&mut self) -> Result<(u64, u64), Problem> {
        match self.left.take() {
            Some(left) => {
                self.finished = false;
                Ok(self.host.recover(left)?)
            }
            None => problem("the power is not off; cut it first"),
        }
    }

    pub fn figures(&mut self) -> Result<String, Problem> {
        let outcome = self.host.outcome()?;
        let host = &self.host;
        let options = host.options();
        Ok(json!({
            "design": host.design(),
            "machine": host.machine().name,
            "copies": options.sources,
            "metrics": outcome.metrics(),
            "causes": outcome.costs(),
            "write_latency_cdf": outcome.write_latency_cdf,
            "read_latency_cdf": outcome.read_latency_cdf,
            "assumed": outcome::assumed(host.machine(), host.design(), &outcome),
            "host": {
                "writes_answered": options.posted.name(),
                "unwritten": options.unwritten.name(),
                "now_ns": host.now().ns(),
                "in_flight": host.in_flight(),
            },
        })
        .to_string())
    }
}

fn ps(time: Option<Time>) -> u64 {
    time.map_or(SARDONYX_NEVER, Time::ps)
}

impl From<Told> for sardonyx_answer {
    fn from(told: Told) -> sardonyx_answer {
        let (from, size) = (usize::from(told.part.0), usize::from(told.part.1));
        let mut bytes = [0; LINE];
        bytes[..size].copy_from_slice(&told.line[from..from + size]);
        sardonyx_answer {
            tag: told.tag,
            presented_ps: told.presented.ps(),
            admitted_ps: told.admitted.ps(),
            accepted_ps: ps(told.accepted),
            array_ps: ps(told.array),
            answered_ps: told.answered.ps(),
            source: told.source,
            what: match told.what {
                AnswerKind::Read => SARDONYX_READ,
                AnswerKind::Written => SARDONYX_WRITE,
                AnswerKind::Counters => SARDONYX_COUNTERS,
                AnswerKind::InArray => SARDONYX_IN_ARRAY,
                AnswerKind::Flushed => SARDONYX_FLUSHED,
                AnswerKind::Fenced => SARDONYX_FENCED,
            },
            size: size as u32,
            written: told.written.into(),
            bytes,
        }
    }
}

fn check_flags(kind: u32, flags: u32) -> Result<(), Problem> {
    let known = match kind {
        SARDONYX_WRITE => SARDONYX_PERSIST | SARDONYX_COUNTER_ATOMIC | SARDONYX_TELL_ARRAY,
        SARDONYX_READ | SARDONYX_WRITE_COUNTERS => 0,
        _ => {
            return problem(format!(
                "kind {kind}: give a read, a write, or a write of counters"
            ));
        }
    };
    if flags & !known != 0 {
        return problem(format!(
            "flags {flags:#x}: a request of kind {kind} has not all of them"
        ));
    }
    Ok(())
}
