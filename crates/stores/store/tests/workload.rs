//! Workloads: shares are exact, contents are what they say.

use std::collections::{HashMap, HashSet};

use sardonyx_store::{Content, Made, Operation, Stream, Workload, WorkloadError};

fn operations(stream: Stream) -> Vec<(u64, Option<Made>)> {
    let mut found = Vec::new();
    let workload = Workload::Stream(stream);
    let run = workload.run::<WorkloadError>(1024, &mut |operation| {
        found.push(match operation {
            Operation::Write(lba, Content::Made(made)) => (lba, Some(made)),
            Operation::Write(..) => unreachable!(),
            Operation::Read(lba) => (lba, None),
        });
        Ok(())
    });
    run.unwrap();
    found
}

const STREAM: Stream = Stream {
    bytes: 1000 * 1024,
    span: 0,
    duplicates: 0.3,
    reads: 0.7,
    seed: 7,
    encrypted: false,
};

#[test]
fn shares_are_met_and_reads_find_something() {
    let all = operations(STREAM);
    let mut seen = HashSet::new();
    let mut written = HashMap::new();
    let (mut duplicates, mut reads) = (0, 0);
    for &(lba, made) in &all {
        match made {
            Some(made) => {
                duplicates += u32::from(!seen.insert(made));
                assert!(written.insert(lba, made).is_none(), "each block once");
            }
            None => {
                reads += 1;
                assert!(written.contains_key(&lba));
            }
        }
    }
    assert_eq!((written.len(), duplicates, reads), (1000, 300, 2333));
    assert_eq!(all, operations(STREAM), "the same seed, the same stream");
    assert_ne!(all, operations(Stream { seed: 8, ..STREAM }));
    let total = Workload::Stream(STREAM).operations(1024);
    assert_eq!(total, all.len() as u64);
}

#[test]
fn under_pads_no_two_writes_are_equal() {
    let bytes = |made: Option<Made>| {
        let mut block = vec![0; 1024];
        made.unwrap().bytes(0, &mut block);
        block
    };
    let stream = Stream {
        reads: 0.0,
        encrypted: true,
        ..STREAM
    };
    let blocks: HashSet<Vec<u8>> = operations(stream).iter().map(|w| bytes(w.1)).collect();
    assert_eq!(blocks.len(), 1000);
}

#[test]
fn a_span_is_written_again_and_again() {
    let stream = Stream {
        span: 10 * 1024,
        reads: 0.5,
        ..STREAM
    };
    let all = operations(stream);
    assert!(all.iter().all(|&(lba, _)| lba < 10));
    let writes = all.iter().filter(|(lba, made)| *lba == 3 && made.is_some());
    assert_eq!(writes.count(), 100);
}
