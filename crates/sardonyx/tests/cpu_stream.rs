//! Frames, and streams: what of a trace reaches memory, where, and with which contents.

use std::collections::HashSet;

use crate::cpu_common::{fence, read, record, trace, write};
use sardonyx::line::{Line, Logical, Virtual, ZERO_LINE};
use sardonyx::machine::{Access, Copies, LOOK_AHEAD, PAGE_LINES, PageFrames, RunError, Stream};
use sardonyx::stats::Direction;
use sardonyx::trace::{GapUnit, Op, Record};

fn stream(records: &[Record], copies: Copies) -> Result<Stream, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let source = trace(folder.path(), GapUnit::Instructions, records);
    Stream::new(source, copies)
}

fn all(mut stream: Stream) -> Vec<Access> {
    std::iter::from_fn(|| stream.next_access().unwrap()).collect()
}

#[test]
fn pages_take_frames_in_the_order_of_first_touch() {
    let mut frames = PageFrames::new(1 << 20);
    let far = (1 << 58) - 1;
    assert_eq!(frames.peek(Virtual(far)), None);
    for (line, wanted) in [(far, 63), (5, 64 + 5), (far - 63, 0), (0, 64), (64, 128)] {
        assert_eq!(frames.map(Virtual(line)), Ok(Logical(wanted)), "{line}");
        assert_eq!(frames.peek(Virtual(line)), Some(Logical(wanted)), "{line}");
    }
    assert_eq!(frames.used(), 3);
}

#[test]
fn a_full_memory_says_how_large_it_was() {
    let mut frames = PageFrames::new(2 * PAGE_LINES + 63);
    frames.map(Virtual(0)).unwrap();
    frames.map(Virtual(64)).unwrap();
    let error = frames.map(Virtual(128)).unwrap_err().to_string();
    assert!(
        error.contains("8 KiB") && error.contains("more rows"),
        "{error}"
    );
    assert_eq!(
        frames.map(Virtual(1)),
        Ok(Logical(1)),
        "what is there stays"
    );
}

#[test]
fn shares_neither_overlap_nor_leave_the_memory() {
    let (capacity, shares) = (8 * 50 * PAGE_LINES, 8);
    let mut lines = HashSet::new();
    for share in 0..shares {
        let mut frames = PageFrames::share(capacity, share, shares).skewed(u64::from(share) * 37);
        for page in 0..50 {
            let line = frames.map(Virtual(page * PAGE_LINES)).unwrap();
            assert!(line.0 < capacity && lines.insert(line));
        }
        assert!(frames.map(Virtual(50 * PAGE_LINES)).is_err());
    }
}

#[test]
fn gaps_of_what_is_left_out_are_kept() {
    let records = [
        record(3, Op::Clwb, 1, 0),
        fence(4),
        read(5, 1),
        write(0, 2, 9),
        record(1, Op::FlushWriteBack, 3, 8),
        record(2, Op::Clflush, 3, 0),
        record(3, Op::NonTemporalWrite, 4, 7),
        record(7, Op::ClflushOpt, 1, 0),
        fence(u32::MAX),
    ];
    let mut stream = stream(&records, Copies::ONE).unwrap();
    assert_eq!(stream.peek(3).map(|a| a.gap), Some(5));
    let wanted = [
        (12, Direction::Read, 1, 0),
        (0, Direction::Write, 2, 9),
        (1, Direction::Write, 3, 8),
        (5, Direction::Write, 4, 7),
    ];
    for (gap, kind, line, byte) in wanted {
        let access = stream.next_access().unwrap().unwrap();
        assert_eq!((access.gap, access.kind, access.line.0), (gap, kind, line));
        assert_eq!(access.data, [byte; 64]);
    }
    assert_eq!(stream.next_access().unwrap(), None);
    assert_eq!(
        (stream.skipped(), stream.trailing_gap()),
        (5, 7 + u64::from(u32::MAX))
    );
}

#[test]
fn the_look_ahead_sees_what_comes() {
    let records: Vec<Record> = (0..10_000)
        .map(|i| write(1, i * 7 % 5000, i as u8))
        .collect();
    let wanted = all(stream(&records, Copies::ONE).unwrap());
    assert_eq!(wanted.len(), records.len());
    let mut stream = stream(&records, Copies::ONE).unwrap();
    for i in 0..wanted.len() {
        for k in [0, 1, LOOK_AHEAD] {
            assert_eq!(stream.peek(k), wanted.get(i + k), "{i} + {k}");
        }
        assert_eq!(stream.next_access().unwrap(), Some(wanted[i]));
    }
}

#[test]
fn distinct_copies_keep_equality_and_zeros_and_nothing_else() {
    let copy = |records: &[Record], copy| {
        let copies = Copies {
            copy,
            of: 4,
            distinct: 1.0,
        };
        let accesses = all(stream(records, copies).unwrap());
        accesses.iter().map(|a| a.data).collect::<Vec<Line>>()
    };
    let mut records: Vec<Record> = (0..=255).map(|i| write(1, i, i as u8)).collect();
    let plain = copy(&records, 0);
    assert!(
        records
            .iter()
            .zip(&plain)
            .all(|(r, data)| r.data == Some(*data))
    );
    let first = copy(&records, 1);
    assert_eq!(first[0], ZERO_LINE);
    // The contents that a plain XOR would turn into zeros.
    let key: Line = std::array::from_fn(|i| first[1][i] ^ 1);
    records.push(Record {
        data: Some(key),
        ..records[0]
    });
    let mut seen = HashSet::new();
    for c in 0..4 {
        let contents = copy(&records, c);
        assert_eq!(contents[0], ZERO_LINE);
        assert!(contents[1..].iter().all(|data| *data != ZERO_LINE));
        let distinct: HashSet<&Line> = contents.iter().collect();
        assert_eq!(distinct.len(), records.len(), "one to one");
        seen.extend(contents[1..256].iter().copied());
    }
    assert_eq!(seen.len(), 4 * 255, "no copy has another's contents");
    let same = Copies {
        copy: 3,
        of: 4,
        distinct: 0.0,
    };
    assert_eq!(all(stream(&records, same).unwrap())[1].data, [1; 64]);
}

#[test]
fn a_share_of_contents_is_a_copys_own_whatever_line_holds_it() {
    let records: Vec<Record> = (0..4096_u64)
        .map(|i| Record {
            data: Some(std::array::from_fn(|byte| {
                (i % 2048 / 256 * 7 + i % 256 * byte as u64) as u8 | 1
            })),
            ..write(1, i, 0)
        })
        .collect();
    let own = |distinct| {
        let copies = Copies {
            copy: 1,
            of: 2,
            distinct,
        };
        let accesses = all(stream(&records, copies).unwrap());
        let own: Vec<bool> = accesses
            .iter()
            .zip(&records)
            .map(|(a, r)| Some(a.data) != r.data)
            .collect();
        assert_eq!(own[..2048], own[2048..], "equal contents share a fate");
        own.iter().filter(|own| **own).count()
    };
    assert_eq!((own(0.0), own(1.0)), (0, 4096));
    let (quarter, half) = (own(0.25), own(0.5));
    assert!(
        (800..1250).contains(&quarter) && (1800..2300).contains(&half),
        "{quarter} {half}"
    );
}
