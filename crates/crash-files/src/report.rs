//! The report as one JSON document, in the shape of the other crash tests' reports.

use sardonyx_crash_test::recording::coverage::{self, CHANGES, Coverage};
use sardonyx_crash_test::recording::source::{Frame, Sources};
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::recovery::without_numbers;
use sardonyx_crash_test::report::words::{extend, few};
use sardonyx_crash_test::verdict;
use serde_json::{Value, json};

use crate::image_choice::{OperationPart, PASSES};
use crate::model::{Class, Effect, EffectKind, Model};
use crate::operations::{Act, Operation};
use crate::places::CallSite;
use crate::search::findings::{Cause, Explored};
use crate::search::reduce::Reduced;
use crate::untested::untested;

const NAMED: usize = 2;

pub fn report(explored: &Explored) -> Value {
    let mut told = one_report(explored);
    let mut causes = told["causes"].as_array().cloned().unwrap_or_default();
    let mut errors = Vec::new();
    for (fault, run) in &explored.errors {
        let mut one = one_report(run);
        for cause in one["causes"].as_array_mut().into_iter().flatten() {
            let summary = cause["summary"].as_str().unwrap_or_default();
            let then = after_failure(fault, run);
            cause["summary"] = format!("with {fault}, {then}: {summary}").into();
            cause["kept"] = Value::Null;
            cause["fault"] = without_numbers(fault).into();
            causes.push(cause.clone());
        }
        errors.push(json!({
            "fault": fault, "ended": one["ended"], "images": one["images"], "verdict": one["verdict"],
            "unsaid": one["unsaid"], "violations": one["violations"], "finished": one["finished"],
        }));
    }
    let violations = |run: &Explored| run.found.violations;
    let more: u64 = explored.errors.iter().map(|(_, run)| violations(run)).sum();
    told["violations"] = (violations(explored) + more).into();
    let ending = verdict::told(violations(explored) + more > 0, &explored.found.doubts);
    extend(&mut told, ending);
    told["coverage"] = json!(coverage(explored));
    told["untested"] = json!(untested(explored));
    told["causes"] = causes.into();
    told["errors"] = errors.into();
    told
}

/// The places that change or sync files and never ran, whether or not a call failed.
fn coverage(explored: &Explored) -> Option<Coverage> {
    let mut sources = Sources::new(&explored.recording.places);
    coverage::coverage(&explored.recording.places, &mut sources, &CHANGES)
}

/// What a program did after a call of it had failed.
fn after_failure(fault: &str, explored: &Explored) -> String {
    let recording = &explored.recording;
    let later = recording.operations.iter();
    let later: Vec<&Operation> = later.skip(recording.failed_at.unwrap_or(0)).collect();
    let call = fault.split('(').next().unwrap_or_default();
    let path = later
        .first()
        .filter(|one| matches!(one.act, Act::Fail { .. }));
    let again = |one: &&&Operation| {
        let same = |failed: &&Operation| failed.path == one.path;
        one.syncs() && path.is_some_and(same) && one.shown.starts_with(call)
    };
    let promised = later.iter().any(|one| one.acknowledges());
    if later.iter().any(|one| again(&one)) {
        return "which it tried again, though a failed sync's data are lost".to_owned();
    }
    match recording.ended {
        Ended::Status(0) => "whose result it ignored".to_owned(),
        _ if promised => "after which it still promised something".to_owned(),
        ended => format!("after which it gave up ({ended})"),
    }
}

