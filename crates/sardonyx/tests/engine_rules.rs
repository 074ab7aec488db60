//! The engine's rules one by one, as `docs/inside/engine.md` numbers them, observed through answers: a
//! request answers when the step under test is done. Each test names a mutation that breaks it.

use crate::common::machine;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use crate::memory_common::request;
use sardonyx::engine::{Engine, Request};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::params::{EngineParams, GroupMerging, Unit};
use sardonyx::plan::journal::{Event, Journal};
use sardonyx::plan::{At, Plan, Queue, Step, Stored};
use sardonyx::stats::{Cause, Direction, Purpose};
use sardonyx::units::Time;

const A: Line = [1; 64];
const B: Line = [2; 64];

fn params() -> EngineParams {
    let mut params = machine("esd", &[]).engine;
    params.medium.queues.idle_writes = false;
    params
}

/// Entries of the data and counter write queues, which drain at `high` of them down to `low`.
fn queues(entries: [usize; 2], high: usize, low: usize) -> EngineParams {
    let mut params = params();
    let queues = &mut params.medium.queues;
    [queues.writes, queues.counter_writes] = entries;
    (queues.high_watermark, queues.low_watermark) = (high, low);
    params
}

/// An engine whose requests arrive at its present.
struct Driven(Engine);

impl Driven {
    fn new(params: &EngineParams) -> Driven {
        Driven(Engine::new(params))
    }

    fn write(&mut self, tag: u64, handle: impl FnOnce(&mut Plan) -> Stored) {
        let now = self.now();
        self.admit(request(Direction::Write, tag, now), now, handle);
    }

    fn read(&mut self, tag: u64, handle: impl FnOnce(&mut Plan) -> Step) {
        let now = self.now();
        let request = request(Direction::Read, tag, now);
        self.admit(request, now, |plan| Stored::at(handle(plan)));
    }

    /// Goes on while anything happens by itself: no drain is forced.
    fn settle(&mut self) {
        while self.next_event() != Time::NEVER {
            self.advance();
        }
    }

    /// Runs to rest; the answers' times by tag.
    fn times(&mut self, count: usize) -> Vec<u64> {
        self.run_to_rest();
        let mut times = vec![0; count];
        for answer in self.answers() {
            times[answer.request.tag as usize] = answer.at.ps();
        }
        assert!(!times.contains(&0), "all were answered: {times:?}");
        times
    }
}

impl Deref for Driven {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.0
    }
}

fn pause(plan: &mut Plan, units: usize) -> Step {
    (0..units).fold(Step::PAST, |step, _| plan.unit(Unit::Sha1, step))
}

/// Breaks if `Plan::write_words` drops `before` or `readers`, or `Plan::read` its writer.
#[test]
fn rule_1_accesses_of_a_line_take_effect_in_the_order_of_handling() {
    for forwarding in [false, true] {
        let mut params = params();
        params.medium.queues.forwarding = forwarding;
        params.medium.queues.coalescing = true;
        let mut engine = Driven::new(&params);
        let place = Place(7);
        engine.write(0, |plan| {
            let late = pause(plan, 3);
            plan.write(place, At::new(&A, late), Step::PAST)
        });
        engine.read(1, |plan| {
            let late = pause(plan, 6);
            let read = plan.read(place, late);
            assert_eq!(read.value, Some(A), "the newest bytes");
            read.at
        });
        engine.write(2, |plan| plan.write(place, At::past(&B), Step::PAST));
        let mut order = Vec::new();
        while engine.next_event() != Time::NEVER || engine.force_drain() {
            engine.advance();
            let answers: Vec<u64> = engine.answers().map(|answer| answer.request.tag).collect();
            if answers.contains(&1) {
                assert_ne!(engine.image().read(place), Some(B), "not before the read");
            }
            order.extend(answers);
        }
        let at = |tag: u64| order.iter().position(|t| *t == tag).expect("answered");
        assert!(at(0) < at(2) && at(1) < at(2), "{order:?}");
        assert_eq!(engine.image().read(place), Some(B));
        let hazard = engine.ledger().total(Cause::Hazard);
        // Forwarded, the second merges with the first: then it waits for that, as its own data.
        assert_eq!(hazard.write_latency > Time::ZERO, !forwarding);
    }
}

