//! Mapped files as they were before the program wrote to them, kept in the trace's folder under their hashes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sardonyx_base::regular;
use sardonyx_recorder::options::Level;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::error::{RecordError, Result};
use crate::request::Request;

/// The folder for the plugin's copies: it is in the trace's folder, because they may be large. `None` below the caches,
/// because only a recording at the core can be cut.
pub fn folder(request: &Request) -> Result<Option<TempDir>> {
    if request.level != Level::Cpu {
        return Ok(None);
    }
    let beside = match request.output.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let folder = beside.canonicalize().and_then(|beside| {
        tempfile::Builder::new()
            .prefix(".sardonyx-")
            .tempdir_in(beside)
    });
    folder.map(Some).map_err(|e| {
        RecordError::new(format!(
            "{}: cannot be written: {e}; name a file in a folder that exists",
            request.output.display()
        ))
    })
}

pub fn path(trace: &Path, hash: &str) -> PathBuf {
    let mut name = trace.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}.pool", &hash[..16]));
    trace.with_file_name(name)
}

/// What a file holds: its length and hash, and whether there is nothing but zeros.
struct Contents {
    bytes: u64,
    hash: String,
    zeros: bool,
}

impl Contents {
    /// Reads the regular file there as far as it reached when it was opened: what somebody appends meanwhile is left out.
    fn read(path: &Path) -> io::Result<Contents> {
        let file = regular::open(path)?;
        let length = file.metadata()?.len();
        let mut file = file.take(length);
        let mut hasher = blake3::Hasher::new();
        let mut block = vec![0; 1 << 20];
        let (mut bytes, mut zeros) = (0, true);
        loop {
            match file.read(&mut block)? {
                0 => break,
                read => {
                    bytes += read as u64;
                    zeros &= block[..read].iter().all(|&byte| byte == 0);
                    hasher.update(&block[..read]);
                }
            }
        }
        let hash = hasher.finalize().to_hex().to_string();
        Ok(Contents { bytes, hash, zeros })
    }
}

pub fn hash_of(path: &Path) -> io::Result<String> {
    Ok(Contents::read(path)?.hash)
}

/// Adds the contents from before the program (`ground`, with `bytes` and `hash`, and `zeros` if it held nothing else)
/// and after it (`after`, likewise) to a file's entry in the provenance. A copy that is not all zeros is moved into the
/// trace's folder.
pub fn keep(copied: &Path, trace: &Path, file: &mut Value) -> io::Result<()> {
    if copied.is_file() {
        let Contents { bytes, hash, zeros } = Contents::read(copied)?;
        if !zeros {
            std::fs::rename(copied, path(trace, &hash))?;
        }
        file["ground"] = json!({"bytes": bytes, "hash": hash, "zeros": zeros});
    }
    // The path is what the kernel called the mapping: `/dev/zero` for memory that processes share, which never ends.
    let at = file["path"].as_str().unwrap_or_default().to_owned();
    if let Ok(Contents { bytes, hash, .. }) = Contents::read(Path::new(&at)) {
        file["after"] = json!({"bytes": bytes, "hash": hash});
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_what_never_ends_is_left_without_contents() {
        let mut file = json!({"path": "/dev/zero"});
        keep(Path::new("no-copy"), Path::new("t.parquet"), &mut file).unwrap();
        assert_eq!(file, json!({"path": "/dev/zero"}));
        assert!(hash_of(Path::new("/dev/zero")).is_err());
    }
}
