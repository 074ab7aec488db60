//! A host that asks for a few lines: what it is told, and when.

use super::*;

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

#[test]
fn a_write_is_told_twice_and_a_fence_when_it_is_accepted() {
    for design in ["baseline", "esd", "fca"] {
        let mut host = hosted(design, HostOptions::default());
        assert!(host.send(&write(128, &[7; 64], 1)).unwrap());
        host.flush(128, 0, 2).unwrap();
        host.fence(0, 3).unwrap();
        assert_eq!(
            host.answers(),
            0,
            "{design}: nothing is accepted at no time"
        );
        host.finish().unwrap();
        let told = all(&mut host);
        let whats: Vec<_> = told.iter().map(|told| (told.what, told.tag)).collect();
        let [written, flushed, fenced, array] = &told[..] else {
            panic!("{design}: {whats:?}");
        };
        let expected = [
            AnswerKind::Written,
            AnswerKind::Flushed,
            AnswerKind::Fenced,
            AnswerKind::InArray,
        ];
        assert_eq!(told.iter().map(|t| t.what).collect::<Vec<_>>(), expected);
        assert!(written.accepted == Some(fenced.answered) && flushed.answered == fenced.answered);
        assert!(array.array > array.accepted, "{design}");
        assert_eq!(array.answered, written.answered);
    }
}

#[test]
fn a_fence_waits_for_its_own_source_alone() {
    let options = HostOptions {
        sources: 2,
        ..HostOptions::default()
    };
    let mut host = hosted("baseline", options);
    host.send(&write(0, &[1; 64], 1)).unwrap();
    host.fence(1, 2).unwrap();
    assert_eq!(host.answer().map(|told| told.tag), Some(2));
    host.flush(0, 1, 3).unwrap();
    host.fence(1, 4).unwrap();
    assert_eq!(host.answers(), 0, "a flush joins the other's write");
    host.finish().unwrap();
    assert_eq!(all(&mut host).len(), 4);
}

#[test]
fn parts_of_lines_and_looks_see_what_was_written_last() {
    let mut host = hosted("esd", HostOptions::default());
    host.poke(0, 60, &[1, 2, 3, 4, 5, 6]).unwrap();
    host.send(&write(64, &[9], 1)).unwrap();
    let mut bytes = [0; 6];
    host.peek(0, 60, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 9, 6]);
    host.poke(0, 65, &[8]).unwrap(); // while the write is on its way
    assert!(host.send(&asked(HostRequestKind::Read(64), 64, 2)).unwrap());
    host.finish().unwrap();
    let read = all(&mut host).into_iter().find(|told| told.tag == 2);
    assert_eq!(read.unwrap().line[..3], [9, 8, 0]);
    assert!(host.send(&asked(HostRequestKind::Read(64), 64, 3)).unwrap());
    host.finish().unwrap();
    let told = all(&mut host);
    let last = told.last().unwrap();
    assert_eq!(last.line[..2], [9, 8], "memory has it when it is at rest");
    assert!(last.written);
    let metrics = host.outcome().unwrap().metrics();
    assert_eq!(
        metrics["reads_verified"], 1,
        "the other read came before memory had the line"
    );
}

#[test]
fn requests_that_cannot_be_are_errors() {
    let mut host = hosted("baseline", HostOptions::default());
    let end = host.capacity();
    for (kind, address, source) in [
        (HostRequestKind::Read(0), 0, 0),
        (HostRequestKind::Read(65), 0, 0),
        (HostRequestKind::Read(2), 63, 0),
        (HostRequestKind::Read(64), end, 0),
        (HostRequestKind::Read(64), u64::MAX - 63, 0),
        (HostRequestKind::Read(64), 0, 1),
    ] {
        let asked = HostRequest {
            source,
            ..asked(kind, address, 0)
        };
        assert!(host.send(&asked).is_err(), "{asked:?}");
    }
    let late = HostRequest {
        presented: Some(Time::NEVER),
        ..asked(HostRequestKind::Read(1), 0, 0)
    };
    assert!(host.send(&late).is_err() && host.advance_to(Time::NEVER).is_err());
    assert!(host.peek(0, end, &mut [0]).is_err());
    assert!(host.peek(0, u64::MAX, &mut [0; 2]).is_err());
    assert!(host.cut().is_err() && host.recover(Image::new()).is_err());
}

#[test]
fn without_what_was_written_last_only_whole_lines_are_taken() {
    let options = HostOptions {
        keep: false,
        ..HostOptions::default()
    };
    let mut host = hosted("esd", options);
    assert!(host.send(&write(64, &[7; 64], 1)).unwrap());
    assert!(host.send(&asked(HostRequestKind::Read(8), 72, 2)).unwrap());
    let part = host.send(&write(64, &[7; 8], 3)).unwrap_err().to_string();
    assert!(part.contains("host.keep=no"), "{part}");
    assert!(host.peek(0, 64, &mut [0]).is_err() && host.poke(0, 64, &[1]).is_err());
    host.finish().unwrap();
    let read = all(&mut host).into_iter().find(|told| told.tag == 2);
    assert_eq!(read.unwrap().line, [7; 64]);
    let metrics = host.outcome().unwrap().metrics();
    assert_eq!(metrics["footprint_pages"], 1);
    assert!(
        metrics["reads_verified"].is_null(),
        "nobody knows what was written"
    );
    let options = HostOptions {
        journal: true,
        ..options
    };
    let machine = host.machine().clone();
    assert!(Hosted::new(&machine, "esd", options).is_err());
}

#[test]
fn caches_that_the_host_has_are_not_drained() {
    let machine = Machine::load("esd", &[("drain.lines", "all")]).expect("a preset");
    let refused = Hosted::new(&machine, "esd", HostOptions::default()).err();
    let said = refused.expect("nothing is drained").to_string();
    assert!(
        said.contains("drain.lines") && said.contains("leave it out"),
        "{said}"
    );
}
