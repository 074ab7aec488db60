//! The contents that a pool may have after a cut if there is no check: those that the program itself makes of a
//! beginning of its operations.
//!
//! The driver takes its operations from a file, one a line. It is run without a cut on each beginning of that file, and
//! the recovery prints what each pool holds. After a cut the recovery must print one of these: of no fewer operations
//! than were acknowledged, and of at most one more, which had begun. Left out: operations of several threads, which
//! have no one order.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

/// A difference names at most this many lines of each side.
const NAMED: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// The program printed a line for each operation that was done.
    Lines,
    /// Nothing was acknowledged, so any beginning will do.
    None,
}

#[derive(Clone, Debug)]
pub struct Oracle {
    /// What the recovery prints of the pool that each beginning of the operations leaves.
    pub outputs: Vec<Vec<u8>>,
    pub acknowledged: Acknowledged,
}

impl Oracle {
    pub fn wants_acks(&self) -> bool {
        self.acknowledged == Acknowledged::Lines
    }

    /// The reason why an output may not be printed after this many acknowledged operations; `None` if it may.
    pub fn differs(&self, output: &[u8], acknowledged: usize) -> Option<String> {
        let last = self.outputs.len() - 1;
        let (from, to) = match self.acknowledged {
            Acknowledged::Lines => (acknowledged.min(last), (acknowledged + 1).min(last)),
            Acknowledged::None => (0, last),
        };
        if self.outputs[from..=to].iter().any(|one| one == output) {
            return None;
        }
        if let Some(other) = self.outputs.iter().rposition(|one| one == output) {
            return Some(match other < from {
                true => format!(
                    "it prints what the first {other} operations leave, and {acknowledged} were acknowledged"
                ),
                false => {
                    format!("it prints what the first {other} operations leave, and {to} had begun")
                }
            });
        }
        let differences = |number: &usize| {
            let (lacks, has) = difference(&self.outputs[*number], output);
            // The later of two equally near beginnings counts: against it a line differs, and is not one too many.
            (lacks.len().max(has.len()), last - *number)
        };
        // The nearest beginning of those allowed is named, and one of all only if it is nearer by half.
        let within = (from..=to).map(|n| differences(&n)).min();
        let anywhere = (0..=last).map(|n| differences(&n)).min();
        let (within, anywhere) = (within.unwrap_or_default(), anywhere.unwrap_or_default());
        let near = match anywhere.0 * 2 < within.0 {
            true => last - anywhere.1,
            false => last - within.1,
        };
        let (lacks, has) = difference(&self.outputs[near], output);
        let mut parts = Vec::new();
        for (what, lines) in [("lacks", &lacks), ("has", &has)] {
            if !lines.is_empty() {
                let named: Vec<String> = (lines.iter().take(NAMED))
                    .map(|line| format!("`{}`", String::from_utf8_lossy(line).trim_end()))
                    .collect();
                let more = match lines.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                parts.push(format!("{what} {}{more}", named.join(", ")));
            }
        }
        if parts.is_empty() {
            parts.push("has the same lines in another order".to_owned());
        }
        let may = match from == to {
            true => format!("{from}"),
            false => format!("{from} to {to}"),
        };
        let kind = match (lacks.is_empty(), has.is_empty()) {
            (false, true) => "less",
            (true, false) => "more",
            _ => "else",
        };
        Some(format!(
            "it prints {kind} than the first {may} operations leave: against the first {near} it {}",
            parts.join(" and ")
        ))
    }

    pub fn told(&self) -> Value {
        let distinct: FxHashSet<&Vec<u8>> = self.outputs.iter().collect();
        json!({
            "operations": self.outputs.len() - 1, "prefixes": self.outputs.len(), "outputs": distinct.len(),
            "acknowledged": match self.acknowledged { Acknowledged::Lines => "lines", Acknowledged::None => "none" },
        })
    }
}

/// The lines that the first has and the second lacks, and those that the second has and the first lacks, in their
/// order.
pub fn difference<'a>(whole: &'a [u8], other: &'a [u8]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    let lines = |bytes: &'a [u8]| bytes.split_inclusive(|&b| b == b'\n');
    let mut counts: FxHashMap<&[u8], i64> = FxHashMap::default();
    lines(whole).for_each(|line| *counts.entry(line).or_default() += 1);
    lines(other).for_each(|line| *counts.entry(line).or_default() -= 1);
    let mut take = |bytes: &'a [u8], sign: i64| -> Vec<&'a [u8]> {
        let left = lines(bytes).filter(|line| {
            let count = counts.get_mut(line).expect("all are there");
            let over = *count * sign > 0;
            *count -= if over { sign } else { 0 };
            over
        });
        left.collect()
    };
    let lacks = take(whole, 1);
    let has = take(other, -1);
    (lacks, has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(acknowledged: Acknowledged) -> Oracle {
        let outputs = ["", "a 1\n", "a 1\nb 2\n", "b 2\n", "b 2\nc 3\n"];
        Oracle {
            outputs: outputs.map(|text| text.as_bytes().to_vec()).to_vec(),
            acknowledged,
        }
    }

    #[test]
    fn an_output_is_that_of_what_was_acknowledged_or_of_one_operation_more() {
        let held = oracle(Acknowledged::Lines);
        assert_eq!(held.differs(b"a 1\n", 1), None);
        assert_eq!(held.differs(b"a 1\nb 2\n", 1), None);
        let lost = held.differs(b"", 1).unwrap();
        assert_eq!(
            lost,
            "it prints what the first 0 operations leave, and 1 were acknowledged"
        );
        let early = held.differs(b"b 2\n", 1).unwrap();
        assert_eq!(
            early,
            "it prints what the first 3 operations leave, and 2 had begun"
        );
        assert_eq!(held.differs(b"b 2\nc 3\n", 4), None);
    }

    #[test]
    fn without_a_promise_any_beginning_will_do_and_nothing_else() {
        let free = oracle(Acknowledged::None);
        assert_eq!(free.differs(b"", 3), None);
        assert_eq!(free.differs(b"b 2\n", 0), None);
        assert!(free.differs(b"c 3\n", 4).is_some());
    }

    #[test]
    fn a_difference_names_the_nearest_beginning_and_the_lines() {
        let held = oracle(Acknowledged::Lines);
        let torn = held.differs(b"a 1\nb 0\n", 1).unwrap();
        assert_eq!(
            torn,
            "it prints else than the first 1 to 2 operations leave: against the first 2 it lacks `b 2` and has `b 0`"
        );
        let less = held.differs(b"c 3\n", 4).unwrap();
        assert_eq!(
            less,
            "it prints less than the first 4 operations leave: against the first 4 it lacks `b 2`"
        );
        let (lacks, has) = difference(b"x\nx\ny\n", b"x\nz\n");
        assert_eq!((lacks, has), (vec![&b"x\n"[..], b"y\n"], vec![&b"z\n"[..]]));
    }
}
