//! The layers that stand on the medium: each takes places and keeps their bytes secret, or not.
//! Source: counter mode as SCA, DeWrite and ESD use it.
//! Left out: where lines go, which is the mapping layers' to say.

pub mod counter_mode;
pub mod none;
