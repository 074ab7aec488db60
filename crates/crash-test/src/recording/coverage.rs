//! Places that make data persistent and never ran in a recording, so that no image of it can show a fault there.
//!
//! The recorded program's own files are decoded: flush instructions, stores past the caches, and calls of functions
//! that flush, sync or log, by relocation or symbol. The recorder notes each block of code before it first runs. A
//! place is a line of code and what it does there; it ran if any of its instructions did. Left out: stores themselves,
//! which no decoder can tell from stores to other memory, and calls through pointers.

use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::{
    Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind, SymbolKind, read::elf,
};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::recording::Recording;
use crate::recording::sites::Ran;
use crate::recording::source::{Frame, Sources, read};

/// A report lists at most this many places.
const LISTED: usize = 100;
/// Folders of systems' libraries, whose code is not the user's.
const SYSTEM: [&str; 5] = [
    "/lib/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/libexec/",
];
/// Functions that wait until a file is on the disk.
const SYNCS: [&str; 6] = [
    "msync",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "sync",
];
/// Functions that change files at once. Those that keep text for later are none: their call is not the one that writes.
pub const CHANGES: [&str; 30] = [
    "write",
    "pwrite",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev64",
    "pwritev2",
    "copy_file_range",
    "sendfile",
    "splice",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "remove",
    "mkdir",
    "mkdirat",
    "rmdir",
    "truncate",
    "truncate64",
    "ftruncate",
    "ftruncate64",
    "fallocate",
    "fallocate64",
    "posix_fallocate",
];
/// Functions of libpmem and libpmemobj that flush, fence or log, by the beginnings of their names.
const PERSISTING: [&str; 16] = [
    "pmem_persist",
    "pmem_flush",
    "pmem_drain",
    "pmem_msync",
    "pmem_deep_",
    "pmem_mem",
    "pmemobj_persist",
    "pmemobj_flush",
    "pmemobj_drain",
    "pmemobj_xpersist",
    "pmemobj_xflush",
    "pmemobj_mem",
    "pmemobj_tx_",
    "pmemobj_alloc",
    "pmemobj_zalloc",
    "pmemobj_free",
];
/// Those of the functions above that only say how a transaction goes.
const NO_EFFECT: [&str; 5] = [
    "pmemobj_tx_stage",
    "pmemobj_tx_errno",
    "pmemobj_tx_process",
    "pmemobj_tx_get_",
    "pmemobj_tx_set_",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreachedSite {
    /// `FILE:LINE`, without the folders.
    pub place: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    /// The called function, or the instruction.
    pub what: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    pub sites: usize,
    pub never_ran: usize,
    pub listed: Vec<UnreachedSite>,
}

/// The action of an instruction that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PersistingAction {
    Flush(Mnemonic),
    /// The instruction itself, or a call of a library's function, by name.
    Named(String),
    /// A call of the function at this address.
    Calls(u64),
}

#[derive(Debug)]
struct PersistingInstruction {
    address: u64,
    /// The first address of the function that it is in.
    function: u64,
    what: PersistingAction,
}

/// Whether a function makes data persistent, or is among some more.
fn persists(name: &str, more: &[&str]) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    SYNCS.contains(&name) || more.contains(&name) || begins(&PERSISTING) && !begins(&NO_EFFECT)
}

fn instruction(mnemonic: Mnemonic) -> Option<PersistingAction> {
    use Mnemonic::*;
    Some(match mnemonic {
        Clwb | Clflushopt | Clflush => PersistingAction::Flush(mnemonic),
        Movnti | Movntq | Movntdq | Movntps | Movntpd | Vmovntdq | Vmovntps | Vmovntpd => {
            PersistingAction::Named(format!("{mnemonic:?}").to_lowercase())
        }
        _ => return None,
    })
}

/// An executable file, taken apart.
struct Executable<'d> {
    file: elf::ElfFile64<'d>,
    /// The names of symbols that the loader puts into words of the file.
    imports: FxHashMap<u64, String>,
    /// Maps the first address of each function to the address after its last, and its name.
    functions: Vec<(u64, u64, String)>,
    /// Names of functions that count beside those that make data persistent.
    more: &'d [&'d str],
}

