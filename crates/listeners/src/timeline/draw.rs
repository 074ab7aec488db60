//! From what was kept of a window to slices, arrows and counters.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::tracks::{Queue, Said, Slice, Track, TrackPart, Tracks};
use super::{Commands, Drawn, KeptEvents, Owner};
use crate::media::Media;
use sardonyx::medium::link::Message;
use sardonyx::plan::Step;
use sardonyx::plan::command::{Command, CommandKind};
use sardonyx::plan::performed::{Performed, Work};
use sardonyx::stats::Purpose;
use sardonyx::units::Time;

pub(super) fn drawn(media: &Media, mut kept: KeptEvents) -> Tracks {
    kept.requests.sort_by_key(|request| request.number);
    kept.owners.sort_by_key(|owner| owner.first);
    kept.steps.sort_by_key(|(step, _)| step.step);
    let mut drawing = Drawing {
        media,
        tracks: Tracks::default(),
        of_steps: FxHashMap::default(),
        of_requests: FxHashMap::default(),
        owners: &kept.owners,
        banks: BTreeMap::new(),
        buses: BTreeMap::new(),
        selections: BTreeMap::new(),
        depths: BTreeMap::new(),
    };
    for request in &kept.requests {
        drawing.request(request);
    }
    for (step, commands) in &kept.steps {
        drawing.step(step, commands);
    }
    drawing.why(&kept.steps);
    drawing.refreshes(&kept.refreshes);
    drawing.cut_commands();
    drawing.arrows(&kept.steps);
    drawing.depths(kept.span);
    drawing.tracks
}

type Ends = (usize, usize);
type Spans = Vec<(Time, Time)>;

struct Drawing<'k> {
    media: &'k Media,
    tracks: Tracks,
    of_steps: FxHashMap<Step, Ends>,
    of_requests: FxHashMap<u64, usize>,
    owners: &'k [Owner],
    banks: BTreeMap<(u32, u32, u32), Vec<usize>>,
    /// Spans in which a channel's data bus carries data, and in which a bank has an access whose commands are not out.
    buses: BTreeMap<u32, Spans>,
    selections: BTreeMap<(u32, usize), Spans>,
    depths: BTreeMap<(u32, Queue), Spans>,
}

