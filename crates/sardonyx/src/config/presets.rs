//! The machines that come with the program, each a TOML file beside this one, and finding a file.
//! `esd` is the whole of it; the others extend it and restate what differs.
//! Left out: designs, which are the controller's to name.

use std::io::Read;
use std::path::Path;

use super::error::{ConfigError, Result};
use crate::names::did_you_mean;

/// A machine that comes with the program.
#[derive(Debug)]
pub struct Preset {
    /// Its name, as `--machine` takes it.
    pub name: &'static str,
    /// The machine as a TOML file would have it.
    pub text: &'static str,
}

impl Preset {
    /// Where its values come from.
    pub fn source(&self) -> String {
        // Every preset is parsed by a test, so a fault here cannot reach a user.
        super::read::document(self.text, self.name)
            .ok()
            .and_then(|document| document.source)
            .unwrap_or_default()
    }
}

macro_rules! preset {
    ($name:literal) => {
        Preset {
            name: $name,
            text: include_str!(concat!("machines/", $name, ".toml")),
        }
    };
}

static PRESETS: [Preset; 16] = [
    preset!("esd"),
    preset!("nvmain-a"),
    preset!("sca"),
    preset!("easy-pm"),
    preset!("pageforge"),
    preset!("pcm-isscc-2012"),
    preset!("pcm-isca-2009"),
    preset!("nvm-2400"),
    preset!("ddr4-2400"),
    preset!("ddr5-4800"),
    preset!("lpddr5-6400"),
    preset!("gddr6-16"),
    preset!("hbm2"),
    preset!("hbm3"),
    preset!("cxl"),
    preset!("optane"),
];

/// Largest machine file that is read: the shipped ones are below 10 KB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Every preset, the default machine first.
pub fn all() -> &'static [Preset] {
    &PRESETS
}

pub(super) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

pub(super) fn remedy(name: &str) -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let meant = did_you_mean(name, &names);
    format!("{meant}the presets are {}", names.join(", "))
}

pub(super) fn read_file(path: &str) -> Result<String> {
    let fail = |problem: String, remedy: &str| ConfigError::file(path, problem, remedy);
    let or_a_preset = || {
        let presets = remedy(path);
        format!("give the path of a machine file, or a preset: {presets}")
    };
    if path.is_empty() {
        return Err(ConfigError::file(
            "machine",
            "its name is empty",
            or_a_preset(),
        ));
    }
    if !Path::new(path).exists() {
        let remedy = match [".toml", ".ini", ".config", ".yaml", ".yml", ".json", ".cfg"]
            .iter()
            .any(|end| path.ends_with(end))
            || path.contains(['/', '\\'])
        {
            true => "give the path of a machine file or the name of a preset (`sardonyx machines`)"
                .into(),
            false => or_a_preset(),
        };
        return Err(fail("there is no such machine or file".into(), &remedy));
    }
    let mut text = String::new();
    let file = sardonyx_base::regular::open(path)
        .map_err(|e| fail(format!("cannot be opened: {e}"), "check its permissions"))?;
    let size = file
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|e| format!("cannot be read: {e}"))
        .map_err(|problem| fail(problem, "a machine file is TOML text in UTF-8"))?;
    if size as u64 > MAX_FILE_BYTES {
        let remedy = "a machine file is a page of TOML";
        return Err(fail("is larger than 1 MiB".into(), remedy));
    }
    Ok(text)
}
