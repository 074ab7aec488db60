//! A line of Florida International University's traces of I/O deduplication (Koller and
//! Rangaswami, FAST 2010): `time pid process lba sectors W|R major minor digest..`.

const SECTOR: u64 = 512;

/// A request to a disk with a digest for each equal share of its bytes.
pub struct FiuRequest<'a> {
    pub write: bool,
    pub at: u64,
    /// At least 1 and a multiple of the number of digests.
    pub bytes: u64,
    pub digests: Vec<&'a str>,
}

impl<'a> FiuRequest<'a> {
    /// # Errors
    /// What is wrong with the line, without its place.
    pub fn parse(line: &'a str) -> Result<FiuRequest<'a>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A process's name may have spaces.
        let way = words.iter().rposition(|&word| word == "W" || word == "R");
        let Some(way) = way.filter(|&way| way >= 5 && words.len() > way + 3) else {
            return Err("is not `time pid process lba sectors W|R major minor digest..`".into());
        };
        let number = |at: usize| {
            let parsed = words[at].parse::<u64>();
            parsed.map_err(|_| format!("{} is not a number", words[at]))
        };
        for at in [0, 1, way + 1, way + 2] {
            number(at)?;
        }
        let (at, bytes) = (number(way - 2)?, number(way - 1)?);
        let digests = words[way + 3..].to_vec();
        let (at, bytes) = (at.saturating_mul(SECTOR), bytes.saturating_mul(SECTOR));
        if bytes == 0 || bytes % digests.len() as u64 != 0 {
            return Err(format!("{} digests of {bytes} bytes", digests.len()));
        }
        let digest = |word: &&str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
        if let Some(bad) = digests.iter().find(|word| !digest(word)) {
            return Err(format!(
                "{bad:.50} is not a digest of 32 hexadecimal digits"
            ));
        }
        Ok(FiuRequest {
            write: words[way] == "W",
            at,
            bytes,
            digests,
        })
    }
}