impl Drawing<'_> {
    fn owner(&self, step: Step) -> Option<u64> {
        let behind = self.owners.partition_point(|owner| owner.first <= step);
        let owner = self.owners[..behind].last()?;
        (step <= owner.last).then_some(owner.request)
    }

    fn request(&mut self, request: &Drawn) {
        let Drawn {
            admitted,
            accepted,
            done,
            ..
        } = *request;
        let arrival = request.request.arrival;
        let mut notes = vec![
            ("request", Said::Number(request.number)),
            ("arrived_ns", Said::Time(arrival)),
            ("admitted_ns", Said::Time(admitted)),
            ("accepted_ns", Said::Time(accepted)),
            ("done_ns", Said::Time(done)),
        ];
        if let Some(line) = request.asked.line() {
            notes.push(("line", Said::Number(line.0)));
        }
        // The ingress comes first; the others were booked from the answer back.
        let (ingress, later) = request.parts.split_at(request.parts.len().min(1));
        let mut at = arrival;
        let mut parts = Vec::new();
        for part in ingress.iter().chain(later.iter().rev()) {
            let end = at + part.latency;
            if part.latency > Time::ZERO {
                let mut notes = vec![("waited_ns", Said::Time(part.waited))];
                notes.extend(served(part.purpose));
                parts.push(Slice {
                    begin: at,
                    end,
                    name: part.purpose.what.name().to_owned(),
                    notes,
                    step: parts.len() as u64 + 1,
                    parts: Vec::new(),
                });
            }
            at = end;
        }
        let slice = Slice {
            begin: arrival,
            end: done,
            name: request.asked.name().to_owned(),
            notes,
            step: 0,
            parts,
        };
        let number = self.tracks.add(Track::Core(request.request.core), slice);
        self.of_requests.insert(request.number, number);
    }

    fn slice(
        &mut self,
        track: Track,
        step: &Performed,
        (begin, end): (Time, Time),
        name: String,
        more: Vec<(&'static str, Said)>,
    ) {
        let mut notes: Vec<(&'static str, Said)> = Vec::new();
        if let Some(request) = self.owner(step.step) {
            notes.push(("request", Said::Number(request)));
        }
        notes.push(("step", Said::Number(step.step.number())));
        notes.push(("cause", Said::Text(step.purpose.what.name())));
        notes.extend(served(step.purpose));
        if step.after != Step::PAST {
            notes.push(("ready_after", Said::Text(step.after_as.what.name())));
        }
        notes.extend(more);
        let slice = Slice {
            begin,
            end,
            name,
            notes,
            step: step.step.number(),
            parts: Vec::new(),
        };
        let number = self.tracks.add(track, slice);
        let before = self.of_steps.get(&step.step).copied();
        if let Some((_, last)) = before {
            self.tracks.arrow(last, number);
        }
        let first = before.map_or(number, |(first, _)| first);
        self.of_steps.insert(step.step, (first, number));
    }

    fn step(&mut self, step: &Performed, commands: &[Command]) {
        let cause = step.purpose.what.name();
        let waited = |from: Time| ("waited_ns", Said::Time(from.since(step.ready)));
        match step.work {
            Work::Join | Work::Merged => {}
            Work::Unit(unit) => {
                let span = (step.begun, step.ended);
                let (track, notes) = (Track::Unit(unit as usize), vec![waited(step.begun)]);
                self.slice(track, step, span, cause.to_owned(), notes);
            }
            Work::Cross(message) => {
                let name = match message {
                    Message::Read => "request to read",
                    Message::Write => "request to write",
                    Message::Line => "line",
                    Message::Done => "accepted",
                };
                let (track, span) = (Track::Link(message.is_down()), (step.begun, step.ended));
                self.slice(track, step, span, name.to_owned(), vec![waited(step.begun)]);
            }
            Work::Accept | Work::Merge if step.ended > step.ready => {
                let name = match step.grouped {
                    true => "its group and slots",
                    false => "a slot",
                };
                self.wait(step, step.ended, name);
            }
            Work::Accept | Work::Merge => {}
            Work::Forward => {
                let track = self.of_channel(step, TrackPart::Forwarded);
                let span = (step.begun, step.ended);
                self.slice(track, step, span, format!("read {cause}"), vec![]);
            }
            Work::Read | Work::Store => self.access(step, commands),
        }
    }

    fn on_channel(&self, channel: u32, part: TrackPart) -> Track {
        let (number, is_near) = self.media.number(channel);
        Track::Channel(is_near, number, part)
    }

    fn of_channel(&self, step: &Performed, part: TrackPart) -> Track {
        self.on_channel(self.media.channel(step.place), part)
    }

    fn wait(&mut self, step: &Performed, until: Time, what: &str) {
        let track = self.of_channel(step, TrackPart::Waiting);
        let line = ("line", Said::Number(step.place.in_medium()));
        let name = format!("{} waits for {what}", step.purpose.what.name());
        self.slice(track, step, (step.ready, until), name, vec![line]);
    }

    /// Draws a medium access: it waits for a slot, stands in a queue, and then its bank gets commands.
    fn access(&mut self, step: &Performed, commands: &[Command]) {
        let (queue, kind) = match (step.work, step.counter) {
            (Work::Read, _) => (Queue::Reads, "read"),
            (_, true) => (Queue::Counters, "write"),
            (_, false) => (Queue::Writes, "write"),
        };
        if step.work == Work::Read && step.queued > step.ready {
            self.wait(step, step.queued, "a slot");
        }
        let channel = self.media.channel(step.place);
        let begun = match commands.first() {
            // Selected and issued in one cycle.
            Some(first) if step.begun == Time::ZERO => self.media.time(channel, first.cycle),
            _ => step.begun,
        };
        let line = || ("line", Said::Number(step.place.in_medium()));
        let name = format!("{kind} {}", step.purpose.what.name());
        let track = self.on_channel(channel, TrackPart::Queue(queue));
        let span = (step.queued, begun);
        self.depths.entry((channel, queue)).or_default().push(span);
        self.slice(track, step, span, name.clone(), vec![line()]);
        let Some(column) = commands.last() else {
            let track = self.on_channel(channel, TrackPart::Module);
            return self.slice(track, step, (begun, step.ended), name, vec![line()]);
        };
        for command in commands {
            let track = self.on_channel(channel, TrackPart::Bank(command.rank, command.bank));
            let (name, own, row) = self.occupies(command);
            let mut notes = vec![("cycle", Said::Number(command.cycle))];
            notes.extend(row.map(|row| ("row", Said::Number(row))));
            let begin = self.media.time(channel, command.cycle);
            if command == column {
                notes.push(("done_ns", Said::Time(step.ended)));
                notes.push(line());
                let rows = |c: &&Command| {
                    matches!(
                        c.kind,
                        CommandKind::Activate { .. } | CommandKind::Precharge
                    )
                };
                let rows = commands.iter().filter(rows).count();
                let found = ["hit", "closed", "conflict"][rows.min(2)];
                notes.push(("row_was", Said::Text(found)));
            }
            self.slice(track, step, (begin, own), name.to_owned(), notes);
            let (_, slice) = self.of_steps[&step.step];
            let bank = (channel, command.rank, command.bank);
            self.banks.entry(bank).or_default().push(slice);
        }
        let bank = self.media.bank(step.place);
        let selection = (begun, self.media.time(channel, column.cycle));
        let selections = self.selections.entry((channel, bank)).or_default();
        selections.push(selection);
        let data = self.data(column);
        self.buses.entry(channel).or_default().push(data);
        let track = self.on_channel(channel, TrackPart::Bus);
        let ends = self.of_steps[&step.step];
        self.slice(track, step, data, name, vec![]);
        self.of_steps.insert(step.step, ends); // what waits for it waits for its bank
    }

    fn data(&self, column: &Command) -> (Time, Time) {
        let timing = &self.media.params(column.channel).timing;
        let lead = match column.kind {
            CommandKind::Read { .. } => timing.tCL,
            _ => timing.tCWD,
        };
        let first = column.cycle + lead;
        let at = |cycle| self.media.time(column.channel, cycle);
        (at(first), at(first + timing.tBURST))
    }

    /// The command's name, the time until which it occupies its bank, and the row that it concerns.
    fn occupies(&self, command: &Command) -> (&'static str, Time, Option<u64>) {
        let medium = self.media.params(command.channel);
        let timing = &medium.timing;
        let (name, until, row) = match command.kind {
            CommandKind::Activate { row } => ("ACT", command.cycle + timing.tRCD, Some(row)),
            CommandKind::Precharge => ("PRE", command.cycle + timing.tRP, None),
            CommandKind::PrechargeAll => ("PREA", command.cycle + timing.tRP, None),
            CommandKind::Read { row, .. } => ("RD", command.done, Some(row)),
            CommandKind::Write { row, .. } => ("WR", command.done, Some(row)),
            CommandKind::Refresh => {
                let length = medium.refreshes.length(timing);
                ("REF", command.cycle + length, None)
            }
            CommandKind::Pause => ("PAUSE", command.done.max(command.cycle + 1), None),
            CommandKind::Cancel => ("CANCEL", command.cycle + 1, None),
            CommandKind::Resume => ("RESUME", command.done, None),
        };
        (name, self.media.time(command.channel, until), row)
    }

    fn refreshes(&mut self, refreshes: &[Command]) {
        for (number, command) in refreshes.iter().enumerate() {
            let (name, end, _) = self.occupies(command);
            let slice = Slice {
                begin: self.media.time(command.channel, command.cycle),
                end,
                name: name.to_owned(),
                notes: vec![("cycle", Said::Number(command.cycle))],
                step: number as u64,
                parts: Vec::new(),
            };
            let track = self.on_channel(command.channel, TrackPart::Rank(command.rank));
            let slice = self.tracks.add(track, slice);
            let ranks = (command.channel, command.rank, u32::MAX);
            self.banks.entry(ranks).or_default().push(slice);
        }
    }

    /// Ends a command's slice at the bank's next command if that comes first.
    fn cut_commands(&mut self) {
        for slices in self.banks.values() {
            let mut slices: Vec<_> = slices
                .iter()
                .map(|&number| (self.tracks.slice_mut(number).begin, number))
                .collect();
            slices.sort_unstable();
            for pair in slices.windows(2) {
                let slice = self.tracks.slice_mut(pair[0].1);
                slice.end = slice.end.min(pair[1].0);
            }
        }
    }

    /// Annotates an access with the reasons why it waited: the time in the queue during which its bank served another
    /// access, and the time between selection and column command during which the data bus was in use when this access
    /// would have needed it.
    fn why(&mut self, steps: &[(Performed, Commands)]) {
        for spans in self.selections.values_mut().chain(self.buses.values_mut()) {
            spans.sort_unstable();
        }
        for (step, commands) in steps {
            let (Some(column), Some((first, last))) =
                (commands.last(), self.of_steps.get(&step.step).copied())
            else {
                continue;
            };
            let channel = column.channel;
            let bank = self.media.bank(step.place);
            let in_queue = |number: &usize| {
                let track = self.tracks.track_of(*number);
                matches!(track, Track::Channel(_, _, TrackPart::Queue(_)))
            };
            let queue = (first..=last).find(in_queue);
            let queue = queue.expect("each access has been in a queue");
            let slice = self.tracks.slice_mut(queue);
            let (begin, end) = (slice.begin.max(step.ready), slice.end);
            if begin > slice.begin {
                // A write that is accepted and waits for an earlier access to its line.
                let held = begin.since(slice.begin);
                slice.notes.push(("order_ns", Said::Time(held)));
            }
            let occupied = overlap(&self.selections[&(channel, bank)], (begin, end));
            let rest = end.since(begin).since(occupied);
            slice.notes.push(("bank_busy_ns", Said::Time(occupied)));
            slice.notes.push(("waited_turn_ns", Said::Time(rest)));
            // The column command could have gone when the row was open.
            let open = match commands.len() {
                1 => end,
                _ => {
                    let opened = commands[commands.len() - 2].cycle;
                    let medium = self.media.params(channel);
                    let to_column = match column.kind {
                        CommandKind::Read { .. } => medium.timing.tRCD,
                        _ => medium.groups.within(&medium.timing).tRCDWR,
                    };
                    self.media.time(channel, opened + to_column)
                }
            };
            let went = self.media.time(channel, column.cycle);
            if went > open {
                let (data, _) = self.data(column);
                let lead = data.since(went);
                let bus = overlap(&self.buses[&channel], (open + lead, data));
                let slice = self.tracks.slice_mut(last);
                slice.notes.push(("bus_busy_ns", Said::Time(bus)));
                let timing = went.since(open).since(bus);
                slice.notes.push(("timing_ns", Said::Time(timing)));
            }
        }
    }

    /// Draws an arrow to a step's first slice from each step that it waited for. A step without slices passes its
    /// arrows on.
    fn arrows(&mut self, steps: &[(Performed, Commands)]) {
        let mut afters: FxHashMap<Step, Step> = FxHashMap::default();
        for (step, _) in steps {
            afters.insert(step.step, step.after);
        }
        for (step, _) in steps {
            let Some(&(first, _)) = self.of_steps.get(&step.step) else {
                continue;
            };
            let held = step.work == Work::Store && step.ready > step.queued;
            if held {
                // It took its slot before it was ready: what it waited for leads to what comes behind its slot.
                let accepted = step.step.accepted();
                self.arrow_from(step, accepted, first, &afters);
            }
            self.arrow_from(step, step.after, first + usize::from(held), &afters);
        }
    }

    /// Draws an arrow to a slice of `step` from the last slice of `before`. If that has none, the arrow begins at what
    /// `before` waited for.
    fn arrow_from(
        &mut self,
        step: &Performed,
        mut before: Step,
        to: usize,
        afters: &FxHashMap<Step, Step>,
    ) {
        while before != Step::PAST && !self.of_steps.contains_key(&before) {
            before = afters.get(&before).copied().unwrap_or(Step::PAST);
        }
        let from = match self.of_steps.get(&before) {
            Some((_, last)) => Some(*last),
            None => {
                let request = self.owner(step.step);
                request.and_then(|request| self.of_requests.get(&request).copied())
            }
        };
        if let Some(from) = from {
            self.tracks.arrow(from, to);
        }
    }

    fn depths(&mut self, (begin, end): (Time, Time)) {
        for ((channel, queue), spans) in std::mem::take(&mut self.depths) {
            let mut changes: BTreeMap<Time, i64> = BTreeMap::new();
            for (from, to) in spans {
                *changes.entry(from.max(begin)).or_default() += 1;
                *changes.entry(to.max(begin)).or_default() -= 1;
            }
            let mut depth = 0;
            let values = changes.into_iter().filter_map(|(at, change)| {
                depth += change;
                (at <= end).then_some((at, depth))
            });
            let track = self.on_channel(channel, TrackPart::Depth(queue));
            self.tracks.count(track, values.collect());
        }
    }
}

fn served(purpose: Purpose) -> Option<(&'static str, Said)> {
    let serves = purpose.whom != purpose.what;
    serves.then(|| ("for", Said::Text(purpose.whom.name())))
}

/// The time that `span` has in common with `spans`, which are sorted and do not overlap.
fn overlap(spans: &[(Time, Time)], (begin, end): (Time, Time)) -> Time {
    let from = spans.partition_point(|span| span.1 <= begin);
    let within = spans[from..].iter().take_while(|span| span.0 < end);
    within.fold(Time::ZERO, |sum, span| {
        sum + span.1.min(end).since(span.0.max(begin))
    })
}