/// Breaks if the time 0 at which a write took its slot stands for not yet.
#[test]
fn rule_5_a_write_merges_with_one_that_took_its_slot_when_time_began() {
    let mut params = queues([8, 8], 4, 0);
    params.medium.queues.coalescing = true;
    let mut engine = Driven::new(&params);
    engine.write(0, |plan| plan.write(Place(7), At::past(&A), Step::PAST));
    engine.settle();
    engine.write(1, |plan| plan.write(Place(7), At::past(&B), Step::PAST));
    engine.run_to_rest();
    assert_eq!(engine.ledger().grand_total().medium_writes, 1);
    assert_eq!(engine.image().read(Place(7)), Some(B));
}

/// Breaks if the order of stores is booked under the earlier write's own cause.
#[test]
fn rule_1_waiting_for_an_earlier_write_is_booked_under_hazard() {
    let mut params = params();
    params.medium.queues.coalescing = false;
    let mut engine = Driven::new(&params);
    for (tag, line) in [A, B].iter().enumerate() {
        engine.write(tag as u64, |plan| {
            plan.write(Place(0), At::past(line), Step::PAST)
        });
    }
    let times = engine.times(2);
    let hazard = engine.ledger().total(Cause::Hazard).write_latency;
    assert_eq!(
        hazard.ps(),
        times[0],
        "all of the first is waiting for the second"
    );
}

/// Breaks if `Plan::keep` forgets its dependency, or a step of an earlier plan counts as finished.
#[test]
fn rule_2_steps_depend_on_earlier_plans_and_on_promises() {
    let mut engine = Driven::new(&params());
    let (step, promise) = (Cell::new(Step::PAST), Cell::new(None));
    engine.read(0, |plan| {
        step.set(pause(plan, 2));
        promise.set(Some(plan.promise()));
        step.get()
    });
    let promise = promise.get().expect("made");
    engine.read(1, |plan| plan.unit(Unit::Crc32, step.get()));
    engine.read(2, |_| promise.step());
    engine.read(3, |plan| {
        let last = pause(plan, 1);
        plan.keep(promise, last);
        last
    });
    let times = engine.times(4);
    assert_eq!(times[1] - times[0], 15_000);
    assert_eq!(times[2], times[3]);
    assert_eq!(
        (times[3], times[0]),
        (642_000, 963_000),
        "one unit, three uses"
    );
}

/// Breaks if a promise that is kept with the past leaves a gap in the booking.
#[test]
fn rule_2_a_promise_kept_with_the_past_is_booked_to_its_end() {
    let mut engine = Driven::new(&params());
    let promise = Cell::new(None);
    engine.read(0, |plan| {
        promise.set(Some(plan.promise()));
        promise.get().expect("made").step()
    });
    engine.read(1, |plan| pause(plan, 1));
    engine.settle();
    engine.background(|plan| plan.keep(promise.get().expect("made"), Step::PAST));
    let times = engine.times(2);
    let total = engine.ledger().grand_total().read_latency;
    assert_eq!(total.ps(), times[0] + times[1]);
}

/// Breaks if `Engine::admits` ignores the ingress or those who stand before a full queue.
#[test]
fn rule_3_the_ingress_is_bounded_and_a_full_queue_closes_it() {
    let mut params = params();
    (params.ingress, params.medium.queues.reads) = (3, 1);
    let mut engine = Driven::new(&params);
    for tag in 0..3 {
        assert!(engine.admits());
        engine.read(tag, |plan| pause(plan, 1));
    }
    assert!(!engine.admits(), "three are in it");
    engine.times(3);
    for tag in 0..2 {
        assert!(engine.admits());
        engine.read(tag, |plan| plan.read(Place(tag), Step::PAST).at);
    }
    assert!(
        !engine.admits(),
        "the second stands before the one read entry"
    );
    let times = engine.times(2);
    assert!(times[0] < times[1] && engine.admits());
}

