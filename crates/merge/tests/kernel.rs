//! The model of KSM against the counters of a real kernel, Linux 6.18: `tests/kernel/linux-6.18.csv`, one row a
//! pass, counted from the start of each run. `running_kernel` asks the kernel that is running.

use sardonyx_merge::algorithms::Algorithm;
use sardonyx_merge::images::mixes::Mix;
use sardonyx_merge::images::{Data, ImageMachine, Images, PageExtent, Snapshot};
use sardonyx_merge::ksm::settings::{self, Preset};

const MEASURED: &str = include_str!("kernel/linux-6.18.csv");

fn machine(mix: Mix, pages: u64, passes: u64) -> ImageMachine {
    let last = mix.last_write().unwrap_or(passes);
    let snapshot = |pass| Snapshot {
        data: Data::Memory(mix.snapshot(pages, pass)),
        extents: vec![PageExtent {
            first: 0,
            pages: pages as u32,
            offset: 0,
        }],
        names: Vec::new(),
        missing: 0,
        holes: 0,
    };
    ImageMachine {
        name: mix.name().to_owned(),
        snapshots: (1..=last).map(snapshot).collect(),
        process: None,
        ended: None,
    }
}

fn parse(label: &str) -> (Mix, Vec<(&'static str, &str)>) {
    let mut knobs = Vec::new();
    let mut name = label;
    while let Some((rest, end)) = name.rsplit_once('_') {
        let cut = end.find(|c: char| c.is_ascii_digit()).unwrap_or(end.len());
        let key = match &end[..cut] {
            "smart" => "ksm.smart_scan",
            "uzp" => "ksm.use_zero_pages",
            "mps" => "ksm.max_page_sharing",
            _ => break,
        };
        knobs.push((key, &end[cut..]));
        name = rest;
    }
    let mix = Mix::ALL.into_iter().find(|mix| mix.name() == name);
    (mix.unwrap_or_else(|| panic!("{name}")), knobs)
}

#[test]
fn all_counters_of_the_kernel_are_met_pass_by_pass() {
    let mut rows: Vec<(&str, Vec<i64>)> = Vec::new();
    for line in MEASURED.lines().skip(1) {
        let (label, numbers) = line.split_once(',').unwrap();
        rows.push((
            label,
            numbers.split(',').map(|n| n.parse().unwrap()).collect(),
        ));
    }
    let mut values = 0;
    for run in rows.chunk_by(|a, b| a.0 == b.0) {
        let (mix, knobs) = parse(run[0].0);
        let pages = match mix {
            Mix::G257 => 4112,
            Mix::Paper => 10_000,
            _ => 4096,
        };
        let machine = machine(mix, pages, run.len() as u64);
        let images = Images::read(vec![machine], &mut |_, _| true)
            .unwrap()
            .unwrap();
        let mut settings = Preset::Linux6.settings();
        for (key, value) in knobs {
            settings::set(&mut settings, &settings::rows(), key, value).unwrap();
        }
        let merges = Algorithm::named("ksm").unwrap().merges.as_ref().unwrap();
        let mut runner = (merges.on_images)(&images, vec![true], &settings);
        for (label, row) in run {
            assert!(runner.pass(&mut |_| true));
            let c = runner.counters();
            let model = [
                c.pages_shared as i64,
                c.pages_sharing as i64,
                c.pages_unshared as i64,
                c.pages_volatile as i64,
                c.pages_skipped as i64,
                c.pages_scanned as i64,
                c.ksm_zero_pages as i64,
                c.stable_node_chains as i64,
                c.stable_node_dups as i64,
                c.general_profit,
                c.rmap_items as i64,
                runner.frames() as i64,
            ];
            assert_eq!(row[1..], model, "{label}, pass {}", row[0]);
            values += model.len() - 1;
        }
    }
    assert_eq!(values, 2882);
}

#[test]
fn the_documentation_has_the_keys_as_they_are() {
    let [keys, applications] = sardonyx_merge::timed::tables();
    let tables = [
        ("pageforge-keys", keys),
        ("pageforge-applications", applications),
        ("merge-keys", sardonyx_merge::keys::table()),
    ];
    for (name, table) in tables {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables");
        let path = format!("{root}/{name}.tsv");
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(&path, &table).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap();
        assert_eq!(there, table, "{path}: run with UPDATE_REFERENCE=1");
    }
}
