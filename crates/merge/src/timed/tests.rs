//! Properties of merging in time: no machine sees another's writes, the thread merges what the algorithm merges, and
//! times add up.

use super::initial_memory::Initial;
use super::live::{Live, Touch};
use super::queries::Done;
use super::run::{Played, TimedRun};
use super::*;
use crate::Page;
use crate::images::View;
use sardonyx::line::{LINE_BYTES, Logical};
use sardonyx::machine::{Backing, PAGE_LINES};
use sardonyx::units::Time;

/// Two small machines under small caches, most of whose pages are equal, and short queries.
fn question(design: &str, more: &[(&str, &str)]) -> Question {
    let sets = [
        ("cores", "3"),
        ("caches.l2.bytes", "8192"),
        ("caches.llc.bytes", "65536"),
        ("vms.mib", "1"),
        ("vms.unmergeable_permille", "300"),
        ("window.ms", "4"),
        ("window.warmup_ms", "1"),
        ("window.phase", "merging"),
        ("ksm.sleep_millisecs", "0"),
        ("silo.queries_per_second", "20000"),
        ("silo.instructions", "20000"),
        ("silo.hot_kib", "64"),
        ("silo.cold_kib", "512"),
        ("silo.mergeable_percent", "60"),
    ];
    let sets = sets.iter().chain(more);
    Question {
        application: "silo".to_owned(),
        design: design.to_owned(),
        memory: "no-encryption".to_owned(),
        machine: "pageforge".to_owned(),
        sets: sets
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        images: Vec::new(),
        seed: 7,
    }
}

fn images(plan: &TimedPlan, seed: u64) -> Arc<Images> {
    let pages = plan.settings.get(&keys::VM_MIB) * 256;
    let machines = vms::machines(&plan.settings, plan.machine.cores as u64, pages, seed);
    let images = Images::read(machines, &mut |_, _| true).unwrap().unwrap();
    Arc::new(images)
}

fn settled<'i>(question: &Question, plan: &TimedPlan, images: &'i Images) -> Settled<'i> {
    let settled = plan.settle(images, question.seed, &mut || true);
    settled.unwrap()
}

/// Plays it, and compares every page of every machine, as its page table and memory have it, with the image after the
/// machine's own stores in their order.
fn nobody_sees_anothers_writes(question: &Question) -> (u64, u64) {
    let plan = question.plan().unwrap();
    let images = images(&plan, question.seed);
    let run = TimedRun::new(
        &plan,
        &images,
        settled(question, &plan, &images),
        question.seed,
    );
    let mut model: Vec<Vec<u8>> = Vec::new();
    for machine in &images.machines {
        let pages = machine.space.first..machine.space.end;
        let mut bytes: Vec<u8> = Vec::new();
        for page in pages {
            // Writes between passes came before the window, and memory under the caches has them too.
            let mut host = run.host.lock().unwrap();
            let own = host.scan.as_mut().and_then(|scan| {
                let frame = scan.merging.frame(page)?;
                Some(*scan.merging.live().bytes(frame))
            });
            let image = images.bytes(images.last(page).unwrap());
            bytes.extend(own.as_ref().unwrap_or(image));
        }
        model.push(bytes);
    }
    let Played { system, .. } = run.play(&plan, &images, &mut |_| true).unwrap();
    let backing = Initial::new(&images);
    let mut memory = system.into_memory();
    let host = run.host.lock().unwrap();
    for (core, line, from, bytes) in &host.stores {
        let at = line.0 as usize * LINE_BYTES + usize::from(*from);
        model[*core][at..at + bytes.len()].copy_from_slice(bytes);
    }
    assert!(!host.stores.is_empty());
    for (machine, bytes) in model.iter().enumerate() {
        for (at, expected) in bytes.as_chunks::<LINE_BYTES>().0.iter().enumerate() {
            let (page, line) = (at as u64 / PAGE_LINES, at as u64 % PAGE_LINES);
            let (frame, _) = host.frames.tables()[machine].entry(page);
            let place = Logical(frame * PAGE_LINES + line);
            let found = memory
                .read_at_once(place)
                .unwrap_or_else(|| backing.line(place));
            assert_eq!(
                found, *expected,
                "machine {machine}, page {page}, line {line}"
            );
        }
    }
    (
        host.scan.as_ref().map_or(0, |scan| scan.done.merges),
        host.figures.copies,
    )
}

/// Pages that are written between passes are not in the images that memory is made of.
const NO_CHURN: (&str, &str) = ("vms.churn_permille", "0");

#[test]
fn a_write_to_a_merged_page_never_shows_in_another() {
    for design in ["ksm", "pageforge", "dsa-ksm"] {
        let mut merged = (0, 0);
        for seed in 0..4 {
            let mut asked = question(design, &[NO_CHURN, ("silo.queries_a_copy", "1")]);
            asked.seed = seed;
            let (merges, copies) = nobody_sees_anothers_writes(&asked);
            merged = (merged.0 + merges, merged.1 + copies);
        }
        assert!(merged.0 > 100 && merged.1 > 20, "{design}: {merged:?}");
    }
    nobody_sees_anothers_writes(&question("none", &[]));
}

