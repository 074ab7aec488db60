//! Compressed files, read and written.

use sardonyx_trace::{Format, ImportOptions, Source, export, import};

use super::Desk;

#[test]
fn what_is_compressed_is_read_as_what_it_was() {
    let text = b"LD 0x40\nST 128\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&text[..], 3).unwrap();
    // Made by liblzma.
    let xz = "fd377a585a000004e6d6b4460200210116000000742fe5a301000e4c4420307834300a5354203132380a0000e3926215a6d4b7630001270fdf1afc6a1fb6f37d010000000004595a";
    let xz: Vec<u8> = (0..xz.len() / 2)
        .map(|i| u8::from_str_radix(&xz[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let options = ImportOptions::default();
    for packed in [&gzip, &zstd, &xz] {
        let records = Desk::new().import(packed, Format::RamulatorLoadStore, &options);
        let lines: Vec<u64> = records.unwrap().iter().map(|r| r.line.0).collect();
        assert_eq!(lines, [1, 2]);
        // A file that was cut off is refused wherever it ends.
        for end in 1..packed.len() {
            let records = Desk::new().import(&packed[..end], Format::RamulatorLoadStore, &options);
            assert!(records.is_err(), "{end} of {} bytes", packed.len());
        }
    }
}

#[test]
fn what_is_written_under_a_compressed_name_is_compressed() {
    let desk = Desk::new();
    let ours = desk.at("a.parquet");
    let options = ImportOptions::default();
    std::fs::write(desk.at("in"), "LD 0x40\nST 128\n".repeat(500)).unwrap();
    let from = Format::RamulatorLoadStore;
    import(desk.at("in"), &ours, from, &options, &mut |_, _| ()).unwrap();
    for format in [Format::RamulatorLoadStore, Format::ChampSim] {
        let mut sizes = Vec::new();
        for name in ["out", "out.gz", "out.xz", "out.zst"] {
            let theirs = desk.at(name);
            let source = Source::open(&ours).unwrap();
            export(source, &theirs, format, &mut |_, _| ()).unwrap();
            let bytes = std::fs::read(&theirs).unwrap();
            sizes.push(bytes.len());
            let read = desk.import(bytes, format, &options).unwrap();
            assert_eq!(read.len(), 1000, "{format} {name}");
            assert_eq!((read[0].line.0, read[999].line.0), (1, 2));
        }
        assert!(
            sizes[1..].iter().all(|size| size * 10 < sizes[0]),
            "{sizes:?}"
        );
    }
}
