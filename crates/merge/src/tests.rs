//! Properties of every merging algorithm, on pages that others write at any time.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::images::checksum;
use super::ksm::settings::{self, Knobs, Preset};
use super::ksm::{Ksm, Maps, PageSearch, Software};
use super::pageforge::PageForge;
use super::{Checksum, PAGE_BYTES, Page, PageBytes, PageFrame, PageStore};
use sardonyx::line::{LINE_BYTES, Line};

/// A write that happens after so many looks at pages.
#[derive(Clone, Copy, Debug)]
struct TimedWrite {
    after: u16,
    page: Page,
    content: u8,
}

struct SharedPages {
    own: Vec<PageBytes>,
    frozen: HashMap<u32, PageBytes>,
    next: u32,
    coming: VecDeque<TimedWrite>,
    looks: u16,
    written: VecDeque<Page>,
    colliding: bool,
    /// The frame that each page maps, by the calls that froze and mapped frames.
    frames: Vec<MappedFrame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MappedFrame {
    Nothing,
    Own(usize),
    Merged(u32),
    Zero,
}

/// Contents that differ in one byte: some in lines that ECC keys see, and some in others.
fn content(number: u8) -> PageBytes {
    let mut bytes = [0; PAGE_BYTES];
    let at = [0, 7, 8, 700, 2048, 4095][usize::from(number % 6)];
    bytes[at] = number / 6;
    bytes
}

impl SharedPages {
    fn new(contents: &[u8], colliding: bool) -> SharedPages {
        SharedPages {
            own: contents.iter().map(|number| content(*number)).collect(),
            frozen: HashMap::new(),
            next: 0,
            coming: VecDeque::new(),
            looks: 0,
            written: VecDeque::new(),
            colliding,
            frames: (0..contents.len()).map(MappedFrame::Own).collect(),
        }
    }

    fn write(&mut self, page: Page, number: u8) {
        self.own[page as usize] = content(number);
        self.written.push_back(page);
    }

    /// Does the writes that are due before a look at a page.
    fn look(&mut self) {
        self.looks = self.looks.saturating_add(1);
        while let Some(write) = self.coming.front().copied() {
            if write.after > self.looks {
                break;
            }
            self.coming.pop_front();
            self.write(write.page, write.content);
        }
    }

    fn bytes(&self, frame: PageFrame) -> &PageBytes {
        match frame {
            PageFrame::Own(page) => &self.own[page as usize],
            PageFrame::Merged(frozen) => &self.frozen[&frozen],
        }
    }
}

impl PageStore for SharedPages {
    fn checksum(&mut self, page: Page, kind: Checksum) -> u32 {
        self.look();
        match self.colliding {
            true => 0,
            false => checksum(&self.own[page as usize], kind),
        }
    }

    fn unchanged(&self, _: Page) -> Option<bool> {
        None
    }

    fn keyed(&mut self, _: Page) {}

    fn is_zero(&mut self, page: Page) -> bool {
        self.own[page as usize] == [0; PAGE_BYTES]
    }

    fn compare(&mut self, a: PageFrame, b: PageFrame) -> Ordering {
        // The first half is compared, and then the second half as it is when its turn comes.
        self.look();
        let half = PAGE_BYTES / 2;
        let first = self.bytes(a)[..half].cmp(&self.bytes(b)[..half]);
        self.look();
        first.then_with(|| self.bytes(a)[half..].cmp(&self.bytes(b)[half..]))
    }

    fn identical(&mut self, a: PageFrame, b: PageFrame) -> bool {
        self.bytes(a) == self.bytes(b)
    }

    fn line(&mut self, frame: PageFrame, line: usize) -> Line {
        self.look();
        let start = line * LINE_BYTES;
        self.bytes(frame)[start..start + LINE_BYTES]
            .try_into()
            .unwrap()
    }

    fn freeze(&mut self, page: Page) -> u32 {
        self.next += 1;
        self.frozen.insert(self.next, self.own[page as usize]);
        let frame = self.frames[page as usize];
        let same = self.frames.iter_mut().filter(|other| **other == frame);
        same.for_each(|other| *other = MappedFrame::Merged(self.next));
        self.next
    }

    fn merged(&mut self, page: Page, frozen: u32) {
        self.frames[page as usize] = MappedFrame::Merged(frozen);
    }

    fn zeroed(&mut self, page: Page) {
        self.frames[page as usize] = MappedFrame::Zero;
    }

    fn release(&mut self, frozen: u32) {
        self.frozen.remove(&frozen).expect("a frame is freed once");
    }