#[test]
fn nor_does_it_over_a_memory_that_encrypts_and_shares_lines() {
    for memory in ["sca", "esd", "esd+sca", "dewrite"] {
        let mut asked = question("ksm", &[NO_CHURN, ("silo.queries_a_copy", "1")]);
        asked.memory = memory.to_owned();
        let (merges, copies) = nobody_sees_anothers_writes(&asked);
        assert!(merges > 20 && copies > 5, "{memory}: {merges}, {copies}");
    }
}

#[test]
fn the_design_is_that_of_the_memory_under_the_applications() {
    let tell = &mut |_: u64, _: u64| true;
    let mut figures = |memory: &str| {
        let mut asked = question("ksm", &[NO_CHURN, ("silo.queries_a_copy", "1")]);
        asked.memory = memory.to_owned();
        let answer = asked.answer(tell).unwrap().unwrap();
        assert_eq!(answer["memory"], memory);
        let figure = |name: &str| answer["metrics"][name].as_f64();
        [
            "encryption_energy_nj",
            "duplicate_writes",
            "loaded_lines_stored",
        ]
        .map(figure)
    };
    let [energy, duplicates, stored] = figures("no-encryption");
    assert_eq!([energy, duplicates, stored], [Some(0.0), Some(0.0), None]);
    let [energy, duplicates, stored] = figures("sca");
    assert!(energy > Some(0.0));
    assert_eq!([duplicates, stored], [Some(0.0), Some(1.0)]);
    let [energy, duplicates, stored] = figures("esd");
    assert!(
        energy > Some(0.0) && duplicates > Some(0.0),
        "{energy:?}, {duplicates:?}"
    );
    assert!(stored < Some(0.9), "{stored:?}");
}

