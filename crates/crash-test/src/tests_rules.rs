//! The rules of persistence on recordings made by hand, and the images of a cut, each once.

use std::collections::BTreeSet;

use crate::images::{Given, Image, PASSES, Scope, each};
use crate::recording::Recording;
use crate::recording::persistence::Course;
use crate::recording::platform::Platform;
use crate::testing::Do::{self, Clflush, Clwb, Fence, Past, Store};
use crate::testing::recording;
use rustc_hash::FxHashSet;

/// The values that are sure of the lines 0 to 2 at each cut.
fn sure(program: &[(u16, Do)]) -> Vec<[u8; 3]> {
    let recording = recording(program);
    let course = Course::from_recording(&recording, Platform::Adr);
    let mut floors = vec![0; recording.lines.len()];
    let mut done = 0;
    let at = |cut: &crate::recording::persistence::Cut, floors: &mut Vec<u32>, done: &mut usize| {
        for rise in &course.rises[*done..cut.rises as usize] {
            assert_eq!(floors[rise.slot as usize], rise.from);
            floors[rise.slot as usize] = rise.to;
        }
        *done = cut.rises as usize;
        let mut values = [0; 3];
        for (slot, &floor) in recording.lines.iter().zip(floors.iter()) {
            values[slot.line as usize] = slot.versions.data(floor)[0];
        }
        values
    };
    course
        .cuts
        .iter()
        .map(|cut| at(cut, &mut floors, &mut done))
        .collect()
}

#[test]
fn a_flush_is_sure_after_a_fence_of_its_own_thread_only() {
    let last = |program: &[(u16, Do)]| *sure(program).last().unwrap();
    assert_eq!(last(&[(0, Store(0, 1)), (0, Fence)]), [0, 0, 0]);
    assert_eq!(last(&[(0, Store(0, 1)), (0, Clwb(0))]), [0, 0, 0]);
    assert_eq!(
        last(&[(0, Store(0, 1)), (0, Clwb(0)), (0, Fence)]),
        [1, 0, 0]
    );
    assert_eq!(
        last(&[(0, Store(0, 1)), (0, Clwb(0)), (1, Fence)]),
        [0, 0, 0]
    );
    // A flush covers what another thread stored.
    assert_eq!(
        last(&[(0, Store(0, 1)), (1, Clwb(0)), (1, Fence)]),
        [1, 0, 0]
    );
    // A store after the flush waits for the next one.
    let twice = [(0, Store(0, 1)), (0, Clwb(0)), (0, Store(0, 2)), (0, Fence)];
    assert_eq!(last(&twice), [1, 0, 0]);
}

#[test]
fn clflush_waits_for_nothing_and_stores_past_the_caches_for_a_fence() {
    let last = |program: &[(u16, Do)]| *sure(program).last().unwrap();
    assert_eq!(
        last(&[(0, Store(0, 1)), (0, Clflush(0)), (0, Store(1, 1))]),
        [1, 0, 0]
    );
    assert_eq!(last(&[(0, Past(0, 1))]), [0, 0, 0]);
    assert_eq!(last(&[(0, Past(0, 1)), (0, Fence)]), [1, 0, 0]);
    assert_eq!(last(&[(0, Past(0, 1)), (1, Fence)]), [0, 0, 0]);
}

#[test]
fn there_is_a_cut_wherever_the_images_change_and_nowhere_else() {
    let program = [
        (0, Store(0, 1)),
        (0, Clwb(0)),
        (0, Fence),
        (0, Fence),
        (0, Store(1, 2)),
        (0, Fence),
    ];
    // The cuts are before the first fence and before the store's fence; the end has nothing new.
    assert_eq!(sure(&program), [[0, 0, 0], [1, 0, 0]]);
}

/// Every image of a recording's plan, as the values of its lines, by cut.
fn images(recording: &Recording, platform: Platform) -> (Vec<Image>, BTreeSet<(u32, Vec<u8>)>) {
    let course = Course::from_recording(recording, platform);
    let scope = Scope {
        platform,
        tear: false,
        start: 0,
        end: u32::MAX,
        seed: 1,
        acks: false,
    };
    let (mut seen, mut all, mut values) = (FxHashSet::default(), Vec::new(), BTreeSet::new());
    for pass in PASSES {
        let passed = each(
            recording,
            &course,
            scope,
            pass,
            &mut seen,
            &|| true,
            |image| {
                let mut floors = crate::images::Floors::new(recording, &course);
                floors.go(image.cut, |_, _| ());
                let mut held = floors.floor.clone();
                for over in &image.over {
                    held[over.slot as usize] = over.version;
                }
                let units = recording.lines.iter().zip(&held);
                let lines = units.flat_map(|(slot, &version)| slot.versions.lines(version));
                let held: Vec<u8> = lines.map(|(_, data)| data[0]).collect();
                assert!(values.insert((image.cut, held)), "{image:?} is there twice");
                all.push(image);
                Given::Taken
            },
        );
        assert!(passed.finished);
    }
    (all, values)
}

#[test]
fn few_lines_are_tried_in_all_combinations_with_prefixes_of_their_stores() {
    let program = [
        (0, Store(0, 1)),
        (0, Store(1, 2)),
        (0, Store(0, 3)),
        (0, Clwb(0)),
        (0, Clwb(1)),
        (0, Fence),
    ];
    let made = recording(&program);
    let (_, values) = images(&made, Platform::Adr);
    let all: BTreeSet<_> = values.into_iter().map(|(_, held)| held).collect();
    // Line 0 may be at 0, 1 or 3; line 1 at 0 or 2.
    let expected = [[0, 0], [0, 2], [1, 0], [1, 2], [3, 0], [3, 2]];
    assert!(all.into_iter().eq(expected.map(|held| held.to_vec())));
}

