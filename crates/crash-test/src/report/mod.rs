//! The report for people and programs: violations grouped by cause, causes as lines of code.

pub mod fate;
pub mod store;
pub mod suspects;
pub mod words;

use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use crate::images::{FIRST, Image, ImagePass, Over, PASSES};
use crate::question::Question;
use crate::recording::coverage::coverage;
use crate::recording::persistence::{Course, Cut};
use crate::recording::pools;
use crate::recording::source::{Frame, Sources};
use crate::recording::{Act, LINE, NOWHERE, Recording};
use crate::recovery::ending::Ended;
use crate::report::store::{Store, own_place};
use crate::report::suspects::{Cause, causes, suspects, unflushed};
use crate::report::words::{extend, few};
use crate::search::explore::Explored;
use crate::search::findings::{Findings, NoStart};
use crate::search::reduce::Reduced;
use crate::search::start::of_refusal;
use crate::verdict::{self, Doubt, Reason};

/// The place at which a thread is held back, in another order of threads.
fn held(recording: &Recording, sources: &mut Option<Sources<'_>>) -> Option<String> {
    Some(own_place(recording, sources, recording.held?))
}

/// A sentence names at most this many stores.
const NAMED: usize = 3;

fn listed(stores: &[Store]) -> String {
    let places = stores.iter().map(|store| match &store.through {
        Some(function) => format!("{} (in {function})", store.place),
        None => store.place.clone(),
    });
    match few(places, NAMED, ", ") {
        (told, 0 | 1) => format!("the store at {told}"),
        (told, _) => format!("the stores at {told}"),
    }
}

fn sentence(early: &[Store], late: &[Store], ended: Ended) -> String {
    let how = match ended {
        Ended::Status(_) => "the recovery fails",
        Ended::NoPrefix => "the recovery finds what no beginning of the operations leaves",
        Ended::Signal(_) => "the recovery crashes",
        Ended::TimedOut => "the recovery does not end",
    };
    match (early.is_empty(), late.is_empty()) {
        (false, false) => format!(
            "{how} where {} had persisted and {} had not",
            listed(early),
            listed(late)
        ),
        (false, true) => format!("{how} where {} had persisted", listed(early)),
        (true, false) => format!("{how} where {} had not persisted", listed(late)),
        (true, true) => format!("{how}, and no few lines decide it"),
    }
}

/// A timeline shows this many events before a cut, and this many after it.
const BEFORE: usize = 48;
const AFTER: usize = 16;

/// The name of an act in a timeline, with its unit; `None` if timelines leave it out.
fn shown_as(act: Act, on_disk: bool) -> Option<(&'static str, Option<u32>)> {
    Some(match act {
        Act::Store {
            slot, past: false, ..
        } => ("store", Some(slot)),
        Act::Store { slot, .. } => ("store past the caches", Some(slot)),
        Act::Flush {
            slot,
            ordered: false,
        } => (if on_disk { "sync" } else { "flush" }, Some(slot)),
        Act::Flush { slot, .. } => ("clflush", Some(slot)),
        Act::FlushClean => ("flush", None),
        Act::Foreign => return None,
        Act::Fence if on_disk => return None, // a sync that has been told
        Act::Fence => ("fence", None),
    })
}

/// The neighbourhood of a cut: events with their lines and places, and cuts with the number of images that failed
/// there.
fn timeline(
    explored: &Explored,
    sources: &mut Option<Sources<'_>>,
    course: &Course,
    reduced: &Reduced,
) -> Vec<Value> {
    let recording = &explored.shared.recording;
    let on_disk = recording.platform.is_disk();
    let at = course.cuts[reduced.image.cut as usize].event as usize;
    let decides = |overs: &[Over]| -> Vec<u32> {
        let event = |over: &Over| {
            recording.lines[over.slot as usize]
                .versions
                .event(over.version)
        };
        overs.iter().map(event).collect()
    };
    let (early, late) = (decides(&reduced.early), decides(&reduced.late));
    let last = late
        .iter()
        .chain(&early)
        .max()
        .map_or(at, |&event| event as usize);
    let range = at.saturating_sub(BEFORE)..(at.max(last) + AFTER).min(recording.events.len());
    let mut shown = Vec::new();
    let mut cuts = course
        .cuts
        .partition_point(|cut| (cut.event as usize) < range.start);
    for number in range {
        let event = recording.event(number as u32);
        while course
            .cuts
            .get(cuts)
            .is_some_and(|cut| cut.event as usize == number)
        {
            let (tried, failed) = (explored.found.by_event.get(&(number as u32)))
                .copied()
                .unwrap_or_default();
            shown.push(json!({
                "what": "cut", "cut": cuts, "tried": tried, "failed": failed, "here": cuts as u32 == reduced.image.cut,
            }));
            cuts += 1;
        }
        let Some((what, slot)) = shown_as(event.act, on_disk) else {
            continue;
        };
        let stack = match sources {
            Some(sources) if event.site != NOWHERE => sources.stack(event.site),
            _ => Vec::new(),
        };
        let place = stack
            .iter()
            .find(|frame| frame.own())
            .or(stack.first())
            .map(Frame::place);
        shown.push(json!({
            "what": what, "pool": slot.and_then(|slot| recording.pool_of(slot)),
            "offset": slot.map(|slot| u64::from(recording.lines[slot as usize].line) * LINE as u64),
            "place": place, "function": stack.first().and_then(|frame| frame.function.clone()),
            "thread": event.thread, "row": event.row,
            "role": if early.contains(&(number as u32)) { "early" } else if late.contains(&(number as u32)) { "late" } else { "" },
        }));
    }
    shown
}