/// Breaks if `Engine::advance` waits for a drain that only further writes would begin.
#[test]
fn rule_3_a_loop_of_advances_outlasts_an_ingress_full_of_writes() {
    let mut params = params();
    params.ingress = 3;
    let mut engine = Driven::new(&params);
    for tag in 0..3 {
        engine.write(tag, |plan| {
            let late = pause(plan, 1);
            let stored = plan.write(Place(tag), At::new(&A, late), Step::PAST);
            Stored::at(stored.done)
        });
    }
    let mut calls = 0;
    while !engine.admits() {
        engine.advance();
        calls += 1;
        assert!(calls < 1000, "waits for ever");
    }
}

/// Breaks if a unit is reserved when a plan is made instead of when the step becomes ready.
#[test]
fn rule_4_units_are_taken_in_the_order_of_readiness() {
    let mut engine = Driven::new(&params());
    engine.read(0, |plan| {
        let late = plan.unit(Unit::Crc32, Step::PAST);
        plan.unit(Unit::Sha1, late)
    });
    engine.read(1, |plan| plan.unit(Unit::Sha1, Step::PAST));
    assert_eq!(engine.times(2), [642_000, 321_000]);
}

fn pair(plan: &mut Plan, places: [u64; 2]) -> Stored {
    pair_of(plan, places, 2)
}

fn pair_of(plan: &mut Plan, places: [u64; 2], words: u8) -> Stored {
    let [data, counter] = places.map(Place);
    let data = plan.write(data, At::past(&A), Step::PAST);
    let (a, past, queue) = (At::past(&A), Step::PAST, Queue::Counter);
    let counter = plan.write_words(counter, a, words, None, past, queue);
    plan.group(&[data, counter]);
    Stored::at(plan.both(data.accepted, counter.accepted))
}

/// Breaks if a group takes its slots one by one (both first halves would be in, neither whole),
/// if a masked write carries its siblings, or if a write merges with a group's.
#[test]
fn rule_5_a_group_takes_all_its_slots_or_none() {
    let mut params = queues([4, 1], 4, 0);
    params.medium.queues.coalescing = true;
    let mut engine = Driven::new(&params);
    engine.write(0, |plan| pair(plan, [0, 100]));
    assert!(engine.has_answers(), "both slots were free");
    engine.answers().for_each(drop);
    engine.write(0, |plan| pair(plan, [1, 101]));
    engine.write(1, |plan| {
        let stored = plan.write(Place(0), At::past(&B), Step::PAST);
        Stored::at(stored.accepted)
    });
    assert!(
        !engine.has_answers(),
        "no counter slot, and the third waits behind the group"
    );
    engine.times(2);
    assert_eq!(engine.service(Direction::Write).short_cuts, 0);
    let line = engine.image().read(Place(100)).expect("written");
    assert_eq!((line[0], line[8], line[16]), (0, 1, 0), "its own word only");
}

/// Breaks if a member merges alone, or a whole group with whole queued entries does not.
#[test]
fn rule_5_a_group_merges_as_a_whole_or_not_at_all() {
    let mut params = queues([2, 2], 4, 0);
    params.medium.queues.coalescing = true;
    let mut engine = Driven::new(&params);
    engine.read(0, |plan| pause(plan, 1));
    engine.times(1);
    engine.write(0, |plan| pair(plan, [0, 100]));
    engine.write(1, |plan| pair(plan, [0, 100]));
    assert_eq!(
        engine.service(Direction::Write).short_cuts,
        2,
        "both halves"
    );
    engine.write(2, |plan| pair(plan, [1, 100]));
    assert_eq!(
        engine.service(Direction::Write).short_cuts,
        2,
        "no queued line 1"
    );
    assert_eq!(engine.answers().count(), 3, "two slots of each queue");
    engine.run_to_rest();
    let line = engine.image().read(Place(100)).expect("written");
    assert_eq!((line[0], line[8]), (0, 1));
}

