//! Lines of code for the sites of a recording, from the debug information of its program (DWARF, by addr2line).

use std::io::Read;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::recording::{Module, NOWHERE, Recording, SCRIPTS, ScriptFrame};
use crate::{CrashTestError, Result};

/// Parts of paths of headers and libraries that come with compilers and systems.
const SYSTEM: [&str; 7] = [
    "/usr/include/",
    "/gcc/",
    "/lib/clang/",
    "/rustc/",
    "/rustlib/src/",
    "/cargo/registry/",
    "/pkg/mod/",
];

/// Parts of paths of packages that users install.
const PACKAGES: [&str; 5] = [
    "/cargo/registry/",
    "/pkg/mod/",
    "/site-packages/",
    "/dist-packages/",
    "/node_modules/",
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Frame {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub module: String,
    pub inlined: bool,
    /// Set if the line comes from a separate file of debug information, as distributions have for their libraries.
    #[serde(skip)]
    pub apart: bool,
}

impl Frame {
    fn of_script(script: &ScriptFrame) -> Frame {
        Frame {
            file: Some(script.file.clone()),
            line: script.line,
            function: script.function.clone(),
            module: String::new(),
            inlined: false,
            apart: script.library,
        }
    }

    /// Whether it is a call of a script, which is in no file of machine code.
    pub fn of_a_script(&self) -> bool {
        self.module.is_empty()
    }

    /// Whether it is in a package that was installed, which may be the whole program.
    fn in_package(&self) -> bool {
        let file = self.file.as_deref().unwrap_or_default();
        self.line.is_some_and(|line| line > 0) && PACKAGES.iter().any(|part| file.contains(part))
    }

    /// Whether the line is the user's own: neither in a system header nor in a distribution's library.
    pub fn own(&self) -> bool {
        let system = |file: &String| SYSTEM.iter().any(|part| file.contains(part));
        !self.apart
            && self.line.is_some_and(|line| line > 0)
            && !self.file.as_ref().is_none_or(system)
            && !self.in_go_library()
    }

    /// Whether it is in Go's own library: such a package has no dot before its first slash, as a host's name would have,
    /// and its files lie below `src` under its name (or, if paths were trimmed, under its name only).
    fn in_go_library(&self) -> bool {
        let (Some(file), Some(function)) = (&self.file, &self.function) else {
            return false;
        };
        let last = function.rfind('/').map_or(0, |slash| slash + 1);
        let package = function[last..]
            .find('.')
            .map(|dot| &function[..last + dot]);
        let (Some(package), Some((folder, name))) = (package, file.rsplit_once('/')) else {
            return false;
        };
        let folder = folder.strip_prefix("./").unwrap_or(folder);
        let under_its_name = folder == package || folder.ends_with(&format!("/src/{package}"));
        let host = package
            .split('/')
            .next()
            .is_some_and(|first| first.contains('.'));
        (name.ends_with(".go") || name.ends_with(".s")) && under_its_name && !host
    }

    pub fn in_header(&self) -> bool {
        let file = self.file.as_deref().unwrap_or_default();
        [".h", ".hh", ".hpp", ".hxx"]
            .iter()
            .any(|end| file.ends_with(end))
    }

    /// `FILE:LINE`, without the folders.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                let name = Path::new(file).file_name().unwrap_or_default();
                format!("{}:{line}", name.to_string_lossy())
            }
            _ => match &self.function {
                Some(function) => format!("{function} of {}", self.module),
                None => self.module.clone(),
            },
        }
    }
}