#[test]
fn eadr_keeps_every_store() {
    let program = [(0, Store(0, 1)), (0, Store(1, 2)), (0, Store(0, 3))];
    let (_, values) = images(&recording(&program), Platform::Eadr);
    let all: Vec<_> = values.into_iter().map(|(_, held)| held).collect();
    // The first cut is after the first store: before it the program has done nothing.
    assert_eq!(all, [[1, 0], [1, 2], [3, 2]].map(|held| held.to_vec()));
}

#[test]
fn a_page_is_what_it_was_at_some_moment_and_two_pages_are_of_any() {
    // Lines 0 and 1 lie in one sector, 0 and 8 in one page, 64 in another.
    let program = [
        (0, Store(0, 1)),
        (0, Store(8, 2)),
        (0, Store(64, 3)),
        (0, Store(1, 4)),
    ];
    let held = |platform: Platform| {
        let made = crate::testing::recording_on(platform, &program);
        let course = Course::from_recording(&made, platform);
        let (images, _) = images(&made, platform);
        let mut all = BTreeSet::new();
        for image in images {
            let mut floors = crate::images::Floors::new(&made, &course);
            floors.go(image.cut, |_, _| ());
            let mut held = floors.floor.clone();
            for over in &image.over {
                held[over.slot as usize] = over.version;
            }
            let units = made.lines.iter().zip(&held);
            let lines = units.flat_map(|(slot, &version)| slot.versions.lines(version));
            let lines: std::collections::BTreeMap<u32, u8> =
                lines.map(|(line, data)| (line, data[0])).collect();
            all.insert([0, 8, 64, 1].map(|line| lines[&line]));
        }
        all
    };
    let pages = held(Platform::Pages);
    assert!(pages.contains(&[1, 2, 0, 0]) && pages.contains(&[1, 2, 0, 4]));
    assert!(pages.contains(&[0, 0, 3, 0]) && pages.contains(&[1, 0, 3, 0]));
    assert!(
        pages
            .iter()
            .all(|&[a, b, _, c]| a >= b.min(1) && b >= c.min(2))
    );
    let sectors = held(Platform::Sectors);
    assert!(sectors.contains(&[0, 2, 0, 0]) && sectors.contains(&[1, 0, 0, 4]));
    assert!(sectors.iter().all(|&[a, _, _, c]| a >= c.min(1)));
    // Sectors can hold what whole pages can, and not the other way round.
    assert!(pages.iter().all(|&[a, _, _, c]| a >= c.min(1)));
    assert!(!sectors.is_subset(&pages));
}

#[test]
fn an_image_has_a_name_that_gives_it_back() {
    let program = [
        (0, Store(0, 1)),
        (0, Store(1, 2)),
        (0, Clwb(0)),
        (0, Fence),
        (0, Store(2, 5)),
    ];
    let made = recording(&program);
    let course = Course::from_recording(&made, Platform::Adr);
    let (all, _) = images(&made, Platform::Adr);
    for image in all {
        let named = Image::named(&image.name(&made), &made, &course).unwrap();
        assert_eq!((named.cut, named.over), (image.cut, image.over));
    }
    for wrong in ["", "99", "0+9v1", "0+0v9", "0+0", "x"] {
        assert!(Image::named(wrong, &made, &course).is_err(), "{wrong}");
    }
}

/// A program whose fences all leave something else pending, and one line that must not be early: an image with that
/// line alone comes among the first, however many kinds of moments come before it.
#[test]
fn images_that_press_something_else_come_first() {
    const MOMENTS: u32 = 2000;
    const FAULT: u32 = 11;
    // A moment's kind is how many lines have how many stores since their last flush.
    let mut program: Vec<(u16, Do)> = Vec::new();
    for number in 0..MOMENTS {
        program.push((0, Store(10, number as u8)));
        let drawn = number.wrapping_mul(2_654_435_761);
        for line in 0..10 {
            let times = drawn >> (10 + 2 * line) & 3;
            program.extend((0..=times).map(|time| (0, Store(line, (number + time) as u8 | 1))));
        }
        if number == MOMENTS / 2 {
            program.push((0, Store(FAULT, 1)));
        }
        program.extend([(0, Clwb(10)), (0, Fence)]);
        program.extend((0..10).map(|line| (0, Clwb(line))));
        program.push((0, Fence));
    }
    let recording = recording(&program);
    let course = Course::from_recording(&recording, Platform::Adr);
    let slot = recording
        .lines
        .iter()
        .position(|line| line.line == FAULT)
        .unwrap() as u32;
    let fails = |image: &Image| image.over.len() == 1 && image.over[0].slot == slot;
    let scope = Scope {
        platform: Platform::Adr,
        tear: false,
        start: 0,
        end: u32::MAX,
        seed: 1,
        acks: false,
    };
    let first = |passes: &[crate::images::ImagePass]| {
        let (mut seen, mut count, mut found) = (FxHashSet::default(), 0, None);
        for &pass in passes {
            each(
                &recording,
                &course,
                scope,
                pass,
                &mut seen,
                &|| true,
                |image| {
                    count += 1;
                    if fails(&image) {
                        found = Some(count);
                        return Given::Enough;
                    }
                    Given::Taken
                },
            );
            if found.is_some() {
                break;
            }
        }
        found.expect("it is among them")
    };
    let (classes, moments) = (first(&PASSES), first(&PASSES[1..]));
    assert!(classes * 2 < moments, "{classes} and {moments}");
}
