//! The estimator against slow, obvious counting.
use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use proptest::prelude::*;
use sardonyx_estimate::{
    Compressed, Cutting, Estimate, EstimateError, Format, Question, estimate, plan,
};

fn question(path: &Path) -> Question {
    Question {
        path: path.display().to_string(),
        trace: None,
        blocks: vec![1024, 4096, 8192],
        content_defined: Some(4096),
        compress: None,
        memory: 64 << 20,
        state: None,
    }
}

fn run(question: &Question) -> Estimate {
    estimate(question, &|_, _| true).unwrap()
}

/// Chunks of files whose bytes change slowly enough to have duplicates.
fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let file = (
        0..40_000_usize,
        0..4_u8,
        prop_oneof![Just(1024_usize), Just(4096), Just(700)],
    );
    let file = file.prop_map(|(length, seed, period)| {
        let byte = |at: usize| ((at / period) as u8 % 5).wrapping_mul(seed);
        (0..length).map(byte).collect()
    });
    prop::collection::vec(file, 0..6)
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]

    #[test]
    fn fixed_blocks_equal_a_map_of_their_bytes(files in contents()) {
        let folder = tempfile::tempdir().unwrap();
        for (number, bytes) in files.iter().enumerate() {
            fs::write(folder.path().join(number.to_string()), bytes).unwrap();
        }
        let found = run(&question(folder.path()));
        prop_assert_eq!(found.files, files.len() as u64);
        prop_assert_eq!(found.bytes, files.iter().map(|bytes| bytes.len() as u64).sum::<u64>());
        for cutting in found.cuttings.iter().filter(|cutting| cutting.kind == "fixed") {
            let size = cutting.chunk_bytes.unwrap() as usize;
            let mut plain: HashMap<&[u8], u64> = HashMap::new();
            for chunk in files.iter().flat_map(|bytes| bytes.chunks(size)) {
                *plain.entry(chunk).or_default() += 1;
            }
            prop_assert_eq!(cutting.unique_chunks, plain.len() as u64);
            let bytes: usize = plain.keys().map(|chunk| chunk.len()).sum();
            prop_assert_eq!(cutting.unique_bytes, bytes as u64);
            prop_assert_eq!(cutting.chunks, plain.values().sum::<u64>());
            let zero = plain.iter().filter(|(chunk, _)| chunk.iter().all(|&byte| byte == 0));
            prop_assert_eq!(cutting.zero_chunks, zero.map(|(_, times)| times).sum::<u64>());
            for row in &cutting.references {
                let within = plain.values().filter(|times| (row.least..=row.most).contains(times));
                prop_assert_eq!(row.contents, within.count() as u64);
            }
        }
    }
}

fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(seed ^ seed >> 29).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn chunks_by_content_find_what_has_moved() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = noise(3_000_000, 7);
    fs::write(folder.path().join("a"), &bytes).unwrap();
    fs::write(folder.path().join("b"), [b"three", &bytes[..]].concat()).unwrap();
    let found = run(&question(folder.path()));
    let (fixed, by_content) = (&found.cuttings[1], &found.cuttings[3]);
    assert!(
        fixed.ratio.unwrap() < 1.01,
        "five bytes more, and no block is as it was"
    );
    assert!(by_content.ratio.unwrap() > 1.9, "{:?}", by_content.ratio);
    assert_eq!(by_content.bytes, found.bytes);
}

/// A file of `length` bytes with these blocks of 4 KiB of noise, and holes between them.
fn sparse(path: &Path, length: u64, blocks: &[u64]) {
    let file = fs::File::create(path).unwrap();
    file.set_len(length).unwrap();
    for &block in blocks {
        file.write_all_at(&noise(4096, block + 1), block * 4096)
            .unwrap();
    }
}

/// Whether the file system of temporary files says where holes of 4 KiB are.
fn tells_holes(folder: &Path) -> bool {
    let path = folder.join("probe");
    sparse(&path, 3 * 4096, &[0, 2]);
    let allocated = fs::metadata(&path).unwrap().blocks() * 512;
    fs::remove_file(&path).unwrap();
    allocated == 2 * 4096
}