/// A name without the hash that Rust's compiler puts at its end.
fn plain(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((bare, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            bare.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// The innermost frame of the user's own code that is not in a header, for a flush or a fence: headers hold small
/// functions that everything calls. If all frames are in headers, it is the innermost. If none is the user's, as of a
/// program that was installed as a package, it is the innermost of packages.
pub fn caller(stack: &[Frame]) -> Option<&Frame> {
    let mut own = stack.iter().filter(|frame| frame.own());
    own.clone()
        .find(|frame| !frame.in_header())
        .or_else(|| own.next())
        .or_else(|| stack.iter().find(|frame| frame.in_package()))
}

struct Loaded {
    loader: Loader,
    /// The loadable parts: offset in the file, length, address.
    parts: Vec<(u64, u64, u64)>,
    lines: bool,
    /// Set if the debug information lies in another file than the library itself.
    apart: bool,
}

pub struct Sources<'a> {
    recording: &'a Recording,
    loaded: FxHashMap<&'a Path, Option<Loaded>>,
    stacks: FxHashMap<u32, Vec<Frame>>,
}

/// The recorded program, which comes first in memory, because QEMU loads it before its libraries.
fn program(recording: &Recording) -> Option<&Module> {
    let named = |m: &&Module| {
        let name = m.path.file_name();
        name.is_some_and(|name| *name == *recording.program)
    };
    (recording.modules.iter().find(named)).or(recording.modules.first())
}

/// Reads a program or a library, whose path may be somebody else's.
///
/// # Errors
/// It cannot be read, or is no regular file.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    sardonyx_base::regular::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn load(path: &Path, is_program: bool) -> Option<Loaded> {
    let bytes = read(path).ok()?;
    let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
    let endian = header.endian().ok()?;
    let parts = header.program_headers(endian, &*bytes).ok()?;
    let parts = parts.iter().filter(|part| part.p_type(endian) == PT_LOAD);
    let parts = parts
        .map(|p| (p.p_offset(endian), p.p_filesz(endian), p.p_vaddr(endian)))
        .collect();
    let lines = has_lines(&bytes);
    let apart = match lines {
        true => None,
        false => debug_file(&bytes, &debug_folders()),
    };
    let loader = match &apart {
        Some((file, more)) => Loader::new_with_sup(file, more.as_ref()).ok()?,
        None => Loader::new(path).ok()?,
    };
    Some(Loaded {
        loader,
        parts,
        lines: lines || apart.is_some(),
        apart: apart.is_some() && !is_program,
    })
}

/// Folders of distributions' debug information, and of files that debuginfod's clients have fetched. Nothing is fetched
/// here.
fn debug_folders() -> Vec<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = named("HOME");
    let caches = [
        named("DEBUGINFOD_CACHE_PATH"),
        named("XDG_CACHE_HOME").map(|folder| folder.join("debuginfod_client")),
        home.as_ref()
            .map(|home| home.join(".cache/debuginfod_client")),
        home.map(|home| home.join(".debuginfod_client_cache")),
    ];
    let installed = ["/usr/lib/debug/.build-id", "/usr/local/lib/debug/.build-id"];
    (installed.into_iter().map(PathBuf::from))
        .chain(caches.into_iter().flatten())
        .collect()
}

/// The file with a program's debug information, and the file that it shares with others, if there is one.
fn debug_file(bytes: &[u8], folders: &[PathBuf]) -> Option<(PathBuf, Option<PathBuf>)> {
    let find = |id: &[u8]| {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (first, rest) = hex.split_at_checked(2)?;
        let named = |folder: &PathBuf| {
            [
                folder.join(first).join(format!("{rest}.debug")),
                folder.join(&hex).join("debuginfo"),
            ]
        };
        let mut files = folders.iter().flat_map(named);
        files.find(|file| file.is_file())
    };
    let file = find(object::File::parse(bytes).ok()?.build_id().ok()??)?;
    let debug = read(&file).ok()?;
    if !has_lines(&debug) {
        return None;
    }
    let parsed = object::File::parse(&*debug).ok()?;
    let more = parsed.gnu_debugaltlink().ok().flatten();
    let more = more.and_then(|(_, id)| find(id));
    Some((file, more))
}

fn has_lines(bytes: &[u8]) -> bool {
    let find = || {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        Some(sections.section_by_name(endian, b".debug_line").is_some())
    };
    find().unwrap_or(false)
}