#[test]
fn a_memory_encrypts_unless_it_is_told_not_to_and_a_bad_one_is_refused() {
    let mut asked = question("none", &[("encryption.enabled", "false")]);
    asked.memory = "sca".to_owned();
    let answer = asked.answer(&mut |_, _| true).unwrap().unwrap();
    assert_eq!(answer["metrics"]["encryption_energy_nj"], 0.0);
    for (memory, told) in [
        ("essd", "did you mean \"esd\"?"),
        ("esd+scha", "the policies"),
        ("", "the designs are"),
    ] {
        asked.memory = memory.to_owned();
        let error = asked.check().unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn the_thread_merges_what_the_algorithm_merges_in_its_order() {
    for design in ["ksm", "pageforge", "dsa-ksm"] {
        let quiet = [
            ("silo.stores_percent", "0"),
            ("silo.queries_a_copy", "1000000"),
        ];
        let asked = question(design, &quiet);
        let plan = asked.plan().unwrap();
        let images = images(&plan, asked.seed);
        let run = TimedRun::new(&plan, &images, settled(&asked, &plan, &images), asked.seed);
        run.play(&plan, &images, &mut |_| true).unwrap();
        let host = run.host.lock().unwrap();
        let done = &host.scan.as_ref().unwrap().done;
        let timed: Vec<Page> = done.order.iter().map(|(page, _)| *page).collect();
        assert!(timed.len() > 50, "{design}: {}", timed.len());

        let Settled {
            merging, cursor, ..
        } = settled(&asked, &plan, &images);
        let mut merging = merging.unwrap();
        merging.live().log = Some(Vec::new());
        let pages = images.pages() as Page;
        let (mut page, mut scanned) = (cursor, 0);
        while scanned < done.pages {
            if page == 0 {
                merging.begin_pass();
            }
            scanned += u64::from(merging.step(page));
            page = (page + 1) % pages;
        }
        let log = merging.live().log.take().unwrap();
        let merged = log.iter().filter_map(|event| match event {
            Touch::Merged(page, _) => Some(*page),
            _ => None,
        });
        assert_eq!(merged.collect::<Vec<_>>(), timed, "{design}");
    }
}

#[test]
fn what_a_query_takes_adds_up_and_so_does_what_a_core_does() {
    for design in ["none", "ksm", "pageforge", "dsa-ksm"] {
        let asked = question(design, &[]);
        let plan = asked.plan().unwrap();
        let images = images(&plan, asked.seed);
        let run = TimedRun::new(&plan, &images, settled(&asked, &plan, &images), asked.seed);
        run.play(&plan, &images, &mut |_| true).unwrap();
        let host = run.host.lock().unwrap();
        let all: Vec<&Done> = host.vms.iter().flat_map(|vm| &vm.done).collect();
        assert!(all.len() > 50, "{design}: {}", all.len());
        for done in all {
            assert_eq!(done.waited + done.thread + done.executed, done.sojourn);
        }
        for core in &host.cores {
            let all: Time = core.time.iter().copied().sum();
            let window = run.window.1.since(run.window.0);
            let off = all.ps().abs_diff(window.ps());
            assert!(off < 20_000_000, "{design}: {off} ps"); // a piece at each end
        }
    }
}

#[test]
fn both_designs_save_the_same_and_variants_run() {
    let tell = &mut |_: u64, _: u64| true;
    let metric = |question: &Question, name: &str, tell: &mut dyn FnMut(u64, u64) -> bool| {
        let answer = question.answer(tell).unwrap().unwrap();
        answer["metrics"][name].as_f64()
    };
    let settled = [("window.phase", "settled"), NO_CHURN];
    let saving =
        ["ksm", "pageforge", "dsa-ksm"].map(|d| metric(&question(d, &settled), "saving", tell));
    assert!(
        saving.iter().all(|each| *each == saving[0]) && saving[0] > Some(0.2),
        "{saving:?}"
    );
    for (design, key, value) in [
        ("ksm", "ksm.core", "in-order"),
        ("ksm", "ksm.access", "uncacheable"),
        ("ksm", "thread.placement", "drawn"),
        ("ksm", "thread.preempted", "true"),
        ("ksm", "ksm.use_zero_pages", "true"),
        ("pageforge", "pageforge.modules", "2"),
        ("pageforge", "pageforge.module", "network"),
        ("pageforge", "pageforge.candidate_cache", "true"),
    ] {
        let pages = metric(&question(design, &[(key, value)]), "pages_merged", tell);
        assert!(pages > Some(50.0), "{key}: {pages:?}");
    }
    let kept = [
        ("pageforge.candidate_cache", "true"),
        ("vms.alike_lines", "60"),
    ];
    let cycles = [&kept[1..], &kept]
        .map(|sets| metric(&question("pageforge", sets), "scan_table_cycles", tell));
    assert!(cycles[1] < cycles[0], "{cycles:?}");
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    for (key, value, told) in [
        ("ksm.pages_to_scam", "1", "ksm.pages_to_scan"),
        ("window.ms", "never", "1 to 100000"),
        ("silo.stores", "1", "silo.stores_percent"),
        ("caches.llc.byte", "1", "caches.llc.bytes"),
    ] {
        let error = question("ksm", &[(key, value)])
            .check()
            .unwrap_err()
            .to_string();
        assert!(error.contains(told), "{error}");
    }
    let mut asked = question("ksm", &[]);
    asked.application = "moose".to_owned();
    assert!(asked.check().unwrap_err().to_string().contains("moses"));
}

#[test]
fn a_page_that_holds_what_it_held_has_not_changed_whatever_it_held_meanwhile() {
    use crate::PageStore;
    let asked = question("ksm", &[]);
    let plan = asked.plan().unwrap();
    let images = images(&plan, asked.seed);
    let mut live = Live::new(View::new(&images, vec![true; images.machines.len()]));
    let page = 3;
    assert_eq!(live.unchanged(page), Some(false), "nobody has looked at it");
    live.keyed(page);
    let before = live.bytes(crate::PageFrame::Own(page))[..8].to_vec();
    live.store(page, 0, &[1; 8]);
    assert_eq!(live.unchanged(page), Some(false));
    live.store(page, 0, &before);
    assert_eq!(live.unchanged(page), Some(true), "an image's bytes again");
    live.store(page, 0, &[1; 8]);
    live.keyed(page);
    live.store(page, 0, &before);
    assert_eq!(live.unchanged(page), Some(false));
    live.store(page, 0, &[1; 8]);
    assert_eq!(live.unchanged(page), Some(true), "bytes of no image again");
}

#[test]
fn a_guest_gets_its_core_when_the_scheduler_says() {
    use super::thread::{Costs, Guests, Thread};
    /// On core 0 a query waits from a time on, which its guest has or has not begun; core 1 is idle.
    struct Guest {
        from: Time,
        woken: bool,
    }
    impl Guests for Guest {
        fn is_busy(&self, core: usize, at: Time) -> bool {
            core == 0 && self.from <= at
        }
        fn woken(&self, core: usize, now: Time) -> Option<Time> {
            (self.woken && self.is_busy(core, now)).then_some(self.from)
        }
    }
    let us = |us: u64| Time::from_ps(us * 1_000_000);
    // Each row has the query's arrival in microseconds, whether it woke its guest, and the time from which on the
    // thread is elsewhere.
    for (sets, from, woken, leaves) in [
        (&[][..], 2_000, true, 2_000),
        (&[], 1_000, true, 4_000),
        (&[], 2_000, false, 4_000),
        (&[("thread.preempted", "false")], 2_000, true, 4_000),
        (&[("thread.preempted_after_us", "0")], 1_000, true, 1_000),
        (
            &[("thread.preempted", "false"), ("thread.slice_us", "5000")],
            2_000,
            true,
            8_000,
        ),
        (
            &[("thread.preempted", "false"), ("thread.tick_us", "1000")],
            2_000,
            true,
            3_000,
        ),
    ] {
        let plan = question("ksm", sets).plan().unwrap();
        let costs = Costs::from_settings(&plan.machine, &plan.settings);
        let guest = Guest {
            from: us(from),
            woken,
        };
        let mut thread = Thread::new(&costs, 1, 2, queries::QueryDraw::new(0, 3));
        let mut has = |at: u64| thread.has(0, us(at), &costs, &guest);
        let left = (0..20_000).step_by(100).find(|at| !has(*at));
        assert_eq!(left, Some(leaves), "{sets:?} from {from}");
    }
}
