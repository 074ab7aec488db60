//! The medium: what it is made of ([`params`]), where a line lies in it ([`mapping`]) and where things lie
//! ([`layout`]), the bytes it holds and how it wears ([`image`]). The engine times its commands.

pub mod buffer;
pub mod cells;
pub mod image;
pub mod layout;
pub mod levelling;
pub mod link;
pub mod mapping;
pub mod near;
pub mod params;
pub mod parts;
pub mod pausing;
pub(crate) mod segments;
