//! What lies in clear where no pad covers it: contents, their check bits, and pads, in tables, in a log's own lines,
//! beside lines and in registers that are dumped. Only words of eight bytes are compared; smaller pieces, and what is
//! computed from a content in another way, are found by `repeat` with other contents.

use rustc_hash::FxHashSet;

use crate::history::History;
use crate::pads::Encrypted;
use crate::violation::{Kind, Violation};
use crate::words::{number, numbers};
use sardonyx::ecc::{self, Matrix};
use sardonyx::line::Line;
use sardonyx::plan::journal::{Domain, Journal, MediumWrite};

pub struct SecretContents {
    lines: FxHashSet<Line>,
    words: FxHashSet<u64>,
}

impl SecretContents {
    /// Collects the contents that `journal` was asked to write, or wrote to a log.
    pub fn from_journal(journal: &Journal) -> SecretContents {
        // Lines and words with few different bytes do not count, because new tables look like them.
        let telling = |line: &&Line| different(*line) >= 8;
        let lines = journal.handled.iter().map(|handled| &handled.data);
        let lines = lines.chain(journal.logged.iter().map(|logged| &logged.data));
        let lines: FxHashSet<Line> = lines.filter(telling).copied().collect();
        let telling = |word: &u64| different(&word.to_le_bytes()) >= 6;
        let check = |line: &Line| ecc::check_word(Matrix::TruncatedHamming, line);
        let words = lines.iter().map(check);
        let words = words.chain(lines.iter().flat_map(numbers));
        let words = words.filter(telling).collect();
        SecretContents { lines, words }
    }

    pub fn show_in(&self, line: &Line) -> bool {
        line.windows(8).any(|w| self.words.contains(&number(w)))
    }
}

/// The number of different bytes.
fn different(bytes: &[u8]) -> u32 {
    let mut seen = [0u64; 4];
    for byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|bits| bits.count_ones()).sum()
}

/// Returns writes of the medium that show a content, its check bits or a pad, and registers that reserve power would
/// dump with a word of one.
pub(crate) fn in_clear(history: &History) -> Vec<Violation> {
    let (journal, held) = (&history.journal, history.held());
    let contents = SecretContents::from_journal(journal);
    let shows = |write: &MediumWrite| {
        let beside = write.sideband.map(u64::from_le_bytes);
        if beside.is_some_and(|word| contents.words.contains(&word) || history.pads.has_word(word))
        {
            return Some("a content, its check bits or a pad, beside a line");
        }
        // Ciphertext is noise, in which a word turns up by chance once in 2^58 places. A line that moves keeps its
        // ciphertext.
        let moves = write.is_move() && held.covers(write.place);
        let covered = moves || Encrypted::from_write(write, journal, held).is_some();
        let shown =
            contents.lines.contains(&write.line) || !covered && contents.show_in(&write.line);
        let words = numbers(&write.line).into_iter().enumerate();
        let mut carried = words.filter(|(word, _)| write.words >> word & 1 == 1);
        if !covered && carried.any(|(_, word)| history.pads.has_word(word)) {
            return Some("a pad, as it is");
        }
        shown.then_some("a content, or its check bits, as they are")
    };
    let on_chip = journal.changed_on_chip();
    let dumped = on_chip.filter(|(_, change)| change.domain == Domain::Registers);
    let dumped = dumped.filter(|(_, change)| contents.show_in(&change.write.line));
    let dumped = dumped.map(|(at, change)| {
        let what = "a content, or its check bits, in registers that are dumped";
        (at, &change.write, what)
    });
    let shown = journal.accepted();
    let shown = shown.filter_map(|(at, write)| Some((at, write, shows(write)?)));
    let violation = |(at, write, what): (u64, &MediumWrite, &str)| Violation {
        place: Some(write.place),
        ..Violation::new(Kind::Plaintext, at, what.to_owned())
    };
    shown.chain(dumped).map(violation).collect()
}