impl<'d> Executable<'d> {
    fn parse(bytes: &'d [u8], more: &'d [&'d str]) -> Option<Executable<'d>> {
        let file = elf::ElfFile64::parse(bytes).ok()?;
        let mut imports = FxHashMap::default();
        for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
            if let RelocationTarget::Symbol(index) = relocation.target() {
                let table = file.dynamic_symbol_table();
                let symbol = table.and_then(|table| {
                    use object::ObjectSymbolTable;
                    table.symbol_by_index(index).ok()
                });
                if let Some(Ok(name)) = symbol.map(|symbol| symbol.name().map(str::to_owned)) {
                    imports.insert(address, name);
                }
            }
        }
        let mut functions: Vec<(u64, u64, String)> = (file.symbols().chain(file.dynamic_symbols()))
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter_map(|symbol| {
                let (start, name) = (symbol.address(), symbol.name().ok()?);
                (start > 0).then(|| (start, start + symbol.size(), name.to_owned()))
            })
            .collect();
        functions.sort();
        functions.dedup_by_key(|function| function.0);
        Some(Executable {
            file,
            imports,
            functions,
            more,
        })
    }

    fn bytes(&self, start: u64, end: u64) -> &'d [u8] {
        let sections = self.file.sections();
        let mut code = sections.filter(|section| section.kind() == SectionKind::Text);
        let found = code.find_map(|section| section.data_range(start, end - start).ok()?);
        found.unwrap_or_default()
    }

    fn function(&self, address: u64) -> Option<&(u64, u64, String)> {
        let at = self
            .functions
            .partition_point(|function| function.0 <= address);
        let before = &self.functions[at.checked_sub(1)?];
        (address < before.1).then_some(before)
    }

    /// The function that an entry of the procedure linkage table leads to.
    fn linked(&self, address: u64) -> Option<&str> {
        const ENTRY: u64 = 16;
        let bytes = self.bytes(address, address + ENTRY);
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let jump = (decoder.iter().take(3)).find(|i| i.mnemonic() == Mnemonic::Jmp)?;
        self.imported(&jump)
    }

    /// The function whose address an instruction takes from a word that the loader fills.
    fn imported(&self, instruction: &Instruction) -> Option<&str> {
        let indirect =
            instruction.op0_kind() == OpKind::Memory && instruction.is_ip_rel_memory_operand();
        let word = indirect.then(|| instruction.ip_rel_memory_address())?;
        self.imports.get(&word).map(String::as_str)
    }

    /// The target of a call, or of a jump to another function's beginning.
    fn called(&self, instruction: &Instruction, within: u64) -> Option<PersistingAction> {
        match instruction.flow_control() {
            FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                let name = self
                    .imported(instruction)
                    .filter(|name| persists(name, self.more))?;
                return Some(PersistingAction::Named(name.to_owned()));
            }
            FlowControl::Call | FlowControl::UnconditionalBranch => {}
            _ => return None,
        }
        let target = instruction.near_branch_target();
        match self.function(target) {
            Some((start, ..)) if *start == target && target != within => {
                Some(PersistingAction::Calls(target))
            }
            Some(_) => None,
            None => {
                let name = self
                    .linked(target)
                    .filter(|name| persists(name, self.more))?;
                Some(PersistingAction::Named(name.to_owned()))
            }
        }
    }

    /// All instructions of the file that may make data persistent, and each call of one of its functions.
    fn sites(&self) -> Vec<PersistingInstruction> {
        let mut sites = Vec::new();
        for &(start, end, _) in &self.functions {
            let mut decoder =
                Decoder::with_ip(64, self.bytes(start, end), start, DecoderOptions::NONE);
            for one in decoder.iter() {
                let what = instruction(one.mnemonic()).or_else(|| self.called(&one, start));
                sites.extend(what.map(|what| PersistingInstruction {
                    address: one.ip(),
                    function: start,
                    what,
                }));
            }
        }
        sites
    }
}

