//! The layers that stand on the medium: each takes places and keeps their bytes secret, or not,
//! and each is a policy of when an encryption counter persists with its line.
//! Source: counter mode as SCA, DeWrite and ESD use it; the policies are SCA's (HPCA 2018).
//! Left out: where lines go, which is the mapping layers' to say.

pub mod co_located;
pub mod counter_mode;
pub mod counter_tags;
pub mod global_counter;
pub mod none;
pub mod pad;
