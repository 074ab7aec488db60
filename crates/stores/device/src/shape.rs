//! The size, block size and design of a device, as its folder has them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{DeviceError, Result};
use sardonyx_store::Named;

/// The layout of the folder; another layout gets another number. Layout 1 had its tables in an engine that could not
/// tell damage from a torn end.
pub(crate) const FORMAT: u32 = 3;

/// The values that a user asks for; missing ones are the folder's.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The design; by default the first one.
    pub design: Option<Named>,
    /// The device's size in bytes; a new device needs it.
    pub size_bytes: Option<u64>,
    /// The block's size in bytes; by default 4096.
    pub block_bytes: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub(crate) format: u32,
    pub design: Named,
    pub size_bytes: u64,
    pub block_bytes: u32,
}

impl Shape {
    pub(crate) fn new(wanted: Wanted) -> Result<Shape> {
        let Some(size_bytes) = wanted.size_bytes else {
            return Err(DeviceError::Bad(
                "--size: give one, as 1G; the store is new".into(),
            ));
        };
        let shape = Shape {
            format: FORMAT,
            design: wanted.design.unwrap_or_default(),
            size_bytes,
            block_bytes: wanted.block_bytes.unwrap_or(4096),
        };
        shape.check()?;
        Ok(shape)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let (size, block) = (self.size_bytes, u64::from(self.block_bytes));
        if !(512..=65536).contains(&block) || !block.is_power_of_two() {
            return Err(DeviceError::Bad(format!(
                "--block {block}: give 512 to 64K, a power of two"
            )));
        }
        if size < block {
            return Err(DeviceError::Bad(format!(
                "--size {size}: is less than one block; give {block} bytes or more"
            )));
        }
        if !size.is_multiple_of(block) || size / block >= u64::from(u32::MAX) {
            return Err(DeviceError::Bad(format!(
                "--size {size}: give whole blocks of {block} bytes, fewer than 2^32 - 1 of them"
            )));
        }
        Ok(())
    }

    pub(crate) fn agree(&self, path: &Path, wanted: Wanted) -> Result<()> {
        let Shape {
            design,
            size_bytes,
            block_bytes,
            ..
        } = self;
        let same = wanted.design.is_none_or(|wanted| wanted == *design)
            && wanted.size_bytes.is_none_or(|wanted| wanted == *size_bytes)
            && wanted
                .block_bytes
                .is_none_or(|wanted| wanted == *block_bytes);
        if same {
            return Ok(());
        }
        Err(DeviceError::Bad(format!(
            "{}: holds a store made with --design {} --size {size_bytes} --block {block_bytes}; \
             ask for that, or name another folder",
            path.display(),
            design.name
        )))
    }

    pub fn blocks(&self) -> u32 {
        (self.size_bytes / u64::from(self.block_bytes)) as u32
    }
}