    fn next_write(&mut self) -> Option<Page> {
        self.written.pop_front()
    }
}

fn knobs(preset: Preset, sets: &[(&str, &str)]) -> Knobs {
    let mut settings = preset.settings();
    for (key, value) in sets {
        settings::set(&mut settings, &settings::rows(), key, value).unwrap();
    }
    Knobs::from_settings(&settings)
}

/// Checks that each page shows the bytes last written to it, and that the counters add up.
fn check<S: PageSearch>(ksm: &Ksm<SharedPages, S>) {
    let mut mappings: HashMap<u32, u32> = HashMap::new();
    for page in 0..ksm.contents.own.len() as Page {
        let own = &ksm.contents.own[page as usize];
        match ksm.frame(page) {
            Some(PageFrame::Merged(frozen)) => {
                assert!(
                    ksm.contents.frozen[&frozen] == *own,
                    "page {page} shows another's bytes"
                );
                *mappings.entry(frozen).or_default() += 1;
            }
            Some(PageFrame::Own(_)) => {}
            None => assert!(*own == [0; PAGE_BYTES], "page {page} shows zeros"),
        }
    }
    let live: HashMap<u32, u32> = ksm.merged_frames().collect();
    assert_eq!(live, mappings);
    assert_eq!(
        ksm.contents.frozen.len(),
        live.len(),
        "frames are freed when nobody maps them"
    );
    let c = ksm.counters();
    let items = c.pages_shared + c.pages_sharing + c.pages_unshared + c.pages_volatile;
    assert_eq!(items, c.rmap_items);
}

fn run<S: PageSearch>(
    search: S,
    knobs: Knobs,
    start: &[u8],
    colliding: bool,
    passes: &[Vec<TimedWrite>],
) {
    let mut ksm = Ksm::new(
        SharedPages::new(start, colliding),
        search,
        knobs,
        start.len(),
    );
    for page in 0..start.len() as Page {
        ksm.map(page);
    }
    for writes in passes {
        ksm.contents.coming.extend(writes.iter().copied());
        ksm.contents
            .coming
            .make_contiguous()
            .sort_by_key(|write| write.after);
        ksm.contents.looks = 0;
        ksm.pass(&mut |_| true);
        while let Some(write) = ksm.contents.coming.pop_front() {
            ksm.write(write.page);
            ksm.contents.write(write.page, write.content);
            ksm.contents.written.clear();
        }
        check(&ksm);
    }
}

/// Writes between passes, then makes passes until nothing changes. Returns for each page the first page on the same
/// frame.
fn settled<S: PageSearch>(
    search: S,
    knobs: Knobs,
    start: &[u8],
    history: &[Vec<(usize, u8)>],
) -> Vec<usize> {
    let pages = start.len();
    let mut ksm = Ksm::new(SharedPages::new(start, false), search, knobs, pages);
    (0..pages as Page).for_each(|page| ksm.map(page));
    for writes in history {
        assert!(ksm.pass(&mut |_| true));
        for (page, number) in writes {
            let page = (page % pages) as Page;
            ksm.write(page);
            ksm.contents.write(page, *number);
            ksm.contents.written.clear();
        }
    }
    (0..12).for_each(|_| assert!(ksm.pass(&mut |_| true)));
    check(&ksm);
    let frames: Vec<Option<PageFrame>> = (0..pages as Page).map(|page| ksm.frame(page)).collect();
    let first = |frame: &Option<PageFrame>| frames.iter().position(|other| other == frame);
    frames.iter().filter_map(first).collect()
}

const PAGES: u32 = 14;

fn writes() -> impl Strategy<Value = Vec<TimedWrite>> {
    let write = (0u16..400, 0..PAGES, 0u8..18);
    let write = write.prop_map(|(after, page, content)| TimedWrite {
        after,
        page,
        content,
    });
    prop::collection::vec(write, 0..6)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(400))]

    #[test]
    fn pages_with_different_bytes_never_merge_and_a_write_never_shows_elsewhere(
        start in prop::collection::vec(0u8..18, PAGES as usize),
        passes in prop::collection::vec(writes(), 1..12),
        colliding: bool,
        preset in prop::sample::select(vec![Preset::Linux6, Preset::Linux44, Preset::Paper]),
        smart in prop::sample::select(vec!["true", "false"]),
        zero in prop::sample::select(vec!["true", "false"]),
        sharing in prop::sample::select(vec!["2", "3", "256"]),
    ) {
        let sets = [
            ("ksm.smart_scan", smart),
            ("ksm.use_zero_pages", zero),
            ("ksm.max_page_sharing", sharing),
        ];
        let knobs = knobs(preset, &sets);
        run(Software::new(knobs.checksum), knobs.clone(), &start, colliding, &passes);
        let hardware = PageForge::new(&sardonyx::settings::Settings::default());
        run(hardware, knobs, &start, colliding, &passes);
    }

    #[test]
    fn once_nothing_changes_pageforge_saves_the_pages_that_ksm_saves(
        start in prop::collection::vec(0u8..60, 1..150),
        history in prop::collection::vec(prop::collection::vec((0usize..150, 0u8..60), 0..30), 0..5),
    ) {
        let knobs = knobs(Preset::Paper, &[]);
        let software = settled(Software::new(knobs.checksum), knobs.clone(), &start, &history);
        let hardware = PageForge::new(&sardonyx::settings::Settings::default());
        let hardware = settled(hardware, knobs, &start, &history);
        let mut numbers = start;
        for (page, number) in history.iter().flatten() {
            let page = page % numbers.len();
            numbers[page] = *number;
        }
        // The slow, obvious model: whatever stands twice is merged, into one frame.
        let bytes: Vec<PageBytes> = numbers.iter().map(|number| content(*number)).collect();
        let first = |page: usize| bytes.iter().position(|other| *other == bytes[page]);
        let expected: Vec<usize> = (0..bytes.len()).filter_map(first).collect();
        prop_assert_eq!(&software, &expected);
        prop_assert_eq!(&hardware, &expected);
    }
}

