//! Looks and changes that take no time: a debugger's, a loader's.

use super::{Hosted, HostedError};
use crate::line::{LINE_BYTES, Logical};
use crate::memory::Contents;

/// Reads and changes memory in no time, for a debugger or a loader.
impl Hosted {
    /// Reads the host's last writes at `address`, across lines.
    ///
    /// # Errors
    /// The address lies nowhere.
    pub fn peek(&mut self, source: u32, address: u64, bytes: &mut [u8]) -> Result<(), HostedError> {
        self.powered()?;
        self.each_line(source, address, bytes.len(), |this, line, from, part| {
            let part = &mut bytes[part];
            let unwritten = this.options.unwritten;
            let contents = this.contents();
            let known = contents.get(line).copied();
            let known = known.unwrap_or_else(|| unwritten.line(line));
            part.copy_from_slice(&known[from..from + part.len()]);
        })
    }

    /// Changes the bytes at `address`, across lines. Memory gets them at once if it is at rest, else when it next is.
    ///
    /// # Errors
    /// The address lies nowhere.
    pub fn poke(&mut self, source: u32, address: u64, bytes: &[u8]) -> Result<(), HostedError> {
        self.powered()?;
        self.each_line(source, address, bytes.len(), |this, line, from, part| {
            let unwritten = this.options.unwritten;
            let (part, before) = (&bytes[part], || unwritten.line(line));
            let contents = this.contents();
            let whole = contents.with(line, from, part, before);
            contents.put(line, &whole, true);
        })?;
        // With a journal memory has to be what the journal says, from the first request on.
        if self.began_with.is_none() && self.in_flight == 0 {
            self.write_ahead();
        }
        self.goes_on()
    }

    fn each_line(
        &mut self,
        source: u32,
        address: u64,
        size: usize,
        mut act: impl FnMut(&mut Hosted, Logical, usize, std::ops::Range<usize>),
    ) -> Result<(), HostedError> {
        if !self.options.keep {
            return Err(HostedError::NotKept(
                "a look, or a change without a request,",
            ));
        }
        self.check_source(source)?;
        // The end of the last line is 2^64, which is no address.
        if let Some(more) = (size as u64).checked_sub(1) {
            let last = address.checked_add(more);
            self.check_address(last.ok_or(HostedError::Size { address, size })?)?;
        }
        let mut done = 0;
        while done < size {
            let at = address + done as u64;
            let from = (at % LINE_BYTES as u64) as usize;
            let count = (LINE_BYTES - from).min(size - done);
            let line = self.translate(source, at)?;
            act(self, line, from, done..done + count);
            done += count;
        }
        Ok(())
    }

    /// The host's last writes.
    ///
    /// # Panics
    /// If nobody keeps them.
    pub(super) fn contents(&mut self) -> &mut Contents {
        let contents = self.port.memory.contents();
        contents.expect("what was written is kept")
    }

    pub(super) fn write_ahead(&mut self) {
        if !self.options.keep || !self.port.memory.is_at_rest() || self.began_with.is_some() {
            return;
        }
        for line in self.contents().take_ahead() {
            let data = *self.contents().get(line).expect("it was written");
            self.port.memory.write_at_once(line, &data);
            self.loaded |= self.port.admitted == 0;
        }
    }
}
