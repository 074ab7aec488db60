//! The store's tests from outside.
mod recam;
