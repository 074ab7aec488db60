//! The store's tests from outside.
mod conventional;
mod recam;
mod workload;
