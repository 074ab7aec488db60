//! The media of a machine, whose channels follow each other: the persistent one's come first. Each has its own clock.

use sardonyx::line::Place;
use sardonyx::medium::mapping::Decoder;
use sardonyx::medium::params::{EngineParams, MediumParams};
use sardonyx::units::Time;

/// A medium and the number of its first channel.
struct Medium {
    params: MediumParams,
    decoder: Decoder,
    first: u32,
}

/// The media of a machine.
pub struct Media {
    far: Medium,
    near: Option<Medium>,
}

impl Media {
    /// The media of a machine with these parameters.
    pub fn new(params: &EngineParams) -> Media {
        let medium = |params: &MediumParams, first| Medium {
            decoder: Decoder::new(&params.geometry, params.mapping),
            params: params.clone(),
            first,
        };
        let channels = params.medium.geometry.channels as u32;
        Media {
            far: medium(&params.medium, 0),
            near: params.near.as_ref().map(|near| medium(near, channels)),
        }
    }

    fn with(&self, place: Place) -> &Medium {
        let near = self.near.as_ref().filter(|_| place.is_near());
        near.unwrap_or(&self.far)
    }

    fn over(&self, channel: u32) -> &Medium {
        let near = self.near.as_ref();
        let near = near.filter(|near| channel >= near.first);
        near.unwrap_or(&self.far)
    }

    /// The channel of a place.
    pub fn channel(&self, place: Place) -> u32 {
        let medium = self.with(place);
        medium.first + medium.decoder.channel(Place(place.in_medium())) as u32
    }

    /// The bank of a place, counted through all ranks of its channel.
    pub fn bank(&self, place: Place) -> usize {
        self.with(place).decoder.bank(place.in_medium())
    }

    /// The cycle of a place's channel in which something happens.
    pub fn cycle(&self, place: Place, at: Time) -> u64 {
        at.ps() / self.with(place).params.timing.clock.ps()
    }

    /// When a cycle of a channel begins.
    pub fn time(&self, channel: u32, cycle: u64) -> Time {
        Time::from_ps(cycle * self.over(channel).params.timing.clock.ps())
    }

    /// The parameters of a channel's medium.
    pub fn params(&self, channel: u32) -> &MediumParams {
        &self.over(channel).params
    }

    /// The number of a channel in its medium, and whether that is the near one.
    pub fn number(&self, channel: u32) -> (u32, bool) {
        let medium = self.over(channel);
        (channel - medium.first, medium.first > 0)
    }

    /// All channels.
    pub fn channels(&self) -> std::ops::Range<u32> {
        let channels = |medium: &Medium| medium.first + medium.params.geometry.channels as u32;
        0..channels(self.near.as_ref().unwrap_or(&self.far))
    }
}
