//! A timeline of a run for Perfetto: what occupies each bank, queue, bus and unit, the requests with what
//! their latency is made of, arrows between the steps of a request, and why each step waited.
//!
//! A window of requests is drawn, with all else that goes on from the admission of its first to the answer of its
//! last. What is kept is that window; before and after it nothing is but requests and commands under way.

mod draw;
mod tracks;

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use sardonyx::medium::params::EngineParams;
use sardonyx::plan::Step;
use sardonyx::plan::command::{Command, CommandKind};
use sardonyx::plan::observe::Observer;
use sardonyx::plan::performed::{Part, Performed, Work};
use sardonyx::plan::request::{Answer, Asked, Request};
use sardonyx::units::Time;

use crate::media::Media;

/// The requests to draw, by their numbers in the order of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineWindow {
    /// The first request; without one, the first that counts.
    pub first: Option<u64>,
    /// The number of requests.
    pub requests: u64,
}

/// The name and number of a run in the file.
#[derive(Clone, Debug)]
pub struct Named {
    /// The names of the design and the trace.
    pub name: String,
    /// The run's number in the file, from 0.
    pub number: u32,
}

/// The commands of an access in order. The last one is its column command.
type Commands = Vec<Command>;

struct Drawn {
    number: u64,
    asked: Asked,
    request: Request,
    admitted: Time,
    accepted: Time,
    done: Time,
    parts: Vec<Part>,
}

#[derive(Clone, Copy)]
struct Owner {
    first: Step,
    last: Step,
    request: u64,
}

#[derive(Default)]
struct KeptEvents {
    requests: Vec<Drawn>,
    owners: Vec<Owner>,
    steps: Vec<(Performed, Commands)>,
    refreshes: Vec<Command>,
    span: (Time, Time),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    /// Request `0` has to be admitted and all requests before it answered.
    During(u64),
    /// Steps up to this one may have begun within the window.
    After(Step),
}

struct UnderWay {
    number: u64,
    asked: Asked,
    accepted: Time,
    steps: Option<(Step, Step)>,
}

/// A listener that draws the timeline of a run.
pub struct Timeline {
    media: Media,
    window: TimelineWindow,
    phase: Phase,
    kept: KeptEvents,
    asked: Asked,
    admitted: u64,
    newest: Step,
    open: u64,
    under_way: FxHashMap<u32, UnderWay>,
    parts: Vec<Part>,
    /// Commands of each bank's interrupted write. The column command comes last.
    interrupted: FxHashMap<(u32, u32, u32), Commands>,
    /// Commands of each bank that wait for their column command.
    opening: FxHashMap<(u32, u32, u32), Commands>,
    /// Commands of accesses that have not ended, by channel, line and the cycle of their end.
    columns: FxHashMap<(u32, u64, u64), Commands>,
}

impl Timeline {
    /// Listens to a run on a machine with these parameters.
    pub fn new(params: &EngineParams, window: TimelineWindow) -> Timeline {
        Timeline {
            media: Media::new(params),
            window,
            phase: Phase::Before,
            kept: KeptEvents::default(),
            asked: Asked::Commit,
            admitted: 0,
            newest: Step::PAST,
            open: 0,
            under_way: FxHashMap::default(),
            parts: Vec::new(),
            interrupted: FxHashMap::default(),
            opening: FxHashMap::default(),
            columns: FxHashMap::default(),
        }
    }

    /// The number of requests in the timeline.
    pub fn requests(&self) -> usize {
        self.kept.requests.len()
    }

    /// The number of requests in the whole run.
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Writes the timeline's events, with commas between them: between `[` and `]` they are Chrome's trace-event JSON.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(self, named: &Named, to: &mut impl Write) -> io::Result<()> {
        draw::drawn(&self.media, self.kept).write(named, to)
    }

    fn begin(&mut self, number: u64, now: Time) {
        self.phase = Phase::During(number + self.window.requests);
        self.kept.span = (now, now);
        let under_way = self.under_way.values();
        let owners = under_way.filter_map(|one| {
            let (first, last) = one.steps?;
            Some(Owner {
                first,
                last,
                request: one.number,
            })
        });
        self.kept.owners.extend(owners);
    }

    fn is_drawn(&self, number: u64) -> bool {
        match self.phase {
            Phase::Before | Phase::After(_) => false,
            Phase::During(end) => (end - self.window.requests..end).contains(&number),
        }
    }

    fn commands_of(&mut self, access: &Performed) -> Commands {
        let place = access.place;
        let (channel, cycle) = (
            self.media.channel(place),
            self.media.cycle(place, access.ended),
        );
        let found = self.columns.remove(&(channel, place.in_medium(), cycle));
        found.unwrap_or_default() // a module with a buffer has no commands
    }
}

