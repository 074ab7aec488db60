//! Why a program cannot be recorded.

pub type Result<T, E = RecordError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A request that cannot be met; the message has the place and the remedy.
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Trace(#[from] sardonyx_trace::TraceError),
}

impl RecordError {
    pub(crate) fn new(message: impl Into<String>) -> RecordError {
        RecordError::Request(message.into())
    }
}
