//! What is wrong with a machine file, where, and what to do about it: one line for a person. The first error is
//! reported. Left out: recovery; a machine with an error is never built.

use std::fmt;

/// A value, or why there is none.
pub type Result<T, E = ConfigError> = std::result::Result<T, E>;

/// A fault in a machine file or an override, with its place and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file, the preset or the override that holds it.
    pub file: String,
    /// The line of the file, counted from 1, where there is one.
    pub line: Option<usize>,
    /// The key, as in `medium.timing.tRCD`, where there is one.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl ConfigError {
    pub(super) fn file(file: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        ConfigError {
            file: file.to_owned(),
            line: None,
            key: None,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    pub(super) fn key(
        place: &KeyPlace,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        ConfigError {
            line: place.line,
            key: Some(key.to_owned()),
            ..ConfigError::file(&place.file, problem, remedy)
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", {key}")?;
        }
        write!(f, ": {}", self.problem)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPlace {
    pub file: std::rc::Rc<str>,
    pub line: Option<usize>,
}