#[test]
fn last_refill_or_a_duplicate_completes_the_key_and_nothing_else_does() {
    use super::pageforge::ScanTable;
    use sardonyx::ecc::Matrix;
    // Contents 6 and 12 differ in byte 0, so the first line decides.
    let mut contents = SharedPages::new(&[6, 12, 6], false);
    let mut table = ScanTable::new(Matrix::TruncatedHamming, 0);
    table.insert_ppn(0, PageFrame::Own(1), 31, 31);
    table.insert_pfe(PageFrame::Own(0), false, 0);
    table.run(&mut contents);
    let info = table.get_pfe_info();
    assert!(info.scanned && !info.duplicate && info.key.is_none());
    assert_eq!(table.work.compared_lines, 2);
    table.update_pfe(true, 31);
    table.run(&mut contents);
    let key = table.get_pfe_info().key.expect("L was set");
    assert_eq!(
        table.work.key_lines, 3,
        "the first minikey passed by in the comparison"
    );
    table.insert_ppn(0, PageFrame::Own(2), 31, 31);
    table.insert_pfe(PageFrame::Own(0), false, 0);
    table.run(&mut contents);
    let info = table.get_pfe_info();
    assert!(info.duplicate && info.ptr == 0);
    assert_eq!(info.key, Some(key));
    assert_eq!(
        key.to_le_bytes(),
        [Matrix::TruncatedHamming.encode(1), 0, 0, 0]
    );
    // Other offsets put other lines into the key: byte 700 lies in line 10.
    let mut contents = SharedPages::new(&[9], false);
    table.clear();
    table.update_ecc_offset([10, 0, 0, 0]);
    table.insert_pfe(PageFrame::Own(0), true, 31);
    table.run(&mut contents);
    assert_eq!(
        table.get_pfe_info().key,
        Some(0),
        "byte 700 is in another word of the line"
    );
}

#[test]
fn what_a_process_held_that_has_exited_makes_room_before_the_others_are_scanned() {
    // There are five equal pages, of which a frame takes three; the last two are of a process of their own.
    let knobs = knobs(
        Preset::Linux6,
        &[("ksm.max_page_sharing", "3"), ("ksm.smart_scan", "false")],
    );
    let counted = |exits: bool| {
        let search = Software::new(knobs.checksum);
        let mut ksm = Ksm::new(
            SharedPages::new(&[6, 6, 6, 6, 6], false),
            search,
            knobs.clone(),
            5,
        );
        for page in [0, 3, 4] {
            ksm.map(page);
        }
        (0..2).for_each(|_| assert!(ksm.pass(&mut |_| true)));
        (1..3).for_each(|page| ksm.map(page));
        (0..1).for_each(|_| assert!(ksm.pass(&mut |_| true)));
        let gone: std::ops::Range<Page> = 3..5;
        match exits {
            true => ksm.exit(&[gone]),
            false => gone.for_each(|page| ksm.unmap(page)),
        }
        assert!(ksm.pass(&mut |_| true));
        let c = ksm.counters();
        [
            c.pages_shared,
            c.pages_sharing,
            c.pages_volatile,
            c.stable_node_dups,
        ]
    };
    assert_eq!(counted(true), [1, 2, 0, 0]);
    assert_ne!(
        counted(false),
        counted(true),
        "the two differ, so the order counts"
    );
}

