//! The commands and what each is asked. The command line and the functions in Python are made of this.
use pyo3::prelude::*;
use sardonyx_question::{declared, read};
use serde_json::to_string;

use crate::asked::{crash, crash_test, merge, simulator, stores, traces};
use crate::bad;

/// The commands by their names, each with the type of its question.
macro_rules! commands {
    ($($name:literal: $question:ty),* $(,)?) => {
        /// The names of all commands.
        #[pyfunction]
        pub fn commands() -> Vec<&'static str> {
            vec![$($name),*]
        }

        /// What a command is asked, as a JSON schema whose `order` has the options in theirs.
        #[pyfunction]
        pub fn command(name: &str) -> PyResult<String> {
            match name {
                $($name => to_string(&declared::<$question>()).map_err(bad),)*
                _ => Err(bad(format!("{name}: there is no such command"))),
            }
        }

        /// The whole question of a command from what was given: checked, and with its defaults.
        #[pyfunction]
        pub fn asked(name: &str, given: &str) -> PyResult<String> {
            match name {
                $($name => to_string(&read::<$question>(given).map_err(bad)?).map_err(bad),)*
                _ => Err(bad(format!("{name}: there is no such command"))),
            }
        }
    };
}

commands! {
    "compare": simulator::Compare,
    "report": simulator::Report,
    "diff": simulator::Diff,
    "sweep": simulator::Sweep,
    "explore": simulator::Explore,
    "curve": simulator::Curve,
    "reproduce": simulator::Reproduce,
    "check-host": simulator::CheckHost,
    "doctor": simulator::Doctor,
    "designs": simulator::Designs,
    "programs": simulator::Programs,
    "recordings": simulator::Recordings,
    "machines": simulator::Machines,
    "show": simulator::Show,
    "crash run": crash::CrashRun,
    "crash once": crash::CrashOnce,
    "crash stages": crash::CrashStages,
    "crash exhaustive": crash::CrashExhaustive,
    "crash replay": crash::CrashReplay,
    "crash-test search": crash_test::CrashTestSearch,
    "crash-test replay": crash_test::CrashTestReplay,
    "crash-test lint": crash_test::CrashTestLint,
    "crash-test files": crash_test::CrashTestFiles,
    "trace record": sardonyx_record::Wanted,
    "trace info": traces::TraceInfo,
    "trace check": traces::TraceCheck,
    "trace convert": traces::TraceConvert,
    "trace synth": traces::TraceSynth,
    "trace cut": traces::TraceCut,
    "trace mix": traces::TraceMix,
    "merge": sardonyx_merge::question::Question,
    "merge time": merge::MergeTime,
    "merge watch": merge::MergeWatch,
    "merge generate": merge::MergeGenerate,
    "store compare": sardonyx_store::Comparison,
    "store serve": stores::StoreServe,
    "store check": stores::StoreCheck,
    "store estimate": sardonyx_estimate::Request,
}
