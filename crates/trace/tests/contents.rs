//! A stretch of a trace knows what the records before it say of lines' contents.

use proptest::prelude::*;
use sardonyx_trace::line::{Line, Virtual};
use sardonyx_trace::{Op, Provenance, Record, TraceWriter, cut};

use crate::common::read;

const LINES: u64 = 16;

fn record() -> impl Strategy<Value = Record> {
    let op = prop::sample::select(vec![0u8, 0, 0, 1, 2, 4, 6, 10, 11]);
    (op, 0..LINES, any::<u8>(), any::<bool>(), 1..6u64).prop_map(|(op, line, byte, some, lines)| {
        let op = Op::from_code(op).unwrap();
        let mut data = [byte; 64];
        if op == Op::Changed {
            data[..8].copy_from_slice(&lines.to_le_bytes());
            let from = if some { 1 + u64::from(byte) % LINES } else { 0 };
            data[8..16].copy_from_slice(&from.to_le_bytes());
        }
        Record {
            gap: 0,
            thread: 0,
            op,
            line: Virtual(line),
            data: (op.has_data() || some && op == Op::ReadMiss).then_some(data),
        }
    })
}

/// What is known of each line, as a plain array.
type Known = [Option<Line>; 2 * LINES as usize];

fn change(known: &mut Known, record: &Record) {
    let data = record.data.unwrap();
    let number = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
    let (lines, first, old) = (number(0), record.line.0 as usize, *known);
    if number(8) == 0 {
        known[first..first + lines].fill(None);
        return;
    }
    let from = number(8) - 1;
    known[from..from + lines].fill(None);
    known[first..first + lines].copy_from_slice(&old[from..from + lines]);
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn a_cut_knows_what_lay_there(all in prop::collection::vec(record(), 2..80), at in 0.0..1.0) {
        let folder = tempfile::tempdir().unwrap();
        let [whole, part] = ["whole.parquet", "part.parquet"].map(|name| folder.path().join(name));
        let mut writer = TraceWriter::create(&whole, Provenance::default()).unwrap();
        all.iter().for_each(|r| writer.push(r).unwrap());
        writer.finish().unwrap();
        let skip = (all.len() as f64 * at) as usize;
        cut(&whole, &part, skip as u64, u64::MAX, &mut |_, _| ()).unwrap();

        let mut known: Known = Default::default();
        let mut expected = Vec::new();
        for (number, record) in all.iter().enumerate() {
            let line = record.line.0 as usize;
            let mut kept = *record;
            match record.op {
                Op::Changed => change(&mut known, record),
                Op::FinalDirty if number < skip => {}
                _ if number < skip => known[line] = record.data.or(known[line]),
                Op::ReadMiss => {
                    let held = known[line].take();
                    kept.data = record.data.or(held);
                }
                _ if record.data.is_some() => known[line] = None,
                _ => {}
            }
            if number >= skip {
                expected.push(kept);
            }
        }
        prop_assert_eq!(read(&part), expected);
    }
}