fn cut(recording: &Recording, course: &Course, image: &Image) -> Value {
    let cut = &course.cuts[image.cut as usize];
    let (row, event) = (recording.row(cut.event), cut.event as usize);
    let site = (event < recording.events.len()).then(|| recording.events.site(event));
    json!({
        "number": image.cut, "row": row, "pending_lines": cut.pending, "mark": recording.mark(row),
        "acknowledged": recording.acked(row), "place": site,
    })
}

fn told(explored: &Explored, sources: &mut Option<Sources<'_>>, cause: &Cause) -> Value {
    let recording = &explored.shared.recording;
    let violation = &explored.found.violations[cause.number];
    let round = &explored.found.rounds[violation.round];
    let made = u64::from(round.course.cuts[cause.reduced.image.cut as usize].event);
    json!({
        "assumed": round.assumed, "creation": made < explored.shared.made.load(Ordering::Relaxed),
        "summary": sentence(&cause.early, &cause.late, violation.ended),
        "early": cause.early, "late": cause.late,
        "violations": cause.count, "round": cause.round, "kept": cause.kept,
        "found_after_s": cause.first,
        "kind": in_units(recording, violation.image.kind.name()),
        "image": cause.reduced.image.name(recording),
        "passes": cause.reduced.passes.as_ref().map(|image| image.name(recording)),
        "found_image": violation.image.name(recording),
        "cut": cut(recording, &round.course, &cause.reduced.image),
        "ended": violation.ended.to_string(),
        "said": violation.said,
        "timeline": timeline(explored, sources, &round.course, &cause.reduced),
    })
}

struct CutCounts {
    cuts: usize,
    /// The number of cuts from the first to be tried on.
    from_start: usize,
    tried: usize,
    moments: usize,
    moments_tried: usize,
}

fn counts(course: &Course, found: &Findings, scope: Option<(u32, u32)>) -> CutCounts {
    // In another order of threads only the events of that order are cut.
    let first = course
        .cuts
        .partition_point(|cut| scope.is_some_and(|(from, _)| cut.event < from));
    let end = course
        .cuts
        .partition_point(|cut| scope.is_none_or(|(_, end)| cut.event <= end));
    let cuts = end - first;
    let from = found.start.map_or(end, |start| (start as usize).min(end));
    let kinds = |cuts: &mut dyn Iterator<Item = &Cut>| {
        cuts.map(|cut| cut.signature)
            .collect::<FxHashSet<_>>()
            .len()
    };
    let tried = found.cuts.iter().map(|&cut| cut as usize);
    let mut tried = tried
        .filter(|&cut| cut >= from)
        .map(|cut| &course.cuts[cut]);
    CutCounts {
        cuts,
        from_start: end - from,
        tried: found.cuts.len(),
        moments: kinds(&mut course.cuts[from..end].iter()),
        moments_tried: kinds(&mut tried),
    }
}

/// The reasons why this search says nothing if it finds no violation.
fn doubts(
    question: &Question,
    recording: &Recording,
    counts: &CutCounts,
    found: &Findings,
) -> Vec<Doubt> {
    let mut doubts = found.doubts.clone();
    if !found.has_looked() {
        let why = not_looked(question, recording, counts, found);
        doubts.push(Reason::Budget.because(why));
    }
    doubts
}