/// Breaks if a member takes a slot although its line is queued, if it is merged before the others have
/// theirs, or if a group needs a free slot of a queue in which all of its members merge.
#[test]
fn rule_5_a_group_merges_by_member_where_the_medium_says_so_and_at_one_instant_still() {
    let mut params = queues([3, 1], 4, 0);
    params.medium.group_merging = GroupMerging::Member;
    params.medium.remerging = true;
    params.medium.queues.coalescing = true;
    let mut engine = Driven::new(&params);
    engine.read(0, |plan| pause(plan, 1));
    engine.times(1);
    engine.observe(Journal::default());
    for (tag, line) in [0, 1].into_iter().enumerate() {
        engine.write(tag as u64, |plan| pair_of(plan, [line, 100], 1 << line));
    }
    assert_eq!(engine.answers().count(), 2, "one counter slot is enough");
    assert_eq!(engine.service(Direction::Write).short_cuts, 1);
    // A write of its own merges with a member.
    engine.write(2, |plan| {
        Stored::at(plan.write(Place(1), At::past(&B), Step::PAST).accepted)
    });
    assert_eq!(engine.service(Direction::Write).short_cuts, 2);
    engine.write(3, |plan| pair_of(plan, [2, 100], 1 << 2));
    engine.answers().for_each(drop);
    // No data slot is free, so its counter is not merged either.
    engine.write(4, |plan| pair_of(plan, [3, 100], 1 << 3));
    assert_eq!(engine.answers().count(), 0);
    assert_eq!(engine.service(Direction::Write).short_cuts, 3);
    engine.run_to_rest();
    let journal = engine.take::<Journal>().expect("one is kept");
    let groups = journal.events.iter().filter_map(|(_, event)| match event {
        Event::Ready { count, .. } => Some(*count),
        _ => None,
    });
    assert_eq!(groups.collect::<Vec<_>>(), [2, 2, 1, 2, 2]);
    let line = engine.image().read(Place(100)).expect("written");
    assert_eq!([0, 8, 16, 24, 32].map(|at| line[at]), [1, 1, 1, 1, 0]);
    assert_eq!(engine.image().read(Place(1)), Some(B));
}

/// Breaks if only the number of all writes starts a drain: with nothing else to come, a group before a
/// full counter queue would then stand there until a drain is forced.
#[test]
fn rule_6_a_full_counter_queue_starts_a_drain() {
    let params = queues([8, 1], 8, 0);
    let mut engine = Driven::new(&params);
    for tag in 0..2 {
        engine.write(tag, |plan| pair(plan, [tag, 100 + tag]));
    }
    engine.settle();
    assert_eq!(
        engine.answers().count(),
        2,
        "both are accepted, no drain forced"
    );
    engine.run_to_rest();
}

/// Breaks if a group that is let in does not look at those behind it in its other queues.
#[test]
fn rule_5_those_behind_a_group_take_the_slots_that_it_leaves() {
    let params = queues([8, 1], 8, 0);
    let mut engine = Driven::new(&params);
    for tag in 0..2 {
        engine.write(tag, |plan| pair(plan, [tag, 100 + tag]));
    }
    engine.write(2, |plan| {
        Stored::at(plan.write(Place(9), At::past(&B), Step::PAST).accepted)
    });
    engine.answers().for_each(drop);
    while engine.next_event() != Time::NEVER || engine.force_drain() {
        engine.advance();
        let mut tags: Vec<u64> = engine.answers().map(|answer| answer.request.tag).collect();
        tags.sort_unstable();
        assert!(
            tags.is_empty() || tags == [1, 2],
            "at one instant: {tags:?}"
        );
    }
}

