//! gem5's packets.

use sardonyx_trace::{Format, ImportOptions};

use super::{Desk, asked};

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let body: Vec<u8> = fields
        .iter()
        .flat_map(|&(field, value)| [varint(field << 3), varint(value)].concat())
        .collect();
    [varint(body.len() as u64), body].concat()
}

#[test]
fn gem5s_packets_are_requests_of_their_lines() {
    let desk = Desk::new();
    let head = [b"gem5".to_vec(), message(&[(2, 0), (3, 1_000_000_000_000)])].concat();
    let packets = [
        message(&[(1, 5_000), (2, 1), (3, 0x1000), (4, 64)]),
        message(&[(1, 6_500), (2, 17), (3, 0x1000), (4, 64)]), // an upgrade moves no bytes
        message(&[(1, 9_000), (2, 7), (3, 0x2000), (4, 64), (5, 300)]),
        message(&[(1, 11_000), (2, 4), (3, 0x303c), (4, 8)]), // two lines
    ];
    let trace = [head.clone(), packets.concat()].concat();
    let options = ImportOptions::default();
    let records = desk.import(&trace, Format::Gem5Packets, &options).unwrap();
    let lines = [
        (0, false, 0x40),
        (4, true, 0x80),
        (6, true, 0xc0),
        (6, true, 0xc1),
    ];
    assert_eq!(asked(&records), lines);
    let twice = ImportOptions {
        clock_mhz: Some(2000.0),
        ..options.clone()
    };
    let records = desk.import(&trace, Format::Gem5Packets, &twice).unwrap();
    assert_eq!(asked(&records)[1].0, 8);

    let fail = |trace: &[u8]| {
        desk.import(trace, Format::Gem5Packets, &options)
            .unwrap_err()
    };
    assert!(fail(&trace[..trace.len() - 1]).contains("ends in the middle"));
    assert!(fail(b"\x1f\x8b\x08\0").contains("in the middle"));
    assert!(fail(b"NVMV1").contains("gem5's mark"));
    assert!(fail(&head).contains("holds no request"));
    let back = [head.clone(), packets[3].clone(), packets[0].clone()].concat();
    assert!(
        fail(&back).contains("packet 2: time goes back"),
        "{}",
        fail(&back)
    );
    let strange = [head.clone(), message(&[(1, 5)])].concat();
    assert!(fail(&strange).contains("packet 1: has no tick, command or address"));
    let huge = [head, message(&[(1, 5), (2, 1), (3, 0), (4, 1 << 40)])].concat();
    assert!(
        fail(&huge).contains("packet 1: 1099511627776 bytes"),
        "{}",
        fail(&huge)
    );
}