/// The ranges of a file that ran, by the file's own addresses.
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn has(&self, address: u64) -> bool {
        self.0
            .iter()
            .any(|range| (range.0..range.1).contains(&address))
    }

    fn of_file(
        recording: &Recording,
        ran: &[Ran],
        path: &Path,
        parts: &[(u64, u64, u64)],
    ) -> Ranges {
        let mut found = Vec::new();
        for module in recording
            .modules
            .iter()
            .filter(|module| module.path == path)
        {
            let program = ran.iter().filter(|ran| ran.program == module.of_program);
            for &(start, end) in program.flat_map(|ran| &ran.ranges) {
                let (start, end) = (start.max(module.start), end.min(module.end));
                for &(offset, length, address) in parts {
                    let at = |pc: u64| pc - module.start + module.offset;
                    if start < end {
                        let (from, to) = (at(start).max(offset), at(end).min(offset + length));
                        if from < to {
                            found.push((from - offset + address, to - offset + address));
                        }
                    }
                }
            }
        }
        found.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in found {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Ranges(merged)
    }
}

/// The functions that make data persistent by `sites`, also through others that they call.
fn persisting(code: &Executable<'_>, sites: &[PersistingInstruction]) -> FxHashSet<u64> {
    let named = code
        .functions
        .iter()
        .filter(|function| persists(&function.2, code.more));
    let mut found: FxHashSet<u64> = named.map(|function| function.0).collect();
    let mut callers: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
    let mut next: Vec<u64> = found.iter().copied().collect();
    for site in sites {
        match site.what {
            PersistingAction::Calls(target) => {
                callers.entry(target).or_default().push(site.function)
            }
            _ => next.push(site.function),
        }
    }
    while let Some(function) = next.pop() {
        found.insert(function);
        let of = callers.remove(&function).unwrap_or_default();
        next.extend(of.into_iter().filter(|caller| !found.contains(caller)));
    }
    found
}

/// Places by file, line and what is done there.
#[derive(Default)]
struct SourcePlaces {
    found: FxHashMap<(Option<String>, Option<u32>, String), SourcePlace>,
    /// The functions in which a place ran.
    ran: FxHashSet<String>,
}

struct SourcePlace {
    site: UnreachedSite,
    reached: bool,
    /// The user's function that is called there, which has places of its own.
    calls: Option<String>,
}

impl SourcePlaces {
    /// Adds an instruction with the functions that it is in, those inlined first: a place in each function that is not
    /// in a header, the first only if it is one.
    fn add(
        &mut self,
        frames: &[Frame],
        mut place: bool,
        (what, mut calls): (&str, Option<String>),
        reached: bool,
    ) {
        let headers = !frames.iter().any(|frame| frame.own() && !frame.in_header());
        let shown = |frame: &&Frame| frame.own() && (headers || !frame.in_header());
        let mut what = what.to_owned();
        for frame in frames {
            let name = frame.function.clone().unwrap_or_default();
            if std::mem::replace(&mut place, true) && shown(&frame) {
                let key = (frame.file.clone(), frame.line, what.clone());
                let place = self.found.entry(key).or_insert_with(|| SourcePlace {
                    site: UnreachedSite {
                        place: frame.place(),
                        file: frame.file.clone(),
                        line: frame.line,
                        function: frame.function.clone(),
                        what,
                    },
                    reached: false,
                    calls: calls.clone(),
                });
                place.reached |= reached;
                calls = Some(name.clone());
            }
            if reached {
                self.ran.insert(name.clone());
            }
            what = name; // what is inlined here is called there
        }
    }

    /// The places that never ran. If no place in a function ran, a call of it is left out in favour of those.
    fn unreached(self) -> Vec<UnreachedSite> {
        let ran = self.ran;
        let told =
            |place: &SourcePlace| (place.calls.as_ref()).is_none_or(|name| ran.contains(name));
        let never = self.found.into_values();
        let never = never.filter(|place| !place.reached && told(place));
        let mut sites: Vec<UnreachedSite> = never.map(|place| place.site).collect();
        sites.sort_by(|a, b| (&a.file, a.line, &a.what).cmp(&(&b.file, b.line, &b.what)));
        sites
    }
}