/// Writes drain to a rank while it is refreshed. Breaks if a read of the other rank waits for that refresh.
#[test]
fn rule_6_reads_go_on_where_no_refresh_holds_a_drain_up() {
    let mut params = queues([4, 0], 3, 0);
    let medium = &mut params.medium;
    medium.geometry.ranks = 2;
    (medium.timing.tREFI, medium.timing.tRFC) = (40_000, 10_000);
    let clock = medium.timing.clock.ps();
    let geometry = medium.geometry.clone();
    // Ranks take turns, the first at half of tREFI.
    let mut engine = Driven::new(&params);
    let early = Time::from_ps(20_100 * clock);
    engine.advance_until(early);
    let read =
        |place: u64| move |plan: &mut Plan| Stored::at(plan.read(Place(place), Step::PAST).at);
    engine.admit(
        request(Direction::Read, 4, early),
        early,
        read(geometry.columns),
    );
    let late = Time::from_ps(20_300 * clock);
    engine.advance_until(late);
    for tag in 0..3 {
        let place = Place(tag * (geometry.lines() / geometry.rows)); // rows of one bank
        let write = |plan: &mut Plan| plan.write(place, At::past(&A), Step::PAST);
        engine.admit(request(Direction::Write, tag, late), late, write);
    }
    let other = geometry.columns * geometry.banks;
    engine.admit(request(Direction::Read, 3, late), late, read(other));
    let times = engine.times(5);
    let of = |cycles: u64| cycles * clock;
    assert!(times[3] < of(21_000), "{times:?} {clock}");
    assert!(times[4] > of(30_000), "the refresh: {times:?}");
}

/// Breaks if a write holds a slot while it waits for a read, or a drain keeps that read out.
#[test]
fn rule_6_a_write_takes_no_slot_before_what_it_depends_on() {
    let mut params = params();
    let queues = &mut params.medium.queues;
    (queues.writes, queues.high_watermark, queues.low_watermark) = (1, 1, 0);
    let mut engine = Driven::new(&params);
    let read = Cell::new(Step::PAST);
    engine.write(0, |plan| {
        let late = pause(plan, 1);
        let first = plan.write(Place(0), At::new(&A, late), Step::PAST);
        read.set(plan.read(Place(1), first.done).at);
        first
    });
    engine.write(1, |plan| plan.write(Place(1), At::past(&B), Step::PAST));
    engine.read(2, |_| read.get());
    let times = engine.times(3);
    assert!(times[0] < times[2] && times[2] < times[1], "{times:?}");
}

/// Breaks if unfinished steps go unnoticed.
#[test]
#[should_panic(expected = "work is pending and nothing will happen")]
fn rule_6_pending_work_and_no_event_is_a_panic() {
    let mut engine = Driven::new(&params());
    engine.read(0, |plan| plan.promise().step());
    engine.run_to_rest();
}

/// Breaks if acceptance waits for the array, or if a gate on another write's acceptance is lost.
#[test]
fn rule_7_accepted_precedes_done_and_gates_hold() {
    let mut engine = Driven::new(&params());
    let (old, new) = (
        Cell::new(Stored::at(Step::PAST)),
        Cell::new(Stored::at(Step::PAST)),
    );
    engine.write(0, |plan| {
        let late = pause(plan, 1);
        old.set(plan.write(Place(0), At::new(&A, late), Step::PAST)); // the unmapping
        old.get()
    });
    engine.write(1, |plan| {
        new.set(plan.write(Place(1), At::past(&B), old.get().accepted)); // the reused place
        new.get()
    });
    engine.write(2, |_| Stored::at(old.get().accepted));
    engine.write(3, |_| Stored::at(new.get().accepted));
    let times = engine.times(4);
    assert_eq!((times[2], times[3]), (321_000, 321_000));
    assert!(times[2] < times[0] && times[3] < times[1]);
}

