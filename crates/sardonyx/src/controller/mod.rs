//! The controller: a stack of layers, mapping over encryption over the medium.

pub mod params;