/// Adds the places of one file. A file that is not the user's, has no lines of code, or has changed has none.
fn add_file<'a>(
    recording: &'a Recording,
    (ran, more): (&[Ran], &[&str]),
    path: &'a Path,
    sources: &mut Sources<'a>,
    places: &mut SourcePlaces,
) -> Option<()> {
    let ranges = Ranges::of_file(recording, ran, path, &sources.parts(path)?);
    if ranges.0.is_empty() || !sources.has_own_lines(path) {
        return None;
    }
    let bytes = read(path).ok()?;
    let module = (recording.modules.iter()).find(|module| module.path == path)?;
    // One that was recorded just now has no hash.
    if !module.hash.is_empty() && blake3::hash(&bytes).to_hex().as_str() != module.hash {
        return None;
    }
    let code = Executable::parse(&bytes, more)?;
    let sites = code.sites();
    let persisting = persisting(&code, &sites);
    let (mut used, mut flushing) = (FxHashSet::default(), FxHashSet::default());
    for site in &sites {
        if let PersistingAction::Flush(mnemonic) = site.what
            && ranges.has(site.address)
        {
            used.insert(mnemonic);
            let innermost = sources.frames(path, Some(site.address)).into_iter().next();
            flushing.insert(innermost.and_then(|frame| frame.function));
        }
    }
    for site in &sites {
        let frames = sources.frames(path, Some(site.address));
        let mut calls = None;
        let what = match &site.what {
            PersistingAction::Flush(mnemonic) => format!("{mnemonic:?}").to_lowercase(),
            PersistingAction::Named(name) => name.clone(),
            PersistingAction::Calls(target) if !persisting.contains(target) => continue,
            PersistingAction::Calls(target) => {
                let called = sources.frames(path, Some(*target)).pop();
                let is_own =
                    (called.as_ref()).is_some_and(|frame| frame.own() && !frame.in_header());
                let name = called.and_then(|frame| frame.function).unwrap_or_default();
                calls = is_own.then(|| name.clone());
                name
            }
        };
        // A flush instruction for other processors stands next to the one that runs, so it is no place of its own; its
        // call is.
        let innermost = frames.first().and_then(|frame| frame.function.clone());
        let other =
            matches!(site.what, PersistingAction::Flush(mnemonic) if !used.contains(&mnemonic));
        let place = !other || !flushing.contains(&innermost);
        places.add(&frames, place, (&what, calls), ranges.has(site.address));
    }
    Some(())
}

/// The places of a recording that make data persistent, or call one of some more functions, and never ran; `None` if the
/// recording does not say what ran in all its programs.
pub fn coverage<'a>(
    recording: &'a Recording,
    sources: &mut Sources<'a>,
    more: &[&str],
) -> Option<Coverage> {
    let ran = recording.ran.as_ref()?;
    let is_told = |ran: &Ran| {
        let mut modules = recording.modules.iter();
        modules.any(|module| module.of_program == ran.program)
    };
    if ran.is_empty() || !ran.iter().all(is_told) {
        return None;
    }
    let mut places = SourcePlaces::default();
    let mut looked = FxHashSet::default();
    for module in &recording.modules {
        let path = module.path.as_path();
        let system = path
            .to_str()
            .is_none_or(|path| SYSTEM.iter().any(|at| path.starts_with(at)));
        if !system && looked.insert(path) {
            add_file(recording, (ran, more), path, sources, &mut places);
        }
    }
    let sites = places.found.len();
    let mut listed = places.unreached();
    let never_ran = listed.len();
    listed.truncate(LISTED);
    Some(Coverage {
        sites,
        never_ran,
        listed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_what_ran_and_of_what_did_not_in_turn() {
        let ran = Ran::from_lengths(&[3, 100, 10, 5, 20]);
        assert_eq!((ran.program, ran.ranges), (3, vec![(100, 110), (115, 135)]));
        assert_eq!(Ran::from_lengths(&[1, 0]).ranges, []);
    }

    #[test]
    fn functions_that_change_files_count_where_files_are_cut() {
        assert!(persists("rename@GLIBC_2.2.5", &CHANGES) && persists("fsync", &CHANGES));
        assert!(!persists("rename", &[]) && !persists("fwrite", &CHANGES));
    }

    #[test]
    fn names_of_functions_that_persist_are_known() {
        for name in [
            "pmem_persist",
            "pmem_memcpy_persist@LIBPMEM_1.0",
            "fsync",
            "pmemobj_tx_add_range",
        ] {
            assert!(persists(name, &[]), "{name}");
        }
        for name in [
            "pmem_map_file",
            "pmem_is_pmem",
            "fsync_all",
            "pmemobj_tx_stage",
            "pmemobj_open",
        ] {
            assert!(!persists(name, &[]), "{name}");
        }
    }
}