fn one_report(explored: &Explored) -> Value {
    let (recording, found) = (&explored.recording, &explored.found);
    let operations = &recording.operations;
    let count = |what: fn(&Operation) -> bool| operations.iter().filter(|o| what(o)).count();
    let left: Vec<&str> = PASSES.iter().skip(found.passes).copied().collect();
    let mut causes: Vec<&Cause> = found.causes.iter().collect();
    causes.sort_by_key(|cause| (cause.reduced.in_order, std::cmp::Reverse(cause.violations)));
    let ended = match recording.ended {
        Ended::TimedOut => "signal 9, by --record-limit".to_owned(),
        ended => ended.to_string(),
    };
    let mut told = json!({
        "program": recording.commands.first(),
        "ended": ended,
        "program_said": explored.said,
        "recorded_s": recording.seconds,
        "operations": operations.len(),
        "syncs": count(Operation::syncs),
        "acknowledgements": count(Operation::acknowledges),
        "processes": recording.commands.len(),
        "effects": explored.model.effects.len(),
        "platform": explored.platform.name,
        "notes": recording.notes.iter().chain(&found.notes).collect::<Vec<_>>(),
        "cuts": operations.len() + 1,
        "cuts_tried": found.cuts.len(),
        "start": found.start,
        "images": found.images,
        "images_left_out": found.left_out,
        "refused": found.refused,
        "flaky": found.flaky,
        "recoveries": found.recoveries,
        "recoveries_per_second": found.recoveries as f64 / found.seconds.max(1e-3),
        "seconds": found.seconds,
        "undisturbed_s": found.alone,
        "passes_left": left,
        "finished": found.finished,
        "violations": found.violations,
        "unreduced": found.unreduced,
        "first_violation_s": found.causes.iter().map(|cause| cause.seconds).min_by(f64::total_cmp),
        "first_violation_images": found.first_violation,
        "rests_on": found.rests_on,
        "causes": causes.iter().map(|cause| shown(explored, cause)).collect::<Vec<_>>(),
    });
    extend(
        &mut told,
        verdict::told(found.violations > 0, &found.doubts),
    );
    told
}

/// The operations one by one, with what each makes sure.
pub fn list(explored: &Explored) -> Value {
    let operations = explored.recording.operations.iter().enumerate();
    let one = |(number, operation): (usize, &Operation)| {
        json!({
            "number": number,
            "operation": operation.shown,
            "place": explored.places[number].text,
            "command": explored.recording.commands.get(operation.command as usize),
            "thread": operation.thread,
            "effects": explored.model.of_operation[number].len(),
            "makes_sure": explored.model.made_sure[number].len(),
        })
    };
    operations.map(one).collect()
}

fn shown(explored: &Explored, cause: &Cause) -> Value {
    let reduced = &cause.reduced;
    let cut = reduced.image.cut as usize;
    let until = match reduced
        .early
        .iter()
        .map(|(operation, _)| *operation as usize)
        .max()
    {
        Some(early) => early,
        None => promise(explored, reduced).unwrap_or(cut),
    };
    let parts = |parts: &[OperationPart], late| -> Vec<Value> {
        parts
            .iter()
            .map(|part| one_part(explored, *part, late, until))
            .collect()
    };
    let number = explored
        .found
        .causes
        .iter()
        .position(|other| std::ptr::eq(other, cause));
    let mut value = json!({
        "summary": summary(explored, cause),
        "early": parts(&reduced.early, false),
        "late": parts(&reduced.late, !reduced.in_order),
        "in_order": reduced.in_order,
        "violations": cause.violations,
        "seconds": cause.seconds,
        "ended": reduced.ended.to_string(),
        "said": reduced.said,
        "kept": number.map_or(0, |number| number + 1),
        "cut": {
            "number": cut,
            "after": cut.checked_sub(1).map(|at| named(explored, at)),
            "acknowledged": explored.acked(cut),
        },
    });
    if reduced.early.is_empty()
        && let Some(promise) = promise(explored, reduced)
    {
        value["promise"] = named(explored, promise).into();
    }
    value
}

impl Explored {
    fn acked(&self, cut: usize) -> usize {
        let before = &self.recording.operations[..cut];
        before
            .iter()
            .filter(|operation| operation.acknowledges())
            .count()
    }
}

/// The last acknowledgement before the cut that spoke of what was missing.
fn promise(explored: &Explored, reduced: &Reduced) -> Option<usize> {
    let from = reduced
        .late
        .first()
        .map_or(0, |(operation, _)| *operation as usize);
    let until = reduced.image.cut as usize;
    let operations = explored
        .recording
        .operations
        .iter()
        .enumerate()
        .take(until)
        .skip(from);
    operations
        .filter(|(_, o)| o.acknowledges())
        .map(|(at, _)| at)
        .next()
}

/// `rename(a.tmp, a) at app.c:21`
fn named(explored: &Explored, operation: usize) -> String {
    let place = &explored.places[operation].text;
    format!(
        "{} at {place}",
        explored.recording.operations[operation].shown
    )
}

