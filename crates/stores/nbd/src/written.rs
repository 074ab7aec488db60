//! Requests recorded with digests, in the form of Florida International University's traces (docs/store/estimate.md),
//! so that the designs can be run over them: contents are left out.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use sardonyx_device::Device;

const SECTOR: u64 = 512;
pub const DIGESTED: u32 = 4096;

pub struct Written {
    file: BufWriter<File>,
    began: Instant,
    pub failed: Option<io::Error>,
}

impl Written {
    /// Makes a new file; an existing one is an error.
    pub fn to(path: &str) -> io::Result<Written> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Written {
            file: BufWriter::new(file),
            began: Instant::now(),
            failed: None,
        })
    }

    /// Records a request that was served, as the whole blocks that it touches; nothing more once the disk refuses.
    pub fn request(&mut self, device: &Device, way: char, offset: u64, bytes: u64) {
        if bytes == 0 || self.failed.is_some() {
            return;
        }
        let block = u64::from(DIGESTED);
        let (first, end) = (offset / block, (offset + bytes).div_ceil(block));
        let mut line = format!(
            "{} {} nbd {} {} {way} 0 0",
            self.began.elapsed().as_nanos(),
            std::process::id(),
            first * block / SECTOR,
            (end - first) * block / SECTOR,
        );
        for number in first..end {
            line.push(' ');
            for byte in &device.digest(number as u32)[..16] {
                line.push_str(&format!("{byte:02x}"));
            }
        }
        line.push('\n');
        self.failed = self.file.write_all(line.as_bytes()).err();
    }

    pub fn end(&mut self) {
        if self.failed.is_none() {
            self.failed = self.file.flush().err();
        }
    }
}