impl Observer for Timeline {
    fn of_steps(&self) -> bool {
        true
    }

    fn of_commands(&self) -> bool {
        true
    }

    fn asked(&mut self, asked: Asked) {
        self.asked = asked;
    }

    fn admitted(&mut self, now: Time, number: u32, request: &Request) {
        let this = self.admitted;
        self.admitted += 1;
        let begins = self
            .window
            .first
            .map_or(request.counted, |first| first == this);
        if self.phase == Phase::Before && begins {
            self.begin(this, now);
        }
        self.open += u64::from(self.is_drawn(this));
        let under_way = UnderWay {
            number: this,
            asked: self.asked,
            accepted: Time::ZERO,
            steps: None,
        };
        self.under_way.insert(number, under_way);
    }

    fn planned(&mut self, number: u32, first: Step, last: Step) {
        let of = self.under_way.get_mut(&number).expect("it was admitted");
        of.steps = (first <= last).then_some((first, last));
        self.newest = self.newest.max(last);
        if let (Phase::During(_), true) = (self.phase, first <= last) {
            let request = of.number;
            self.kept.owners.push(Owner {
                first,
                last,
                request,
            });
        }
    }

    fn accepted(&mut self, now: Time, number: u32, _request: &Request) {
        if let Some(of) = self.under_way.get_mut(&number) {
            of.accepted = now;
        }
    }

    fn booked(&mut self, _number: u32, parts: &[Part]) {
        self.parts.clear();
        self.parts.extend_from_slice(parts);
    }

    fn answered(&mut self, number: u32, answer: &Answer) {
        let of = self.under_way.remove(&number).expect("it was admitted");
        let Phase::During(end) = self.phase else {
            return;
        };
        if self.is_drawn(of.number) {
            self.open -= 1;
            self.kept.requests.push(Drawn {
                number: of.number,
                asked: of.asked,
                request: answer.request,
                admitted: answer.admitted,
                accepted: of.accepted,
                done: answer.at,
                parts: self.parts.clone(),
            });
            self.kept.span.1 = answer.at;
        }
        if self.open == 0 && self.admitted >= end {
            self.phase = Phase::After(self.newest);
        }
    }

    fn command(&mut self, command: &Command) {
        let bank = (command.channel, command.rank, command.bank);
        match command.kind {
            CommandKind::Activate { .. } | CommandKind::Precharge => {
                self.opening.entry(bank).or_default().push(*command);
            }
            CommandKind::Read { .. } | CommandKind::Write { .. } => {
                let mut commands = self.opening.remove(&bank).unwrap_or_default();
                commands.push(*command);
                let access = (command.channel, command.place, command.done);
                self.columns.insert(access, commands);
            }
            CommandKind::Pause | CommandKind::Cancel => {
                let write = self.columns.iter().find(|((channel, place, _), commands)| {
                    let writes = |c: &Command| matches!(c.kind, CommandKind::Write { .. });
                    (*channel, *place) == (command.channel, command.place)
                        && commands.last().is_some_and(writes)
                });
                let access = write.map(|(access, _)| *access);
                let commands = access.and_then(|access| self.columns.remove(&access));
                let mut commands = commands.unwrap_or_default();
                // What the array was written with until now: the write, or its last going on.
                let resumed = |c: &Command| c.kind == CommandKind::Resume;
                let part = commands.iter().rposition(resumed);
                let part = part.or(commands.len().checked_sub(1));
                if let Some(part) = part {
                    commands[part].done = command.cycle;
                    commands.insert(commands.len() - 1, *command);
                }
                self.interrupted.insert(bank, commands);
            }
            CommandKind::Resume => {
                if let Some(mut commands) = self.interrupted.remove(&bank) {
                    commands.insert(commands.len().saturating_sub(1), *command);
                    let access = (command.channel, command.place, command.done);
                    self.columns.insert(access, commands);
                }
            }
            CommandKind::PrechargeAll | CommandKind::Refresh => {
                if let Phase::During(_) = self.phase {
                    self.kept.refreshes.push(*command);
                }
            }
        }
    }

    fn performed(&mut self, performed: &Performed) {
        let commands = match performed.work {
            Work::Read | Work::Store => self.commands_of(performed),
            _ => Commands::new(),
        };
        let keeps = match self.phase {
            Phase::Before => false,
            Phase::During(_) => true,
            Phase::After(until) => performed.step <= until,
        };
        if keeps {
            self.newest = self.newest.max(performed.step);
            self.kept.steps.push((*performed, commands));
        }
    }
}
