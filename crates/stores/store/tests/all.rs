//! The store's tests from outside.
mod conventional;
mod designs;
mod recam;
mod workload;
