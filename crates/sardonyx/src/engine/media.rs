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
    /// The number that a channel's first bank would have if the medium's channels began with the engine's first: out of
    /// reach where uses of banks are not counted.
    pub bank_base: usize,
    pub service: [Service; 2],
}

/// A medium's memory cycle in picoseconds, and the number and the start of a recent cycle.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock {
    pub period: u64,
    pub cycle: u64,
    pub began: u64,
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
            bank_base: match params.buffer {
                Some(_) => usize::MAX / 2,
                None => banks.wrapping_sub(channels * (geometry.ranks * geometry.banks) as usize),
            },
            service: [Service::default(); 2],
            params: params.clone(),
        }
    }

    /// Its clock, at the beginning.
    pub fn clock(&self) -> Clock {
        Clock {
            period: self.params.timing.clock.ps(),
            ..Clock::default()
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