/// Explains a search whose budget ended too early: what was tried before, and what to do.
fn not_looked(
    question: &Question,
    recording: &Recording,
    counts: &CutCounts,
    found: &Findings,
) -> String {
    let (cuts, budget) = (counts.cuts, question.options.budget);
    match &found.no_start {
        Some(NoStart::Undisturbed) => format!(
            "0 of {cuts} cuts tried: on the pool as the program left it the recovery had not ended when --budget ({budget} s) \
             did; give more, or a recovery that takes less"
        ),
        Some(NoStart::Search { tried, refused }) => format!(
            "0 of {cuts} cuts tried: --budget ({budget} s) ended while the first was looked for at which the recovery copes \
             with what was fenced; {tried} were looked at{}; give more, or say with --start from where on the pool is made",
            refused.as_ref().map(of_refusal).unwrap_or_default()
        ),
        None => format!(
            "{} of {cuts} cuts tried, {} of {} kinds of moments: --budget ({budget} s) ended before each had been tried with {}; \
             give more",
            counts.tried,
            counts.moments_tried,
            counts.moments,
            names(recording, &PASSES[1..FIRST]).join(" and with "),
        ),
    }
}

/// The report: for a replay how the recovery ended, else all that the exploration found.
pub fn report(question: &Question, explored: &Explored) -> Value {
    let recording = &explored.shared.recording;
    let mut sources =
        (question.source && !recording.sites.is_empty()).then(|| Sources::new(recording));
    let found = &explored.found;
    if let Some((image, ended, said)) = &explored.replayed {
        return json!({
            "replayed": image.name(recording), "cut": cut(recording, &explored.shared.course, image), "ended": ended.to_string(), "said": said,
            "fails": explored.shared.trial.recovery.fails(*ended),
        });
    }
    let causes = causes(explored, &mut sources);
    let unflushed = match found.violations.is_empty() {
        true => Vec::new(),
        false => unflushed(recording, &mut sources),
    };
    let suspects: Vec<Value> = suspects(&causes, &unflushed)
        .into_iter()
        .map(|(place, (score, suspect))| {
            json!({
                "place": place, "score": score, "frame": suspect.frame, "through": suspect.through,
                "role": if suspect.late { "late" } else { "early" },
            })
        })
        .collect();
    let causes: Vec<Value> = causes
        .iter()
        .map(|cause| told(explored, &mut sources, cause))
        .collect();
    let mut report = json!({
        "recording": question.recording, "pool": recording.pools[0].path, "pools": pools(recording), "program": recording.program,
        "recover": question.recover, "platform": recording.platform.name(), "unit_bytes": recording.platform.unit(),
        "tear": match recording.platform.is_disk() {
            true => format!("{}s", recording.platform.of_unit()),
            false => (if question.tear { "words" } else { "lines" }).to_owned(),
        },
        "has_places": !recording.sites.is_empty(),
        "oracle": explored.shared.trial.recovery.oracle.as_ref().map(|oracle| oracle.told()),
        "pool_bytes": recording.bytes(), "lines_stored_to": recording.lines.len(),
        "threads": recording.threads(), "processes": recording.processes, "held": held(recording, &mut sources),
        "budget_s": question.options.budget, "loading_s": found.loading, "seconds": found.seconds, "looking_s": found.looking,
        "recoveries_per_second": found.recoveries as f64 / found.seconds,
        "undisturbed_s": found.undisturbed, "time_limit_s": found.time_limit, "start_s": found.start_seconds,
        "violations": found.violations.len(),
        "first_violation_s": found.violations.iter().map(|v| v.seconds).min_by(f64::total_cmp),
        "causes": causes, "suspects": suspects, "notes": recording.notes,
        "coverage": (sources.as_mut().filter(|_| recording.scope.is_none()))
            .and_then(|sources| coverage(recording, sources, &[])),
    });
    for more in tried(question, explored) {
        extend(&mut report, more);
    }
    report
}

/// The pools, each with its stores, and the other files that the program stored to.
fn pools(recording: &Recording) -> Vec<Value> {
    let mut lines = vec![0; recording.pools.len()];
    for slot in &recording.lines {
        lines[usize::from(slot.file)] += 1;
    }
    let places = pools::places(&recording.pools).into_iter();
    let all = (recording.pools.iter()).zip(places).zip(lines);
    all.map(|((pool, place), lines): (_, u64)| {
        json!({"path": pool.path, "name": place, "bytes": pool.bytes, "lines_stored_to": lines})
    })
    .collect()
}