fn one_part(
    explored: &Explored,
    (operation, class): OperationPart,
    late: bool,
    until: usize,
) -> Value {
    let at = operation as usize;
    let place = &explored.places[at];
    let kept = &explored.recording.operations[at];
    json!({
        "place": place.text,
        "key": place.key,
        "frame": place.frame,
        "operation": kept.shown,
        "number": at,
        "path": kept.path,
        "class": class,
        "command": explored.recording.commands.get(kept.command as usize),
        "thread": kept.thread,
        "stack": place.stack.iter().map(|frame| call(frame, true)).collect::<Vec<_>>(),
        "calls": folded(place),
        "fate": late.then(|| fate(explored, at, class, until)),
    })
}

/// A frame as people read it; without its templates and arguments if it is not wanted whole.
fn call(frame: &Frame, whole: bool) -> String {
    let function = frame.function.as_deref().unwrap_or("?");
    match whole {
        true => format!("{function} {}", frame.place()),
        false => format!("{} {}", bare(function), frame.place()),
    }
}

/// A function's name without its path, templates and arguments.
fn bare(function: &str) -> String {
    let of_trait = function
        .strip_prefix('<')
        .and_then(|rest| rest.split_once(" as "));
    let function = match of_trait.and_then(|(kind, rest)| Some((kind, rest.rsplit_once(">::")?.1)))
    {
        Some((kind, method)) => format!("{kind}::{method}"),
        None => function.to_owned(),
    };
    let mut depth = 0;
    let mut name = String::new();
    for letter in function.replace("(anonymous namespace)", "{}").chars() {
        match letter {
            '<' if !name.is_empty() => depth += 1,
            '>' if depth > 0 => depth -= 1,
            '(' if depth == 0 && !name.is_empty() && !name.ends_with('.') => break,
            _ if depth == 0 => name.push(letter),
            _ => {}
        }
    }
    let name = name.rsplit('/').next().unwrap_or_default();
    let parts: Vec<&str> = name.split("::").filter(|part| !part.is_empty()).collect();
    let last = &parts[parts.len().saturating_sub(2)..];
    last.join("::")
}

/// The calls from the user's own line on; the frames of libraries between are counted.
fn folded(place: &CallSite) -> Vec<String> {
    let named = place.frame.as_ref();
    let from = place.stack.iter().position(|frame| Some(frame) == named);
    let mut told = Vec::new();
    let mut foreign = 0;
    for frame in place.stack.iter().skip(from.unwrap_or(place.stack.len())) {
        if !frame.own() && Some(frame) != named {
            foreign += 1;
            continue;
        }
        if foreign > 0 {
            told.push(format!("({foreign} of libraries)"));
        }
        foreign = 0;
        told.push(call(frame, false));
    }
    told
}

fn part(explored: &Explored, (operation, class): OperationPart) -> String {
    let at = operation as usize;
    let named = named(explored, at);
    match (class, &explored.recording.operations[at].act) {
        (Class::Data, Act::Resize { .. }) => format!("the zeros after the end that {named} sets"),
        (Class::Data, _) => format!("the data of {named}"),
        (Class::Size, Act::Write { .. }) => format!("the file's size after {named}"),
        _ => named,
    }
}

fn summary(explored: &Explored, cause: &Cause) -> String {
    let reduced = &cause.reduced;
    let some = |parts: &[OperationPart]| {
        let names = parts.iter().map(|one| part(explored, *one));
        few(names, NAMED, " and ").0
    };
    let in_part = |part: &&OperationPart| reduced.late.contains(part);
    let (torn, early): (Vec<&OperationPart>, Vec<&OperationPart>) =
        reduced.early.iter().partition(in_part);
    let early: Vec<OperationPart> = early.into_iter().copied().collect();
    let late: Vec<OperationPart> = reduced
        .late
        .iter()
        .filter(|part| !torn.contains(part))
        .copied()
        .collect();
    if let [torn, ..] = torn[..] {
        let rest = match (early.is_empty(), late.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!(", and {} had", some(&early)),
            (true, false) => format!(", and {} had not", some(&late)),
            _ => format!(", {} had, and {} had not", some(&early), some(&late)),
        };
        let torn = part(explored, *torn);
        return format!("the recovery fails where {torn} had persisted only in part{rest}");
    }
    let (early, late) = (some(&early), some(&late));
    match (reduced.in_order, early.is_empty(), late.is_empty()) {
        (true, _, true) => format!(
            "the recovery fails even if all that the program did is on the disk; {early} was last"
        ),
        (true, ..) => format!(
            "the recovery fails even if all that the program had done is on the disk, between {early} and {late}"
        ),
        (_, true, _) => match promise(explored, reduced) {
            Some(at) => format!(
                "{late} had not persisted when the program acknowledged it by {}",
                named(explored, at)
            ),
            None => format!("the recovery fails where {late} had not persisted"),
        },
        _ => format!("the recovery fails where {early} had persisted and {late} had not"),
    }
}

