//! Counts what was checked, where `verify` checks.

/// The environment variable that asks for checks.
pub const VARIABLE: &str = "SARDONYX_RECORDER_CHECK";

/// Counts of checks.
#[derive(Default)]
pub struct Checked {
    accesses: u64,
    /// Of them, accesses that another's callback stood for.
    spared: u64,
    blocks: u64,
    left_early: u64,
}

impl Checked {
    /// Notes that a block begins; `early`: its last run was left early.
    pub fn block(&mut self, early: bool) {
        self.blocks += 1;
        self.left_early += u64::from(early);
    }

    /// Notes an access that was as it should be; `spared`: another access's callback stood for it.
    pub fn access(&mut self, spared: bool) {
        self.accesses += 1;
        self.spared += u64::from(spared);
    }

    /// The counts as a note for the trace.
    pub fn note(&self) -> String {
        format!(
            "checked {} accesses in {} runs of blocks, {} of them without a callback; {} blocks were left early",
            self.accesses, self.blocks, self.spared, self.left_early
        )
    }
}