/// How the search ended, and how much it tried.
fn tried(question: &Question, explored: &Explored) -> [Value; 2] {
    let recording = &explored.shared.recording;
    let found = &explored.found;
    let course = found
        .rounds
        .first()
        .map_or(&explored.shared.course, |round| &round.course);
    let counts = counts(course, found, recording.scope);
    let start = found.start.map(|number| {
        let row = recording.row(course.cuts[number as usize].event);
        json!({"cut": number, "row": row, "mark": recording.mark(row)})
    });
    let kinds: Vec<Value> = found
        .kinds
        .iter()
        .map(|(kind, count)| json!({"kind": in_units(recording, kind.name()), "images": count}))
        .collect();
    let doubts = doubts(question, recording, &counts, found);
    let ending = verdict::told(!found.violations.is_empty(), &doubts);
    let tried = json!({
        "rests_on": recording.rests_on,
        "cuts": counts.cuts, "cuts_from_start": counts.from_start, "cuts_tried": counts.tried,
        "moments": counts.moments, "moments_tried": counts.moments_tried,
        "start": start, "images": found.images, "recoveries": found.recoveries, "kinds": kinds,
        "finished": found.finished, "not_cut": recording.not_cut(), "unreduced": found.unreduced,
        "first_pass": names(recording, &PASSES[..FIRST]),
        "passes": names(recording, &PASSES[..found.passes]),
        "passes_left": names(recording, &PASSES[found.passes..]),
        "never_sure": found.never_sure, "repaired": repaired(explored), "rounds": found.rounds.len(), "explained": found.explained,
        "assumed": found.rounds.last().map(|round| &round.assumed),
        "creation": {"images": found.creation, "finished": found.creation_passes >= FIRST},
    });
    [ending, tried]
}

/// The images that a recovery repaired, by cut.
fn repaired(explored: &Explored) -> Vec<String> {
    let mut images: Vec<&Image> = explored.found.repaired.values().collect();
    images.sort_unstable_by(|a, b| (a.cut, &a.over).cmp(&(b.cut, &b.over)));
    let names = images
        .iter()
        .map(|image| image.name(&explored.shared.recording));
    names.collect()
}

fn names(recording: &Recording, passes: &[ImagePass]) -> Vec<String> {
    let names = passes.iter().map(|pass| in_units(recording, pass.name));
    names.collect()
}

