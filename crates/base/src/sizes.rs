//! Sizes as people write them: `4096`, `4K`, `16M`, `1G`. The one reader of them, for the command line's options, the
//! recorder's and the stores' keys.

const DIGITS: usize = 15;

/// The remedy that follows a text which is not a size.
pub const REMEDY: &str = "is not a size; give bytes, as in 4096, 4K or 16M";

/// Parses a number of bytes. K, M and G, small or capital, are powers of 1024. Returns `None` if the text is no size or
/// too large to count.
pub fn parse(text: &str) -> Option<u64> {
    let (number, shift) = match text.char_indices().next_back()? {
        (at, 'K' | 'k') => (&text[..at], 10),
        (at, 'M' | 'm') => (&text[..at], 20),
        (at, 'G' | 'g') => (&text[..at], 30),
        _ => (text, 0),
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() <= DIGITS;
    let number = is_number.then(|| number.parse::<u64>().ok())??;
    number.checked_mul(1 << shift)
}

#[test]
fn sizes_are_read_and_nothing_else() {
    for (text, bytes) in [
        ("0", 0),
        ("4096", 4096),
        ("4K", 4096),
        ("16m", 16 << 20),
        ("3G", 3 << 30),
    ] {
        assert_eq!(parse(text), Some(bytes), "{text}");
    }
    let no = [
        "",
        "K",
        "4KB",
        "-1",
        "+1",
        "1.5G",
        "4 K",
        "٤",
        "1٤",
        "4é",
        "9999999999999999",
        "999999999999999G",
    ];
    for text in no {
        assert_eq!(parse(text), None, "{text}");
    }
}
