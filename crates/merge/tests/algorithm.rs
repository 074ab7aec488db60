//! An algorithm that no file of the crate has: one value, and everything that merges can run it.

use std::path::PathBuf;

use sardonyx_merge::algorithms::{Algorithm, Merges, register};
use sardonyx_merge::ksm::{PageSearch, Software, TreeWalk, Walkable};
use sardonyx_merge::question::Question;
use sardonyx_merge::run::PassRun;
use sardonyx_merge::{Checksum, Page, PageFrame, PageStore, timed};
use sardonyx_question::Names;
use serde_json::Value;

/// Software that takes every key twice, and so costs more and saves the same.
struct Doubtful(Software);

impl Doubtful {
    fn new() -> Doubtful {
        Doubtful(Software::new(Checksum::Jhash2))
    }
}

impl PageSearch for Doubtful {
    fn walk(
        &mut self,
        of: &mut impl PageStore,
        tree: &mut impl Walkable,
        frame: PageFrame,
    ) -> TreeWalk {
        self.0.walk(of, tree, frame)
    }

    fn key(&mut self, contents: &mut impl PageStore, page: Page) -> u32 {
        self.0.key(contents, page);
        self.0.key(contents, page)
    }

    fn begin(&mut self, page: Page) {
        self.0.begin(page);
    }

    fn cpu_ns(&self, checksum_ns: u64, compare_ns: u64) -> u64 {
        self.0.cpu_ns(checksum_ns, compare_ns)
    }
}

static DOUBTFUL: Algorithm = Algorithm {
    name: "doubtful",
    line: "takes every key twice",
    source: "a test",
    keys: Vec::new,
    timed_keys: Vec::new,
    merges: Some(Merges {
        looks_into_pages: false,
        on_images: |images, chosen, settings| {
            Box::new(PassRun::new(images, chosen, Doubtful::new(), settings))
        },
        in_time: |start| start.settle(Doubtful::new()),
        modules: |_, _| None,
    }),
};

fn in_time(design: &str, memory: &str) -> Value {
    let sets = [
        ("cores", "2"),
        ("vms.mib", "1"),
        ("window.ms", "2"),
        ("window.warmup_ms", "0"),
        ("window.phase", "merging"),
        ("ksm.sleep_millisecs", "0"),
        ("silo.queries_per_second", "20000"),
        ("silo.instructions", "20000"),
    ];
    let question = timed::Question {
        application: "silo".to_owned(),
        design: design.to_owned(),
        memory: memory.to_owned(),
        machine: "pageforge".to_owned(),
        sets: sets.map(|(key, value)| (key.into(), value.into())).to_vec(),
        images: Vec::new(),
        seed: 1,
    };
    let answer = question.answer(&mut |_, _| true).unwrap().unwrap();
    answer["metrics"].clone()
}

#[test]
fn one_value_makes_an_algorithm_that_merges_images_and_runs_in_time() {
    register(&DOUBTFUL);
    let folder = tempfile::tempdir().unwrap();
    let image: PathBuf = folder.path().join("a.raw");
    let pages = [[1; 4096], [2; 4096], [1; 4096], [1; 4096]];
    std::fs::write(&image, pages.concat()).unwrap();
    let question = Question {
        machines: vec![image],
        designs: Names(vec!["ksm".to_owned(), "doubtful".to_owned()]),
        kernel: "linux-4.4".to_owned(),
        passes: Some(4),
        what_if: false,
        ..Question::default()
    };
    let answer = question.answer(&mut |_, _| true).unwrap().unwrap();
    let figures = [0, 1].map(|run: usize| &answer.runs[run].metrics);
    assert_eq!(figures.map(|figures| figures.saved_pages), [2; 2]);
    let [ksm, doubtful] = figures.map(|of| of.merging.as_ref().expect("it merges").cpu_seconds);
    assert!(doubtful > ksm);

    let [ksm, doubtful] = ["ksm", "doubtful"].map(|design| in_time(design, "esd"));
    for name in ["thread_hash_cycles_a_page", "pages_merged"] {
        let [ksm, doubtful] = [&ksm, &doubtful].map(|metrics| metrics[name].as_f64().unwrap());
        assert!(ksm > 0.0 && doubtful > 0.0, "{name}: {ksm}, {doubtful}");
    }
    let hashing = |of: &Value| of["thread_hash_share"].as_f64();
    assert!(hashing(&doubtful) > hashing(&ksm));
}

/// It merges what the kernel merges, and takes the processor a call for each comparison, not none.
#[test]
fn an_accelerator_saves_processor_time_but_not_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let image: PathBuf = folder.path().join("a.raw");
    let pages: Vec<[u8; 4096]> = (0..64u8).map(|page| [page / 2 + 1; 4096]).collect();
    std::fs::write(&image, pages.concat()).unwrap();
    let question = Question {
        machines: vec![image],
        designs: Names(vec!["ksm".to_owned(), "dsa-ksm".to_owned()]),
        kernel: "linux-4.4".to_owned(),
        passes: Some(4),
        what_if: false,
        ..Question::default()
    };
    let answer = question.answer(&mut |_, _| true).unwrap().unwrap();
    let figures = [0, 1].map(|run: usize| &answer.runs[run].metrics);
    assert_eq!(figures[0].saved_pages, figures[1].saved_pages);
    assert!(figures[0].saved_pages > 20);
    let [kernel, offloaded] = figures.map(|of| of.merging.as_ref().expect("it merges").cpu_seconds);
    assert!(
        0.0 < offloaded && offloaded < kernel,
        "{offloaded}, {kernel}"
    );
}

#[test]
fn an_unknown_algorithm_is_refused_with_the_nearest() {
    let Err(error) = Algorithm::named("pagforge") else {
        panic!("there is none");
    };
    assert!(
        error.contains("did you mean \"pageforge\"? they are none, ksm, pageforge, dsa-ksm"),
        "{error}"
    );
}
