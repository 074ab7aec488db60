//! The media of an engine: the persistent one and the near one, each with its channels and its clock.

use std::ops::Range;

use super::Service;
use crate::medium::mapping::Decoder;
use crate::medium::params::MediumParams;

/// One of the media on the engine's clock: its channels, its own clock, and what it has done.
pub(super) struct Medium {
    pub params: MediumParams,
    pub decoder: Decoder,
    /// Its channels among the engine's, and the first of its banks among theirs.
    pub channels: Range<usize>,
    pub first_bank: usize,
    pub of_a_channel: usize,
    /// A memory cycle in picoseconds, and the number and the start of a recent cycle.
    pub clock: u64,
    pub cycle: u64,
    pub cycle_began: u64,
    pub service: [Service; 2],
}

impl Medium {
    /// A medium whose channels and banks come after so many others.
    pub fn new(params: &MediumParams, channels: usize, banks: usize) -> Medium {
        let geometry = &params.geometry;
        Medium {
            decoder: Decoder::new(geometry, params.mapping),
            channels: channels..channels + geometry.channels as usize,
            first_bank: banks,
            of_a_channel: (geometry.ranks * geometry.banks) as usize,
            clock: params.timing.clock.ps(),
            cycle: 0,
            cycle_began: 0,
            service: [Service::default(); 2],
            params: params.clone(),
        }
    }

    /// The banks that uses are counted of; none behind a module's buffer.
    pub fn banks(&self) -> usize {
        match self.params.buffer {
            Some(_) => 0,
            None => self.channels.len() * self.of_a_channel,
        }
    }
}
