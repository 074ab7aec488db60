//! Every store design, each a value in its own file, which says all that anybody needs to know of it: its
//! keys, what is assumed, how it is built, what it shows. To add one: its file here and its name in the
//! list; docs/store/stores.md goes through it. Left out: what a store does, which its own module says.

mod keys;

use std::borrow::Cow;
use std::ops::Deref;
use std::path::Path;

use sardonyx_base::names::did_you_mean;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub use keys::{Key, KeyKind, Keys, Needs};

use crate::operation::Content;
use crate::outcome::RunError;
use crate::recam::BlockContents;
use crate::store::{Error, Lba, Store};
use crate::workload::Workload;

/// A table of keys, a row each: name, kind, default, source, line, and what else there is to say of a key.
macro_rules! keys {
    ($($name:literal: $kind:expr, $default:literal, $source:literal, $line:literal
        $(, $more:ident($($value:expr)?))*;)*) => {
        &[$(Key::new($name, $kind, $default, $source, $line)$(.$more($($value)?))*),*]
    };
}

/// Names as texts.
macro_rules! names {
    ($($name:ident)*) => { &[$(stringify!($name)),*] };
}

macro_rules! designs {
    ($($file:ident)*) => {
        $(mod $file;)*

        /// Every design; the first is the one that a device has unless told otherwise.
        pub static DESIGNS: &[&Design] = &[$(&$file::DESIGN),*];
    };
}

designs! {
    recam
    conventional
}

#[derive(Serialize)]
pub struct Design {
    pub name: &'static str,
    pub source: &'static str,
    /// A sentence: what the store is, and where its time comes from.
    pub line: &'static str,
    /// Executed on real files, which need a folder; otherwise simulated. Its time is counted all the same.
    pub executed: bool,
    pub energy_from: &'static str,
    pub keys: &'static [Key],
    /// The values, keys or not, that no source gives.
    pub assumed: &'static [Assumed],
    pub figures: &'static [&'static str],
    /// Checks a run before anything is written.
    #[serde(skip)]
    pub check: fn(&Keys, &Job<'_>) -> Result<(), RunError>,
    #[serde(skip)]
    pub run: fn(&Keys, &Job<'_>) -> Opened<dyn Running>,
    /// The store for a device or an estimate.
    #[serde(skip)]
    pub store: Build,
}

/// Builds a store within the room that there is.
pub type Build = fn(&Keys, Room<'_>) -> Opened<dyn Store + Send>;

pub type Opened<T> = Result<Box<T>, RunError>;

#[derive(Serialize)]
pub struct Assumed {
    /// The key, or what else it is called.
    pub parameter: &'static str,
    pub value: &'static str,
    pub why: &'static str,
    pub bears_on: Bears,
}

/// Figures that depend on an assumed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bears {
    All,
    Energy,
    Life,
}

pub struct Job<'a> {
    pub workload: &'a Workload,
    pub block_bytes: u32,
    /// An empty folder, for a store that is executed.
    pub folder: Option<&'a Path>,
}

impl Job<'_> {
    /// The most bytes that the workload writes, plus a block.
    pub fn bytes_at_most(&self) -> Result<u64, RunError> {
        let bytes = self.workload.bytes_at_most(self.block_bytes)?;
        Ok(bytes + u64::from(self.block_bytes))
    }
}

pub trait Running {
    /// Whether the workload's files are cut by content, with the blocks' size as the average.
    fn cuts_by_content(&self) -> bool {
        false
    }

    /// Writes a block, or a chunk of a length of its own.
    fn write(&mut self, lba: Lba, content: Content<'_>) -> Result<(), Error>;

    fn read(&mut self, lba: Lba) -> Result<(), Error>;

    /// Ends the run: its figures, under [`Design::figures`].
    fn figures(&mut self) -> Result<Map<String, Value>, Error>;
}

pub struct Room<'a> {
    pub capacity_bytes: u64,
    pub block_bytes: u32,
    pub folder: &'a Path,
    pub contents: Option<Box<dyn BlockContents<Block = [u8]> + Send>>,
}

#[derive(Clone, Copy)]
pub struct Named(&'static Design);

impl Named {
    pub fn find(name: &str) -> Result<Named, RunError> {
        let found = DESIGNS.iter().find(|design| design.name == name);
        found.map(|design| Named(design)).ok_or_else(|| {
            let known: Vec<&str> = DESIGNS.iter().map(|design| design.name).collect();
            let near = did_you_mean(name, &known);
            let known = known.join(", ");
            RunError::Bad(format!("there is no store {name:?}; {near}known: {known}"))
        })
    }
}

impl Deref for Named {
    type Target = Design;

    fn deref(&self) -> &Design {
        self.0
    }
}

impl Default for Named {
    fn default() -> Named {
        Named(DESIGNS[0])
    }
}

impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Named) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

impl JsonSchema for Named {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Named".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
        let name = String::deserialize(deserializer)?;
        Named::find(&name).map_err(D::Error::custom)
    }
}
