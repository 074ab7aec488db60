//! DEUCE beside a model of it that has each word by itself and an AES of its own: what lies in the array and beside the
//! lines, which cells change, and what a power cut leaves.

use crate::common::machine;
use crate::memory_common::{drain, request};
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use sardonyx::controller::Write;
use sardonyx::line::{Line, Logical, Place};
use sardonyx::memory::Memory;
use sardonyx::plan::At;
use sardonyx::stats::Direction;
use sardonyx_base::random::SplitMix64;

fn memory(sets: &[(&str, &str)], design: &str) -> Memory {
    let sets = [&[("medium.cells.coding", "changed")], sets].concat();
    Memory::new(&machine("esd", &sets), design).unwrap()
}

/// Writes a line and waits for the array.
fn write(memory: &mut Memory, line: u64, data: &Line) {
    let now = memory.now();
    let request = request(Direction::Write, 0, now);
    memory.write(request, now, Write::new(Logical(line), At::past(data)));
    drain(memory);
}

/// Byte `byte` of the pad of a line under a counter: AES of counter, place and block.
fn pad(place: u64, counter: u64, byte: usize) -> u8 {
    let mut block = [0; 16];
    block[..8].copy_from_slice(&counter.to_be_bytes());
    block[8..].copy_from_slice(&((place << 8) | (byte as u64 / 16)).to_be_bytes());
    let mut block = Array::from(block);
    Aes128::new(&Array::from(*b"sardonyx-aes-128")).encrypt_block(&mut block);
    block[byte % 16]
}

/// A line: what it holds, under which counter each of its words lies, and its bytes in the array.
struct Model {
    epoch: u64,
    /// The counter of its first write.
    first: u64,
    word: usize,
    writes: u64,
    plain: Line,
    under: Vec<u64>,
    stored: Line,
    flips: u64,
}

impl Model {
    fn new(epoch: u64, word: usize, past: &str) -> Model {
        Model {
            epoch,
            // The epoch before is of the writes before the run.
            first: if past == "empty" { epoch } else { 2 * epoch },
            word,
            writes: 0,
            plain: [0; 64],
            under: vec![0; 64 / word],
            stored: [0; 64],
            flips: 0,
        }
    }

    fn begun(&self) -> u64 {
        self.writes - self.writes % self.epoch
    }

    fn write(&mut self, place: u64, data: &Line) {
        // A line's first write begins an epoch, whatever its length.
        self.writes = if self.writes == 0 {
            self.first
        } else {
            self.writes + 1
        };
        for word in 0..64 / self.word {
            let bytes = word * self.word..(word + 1) * self.word;
            let modified = self.under[word] > self.begun();
            let changes = self.plain[bytes.clone()] != data[bytes.clone()];
            if self.writes != self.begun() && !modified && !changes {
                continue;
            }
            self.under[word] = self.writes;
            for byte in bytes {
                let new = data[byte] ^ pad(place, self.under[word], byte);
                self.flips += u64::from((new ^ self.stored[byte]).count_ones());
                self.stored[byte] = new;
            }
        }
        self.plain = *data;
    }

    fn beside(&self) -> [u8; 8] {
        let modified = (0..self.under.len()).filter(|word| self.under[*word] > self.begun());
        let bits = modified.fold(0, |bits, word| bits | 1u64 << word);
        (self.writes | bits << 32).to_le_bytes()
    }
}

/// Contents that stay, change in a few bytes, in a word, or altogether.
fn next(draw: &mut SplitMix64, data: &mut Line) {
    match draw.below(8) {
        0 => data.iter_mut().for_each(|byte| *byte = draw.draw() as u8),
        1 => {}
        2 | 3 => {
            let word = draw.below(8) as usize * 8;
            data[word..word + 8].copy_from_slice(&draw.draw().to_le_bytes());
        }
        _ => data[draw.below(64) as usize] ^= draw.draw() as u8,
    }
}

