//! The error of a call: one line for the host.

pub struct Problem(pub String);

impl<E: std::error::Error> From<E> for Problem {
    fn from(error: E) -> Problem {
        Problem(error.to_string())
    }
}

pub fn problem<T>(what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(what.into()))
}
