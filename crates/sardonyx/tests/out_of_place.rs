//! Updates out of place (HOOP), without a clock: contents and each count against a model of a few lines, over random
//! transactions, collections and power cuts.

use std::collections::{BTreeMap, BTreeSet};

use sardonyx::controller::designs::Stack;
use sardonyx::controller::{Controller, Write};
use sardonyx::line::{Line, Logical, ZERO_LINE};
use sardonyx::machine::{read_untimed, write_untimed};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::At;
use sardonyx::plan::untimed::Untimed;
use sardonyx_base::random::mix;

use crate::common::machine;

const LINES: u64 = 24;
const WORDS: u64 = 8;

/// What is written, collected and read, if one core makes one transaction after the other.
#[derive(Default)]
struct Model {
    room: u64,
    buffer: u64,
    lines: BTreeMap<u64, Line>,
    /// The slice of each word that is out of place.
    out: BTreeMap<(u64, usize), u64>,
    counting: u64,
    slices: u64,
    words: u64,
    home: u64,
    collections: u64,
    read: u64,
}

impl Model {
    /// A read of each line: of all its slices, each once.
    fn read_all(&mut self) {
        for line in self.lines.keys() {
            let of_line = self.out.range((*line, 0)..(*line + 1, 0));
            let slices: BTreeSet<u64> = of_line.map(|(_, slice)| *slice).collect();
            self.read += slices.len() as u64;
        }
    }

    fn collect(&mut self) {
        let lines: BTreeSet<u64> = self.out.keys().map(|(line, _)| *line).collect();
        self.home += lines.len() as u64;
        self.collections += 1;
        (self.counting, self.out) = (0, BTreeMap::new());
    }

    /// A transaction that writes each of `lines` once.
    fn transaction(&mut self, lines: &BTreeMap<u64, Line>) {
        let mut changed = Vec::new();
        for (line, content) in lines {
            let before = self.lines.insert(*line, *content);
            let word = |line: &Line, index: usize| line.as_chunks::<8>().0[index];
            let differs =
                |index: &usize| before.is_none_or(|it| word(&it, *index) != word(content, *index));
            changed.extend(
                (0..WORDS as usize)
                    .filter(differs)
                    .map(|index| (*line, index)),
            );
        }
        let (mut own, mut at) = (Vec::new(), Vec::new());
        let full = changed.chunks((self.buffer * WORDS) as usize);
        for words in full.flat_map(|full| full.chunks(WORDS as usize)) {
            at.push(words.to_vec());
        }
        let buffered = self.buffer * WORDS;
        if !changed.is_empty() && (changed.len() as u64).is_multiple_of(buffered) {
            at.push(Vec::new()); // the buffer was empty when the transaction ended
        }
        for words in at {
            if self.counting + own.len() as u64 >= self.room {
                self.collect(); // not what is of a transaction under way
            }
            own.push((self.slices, words.clone()));
            self.slices += 1;
            self.words += words.len() as u64;
        }
        self.counting += own.len() as u64;
        for (slice, words) in own {
            self.out.extend(words.into_iter().map(|word| (word, slice)));
        }
    }
}

fn content(line: u64, number: u64, of: u64) -> Line {
    let mut content = ZERO_LINE;
    for (index, word) in (0..).zip(content.as_chunks_mut::<8>().0) {
        // Of each number that many words differ.
        let number = if index < of { number } else { 0 };
        *word = mix(mix(line) ^ mix(number) ^ index).to_le_bytes();
    }
    content
}

struct Out {
    controller: Controller,
    untimed: Untimed,
}

impl Out {
    fn recovered(settings: &[(&str, &str)], image: Image) -> Out {
        let machine = machine("sca", settings);
        let stack = Stack::named("hoop").expect("a design");
        let mut controller = stack.build(&machine.settings, &mut Layout::new(LINES));
        let mut untimed = Untimed::new(image);
        untimed.plan(|plan| controller.recover(plan));
        untimed.plan(|plan| controller.undo(plan));
        Out {
            controller,
            untimed,
        }
    }