#[test]
fn holes_of_every_size_are_no_chunks() {
    let folder = tempfile::tempdir().unwrap();
    if !tells_holes(folder.path()) {
        return;
    }
    // 15,000 blocks, of which 200 have data; the last one is a hole, and so is a whole buffer.
    let blocks: Vec<u64> = (0..200).map(|n| n * 73 + n % 2).collect();
    sparse(&folder.path().join("a"), 15_000 * 4096, &blocks);
    let found = run(&question(folder.path()));
    assert_eq!((found.bytes, found.hole_bytes), (200 * 4096, 14_800 * 4096));
    let [small, page, large, by_content] = &found.cuttings[..] else {
        panic!("four ways of cutting");
    };
    let counts = |cutting: &Cutting| (cutting.chunks, cutting.unique_chunks, cutting.zero_chunks);
    assert_eq!(counts(small), (800, 800, 0));
    assert_eq!(counts(page), (200, 200, 0));
    assert_eq!(page.ratio, Some(1.0));
    // A block that is half a hole is stored whole.
    assert_eq!((counts(large), large.bytes), ((200, 200, 0), 200 * 8192));
    assert_eq!(
        (by_content.bytes, by_content.ratio),
        (200 * 4096, Some(1.0))
    );
    // The same bytes where nothing tells of holes.
    let bytes = fs::read(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a"), &bytes).unwrap();
    let whole = run(&question(folder.path()));
    assert_eq!((whole.bytes, whole.hole_bytes), (15_000 * 4096, 0));
    let distinct = [801, 201, 201];
    let kept = |cutting: &Cutting| cutting.unique_chunks;
    assert_eq!(
        whole.cuttings.iter().map(kept).collect::<Vec<_>>()[..3],
        distinct
    );
}

#[test]
fn chunks_are_compressed_each_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    // Twice the same noise, which does not shrink, and text that does.
    let (noise, text) = (
        noise(64 << 10, 3),
        "of a feather ".repeat(5000).into_bytes(),
    );
    let text = &text[..32 << 10];
    fs::write(folder.path().join("a"), [&noise, &noise, text].concat()).unwrap();
    let asked = |level| Question {
        compress: level,
        blocks: vec![8192],
        ..question(folder.path())
    };
    let plain = run(&asked(None));
    assert_eq!(plain.cuttings[0].compressed, None);
    assert!(
        !serde_json::to_string(&plain)
            .unwrap()
            .contains("compressed")
    );
    let found = run(&asked(Some(3)));
    let fixed = &found.cuttings[0];
    let mut blocks: Vec<&[u8]> = text.chunks(8192).collect();
    let squeezed = |block: &&[u8]| zstd::bulk::compress(block, 3).unwrap().len() as u64;
    let all: u64 = blocks.iter().map(squeezed).sum();
    blocks.sort_unstable();
    blocks.dedup();
    let distinct: u64 = blocks.iter().map(squeezed).sum();
    let wanted = Compressed {
        compressed_bytes: (128 << 10) + all,
        unique_compressed_bytes: (64 << 10) + distinct,
        ratio_compressed: Some((160 << 10) as f64 / ((64 << 10) + distinct) as f64),
    };
    assert!(all < 2000, "{all}");
    assert_eq!(fixed.compressed.as_ref(), Some(&wanted));
    assert_eq!(fixed.unique_bytes, plain.cuttings[0].unique_bytes);
    let by_content = found.cuttings[1].compressed.as_ref().unwrap();
    assert!(
        by_content.unique_compressed_bytes < 80 << 10,
        "{by_content:?}"
    );
}

#[test]
fn a_run_that_was_broken_off_goes_on_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..4_usize {
        let bytes = noise(1_500_000 * number, number as u64 / 2);
        fs::write(folder.path().join(number.to_string()), bytes).unwrap();
    }
    let whole = serde_json::to_value(run(&question(folder.path()))).unwrap();
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("state");
    let asked = Question {
        state: Some(state.clone()),
        ..question(folder.path())
    };
    let mut breaks = 0;
    let end = loop {
        let looks = Cell::new(0);
        let two = |_, _| {
            looks.set(looks.get() + 1);
            looks.get() < 2
        };
        match estimate(&asked, &two) {
            Ok(end) => break end,
            Err(EstimateError::Kept(_)) => breaks += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(breaks < 100);
    };
    assert!(breaks > 4, "{breaks}");
    assert_eq!(serde_json::to_value(end).unwrap(), whole);
    assert!(!state.exists(), "nothing is left to go on with");
}

#[test]
fn a_state_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), noise(5_000_000, 1)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let state = elsewhere.path().join("state");
    let asked = Question {
        state: Some(state.clone()),
        ..question(folder.path())
    };
    let stop = |_, _| false;
    estimate(&asked, &stop).unwrap_err();
    let other = Question {
        blocks: vec![4096],
        ..asked.clone()
    };
    let error = estimate(&other, &stop).unwrap_err().to_string();
    assert!(error.contains("other options"), "{error}");
    fs::write(folder.path().join("a"), noise(4_000_000, 1)).unwrap();
    let error = estimate(&asked, &stop).unwrap_err().to_string();
    assert!(error.contains("has changed"), "{error}");
    fs::write(&state, "a note of mine").unwrap();
    let error = estimate(&asked, &stop).unwrap_err().to_string();
    assert!(error.contains("is not a state"), "{error}");
    assert_eq!(fs::read(&state).unwrap(), b"a note of mine");
}

#[test]
fn each_file_counts_once_whatever_its_names_and_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a"), noise(10_000, 1)).unwrap();
    fs::hard_link(at("a"), at("b")).unwrap();
    std::os::unix::fs::symlink(at("a"), at("c")).unwrap();
    std::os::unix::fs::symlink(folder.path(), at("d")).unwrap();
    let found = run(&question(folder.path()));
    assert_eq!((found.files, found.bytes), (1, 10_000));
}