impl<'a> Sources<'a> {
    pub fn new(recording: &'a Recording) -> Sources<'a> {
        Sources {
            recording,
            loaded: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    /// Checks that the recording's program has line numbers and is the one that was recorded; a recording without sites
    /// passes.
    ///
    /// # Errors
    /// The program has no line numbers, or has changed.
    pub fn check(&mut self) -> Result<()> {
        let recording = self.recording;
        if recording.sites.is_empty() {
            return Ok(());
        }
        let program = program(recording);
        let Some(program) = program else {
            return Ok(());
        };
        let shown = program.path.display();
        let now = read(&program.path).map(|bytes| blake3::hash(&bytes).to_hex().to_string());
        match now {
            Err(e) => {
                return Err(CrashTestError::new(format!(
                    "{shown}: the recorded program cannot be read ({e}), and with it no lines of code; put it back, or go \
                     on without them: --no-source"
                )));
            }
            Ok(now) if now != program.hash => {
                return Err(CrashTestError::new(format!(
                    "{shown}: is not the program that was recorded, so that its lines of code would be wrong; record it \
                     again, or go on without them: --no-source"
                )));
            }
            Ok(_) => {}
        }
        let own = (recording.modules.iter()).any(|module| self.has_own_lines(&module.path));
        if !own {
            return Err(CrashTestError::new(format!(
                "{shown}: has no debug information, so that no line of code can be named; compile it with -g and record \
                 it again, or go on without: --no-source"
            )));
        }
        Ok(())
    }

    fn loaded(&mut self, path: &'a Path) -> Option<&Loaded> {
        let is_program = program(self.recording).is_some_and(|program| program.path == path);
        self.loaded
            .entry(path)
            .or_insert_with(|| load(path, is_program))
            .as_ref()
    }

    /// The functions at a site's instruction, inlined ones first.
    fn at(&mut self, site: u32, pc: u64) -> Vec<Frame> {
        let recording = self.recording;
        if let Some(number) = pc.checked_sub(SCRIPTS) {
            let script = recording.scripts.get(number as usize);
            return script.map(Frame::of_script).into_iter().collect();
        }
        let program = (recording.sites.get(site as usize)).map_or(0, |site| site.program);
        let here = |m: &&Module| {
            m.of_program == program && m.first_site <= site && (m.start..m.end).contains(&pc)
        };
        let module = (recording.modules.iter().filter(here)).max_by_key(|m| m.first_site);
        let Some(Module {
            path,
            start,
            offset,
            ..
        }) = module
        else {
            return Vec::new();
        };
        let offset = pc - start + offset;
        let part = self.loaded(path).and_then(|loaded| {
            let mut parts = loaded.parts.iter();
            parts.find(|(at, length, _)| offset.checked_sub(*at).is_some_and(|far| far < *length))
        });
        let address = part.map(|(from, _, address)| (offset - from).wrapping_add(*address));
        self.frames(path, address)
    }

    /// The loadable parts of a file: the offset and the length in the file, and the address.
    pub fn parts(&mut self, path: &'a Path) -> Option<Vec<(u64, u64, u64)>> {
        Some(self.loaded(path)?.parts.clone())
    }

    /// Whether a file has lines of code of its own, in itself.
    pub fn has_own_lines(&mut self, path: &'a Path) -> bool {
        self.loaded(path)
            .is_some_and(|loaded| loaded.lines && !loaded.apart)
    }

    /// The functions at an address of a file, by the file's own addresses, inlined ones first.
    pub fn frames(&mut self, path: &'a Path, address: Option<u64>) -> Vec<Frame> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let unknown = |function: Option<String>| Frame {
            file: None,
            line: None,
            function,
            module: name.clone(),
            inlined: false,
            apart: false,
        };
        let (Some(loaded), Some(probe)) = (self.loaded(path), address) else {
            return vec![unknown(None)];
        };
        let mut frames = Vec::new();
        if let Ok(mut found) = loaded.loader.find_frames(probe) {
            while let Ok(Some(frame)) = found.next() {
                let location = frame.location.as_ref();
                frames.push(Frame {
                    file: location.and_then(|l| l.file).map(str::to_owned),
                    line: location.and_then(|l| l.line),
                    function: (frame.function.as_ref())
                        .and_then(|name| name.demangle().ok().map(|name| plain(&name))),
                    module: name.clone(),
                    inlined: true,
                    apart: loaded.apart,
                });
            }
        }
        if let Some(last) = frames.last_mut() {
            last.inlined = false;
        }
        if frames.iter().all(|frame| frame.function.is_none()) {
            let symbol = loaded.loader.find_symbol(probe);
            let symbol = symbol.map(|name| plain(&addr2line::demangle_auto(name.into(), None)));
            match frames.last_mut() {
                Some(frame) => frame.function = symbol,
                None => frames.push(unknown(symbol)),
            }
        }
        frames
    }

    pub fn stack(&mut self, site: u32) -> Vec<Frame> {
        if let Some(known) = self.stacks.get(&site) {
            return known.clone();
        }
        let mut frames = Vec::new();
        let mut next = site;
        while let Some(at) = self.recording.sites.get(next as usize).copied() {
            if at.pc != 0 {
                frames.extend(self.at(next, at.pc));
            }
            next = at.parent.wrapping_sub(1);
            if next == NOWHERE {
                break;
            }
        }
        self.stacks.insert(site, frames.clone());
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The debug information of the program is in another file, under the identity of its build.
    #[test]
    fn debug_information_apart_is_found_by_the_identity_of_the_build() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.c"), "int main(void) { return 0; }\n").unwrap();
        let run = |words: &[&str]| {
            let ran = Command::new(words[0])
                .args(&words[1..])
                .current_dir(folder.path())
                .status();
            assert!(ran.unwrap().success(), "{words:?}");
        };
        run(&["cc", "-g", "-Wl,--build-id", "-o", "a", "a.c"]);
        let whole = std::fs::read(at("a")).unwrap();
        let parsed = object::File::parse(&*whole).unwrap();
        let id: String = (parsed.build_id().unwrap().unwrap().iter())
            .map(|byte| format!("{byte:02x}"))
            .collect();
        run(&["objcopy", "--only-keep-debug", "a", "a.debug"]);
        run(&["strip", "a"]);
        let bare = std::fs::read(at("a")).unwrap();
        let folders = [at("installed"), at("cache")];
        assert_eq!(debug_file(&bare, &folders), None);

        let kept = at("cache").join(&id).join("debuginfo");
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::copy(at("a.debug"), &kept).unwrap();
        assert_eq!(debug_file(&bare, &folders), Some((kept, None)));
        let (first, rest) = id.split_at(2);
        let installed = at("installed").join(first).join(format!("{rest}.debug"));
        std::fs::create_dir_all(installed.parent().unwrap()).unwrap();
        std::fs::copy(at("a.debug"), &installed).unwrap();
        assert_eq!(debug_file(&bare, &folders), Some((installed, None)));
    }

    #[test]
    fn a_line_of_gos_library_is_not_the_users_own() {
        let own = |file: &str, function: &str| {
            let frame = Frame {
                file: Some(file.to_owned()),
                line: Some(7),
                function: Some(function.to_owned()),
                module: "app".to_owned(),
                inlined: false,
                apart: false,
            };
            frame.own()
        };
        let syscall = "internal/runtime/syscall";
        assert!(!own(
            &format!("/usr/local/go/src/{syscall}/asm.s"),
            &format!("{syscall}.Syscall6")
        ));
        assert!(!own("/usr/lib/go-1.19/src/os/file.go", "os.(*File).Write"));
        assert!(!own("os/file.go", "os.(*File).Write"));
        assert!(!own("./os/asm.s", "os.write"));
        assert!(!own(
            "/root/go/pkg/mod/example.com/log@v1.0.0/log.go",
            "example.com/log.Put"
        ));
        assert!(own("/home/a/app/main.go", "main.main"));
        assert!(own("/go/src/app/main.go", "main.main.func1"));
        assert!(own(
            "/root/go/src/example.com/app/log.go",
            "example.com/app.Put"
        ));
        assert!(own("/home/a/src/os/file.c", "write_all"));
    }

    #[test]
    fn a_line_of_a_distributions_library_is_not_the_users_own() {
        let frame = |apart| Frame {
            file: Some("obj.c".to_owned()),
            line: Some(7),
            function: None,
            module: "libpmemobj.so.1".to_owned(),
            inlined: false,
            apart,
        };
        assert!(frame(false).own() && !frame(true).own());
    }
}