/// Breaks if `Announce` waits for the array, for one half of a group only, or is told to the wrong
/// core.
#[test]
fn rule_7_an_announced_request_is_told_when_its_group_is_accepted() {
    let mut engine = Driven::new(&params());
    let arrival = engine.now();
    let request = Request {
        core: 3,
        ..request(Direction::Write, 11, arrival)
    };
    let unit = params().units[Unit::Sha1 as usize].latency;
    engine.admit_announced(request, arrival, |plan| {
        let late = pause(plan, 2);
        let data = plan.write(Place(1), At::past(&A), Step::PAST);
        let counter = plan.write(Place(2), At::new(&B, late), Step::PAST);
        plan.group(&[data, counter]);
        Stored {
            accepted: data.accepted,
            done: plan.both(data.done, counter.done),
        }
    });
    assert!(!engine.has_acceptances());
    engine.run_to_rest();
    let told: Vec<_> = engine.acceptances().collect();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].core, told[0].tag), (3, 11));
    assert_eq!(told[0].at, unit * 2, "when the later half is there");
    let done = engine.answers().next().expect("the array's answer").at;
    assert!(done > told[0].at);
}

/// Breaks if a value found in a table is used as if it had always been there.
#[test]
fn rule_8_values_in_tables_carry_their_steps() {
    let mut engine = Driven::new(&params());
    let table = Cell::new(At::past(None));
    engine.read(0, |plan| {
        table.set(plan.read(Place(3), Step::PAST));
        table.get().at
    });
    for tag in 1..3 {
        engine.read(tag, |plan| {
            assert!(!plan.is_past(table.get().at));
            plan.both(table.get().at, Step::PAST)
        });
    }
    let times = engine.times(3);
    assert_eq!(
        times[1..],
        [times[0]; 2],
        "both uses wait, neither for the other"
    );
}

/// Breaks if a sideband goes without its line, or an older one in flight is forgotten.
#[test]
fn rule_9_a_sideband_is_atomic_with_its_line() {
    let mut engine = Driven::new(&params());
    let place = Place(5);
    engine.write(0, |plan| {
        assert_eq!(
            (
                plan.read(place, Step::PAST).value,
                plan.peek_sideband(place)
            ),
            (None, None)
        );
        let (a, past) = (At::past(&A), Step::PAST);
        plan.write_words(place, a, 0xff, Some([9; 8]), past, Queue::Data);
        let stored = plan.write(place, At::past(&ZERO_LINE), Step::PAST);
        assert_eq!(plan.peek_sideband(place), Some([9; 8]));
        assert_eq!(
            plan.peek(place),
            Some(ZERO_LINE),
            "written, and so not unknown"
        );
        stored
    });
    while engine.next_event() != Time::NEVER || engine.force_drain() {
        engine.advance();
        let image = engine.image();
        assert_eq!(image.read(place).is_some(), image.sideband(place).is_some());
    }
    assert_eq!(engine.image().sideband(place), Some([9; 8]));
}

/// Breaks if a part of the path is booked twice, not at all, or only under what it is.
#[test]
fn rule_10_the_parts_add_up_and_say_for_whom() {
    let mut engine = Driven::new(&params());
    engine.write(0, |plan| {
        let mut compare = plan.because(Cause::Compare);
        let fetched = compare
            .because(Cause::Counter)
            .read(Place(64), Step::PAST)
            .at;
        let known = compare.unit(Unit::Compare, fetched);
        drop(compare);
        plan.write(Place(0), At::new(&A, known), Step::PAST)
    });
    let times = engine.times(1);
    let ledger = engine.ledger();
    let (what, whom) = (Cause::Counter, Cause::Compare);
    let fetch = ledger.get(Purpose { what, whom }).write_latency;
    let compare = ledger.get(Purpose::new(Cause::Compare)).write_latency;
    let data = ledger.get(Purpose::new(Cause::Data)).write_latency;
    assert_eq!(compare, Time::from_ps(2_500));
    assert!(fetch > Time::ZERO && data > Time::ZERO);
    assert_eq!((fetch + compare + data).ps(), times[0]);
}