/// The name of a kind of images, with the platform's units and the calls that make sure there.
fn in_units(recording: &Recording, name: &str) -> String {
    let platform = recording.platform;
    match platform.is_disk() {
        true => name
            .replace("line", platform.of_unit())
            .replace("fenced", "synced")
            .replace("flushed", "synced"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{Kind, WHOLE};
    use crate::report::suspects::weight;
    use crate::search::findings::Violation;
    use crate::search::findings::{Findings, Round};
    use crate::search::reduce::Reduced;
    use crate::testing::Do::{Clwb, Fence, Store as Stores};
    use crate::testing::{question, shared};

    fn at(place: &str, through: Option<&str>) -> Store {
        let frame = Frame {
            file: Some(format!("/src/{place}.c")),
            line: Some(7),
            function: Some("f".to_owned()),
            module: "program".to_owned(),
            inlined: false,
            apart: false,
        };
        Store {
            place: frame.place(),
            frame: Some(frame.clone()),
            through: through.map(str::to_owned),
            stack: vec![frame],
            offset: 0,
            pool: None,
            bytes: 8,
            row: 0,
            thread: 0,
            fate: None,
        }
    }

    #[test]
    fn a_sentence_names_each_place_once_and_three_at_most() {
        let stores = ["a", "a", "b", "c", "d", "e"].map(|place| at(place, None));
        let said = listed(&stores);
        assert_eq!(said, "the stores at a.c:7, b.c:7, c.c:7 and 2 more");
        assert_eq!(listed(&stores[..2]), "the store at a.c:7");
        let through = [at("a", Some("memcpy"))];
        assert_eq!(listed(&through), "the store at a.c:7 (in memcpy)");
    }

    #[test]
    fn a_sentence_says_what_was_early_and_what_was_late() {
        let (early, late) = ([at("flag", None)], [at("data", None)]);
        let ended = Ended::Status(1);
        let both = sentence(&early, &late, ended);
        assert_eq!(
            both,
            "the recovery fails where the store at flag.c:7 had persisted and the store at data.c:7 had not"
        );
        let late = sentence(&[], &late, Ended::TimedOut);
        assert_eq!(
            late,
            "the recovery does not end where the store at data.c:7 had not persisted"
        );
        let none = sentence(&[], &[], Ended::Signal(11));
        assert_eq!(none, "the recovery crashes, and no few lines decide it");
    }

    #[test]
    fn a_store_of_ones_own_is_suspected_most_and_a_late_one_more_than_an_early_one() {
        let (own, library) = (at("a", None), at("a", Some("memcpy")));
        let mut nowhere = own.clone();
        nowhere.frame = None;
        let weights = [&own, &library, &nowhere].map(|store| weight(store, 1, false));
        assert!(weights[0] > weights[1] && weights[1] > weights[2]);
        assert!(weight(&own, 1, true) > weights[0]);
        assert_eq!(weight(&own, 4, false), weights[0] / 4.0);
    }

    #[test]
    fn suspects_are_ranked_over_all_causes() {
        let reduced = Reduced {
            image: Image::fenced(0),
            early: Vec::new(),
            late: Vec::new(),
            passes: None,
            unexplained: false,
            finished: true,
            explained: false,
        };
        let cause = |early: Vec<Store>, late: Vec<Store>, count| Cause {
            early,
            late,
            number: 0,
            reduced: reduced.clone(),
            count,
            first: 0.0,
            kept: 1,
            round: 0,
        };
        let causes = [
            cause(vec![at("a", None), at("a", None)], vec![at("b", None)], 1),
            cause(vec![], vec![at("b", None)], 20),
            cause(vec![at("c", Some("memcpy"))], vec![], 1),
        ];
        let ranked = suspects(&causes, &[]);
        let places: Vec<&str> = ranked.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["b.c:7", "a.c:7", "c.c:7"]);
        assert_eq!(ranked[1].1.0, 1.0, "two stores at one place are one");
    }

    /// Two violations that come down to one store are one cause, and similar violations are counted with them.
    #[test]
    fn violations_are_grouped_by_what_they_come_down_to() {
        let program = [
            (0, Stores(5, 1)),
            (0, Stores(6, 1)),
            (0, Clwb(5)),
            (0, Fence),
            (0, Stores(5, 2)),
            (0, Clwb(5)),
            (0, Fence),
        ];
        let shared = shared(&program, &["true"]);
        let over = |slot, version| Over {
            slot,
            version,
            words: WHOLE,
        };
        let violation = |cut, kind, seconds| Violation {
            image: Image {
                cut,
                over: vec![over(0, 1)],
                kind,
            },
            ended: Ended::Status(1),
            said: "no".to_owned(),
            seconds,
            round: 0,
        };
        let reduced = |cut, early: Vec<Over>, late: Vec<Over>| Reduced {
            image: Image::fenced(cut),
            unexplained: early.is_empty() && late.is_empty(),
            early,
            late,
            passes: None,
            finished: true,
            explained: false,
        };
        let found = Findings {
            violations: vec![
                violation(0, Kind::Early, 4.0),
                violation(0, Kind::Early, 3.0),
                violation(0, Kind::Late, 2.0),
                violation(1, Kind::Pair, 1.0),
            ],
            reduced: vec![
                (0, reduced(0, vec![over(0, 1)], vec![])),
                (2, reduced(0, vec![over(0, 1)], vec![])),
                (3, reduced(1, vec![], vec![])),
            ],
            seconds: 1.0,
            rounds: vec![Round {
                course: shared.course.clone(),
                assumed: Vec::new(),
            }],
            ..Findings::default()
        };
        let explored = Explored {
            shared,
            found,
            replayed: None,
        };
        let report = report(&question(), &explored);
        let causes = report["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 2);
        assert_eq!(
            (&causes[0]["violations"], &causes[0]["found_after_s"]),
            (&json!(3), &json!(2.0))
        );
        assert_eq!(causes[0]["early"][0]["place"], "pool offset 0x140");
        assert_eq!(causes[0]["early"][0]["bytes"], 64);
        let unexplained = causes[1]["summary"].as_str().unwrap();
        assert!(
            unexplained.contains("no few lines decide it"),
            "{unexplained}"
        );
        assert_eq!(report["suspects"][0]["place"], "pool offset 0x140");
        assert_eq!(
            (&report["violations"], &report["fails"]),
            (&json!(4), &json!(true))
        );
        let shown = causes[0]["timeline"].as_array().unwrap();
        let what: Vec<&str> = shown
            .iter()
            .map(|one| one["what"].as_str().unwrap())
            .collect();
        assert_eq!(
            what,
            [
                "store", "store", "flush", "cut", "fence", "store", "flush", "cut", "fence"
            ]
        );
        assert_eq!(
            (&shown[0]["role"], &shown[1]["role"]),
            (&json!("early"), &json!(""))
        );
        assert_eq!(
            (&shown[3]["here"], &shown[7]["here"]),
            (&json!(true), &json!(false))
        );
    }
}
