//! The verdict of a crash test, and the one list of reasons why an answer without a violation says nothing.
//!
//! Tests of recordings and of programs that write files share it; `docs/crash-test/real-programs.md` shows the list.

use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Violation,
    NoViolation,
    /// No image failed, and there is a doubt.
    Unsaid,
}

impl Verdict {
    pub fn new(violates: bool, doubts: &[Doubt]) -> Verdict {
        match (violates, doubts.is_empty()) {
            (true, _) => Verdict::Violation,
            (false, true) => Verdict::NoViolation,
            (false, false) => Verdict::Unsaid,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Verdict::Violation => "violation",
            Verdict::NoViolation => "no violation",
            Verdict::Unsaid => "nothing can be said",
        }
    }
}

/// What an answer rests on if the recovery is given `{acks}` and does not look at it.
pub const ACKS_UNREAD: &str = "the recovery does not open {acks}: what the program promised decides nothing here; have the check look for \
     it";

/// A reason why finding no violation says nothing. Of several the first one is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    ProgramFailed,
    RecordingEnded,
    Unexplained,
    NothingChanged,
    FailsUndisturbed,
    OpensNothing,
    NothingPrinted,
    NeverSure,
    Budget,
    Flaky,
}

impl Reason {
    pub const ALL: [Reason; 10] = [
        Reason::ProgramFailed,
        Reason::RecordingEnded,
        Reason::Unexplained,
        Reason::NothingChanged,
        Reason::FailsUndisturbed,
        Reason::OpensNothing,
        Reason::NothingPrinted,
        Reason::NeverSure,
        Reason::Budget,
        Reason::Flaky,
    ];

    /// The condition and the remedy, as the documentation has them.
    pub fn row(self) -> [&'static str; 2] {
        match self {
            Reason::ProgramFailed => [
                "the recorded program failed",
                "mend it and record again, or `--allow-failure`",
            ],
            Reason::RecordingEnded => [
                "the recording ended before it (`--limit`, `--record-limit`, a signal)",
                "record all of it, or `--allow-failure`",
            ],
            Reason::Unexplained => [
                "`files`: the folder ends otherwise than the operations leave it",
                "run the program alone",
            ],
            Reason::NothingChanged => ["`files`: the program changed nothing there", "`--files`"],
            Reason::FailsUndisturbed => [
                "`files`: the recovery fails without a cut",
                "mend it, or `--ok`",
            ],
            Reason::OpensNothing => ["the recovery opens no pool or file", "have it look at them"],
            Reason::NothingPrinted => [
                "`{acks}` is asked for, and always empty",
                "`--acks-fd`, `--acks-socket`",
            ],
            Reason::NeverSure => [
                "`files`: the recovery copes with nothing that is durable, and nothing was promised",
                "sync, or begin with a good folder",
            ],
            Reason::Budget => [
                "`--budget` or a signal came before each kind of cut was tried",
                "raise `--budget`",
            ],
            Reason::Flaky => [
                "the recovery both failed and coped on an image",
                "have it do the same each time",
            ],
        }
    }

    pub fn because(self, why: impl Into<String>) -> Doubt {
        Doubt {
            reason: self,
            why: why.into(),
        }
    }

    /// The doubt of an empty `{acks}`; `named` tells how the place of the promises is named.
    pub fn nothing_printed(kept: &str, named: &str) -> Doubt {
        Reason::NothingPrinted.because(format!(
            "{kept}, and it printed nothing, so that {{acks}} is empty at every cut: have the program write what it promises \
             (and flush its output), {named}, or leave {{acks}} out"
        ))
    }

    /// The doubt of a program that failed; `ended` tells how.
    pub fn program_failed(ended: &str) -> Doubt {
        Reason::ProgramFailed.because(format!(
            "the recorded program failed ({ended}), so that it may not have done what it should: mend it and record it again, or, \
             if it should fail, give --allow-failure"
        ))
    }

    /// The doubt of a recording that ended too early; `by` tells why, and `more` what records the rest.
    pub fn recording_ended(by: &str, more: &str) -> Doubt {
        Reason::RecordingEnded.because(format!(
            "the recording ended before the program did ({by}), so that nothing is said of the rest: {more}, or, if that is enough, give \
             --allow-failure"
        ))
    }
}

/// A reason, and what of this test it comes from, with the remedy.
#[derive(Clone, Debug, Serialize)]
pub struct Doubt {
    pub reason: Reason,
    pub why: String,
}

/// The entries of a report that tell how a test ended. `unsaid` is set only if nothing failed; `doubt` also where
/// something did, because a caller may accept all of that.
pub fn told(violates: bool, doubts: &[Doubt]) -> Value {
    let verdict = Verdict::new(violates, doubts);
    let doubt = doubts.iter().min_by_key(|doubt| doubt.reason);
    let unsaid = doubt.filter(|_| verdict == Verdict::Unsaid);
    json!({
        "verdict": verdict.name(), "fails": violates, "doubt": doubt, "unsaid": unsaid.map(|doubt| &doubt.why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_each_reason_once() {
        let table = include_str!("../../../docs/tables/crash-test-nothing-said.tsv");
        let shown: Vec<&str> = table.lines().skip(1).collect();
        let rows = Reason::ALL.map(|reason| reason.row().join("\t"));
        assert_eq!(shown, rows);
    }

    #[test]
    fn the_first_reason_of_the_list_is_told_and_a_violation_counts_more() {
        let doubts = [
            Reason::Flaky.because("b"),
            Reason::OpensNothing.because("a"),
        ];
        assert_eq!(told(false, &[])["verdict"], "no violation");
        assert_eq!(told(false, &[])["doubt"], Value::Null);
        let unsaid = told(false, &doubts);
        assert_eq!(
            (&unsaid["unsaid"], &unsaid["fails"]),
            (&json!("a"), &json!(false))
        );
        assert_eq!(unsaid["doubt"]["reason"], "opens-nothing");
        let violates = told(true, &doubts);
        assert_eq!(
            (&violates["unsaid"], &violates["fails"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!(violates["doubt"]["why"], "a");
        assert!(Reason::ALL.is_sorted());
    }
}
