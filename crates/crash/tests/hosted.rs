//! What a host wrote and was told of, after a power cut.

use sardonyx::config::Machine;
use sardonyx::machine::hosted::{HostOptions, HostRequest, HostRequestKind, Hosted, Told};
use sardonyx::units::Time;
use sardonyx_crash::{Platform, survivors};

fn hosted(design: &str, options: HostOptions) -> Hosted {
    let none: [(&str, &str); 0] = [];
    let machine = Machine::load("esd", &none).expect("a preset");
    Hosted::new(&machine, design, options).expect("a design")
}

fn write(address: u64, bytes: &[u8], tag: u64) -> HostRequest<'_> {
    let kind = HostRequestKind::Write {
        bytes,
        persist: true,
        counter_atomic: false,
        tell_array: true,
    };
    asked(kind, address, tag)
}

fn asked(kind: HostRequestKind, address: u64, tag: u64) -> HostRequest {
    HostRequest {
        kind,
        address,
        source: 0,
        tag,
        presented: None,
    }
}

fn all(host: &mut Hosted) -> Vec<Told> {
    std::iter::from_fn(|| host.answer()).collect()
}

/// What is accepted survives a cut where the queues are drained, unless its counter is on chip alone; what a
/// loader wrote survives anyhow.
#[test]
fn what_was_accepted_is_there_after_a_cut() {
    for (design, expected) in [
        ("no-encryption", (9, 0)),
        ("esd-sound", (9, 0)),
        ("fca", (9, 0)),
        ("baseline", (1, 8)),
    ] {
        let options = HostOptions {
            journal: true,
            ..HostOptions::default()
        };
        let mut host = hosted(design, options);
        host.poke(0, 4096, &[5; 64]).unwrap();
        for line in 0..8 {
            assert!(
                host.send(&write(line * 64, &[line as u8 + 1; 64], line))
                    .unwrap()
            );
        }
        host.fence(0, 99).unwrap();
        while !all(&mut host).iter().any(|told| told.tag == 99) {
            host.advance_until(Time::NEVER).unwrap();
        }
        let (image, journal) = host.cut().unwrap();
        assert!(host.accepts().is_err(), "the power is off");
        let platform = Platform::Adr;
        let what = (image, &*journal);
        let left = survivors(host.machine(), design, what, platform, 1).unwrap();
        assert_eq!(host.recover(left).unwrap(), expected, "{design}");
        assert!(host.send(&asked(HostRequestKind::Read(64), 64, 1)).unwrap());
        host.finish().unwrap();
        let read = all(&mut host)[0].line;
        assert_eq!(read == [2; 64], expected.1 == 0, "{design}");
    }
}
