//! The progress of an estimate, in a file from which the same question can be continued.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::{EstimateError, EstimateResult, EstimateWork, Progress, Question, bad};

/// The first bytes of every such file; another layout gets another number.
const MAGIC: &[u8] = b"sardonyx estimate 1\n";

/// Replaces the file, whole or not at all.
pub(super) fn save(path: &Path, question: &Question, work: &EstimateWork) -> EstimateResult<()> {
    let written = || -> io::Result<()> {
        let mut scratch = path.as_os_str().to_owned();
        scratch.push(".new");
        let mut to = BufWriter::new(File::create(&scratch)?);
        to.write_all(MAGIC)?;
        put(&mut to, serde_json::to_string(question)?.as_bytes())?;
        put(&mut to, serde_json::to_string(&work.place)?.as_bytes())?;
        put(
            &mut to,
            work.by_content.as_ref().map_or(&[], |cut| cut.pending()),
        )?;
        for table in &work.tables {
            table.save(&mut to)?;
        }
        to.into_inner()?.sync_all()?;
        std::fs::rename(&scratch, path)
    };
    written().map_err(|error| EstimateError::Io(path.display().to_string(), error))
}

/// Makes the work what it was when it was saved; an error if it was for another question.
pub(super) fn load(
    path: &Path,
    question: &Question,
    work: &mut EstimateWork,
) -> EstimateResult<()> {
    let shown = path.display();
    let mut read = || -> io::Result<Option<()>> {
        let mut from = BufReader::new(File::open(path)?);
        let mut magic = vec![0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        if get(&mut from)? != serde_json::to_vec(question)? {
            return Ok(None);
        }
        work.place = serde_json::from_slice::<Progress>(&get(&mut from)?)?;
        let pending = get(&mut from)?;
        if let Some(by_content) = &mut work.by_content {
            by_content.resume(pending);
        }
        for table in &mut work.tables {
            table.load(&mut from)?;
        }
        Ok(Some(()))
    };
    match read() {
        Ok(Some(())) => Ok(()),
        Ok(None) => bad(format!(
            "--state {shown}: is of another path or of other options; give those, or another file"
        )),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) =>
        {
            Err(EstimateError::Io(shown.to_string(), error))
        }
        Err(_) => bad(format!(
            "--state {shown}: is not a state of an estimate; name another file"
        )),
    }
}

fn put(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

fn get(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut bytes = Vec::new();
    let read = from
        .take(u64::from_le_bytes(length))
        .read_to_end(&mut bytes)?;
    match read as u64 == u64::from_le_bytes(length) {
        true => Ok(bytes),
        false => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}