/// A write that waits for long is booked by what was long done before. Breaks if the scoreboard gives up
/// steps of a request that is not answered yet.
#[test]
fn rule_10_a_path_is_kept_until_it_is_booked() {
    let mut engine = Driven::new(&params());
    engine.write(0, |plan| {
        let fetched = plan.because(Cause::Counter).read(Place(64), Step::PAST).at;
        plan.write(Place(0), At::new(&A, fetched), Step::PAST)
    });
    for tag in 1..4000 {
        let place = Place(64 * (tag % 5 + 2));
        let handle = |plan: &mut Plan| plan.read(place, Step::PAST).at;
        engine.read(tag, handle);
        engine.settle();
    }
    let times = engine.times(4000);
    let ledger = engine.ledger();
    let counter = ledger.get(Purpose::new(Cause::Counter)).write_latency;
    let data = ledger.get(Purpose::new(Cause::Data)).write_latency;
    assert!(counter > Time::ZERO && counter < Time::from_ps(times[0] / 100));
    assert_eq!((counter + data).ps(), times[0]);
}

/// Whoever drives the engine event by event, and whoever lets it run until he must know something, see
/// the same. Breaks if `advance_until` passes its limit, a read's answer or a change of `admits`.
#[test]
fn running_until_something_must_be_known_is_advancing_event_by_event() {
    let drive = |one_by_one: bool| {
        let mut engine = Engine::new(&params());
        let mut seen = Vec::new();
        for tag in 0..600u64 {
            // Every 2 ns, or when there is room; each third line again.
            let due = Time::from_ps(tag * 2_000);
            loop {
                let next = engine.next_event();
                let limit = if engine.admits() { due } else { Time::NEVER };
                if engine.admits() && next > due.max(engine.now()) {
                    break;
                }
                if next == Time::NEVER {
                    assert!(engine.force_drain()); // queued writes, too few for a drain
                }
                match one_by_one {
                    true => engine.advance(),
                    false => engine.advance_until(limit.max(engine.now())),
                };
                let answers = engine.answers();
                seen.extend(answers.map(|a| (a.request.tag, a.admitted, a.at)));
            }
            let now = due.max(engine.now());
            let place = Place(tag / 3 * 64 * 5);
            let kind = match tag % 16 {
                0 => Direction::Read, // few, so that room comes without an answer
                _ => Direction::Write,
            };
            let request = request(kind, tag, due);
            engine.admit(request, now, |plan| match kind {
                Direction::Read => Stored::at(plan.read(place, Step::PAST).at),
                Direction::Write => plan.write(place, At::past(&A), Step::PAST),
            });
        }
        engine.run_to_rest();
        let answers = engine.answers();
        seen.extend(answers.map(|a| (a.request.tag, a.admitted, a.at)));
        seen
    };
    let (steps, runs) = (drive(true), drive(false));
    assert_eq!((steps.len(), runs.len()), (600, 600));
    let different = steps.iter().zip(&runs).find(|(step, run)| step != run);
    assert_eq!(different, None);
}

/// Breaks if an event beyond the clock's end is not recorded, or if anything goes on after it.
#[test]
fn a_run_beyond_the_clock_s_end_stops_and_says_why() {
    let mut engine = Driven::new(&params());
    let six_hours = Time::from_ps(6 * 3600 * 1_000_000_000_000);
    let request = request(Direction::Read, 0, six_hours);
    assert_eq!(engine.failure(), None);
    engine.admit(request, six_hours, |plan| {
        Stored::at(plan.read(Place(1), Step::PAST).at)
    });
    let failure = engine.failure().expect("the clock tells five hours");
    assert!(failure.problem.contains("five hours"), "{failure:?}");
    assert!(!engine.admits() && !engine.force_drain());
    assert_eq!(engine.next_event(), Time::NEVER);
    assert_eq!(engine.advance_until(Time::NEVER), None);
}
