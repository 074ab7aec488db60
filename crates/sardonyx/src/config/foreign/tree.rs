//! YAML and JSON as a list of leaves: the way to each value, its text and its line.

use saphyr_parser::{Event, Parser};

use super::super::error::{ConfigError, Result};

pub(super) struct Leaf {
    /// Names and positions from the root on. Names of parts are in small letters without underscores; those of timings
    /// and counts are unchanged.
    pub path: Vec<String>,
    pub text: String,
    pub line: usize,
}

/// An open mapping or list: the key or the position that comes next.
enum OpenNode {
    Key,
    Value(String),
    Item(usize),
}

/// Returns the leaves of `text` in order.
///
/// # Errors
/// The line at which `text` is no YAML.
pub(super) fn read(text: &str, file: &str) -> Result<Vec<Leaf>> {
    let (mut leaves, mut open) = (Vec::new(), Vec::<OpenNode>::new());
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ConfigError {
            line: Some(error.marker().line()),
            ..ConfigError::file(
                file,
                format!("is no YAML: {}", error.info()),
                "mend the line",
            )
        })?;
        match event {
            Event::Scalar(text, ..) => match open.last_mut() {
                Some(key @ OpenNode::Key) => *key = OpenNode::Value(name(&text)),
                _ => {
                    leaves.push(Leaf {
                        path: open.iter().filter_map(OpenNode::name).collect(),
                        text: text.into_owned(),
                        line: span.start.line(),
                    });
                    close(&mut open);
                }
            },
            Event::MappingStart(..) => open.push(OpenNode::Key),
            Event::SequenceStart(..) => open.push(OpenNode::Item(0)),
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                close(&mut open);
            }
            _ => {}
        }
    }
    Ok(leaves)
}

fn close(open: &mut [OpenNode]) {
    match open.last_mut() {
        Some(value @ OpenNode::Value(_)) => *value = OpenNode::Key,
        Some(OpenNode::Item(number)) => *number += 1,
        _ => {}
    }
}

impl OpenNode {
    fn name(&self) -> Option<String> {
        match self {
            OpenNode::Key => None,
            OpenNode::Value(name) => Some(name.clone()),
            OpenNode::Item(number) => Some(number.to_string()),
        }
    }
}

/// Normalises a name: `AddrMapper` and `addr_mapper` are one. `nCCDL_WR` is a timing, which keeps its own.
fn name(text: &str) -> String {
    const KEPT: [&str; 4] = [
        "channel_width",
        "timing_constraints",
        "command_cycles",
        "read_latency",
    ];
    let timing =
        text.starts_with(['n', 't']) && text.chars().nth(1).is_some_and(char::is_uppercase);
    match timing || KEPT.contains(&text) {
        true => text.to_owned(),
        false => text.to_lowercase().replace('_', ""),
    }
}