/// An event of a few processes between two passes. All have the same number of pages.
#[derive(Clone, Copy, Debug)]
enum ProcessEvent {
    Fork {
        parent: usize,
    },
    Write {
        process: usize,
        page: usize,
        content: u8,
    },
    Exit {
        process: usize,
    },
    Pass,
}

fn events() -> impl Strategy<Value = Vec<ProcessEvent>> {
    let event = prop_oneof![
        1 => (0..6usize).prop_map(|parent| ProcessEvent::Fork { parent }),
        6 => (0..6usize, 0..5usize, 0..4u8)
            .prop_map(|(process, page, content)| ProcessEvent::Write { process, page, content }),
        1 => (0..6usize).prop_map(|process| ProcessEvent::Exit { process }),
        4 => Just(ProcessEvent::Pass),
    ];
    prop::collection::vec(event, 1..60)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(256))]

    /// Every page maps the frame that it maps if each frame is one thing with a name of its own: a fork copies names,
    /// a write takes a new one, and what becomes a merged frame does so for all that map it.
    #[test]
    fn pages_that_a_fork_shares_are_one_frame(
        history in events(),
        sharing in 2..5u8,
        zeros in any::<bool>(),
    ) {
        const EACH: usize = 5;
        const MOST: usize = 6;
        let sets = [("ksm.max_page_sharing", sharing.to_string()), ("ksm.use_zero_pages", u8::from(zeros).to_string())];
        let knobs = knobs(Preset::Linux6, &sets.each_ref().map(|(key, value)| (*key, &**value)));
        let start = SharedPages::new(&[0; MOST * EACH], false);
        let mut ksm = Ksm::new(start, Software::new(knobs.checksum), knobs, MOST * EACH);
        ksm.contents.frames.fill(MappedFrame::Nothing);
        let mut lives = vec![true];
        for page in 0..EACH {
            ksm.map(page as Page);
            ksm.contents.own[page] = content(page as u8 % 3);
            ksm.contents.frames[page] = MappedFrame::Own(page);
        }
        let mut fresh = EACH;
        for event in history {
            match event {
                ProcessEvent::Fork { parent } if lives.get(parent) == Some(&true) && lives.len() < MOST => {
                    for page in 0..EACH {
                        let (from, to) = (parent * EACH + page, lives.len() * EACH + page);
                        ksm.fork(from as Page, to as Page);
                        ksm.contents.own[to] = ksm.contents.own[from];
                        ksm.contents.frames[to] = ksm.contents.frames[from];
                    }
                    lives.push(true);
                }
                ProcessEvent::Write { process, page, content: number } if lives.get(process) == Some(&true) => {
                    let page = process * EACH + page;
                    ksm.write(page as Page);
                    ksm.contents.own[page] = content(number);
                    ksm.contents.frames[page] = MappedFrame::Own(fresh);
                    fresh += 1;
                }
                ProcessEvent::Exit { process } if lives.get(process) == Some(&true) => {
                    lives[process] = false;
                    let of = process * EACH..(process + 1) * EACH;
                    ksm.contents.own[of.clone()].fill([0; PAGE_BYTES]);
                    ksm.contents.frames[of.clone()].fill(MappedFrame::Nothing);
                    ksm.exit(std::slice::from_ref(&(of.start as Page..of.end as Page)));
                }
                ProcessEvent::Pass => {
                    ksm.pass(&mut |_| true);
                }
                _ => {}
            }
            check(&ksm);
            for (page, mapped) in ksm.contents.frames.iter().enumerate() {
                match (*mapped, ksm.maps(page as Page), ksm.frame(page as Page)) {
                    (MappedFrame::Nothing, Maps::Nothing, None)
                    | (MappedFrame::Zero, Maps::Zero, None)
                    | (MappedFrame::Own(_), Maps::Own, Some(PageFrame::Own(_))) => {}
                    (MappedFrame::Merged(a), Maps::Merged, Some(PageFrame::Merged(b))) if a == b => {}
                    other => prop_assert!(false, "page {page}: {other:?}"),
                }
            }
            let frames = ksm.contents.frames.iter().filter(|frame| **frame != MappedFrame::Nothing);
            let frames: HashSet<MappedFrame> = frames.copied().collect();
            prop_assert_eq!(ksm.frames(), frames.len() as u64);
        }
    }
}
