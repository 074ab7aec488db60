//! The caches against lists that are searched and reordered by hand, and the stream against itself.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sardonyx_recorder::caches::{Caches, Geometry, Hierarchy, MemoryTraffic};
use sardonyx_recorder::codec::{Decoder, Encoder, Record, RecorderEvent, Undecodable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Read(u64),
    Write(u64),
}

#[derive(Default)]
struct TrafficLog(Vec<Traffic>);

impl MemoryTraffic for TrafficLog {
    fn read(&mut self, line: u64) {
        self.0.push(Traffic::Read(line));
    }
    fn evict(&mut self, line: u64) {
        self.0.push(Traffic::Write(line));
    }
}

/// A cache as a list for each set, the latest use last.
#[derive(Clone)]
struct SetLists {
    sets: Vec<Vec<(u64, bool)>>,
    ways: usize,
}

impl SetLists {
    fn new(geometry: Geometry) -> SetLists {
        let sets = geometry.bytes / 64 / u64::from(geometry.ways);
        SetLists {
            sets: vec![Vec::new(); sets as usize],
            ways: geometry.ways as usize,
        }
    }
    fn set(&mut self, line: u64) -> &mut Vec<(u64, bool)> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(line % sets) as usize]
    }
    fn take(&mut self, line: u64) -> Option<bool> {
        let set = self.set(line);
        let at = set.iter().position(|&(l, _)| l == line)?;
        Some(set.remove(at).1)
    }
    fn put(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        let ways = self.ways;
        let set = self.set(line);
        set.push((line, dirty));
        (set.len() > ways).then(|| set.remove(0))
    }
    fn hit(&mut self, line: u64, dirty: bool) -> bool {
        match self.take(line) {
            Some(was) => self.put(line, was | dirty).is_none(),
            None => false,
        }
    }
}

/// One core by the book: L2 neither includes nor excludes L1.
struct Book {
    l1: SetLists,
    l2: SetLists,
    llc: Option<SetLists>,
    inclusive: bool,
}

impl Book {
    fn access(&mut self, line: u64, store: bool, log: &mut TrafficLog) {
        if self.l1.hit(line, store) {
            return;
        }
        if !self.l2.hit(line, false) {
            match &mut self.llc {
                None => log.read(line),
                Some(llc) => {
                    if !llc.hit(line, false) {
                        log.read(line);
                        let victim = llc.put(line, false);
                        self.leave(victim, log);
                    }
                }
            }
            if let Some((victim, true)) = self.l2.put(line, false) {
                self.below_l2(victim, log);
            }
        }
        if let Some((victim, true)) = self.l1.put(line, store)
            && !self.l2.hit(victim, true)
            && let Some((next, true)) = self.l2.put(victim, true)
        {
            self.below_l2(next, log);
        }
    }
    fn leave(&mut self, victim: Option<(u64, bool)>, log: &mut TrafficLog) {
        let Some((line, mut dirty)) = victim else {
            return;
        };
        if self.inclusive {
            dirty |= self.l1.take(line).unwrap_or(false);
            dirty |= self.l2.take(line).unwrap_or(false);
        }
        if dirty {
            log.evict(line);
        }
    }
    fn below_l2(&mut self, line: u64, log: &mut TrafficLog) {
        let Some(llc) = &mut self.llc else {
            return log.evict(line);
        };
        if !llc.hit(line, true) {
            let victim = llc.put(line, true);
            self.leave(victim, log);
        }
    }
    fn flush(&mut self, line: u64, invalidate: bool) -> bool {
        let mut dirty = false;
        for level in [Some(&mut self.l1), Some(&mut self.l2), self.llc.as_mut()]
            .into_iter()
            .flatten()
        {
            if invalidate {
                dirty |= level.take(line).unwrap_or(false);
            } else if let Some(entry) = level.set(line).iter_mut().find(|e| e.0 == line) {
                dirty |= std::mem::take(&mut entry.1);
            }
        }
        dirty
    }
}

fn hierarchy(llc: bool, inclusive: bool, cores: usize) -> Hierarchy {
    let geometry = |bytes, ways| Geometry { bytes, ways };
    Hierarchy {
        l1: geometry(512, 2),
        l2: geometry(1024, 4),
        llc: llc.then_some(geometry(2048, 4)),
        inclusive,
        cores,
    }
}

#[derive(Clone, Copy, Debug)]
enum CacheStep {
    Access(u64, bool),
    Flush(u64, bool),
}

