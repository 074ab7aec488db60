//! What `sardonyx store estimate` is asked, and the question that it comes to.

use std::path::Path;

use sardonyx_base::sizes;
use sardonyx_question::{Bytes, Given, Place, question};

use super::{EstimateResult, Format, Question, bad};

const BLOCKS: [u32; 4] = [1 << 10, 2 << 10, 4 << 10, 8 << 10];

question! {
    /// Tell what deduplication would save: distinct chunks, how often each comes, and the ratio.
    ///
    /// Example: sardonyx store estimate /usr/share --block 4K
    pub struct Request {
        /// A directory, a file, a device, or - for standard input.
        #[schemars(extend("argument" = "PATH", "needed" = true))]
        path: String,
        /// Size of fixed blocks; repeatable. Default: 1K, 2K, 4K and 8K.
        block: Vec<Bytes>,
        /// Average size of chunks whose ends the content decides; none: no such chunks.
        content_defined: String = "8K".into(),
        /// PATH is a trace with digests for contents: fiu or destor.
        trace: Option<String>,
        /// Compress each distinct chunk too, at this level of zstd, and tell what both leave; 3 is usual.
        #[schemars(range(min = 1, max = 22))]
        compress: Option<u64>,
        /// The most memory; beyond it counts are sampled.
        memory: Bytes = Bytes(1073741824),
        /// Save the state here each minute and at Ctrl-C, and go on from it.
        state: Option<Place>,
        /// Draw ratios, references and costs as HTML.
        plot: Option<Place>,
    }
}

impl sardonyx_question::Question for Request {
    fn check(&self, given: &Given) -> Result<(), String> {
        let path = &self.path;
        if path != "-" && Path::new(path).symlink_metadata().is_err() {
            return Err(format!(
                "{path}: there is no such file or folder; name one, or - for standard input"
            ));
        }
        let question = self.question().map_err(|error| error.to_string())?;
        question.check().map_err(|error| error.to_string())?;
        match &self.trace {
            None => Ok(()),
            Some(trace) => {
                let form = format!("with --trace {trace}, whose chunks are as recorded");
                given.idle(&["block", "content_defined", "compress"], &form)
            }
        }
    }
}

impl Request {
    /// The question of an estimate.
    pub fn question(&self) -> EstimateResult<Question> {
        let trace = match self.trace.as_deref() {
            None => None,
            Some("fiu") => Some(Format::Fiu),
            Some("destor") => Some(Format::Destor),
            Some(other) => return bad(format!("--trace {other}: give fiu or destor")),
        };
        let mut blocks = BLOCKS.to_vec();
        let mut content_defined = None;
        if trace.is_none() {
            if !self.block.is_empty() {
                blocks = self.block.iter().map(|size| whole(size.0)).collect();
                blocks.sort_unstable();
                blocks.dedup();
            }
            if self.content_defined != "none" {
                let text = &self.content_defined;
                let Some(size) = sizes::parse(text) else {
                    return bad(format!("--content-defined {text}: {}", sizes::REMEDY));
                };
                content_defined = Some(whole(size));
            }
        }
        Ok(Question {
            path: self.path.clone(),
            trace,
            blocks,
            content_defined,
            compress: self
                .compress
                .map(|level| i32::try_from(level).unwrap_or(i32::MAX)),
            memory: self.memory.0,
            state: self.state.as_ref().map(|state| state.0.clone()),
        })
    }
}

/// A size that is checked later; what does not fit is too large for that check too.
fn whole(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