#[test]
fn memory_is_said_beforehand_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), noise(20_000_000, 1)).unwrap();
    let roomy = question(folder.path());
    let said = plan(&roomy).unwrap();
    assert!(said.exact && said.memory_bytes <= roomy.memory);
    let tight = Question {
        blocks: vec![512],
        memory: 33 << 20,
        ..roomy
    };
    let tight = Question {
        path: "-".into(),
        ..tight
    };
    let said = plan(&tight).unwrap();
    assert!(!said.exact && said.memory_bytes <= tight.memory, "{said:?}");
}

fn trace(text: &str, format: Format) -> Result<Estimate, EstimateError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, text).unwrap();
    let asked = Question {
        trace: Some(format),
        ..question(&path)
    };
    estimate(&asked, &|_, _| true)
}

#[test]
fn fiu_traces_count_what_is_written() {
    let text = "\
        89966899127712 2893 kjournald 889486072 8 W 6 0 0123456789abcdef0123456789abcdef\n\
        89966899127713 2893 kjournald 889486080 8 W 6 0 0123456789ABCDEF0123456789abcdef\n\
        89966899127714 1 two words 16 16 W 6 0 00000000000000000000000000000000 ffffffffffffffffffffffffffffffff\n\
        89966899127715 20782 gzip 283193184 8 R 6 0 00000000000000000000000000000000\n";
    let found = trace(text, Format::Fiu).unwrap();
    let cutting = &found.cuttings[0];
    assert_eq!(
        (cutting.chunks, cutting.unique_chunks, found.reads),
        (4, 3, 1)
    );
    assert_eq!((cutting.bytes, cutting.unique_bytes), (16384, 12288));
    let homes = "5 4 nfsd 508455936 1 W 6 0 0123456789abcdef0123456789abcdef\n";
    assert_eq!(trace(homes, Format::Fiu).unwrap().bytes, 512);
}

#[test]
fn destor_traces_count_chunks_of_files() {
    let one = "0123456789ABCDEF0123456789ABCDEF01234567";
    let two = "0123456789ABCDEF0123456789ABCDEF01234568";
    let text = format!(
        "file start 6\n/a/b c\n{one} 8192\n{two} 100\nfile end\nfile start 1\nx\n{one} 8192\n\
         file end\nstream end"
    );
    let found = trace(&text, Format::Destor).unwrap();
    let cutting = &found.cuttings[0];
    assert_eq!(
        (found.files, cutting.chunks, cutting.unique_chunks),
        (2, 3, 2)
    );
    assert_eq!((cutting.bytes, cutting.unique_bytes), (16484, 8292));
    assert_eq!(cutting.references[1].contents, 1);
}

#[test]
fn bad_traces_are_named_by_line() {
    let refused = |format, text: &str, wanted: &str| {
        let error = trace(text, format).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    let fiu = |text: &str, wanted: &str| {
        let text = text.replace("DIGEST", "0123456789abcdef0123456789abcdef");
        refused(Format::Fiu, &text, wanted);
    };
    fiu("1 2 a 3 8 W 6 0\n", "line 1: is not `time");
    fiu("1 2 a 3 8 W 6 0 DIGEST\nx\n", "line 2: is not");
    fiu("1 2 a 3 8 W 6 0 xyz\n", "xyz is not a digest of 32");
    fiu("1 2 a 3 0 W 6 0 DIGEST\n", "line 1: 1 digests of 0 bytes");
    fiu("1 2 a b 8 W 6 0 DIGEST\n", "b is not a number");
    let destor = |text: &str, wanted: &str| refused(Format::Destor, text, wanted);
    destor("file start 3\nab\n", "line 2: is not a name of 3 bytes");
    destor("file start 2\nab\nfile end\n", "cut off");
    destor(
        "file start 2\nab\nfile end\nstream end\nmore",
        "line 5: follows",
    );
    destor("file start 2\nab\n12 8\n", "12 is not a digest of 40");
    destor("", "cut off");
}

#[test]
fn bad_questions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |wanted: &str, change: fn(&mut Question)| {
        let mut asked = question(folder.path());
        change(&mut asked);
        let error = estimate(&asked, &|_, _| true).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    refused("the smallest first", |q| q.blocks = vec![4096, 1024]);
    refused("powers of two", |q| q.blocks = vec![3000]);
    refused("at least one", |q| {
        (q.blocks, q.content_defined) = (vec![], None);
    });
    refused("--memory", |q| q.memory = 1 << 20);
    refused("--compress 23", |q| q.compress = Some(23));
    refused("--content-defined", |q| q.content_defined = Some(100));
    refused("--state", |q| {
        (q.path, q.state) = ("-".into(), Some("x".into()));
    });
    refused("No such file", |q| q.path = "/nonexistent/x".into());
    refused("is a directory", |q| q.trace = Some(Format::Fiu));
}