fn steps() -> impl Strategy<Value = Vec<CacheStep>> {
    let line = 0u64..96;
    let step = prop_oneof![
        20 => (line.clone(), any::<bool>()).prop_map(|(l, s)| CacheStep::Access(l, s)),
        1 => (line, any::<bool>()).prop_map(|(l, i)| CacheStep::Flush(l, i)),
    ];
    prop::collection::vec(step, 0..600)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(256))]

    #[test]
    fn one_core_does_what_the_book_does(steps in steps(), llc: bool, inclusive: bool) {
        let hierarchy = hierarchy(llc, inclusive, 1);
        let mut caches = Caches::new(&hierarchy).unwrap();
        let mut book = Book {
            l1: SetLists::new(hierarchy.l1),
            l2: SetLists::new(hierarchy.l2),
            llc: hierarchy.llc.map(SetLists::new),
            inclusive,
        };
        let (mut ours, mut theirs) = (TrafficLog::default(), TrafficLog::default());
        let first = caches.first(0);
        for step in steps {
            match step {
                CacheStep::Access(line, store) => {
                    // SAFETY: the caches stay where they are.
                    if !unsafe { first.hit(line * 64, store) } {
                        caches.access(0, line, line, store, &mut ours);
                    }
                    book.access(line, store, &mut theirs);
                }
                CacheStep::Flush(line, invalidate) => {
                    prop_assert_eq!(caches.flush(line, invalidate), book.flush(line, invalidate));
                }
            }
            prop_assert_eq!(&ours.0, &theirs.0);
        }
    }

    /// Whatever cores do, a line stored to reaches memory once more. (It may twice: L2 writes an older copy while L1 has
    /// a newer one, and what is sent are the bytes of that moment.) Nothing is written that was never stored to.
    #[test]
    fn no_write_is_lost_between_cores(
        steps in prop::collection::vec((0usize..3, 0u64..96, any::<bool>(), 0u8..30), 0..800),
        llc: bool,
        inclusive: bool,
    ) {
        let mut caches = Caches::new(&hierarchy(llc, inclusive, 3)).unwrap();
        caches.use_cores(3);
        let (mut due, mut ever) = (BTreeSet::new(), BTreeSet::new());
        for (core, line, store, flush) in steps {
            let mut log = TrafficLog::default();
            caches.access(core, line, line, store, &mut log);
            if store {
                due.insert(line);
                ever.insert(line);
            }
            let mut written: Vec<u64> = log.0.iter().filter_map(|t| match t {
                Traffic::Write(line) => Some(*line),
                Traffic::Read(_) => None,
            }).collect();
            let mut flushed = None;
            if flush == 0 {
                flushed = Some(line..line + 1);
                written.extend(caches.flush(line, store).then_some(line));
            }
            if flush == 1 {
                flushed = Some(line..line + 9);
                written.extend((line..line + 9).filter(|&l| caches.flush(l, true)));
            }
            for line in written {
                prop_assert!(ever.contains(&line), "line {} was written but never stored to", line);
                due.remove(&line);
            }
            let late = flushed.and_then(|range| due.range(range).next());
            prop_assert_eq!(late, None, "flushing must write it");
        }
        let last: BTreeSet<u64> = caches.drain().into_iter().collect();
        prop_assert!(last.is_superset(&due) && last.is_subset(&ever), "{:?} of {:?}", last, due);
        prop_assert!(caches.drain().is_empty());
    }

    #[test]
    fn events_survive_the_stream_and_a_cut_is_only_short(events in prop::collection::vec(event(), 0..60)) {
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        for event in &events {
            bytes.extend(encoder.event(event));
        }
        let (mut decoder, mut at, mut read) = (Decoder::default(), 0, Vec::new());
        while at < bytes.len() {
            // Every shorter prefix is short and changes nothing.
            let mut cut = 0;
            let (event, length) = loop {
                match decoder.next(&bytes[at..at + cut]) {
                    Err(Undecodable::Short) => cut += 1,
                    other => break other.unwrap(),
                }
            };
            prop_assert_eq!(length, cut);
            read.push(event);
            at += length;
        }
        prop_assert_eq!(read, events);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut decoder, mut at) = (Decoder::default(), 0);
        while let Ok((_, length)) = decoder.next(&bytes[at..]) {
            at += length;
        }
    }
}

fn event() -> impl Strategy<Value = RecorderEvent> {
    let data = prop::option::of(any::<[u8; 32]>().prop_map(|half| {
        let mut data = [0; 64];
        data[16..48].copy_from_slice(&half);
        data
    }));
    prop_oneof![
        8 => (any::<u64>(), any::<u16>(), 0u8..11, any::<u64>(), data)
            .prop_map(|(gap, thread, op, line, data)| RecorderEvent::Record(Record { gap, thread, op, line, data, site: (gap % 3 == 0).then_some(line as u32) })),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(line, lines)| RecorderEvent::Gone { line, lines }),
        1 => (any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(line, lines, from)| RecorderEvent::Moved { line, lines, from }),
        1 => (any::<u64>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..99))
            .prop_map(|(line, bytes, path)| RecorderEvent::File { line, bytes, identity: (bytes, line), path }),
        1 => (any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(line, address, bytes)| RecorderEvent::Mapped { line, address, bytes }),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(page, frame)| RecorderEvent::Frame { page, frame }),
        1 => (any::<u16>(), any::<u64>())
            .prop_map(|(thread, instructions)| RecorderEvent::Thread { thread, instructions }),
        1 => prop::collection::vec(any::<u8>(), 0..99).prop_map(RecorderEvent::Note),
        1 => prop::collection::vec(any::<u8>(), 0..99).prop_map(RecorderEvent::Became),
        1 => prop::collection::vec(any::<u8>(), 0..99).prop_map(RecorderEvent::Lost),
        1 => (any::<u16>(), any::<u32>(), prop::collection::vec(any::<(u64, u64)>(), 0..9))
            .prop_map(|(thread, site, ranges)| RecorderEvent::Synced { thread, site, ranges }),
        1 => any::<u32>().prop_map(RecorderEvent::Turn),
        1 => any::<u32>().prop_map(RecorderEvent::Forked),
        1 => (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>())
            .prop_map(|(process, parent, sites, files)| RecorderEvent::Child { process, parent, sites, files, execs: sites / 3 }),
        1 => Just(RecorderEvent::End),
    ]
}

#[test]
fn what_is_no_cache_is_refused() {
    let with = |bytes, ways| {
        let mut hierarchy = hierarchy(true, true, 1);
        hierarchy.l1 = Geometry { bytes, ways };
        Caches::new(&hierarchy).err().unwrap_or_default()
    };
    assert_eq!(with(32768, 8), "");
    assert!(with(32768, 0).starts_with("L1: "));
    assert!(with(1000, 1).contains("whole sets"));
    assert!(with(3 * 4096, 1).contains("power of two"));
    assert!(Caches::new(&hierarchy(true, true, 0)).is_err());
}