#[test]
fn the_array_and_what_lies_beside_is_what_a_model_of_words_has() {
    let all = [(32, 2), (32, 8), (4, 4), (4, 2), (1, 2)];
    for (number, (epoch, word)) in all.into_iter().enumerate() {
        let (epoch_text, word_text) = (epoch.to_string(), word.to_string());
        let reads = (number % 2 == 0).to_string();
        let past = if number % 3 == 0 { "empty" } else { "written" };
        let mut sets = vec![
            ("encryption.deuce.epoch", epoch_text.as_str()),
            ("encryption.deuce.reads_first", reads.as_str()),
            ("memory.past", past),
        ];
        if epoch > 1 {
            sets.push(("encryption.deuce.word_bytes", word_text.as_str()));
        }
        let mut memory = memory(&sets, "deuce");
        let mut lines: Vec<(Line, Model)> = (0..3)
            .map(|_| ([0; 64], Model::new(epoch, word, past)))
            .collect();
        let (mut draw, mut beside) = (SplitMix64(3), 0);
        for _ in 0..300 {
            let line = draw.below(3);
            let (data, model) = &mut lines[line as usize];
            next(&mut draw, data);
            let old = memory.image().sideband(Place(line)).unwrap_or_default();
            model.write(line, data);
            write(&mut memory, line, data);
            let new = memory.image().sideband(Place(line)).unwrap();
            assert_eq!(memory.image().read(Place(line)), Some(model.stored));
            assert_eq!(new, model.beside(), "epoch {epoch}, words of {word}");
            let flips = u64::from_le_bytes(old) ^ u64::from_le_bytes(new);
            beside += u64::from(flips.count_ones());
        }
        let flips: u64 = lines.iter().map(|(_, model)| model.flips).sum();
        assert_eq!(memory.programmed().unwrap().cells, flips);
        assert_eq!(memory.image().wear().bits_flipped, flips + beside);
        for (line, (data, _)) in lines.iter().enumerate() {
            assert_eq!(memory.read_at_once(Logical(line as u64)), Some(*data));
        }
    }
}

/// One word of 2 bytes changes at each write: of 32 writes of an epoch the first flips half of the line, and write `k`
/// after it half of the words changed by then.
#[test]
fn fewer_cells_flip_where_few_words_change_and_none_fewer_where_all_do() {
    let share = |sparse: bool, design| {
        let (mut memory, mut draw, mut data) = (memory(&[], design), SplitMix64(5), [0; 64]);
        let epochs = 40;
        for _ in 0..32 * epochs {
            match sparse {
                true => data[6..8].copy_from_slice(&(draw.draw() as u16).to_le_bytes()),
                false => data.iter_mut().for_each(|byte| *byte = draw.draw() as u8),
            }
            write(&mut memory, 1, &data);
        }
        memory.programmed().unwrap().cells as f64 / f64::from(32 * epochs * 512)
    };
    let all = share(false, "deuce");
    assert!((all - 0.5).abs() < 0.01, "{all}");
    let plain = share(true, "identity+per-line");
    assert!((plain - 0.5).abs() < 0.01, "{plain}");
    // 512 bits once and 16 bits 31 times, half of each.
    let (found, expected) = (
        share(true, "deuce"),
        (512.0 + 31.0 * 16.0) / 2.0 / 32.0 / 512.0,
    );
    assert!(
        (found / expected - 1.0).abs() < 0.03,
        "{found} of {expected}"
    );
}

#[test]
fn a_counter_that_is_used_up_ends_the_run() {
    let sets = [
        ("encryption.first_counter", "4294967264"),
        ("memory.past", "empty"), // that number is the first write's
    ];
    let mut memory = memory(&sets, "deuce");
    for round in 0..32 {
        write(&mut memory, 1, &[round; 64]);
    }
    assert_eq!(memory.failure(), None);
    write(&mut memory, 1, &[99; 64]);
    let told = memory.failure().unwrap().to_string();
    assert!(told.contains("encryption.first_counter"), "{told}");
}
