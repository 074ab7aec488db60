//! Pages made from a seed: the mixes whose counters the kernel was asked for, and random ones. Content
//! 0 is the page of zeros; content n is 512 words of splitmix64 seeded with n.

use sardonyx_base::random::SplitMix64;

use crate::{PAGE_BYTES, PageBytes};
use sardonyx::names::named;

/// The first numbers of contents that occur once, and of those in groups.
const ONCE: u64 = 1_000_000;
const GROUPED: u64 = 2_000_000;
const IN_257: u64 = 3_000_000;
const EQUAL_REWRITTEN: u64 = 4_000_000;
const REWRITTEN: u64 = 5_000_000;

pub fn fill(content: u64, bytes: &mut PageBytes) {
    if content == 0 {
        bytes.fill(0);
        return;
    }
    let mut words = SplitMix64(content);
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = words.draw().to_le_bytes();
    }
}

named! {
    /// What the pages hold.
    Mix {
        /// Each page its own content.
        Unique = "unique",
        /// All zeros.
        Zero = "zero",
        /// One content.
        Same = "same",
        /// Eight pages in a row the same.
        Groups8 = "groups8",
        /// Eight pages the same, far apart.
        Stride8 = "stride8",
        /// 257 pages in a row the same.
        G257 = "g257",
        /// As PageForge's Fig. 7: 45 % once, 5 % zeros, 50 % on 6.6 %.
        Paper = "paper",
        /// A quarter once, a quarter in pairs, a quarter once and rewritten before each pass, a quarter
        /// equal and rewritten likewise.
        Volatile = "volatile",
        /// The same, rewritten before each even pass.
        Vol2 = "vol2",
        /// The same as volatile, but only the last eight bytes are rewritten.
        VolLast8Bytes = "vol_last8bytes",
        /// Pairs; one word of each fourth page is flipped before pass 5 and restored before pass 9.
        Cow = "cow",
        /// Half pairs, half once; before pass 5 the second half takes the contents of the first.
        Late = "late",
    }
}

impl Mix {
    /// The content of page `i` of `n` at a pass (from 1), and the word of it that is flipped.
    pub fn content(self, i: u64, n: u64, pass: u64) -> (u64, Option<usize>) {
        let quarter = n / 4;
        let content = match self {
            Mix::Unique => ONCE + i,
            Mix::Zero => 0,
            Mix::Same => 7,
            Mix::Groups8 => GROUPED + i / 8,
            Mix::Stride8 => GROUPED + i % (n / 8),
            Mix::G257 => IN_257 + i / 257,
            Mix::Paper => match i % 20 {
                0..9 => ONCE + i,
                9 => 0,
                at => GROUPED + (i / 20 * 10 + at - 10) % (n * 66 / 1000),
            },
            Mix::Volatile => return (rewritten(i, n, pass), None),
            Mix::Vol2 => {
                return (
                    rewritten(i, n, if pass < 2 { pass } else { pass / 2 * 2 }),
                    None,
                );
            }
            Mix::VolLast8Bytes => {
                let last = (i >= 2 * quarter && pass > 1).then_some(511);
                return (rewritten(i, n, 1), last);
            }
            Mix::Cow => {
                let flipped = i.is_multiple_of(4) && (5..9).contains(&pass);
                return (GROUPED + i / 2, flipped.then_some(0));
            }
            Mix::Late => match i < n / 2 {
                true => GROUPED + i / 2,
                false if pass < 5 => ONCE + i,
                false => GROUPED + (i - n / 2) / 2,
            },
        };
        (content, None)
    }

    /// The bytes of page `i` of `n` at a pass.
    pub fn page(self, i: u64, n: u64, pass: u64, bytes: &mut PageBytes) {
        let (content, flipped) = self.content(i, n, pass);
        fill(content, bytes);
        if let Some(word) = flipped {
            let by = if self == Mix::VolLast8Bytes {
                pass
            } else {
                u64::MAX
            };
            let at = &mut bytes.as_chunks_mut::<8>().0[word];
            *at = (u64::from_le_bytes(*at) ^ by).to_le_bytes();
        }
    }

    pub fn snapshot(self, n: u64, pass: u64) -> Vec<u8> {
        let mut bytes = vec![0; n as usize * PAGE_BYTES];
        for (i, page) in (0..).zip(bytes.as_chunks_mut::<PAGE_BYTES>().0) {
            self.page(i, n, pass, page);
        }
        bytes
    }

    /// The pass after which nothing is written any more; `None` if there is no end.
    pub fn last_write(self) -> Option<u64> {
        match self {
            Mix::Volatile | Mix::Vol2 | Mix::VolLast8Bytes => None,
            Mix::Cow => Some(9),
            Mix::Late => Some(5),
            _ => Some(1),
        }
    }
}

/// The content of a mix of four quarters: unique, in pairs, unique and rewritten, equal and rewritten, the last two as
/// of a pass.
fn rewritten(i: u64, n: u64, pass: u64) -> u64 {
    let quarter = n / 4;
    match i / quarter {
        0 => ONCE + i,
        1 => GROUPED + (i - quarter) / 2,
        2 => REWRITTEN + pass * n + i,
        _ => EQUAL_REWRITTEN + pass,
    }
}
