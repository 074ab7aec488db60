//! One design on one workload: what `sardonyx store compare` and the reproduction run.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::designs::{Job, Keys, Named};
use crate::operation::Operation;
use crate::outcome::RunError;
use crate::workload::Workload;

/// A design and a workload, with blocks of this size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoreQuestion")]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The store.
    pub design: Asked,
    /// The operations on it.
    pub workload: Workload,
    /// Bytes of a block.
    #[serde(default = "four_kilobytes")]
    pub block_bytes: u32,
}

fn four_kilobytes() -> u32 {
    4096
}

/// A design with those of its keys that are set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StoreAsked")]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The design.
    pub name: Named,
    /// The keys that are set, with their values as users write them.
    #[serde(default)]
    pub keys: Vec<(String, String)>,
    /// An empty folder, for a store that is executed.
    pub folder: Option<PathBuf>,
}

/// Takes the number of operations done and in all (0 if unknown); false ends the run.
pub type Tell<'a> = &'a dyn Fn(u64, u64) -> bool;

const TELL_EVERY: u64 = 4096;

impl Asked {
    pub fn keys(&self) -> Result<Keys, RunError> {
        Keys::parse(&self.name, &self.keys)
    }
}

impl Question {
    pub fn check(&self) -> Result<(), RunError> {
        if self.block_bytes == 0
            || self.block_bytes > 1 << 20
            || !self.block_bytes.is_multiple_of(8)
        {
            return Err(RunError::Bad(format!(
                "block_bytes = {}: give a multiple of 8 up to 1M, as 1K, 2K, 4K or 8K",
                self.block_bytes
            )));
        }
        self.workload.check(self.block_bytes)?;
        (self.design.name.check)(&self.design.keys()?, &self.job())
    }

    /// Runs it, and returns `design` and `metrics`.
    pub fn answer(&self, tell: Tell<'_>) -> Result<Value, RunError> {
        self.check()?;
        let design = self.design.name;
        let mut store = (design.run)(&self.design.keys()?, &self.job())?;
        let by_content = store.cuts_by_content();
        let total = match by_content {
            true => 0,
            false => self.workload.operations(self.block_bytes),
        };
        let mut done = 0;
        let mut each = |operation: Operation<'_>| -> Result<(), RunError> {
            done += 1;
            if done % TELL_EVERY == 0 && !tell(done, total) {
                return Err(RunError::Cancelled);
            }
            match operation {
                Operation::Write(lba, content) => store.write(lba, content)?,
                Operation::Read(lba) => store.read(lba)?,
            }
            Ok(())
        };
        if by_content {
            self.workload.run_chunks(self.block_bytes, &mut each)?;
        } else {
            self.workload.run(self.block_bytes, &mut each)?;
        }
        Ok(json!({"design": design.name, "metrics": store.figures()?}))
    }

    fn job(&self) -> Job<'_> {
        Job {
            workload: &self.workload,
            block_bytes: self.block_bytes,
            folder: self.design.folder.as_deref(),
        }
    }
}
