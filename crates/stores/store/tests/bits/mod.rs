//! The array bit by bit, and the deduplicating store on it: obvious and slow, the reference of the
//! fast model. For arrays of some thousand rows.

mod array;
mod controller;

pub use controller::BitLevel;
