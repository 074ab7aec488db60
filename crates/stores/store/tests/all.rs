//! The store's tests from outside.
mod bits;
mod conventional;
mod designs;
mod recam;
mod workload;