    fn store(&mut self, lines: &BTreeMap<u64, Line>, old: &BTreeMap<u64, Line>) {
        for (line, data) in lines {
            let before = old.get(line).copied().unwrap_or(ZERO_LINE);
            let Out {
                controller,
                untimed,
            } = self;
            untimed.plan(|plan| controller.log_old(0, Logical(*line), At::past(&before), plan));
            let write = Write::new(Logical(*line), At::past(data));
            write_untimed(controller, untimed, write);
        }
    }

    fn begin(&mut self, number: u64) {
        (self.untimed).plan(|plan| self.controller.begin(0, number, plan));
    }

    fn commit(&mut self) {
        (self.untimed).plan(|plan| self.controller.commit(0, plan));
    }

    fn reads_as(&mut self, held: &BTreeMap<u64, Line>, when: &str) {
        for (line, data) in held {
            let read = read_untimed(&mut self.controller, &mut self.untimed, *line);
            assert_eq!(read, *data, "line {line} {when}");
        }
    }
}

#[test]
fn counts_and_contents_are_those_of_a_model() {
    for (room, buffer) in [(64, 64), (16, 1), (11, 2), (1024, 8)] {
        let set = [room, buffer].map(|number: u64| number.to_string());
        let settings = [("hoop.slices", &*set[0]), ("hoop.buffer", &*set[1])];
        let mut out = Out::recovered(&settings, Image::new());
        let mut model = Model {
            room,
            buffer,
            ..Model::default()
        };
        for number in 1..=200 {
            let dice = mix(number ^ mix(room));
            let count = 1 + dice % 5;
            let line = |turn: u64| mix(dice ^ turn) % LINES;
            let lines = (0..count).map(line).collect::<BTreeSet<u64>>().into_iter();
            let lines: BTreeMap<u64, Line> = lines
                .map(|line| (line, content(line, number, dice >> 8 & 7)))
                .collect();
            out.begin(number);
            out.store(&lines, &model.lines);
            if dice >> 32 & 7 == 0 {
                let mut left = Out::recovered(&settings, out.untimed.left());
                left.reads_as(&model.lines, "after a cut in a transaction");
            }
            model.transaction(&lines);
            out.commit();
            if dice >> 40 & 7 == 0 {
                let mut left = Out::recovered(&settings, out.untimed.left());
                left.reads_as(&model.lines, "after a cut");
                left.reads_as(&model.lines, "again");
            }
        }
        out.reads_as(&model.lines, "at the end");
        model.read_all();
        let figures = out.controller.figures();
        let counted = |name: &str| figures.named(name).number().expect("a count") as u64;
        let names = [
            "oop_slices",
            "oop_words",
            "oop_lines_home",
            "oop_collections",
            "oop_slices_read",
        ];
        assert_eq!(
            names.map(counted),
            [
                model.slices,
                model.words,
                model.home,
                model.collections,
                model.read
            ],
            "{room} {buffer}"
        );
        assert_eq!(model.collections > 0, room < 1024, "{room}");
    }
}

/// A cut after the commit finds the words that stay home, too, though only the line was flushed before.
#[test]
fn words_that_stay_home_outlive_the_commit_of_others() {
    let settings = [("encryption.counter_cache.bytes", "4096")];
    let mut out = Out::recovered(&settings, Image::new());
    let mut held = BTreeMap::new();
    for (number, line) in (1..).zip(0..LINES) {
        let before = content(line, number, WORDS);
        let write = Write::new(Logical(line), At::past(&before));
        write_untimed(&mut out.controller, &mut out.untimed, write);
        let mut data = before;
        data[..8].fill(0xa5);
        let (old, new) = (
            BTreeMap::from([(line, before)]),
            BTreeMap::from([(line, data)]),
        );
        out.begin(number);
        out.store(&new, &old);
        out.commit();
        held.insert(line, data);
        let mut left = Out::recovered(&settings, out.untimed.left());
        left.reads_as(&held, "after a cut");
    }
}
