//! Mapped files as they were before the program wrote to them, kept in the trace's folder under their hashes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sardonyx_recorder::options::Level;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::request::Request;
use crate::{RecordError, Result};

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

/// The hash of `file`, and whether it holds anything but zeros.
fn hash(file: &mut File) -> io::Result<(String, bool)> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; 1 << 20];
    let mut zeros = true;
    loop {
        match file.read(&mut block)? {
            0 => return Ok((hasher.finalize().to_hex().to_string(), zeros)),
            read => {
                zeros &= block[..read].iter().all(|&byte| byte == 0);
                hasher.update(&block[..read]);
            }
        }
    }
}

pub fn hash_of(path: &Path) -> io::Result<String> {
    Ok(hash(&mut File::open(path)?)?.0)
}

/// Adds the contents from before the program (`ground`, with `bytes` and `hash`, and `zeros` if it held nothing else)
/// and after it (`after`, likewise) to a file's entry in the provenance. A copy that is not all zeros is moved into the
/// trace's folder.
pub fn keep(copied: &Path, trace: &Path, file: &mut Value) -> io::Result<()> {
    if copied.is_file() {
        let bytes = copied.metadata()?.len();
        let (hash, zeros) = hash(&mut File::open(copied)?)?;
        if !zeros {
            std::fs::rename(copied, path(trace, &hash))?;
        }
        file["ground"] = json!({"bytes": bytes, "hash": hash, "zeros": zeros});
    }
    let at = file["path"].as_str().unwrap_or_default().to_owned();
    if let Ok(mut after) = File::open(at) {
        let bytes = after.metadata()?.len();
        let (hash, _) = hash(&mut after)?;
        file["after"] = json!({"bytes": bytes, "hash": hash});
    }
    Ok(())
}
