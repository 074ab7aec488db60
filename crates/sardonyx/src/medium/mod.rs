//! The medium: what it is made of ([`params`]), where things lie in it ([`layout`]), the bytes it
//! holds and how it wears ([`image`]). The engine times its commands.

pub mod image;
pub mod layout;
pub mod params;