/// Tells which sync is missing between an operation and another.
fn fate(explored: &Explored, at: usize, class: Class, until: usize) -> String {
    let operations = &explored.recording.operations;
    let operation = &operations[at];
    let until = until.max(at);
    let (inode, what) = match class {
        Class::Names => {
            let inode = folder(&explored.model, at, until);
            (
                inode,
                inode.map_or_else(String::new, |inode| folder_name(explored, inode)),
            )
        }
        _ => (file(&operation.act), operation.path.clone()),
    };
    let of = |number: &usize| match operations[*number].act {
        Act::Sync { inode: of, .. } | Act::Fail { inode: of } => Some(of) == inode,
        _ => false,
    };
    let hints = (at..until)
        .rev()
        .find(|number| match operations[*number].act {
            Act::Hint { inode: of } => Some(of) == inode,
            _ => false,
        });
    let hinted = hints.map_or_else(String::new, |number| {
        format!("{} promises nothing; ", named(explored, number))
    });
    match (at..until).find(of) {
        Some(number) => match operations[number].act {
            Act::Fail { .. } => format!("{} failed", named(explored, number)),
            _ => format!("{} does not reach it", named(explored, number)),
        },
        None if (at..operations.len()).any(|number| of(&number)) => {
            format!("{hinted}no fsync of {what} between")
        }
        None => format!("{hinted}no fsync of {what} after it"),
    }
}

/// The folder of the first name of an operation that is not sure until another.
fn folder(model: &Model, at: usize, until: usize) -> Option<u32> {
    let effects = model.of_operation[at].clone();
    let mut effects = effects.map(|number| &model.effects[number as usize]);
    let open = |effect: &&Effect| effect.sure.is_none_or(|sure| sure as usize >= until);
    match &effects.find(open)?.what {
        EffectKind::Names(names) => names.last().map(|(name, _)| name.folder),
        _ => None,
    }
}

fn folder_name(explored: &Explored, folder: u32) -> String {
    let operations = &explored.recording.operations;
    let made = operations
        .iter()
        .rev()
        .find(|operation| match operation.act {
            Act::Create { inode, .. } | Act::Rename { inode, .. } => inode == folder,
            _ => false,
        });
    match made {
        Some(operation) => format!("the folder {}", operation.path),
        None => match explored.recording.start.path(folder).as_deref() {
            Some("") | None => "the folder itself".to_owned(),
            Some(path) => format!("the folder {path}"),
        },
    }
}

fn file(act: &Act) -> Option<u32> {
    match act {
        Act::Write { inode, .. } | Act::Resize { inode, .. } => Some(*inode),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn a_function_is_named_without_its_templates_arguments_and_path() {
        assert_eq!(bare("main"), "main");
        assert_eq!(
            bare("leveldb::DBImpl::Write(leveldb::WriteOptions const&)"),
            "DBImpl::Write"
        );
        assert_eq!(bare("std::map<int, std::pair<a, b>>::at(int)"), "map::at");
        assert_eq!(bare("<app::Log as app::Store>::put"), "Log::put");
        assert_eq!(bare("go.etcd.io/bbolt.(*Tx).Commit"), "bbolt.(*Tx).Commit");
        assert_eq!(bare("(anonymous namespace)::f(int)"), "{}::f");
        assert_eq!(bare("<module>"), "<module>");
        assert_eq!(bare("operator<"), "operator");
    }
}
