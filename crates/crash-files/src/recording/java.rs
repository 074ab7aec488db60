//! Frames of Java that HotSpot interprets (`-Xint`), from its own description of its structures, `gHotSpotVMStructs`.
//!
//! The places in an interpreter's frame are those of JDK 11 to 21 (`frame_x86.hpp`, `frame_aarch64.hpp`); what does not
//! look as it should has no frame. Left out: code that it has compiled, whose frames have no such places.

use rustc_hash::FxHashMap;
use sardonyx_crash_test::recording::ScriptFrame;

use super::interpreters::{Read, at, text, word};

/// Words below a frame's pointer: its method, and its place in the method's code.
const METHOD: u64 = 3;
const PLACE: u64 = 8;
/// A table of lines may have this many bytes, and a table of structures this many entries.
const LONGEST: usize = 1 << 16;
const ENTRIES: usize = 1 << 14;
/// Since this version compressed numbers have no byte of zero (JDK-8292758).
const NO_ZEROS: u32 = 20;

/// The symbols that lead to it: tables, lengths of their entries, and places in these.
pub(super) const SYMBOLS: [&[u8]; 10] = [
    b"gHotSpotVMStructs",
    b"gHotSpotVMStructEntryArrayStride",
    b"gHotSpotVMStructEntryTypeNameOffset",
    b"gHotSpotVMStructEntryFieldNameOffset",
    b"gHotSpotVMStructEntryOffsetOffset",
    b"gHotSpotVMTypes",
    b"gHotSpotVMTypeEntryArrayStride",
    b"gHotSpotVMTypeEntryTypeNameOffset",
    b"gHotSpotVMTypeEntrySizeOffset",
    b"gHotSpotVMStructEntryAddressOffset",
];

#[derive(Clone, Debug)]
pub(super) struct Java {
    /// Places in structures: a method's unchanging part; of that its pool, its code's length and its name's number.
    constant: u64,
    pool: u64,
    code_length: u64,
    name: u64,
    /// A pool's class, and the number of its source file, in the class (with `true`) or in the pool.
    class: u64,
    source: (u64, bool),
    class_name: u64,
    /// A symbol's length and letters.
    letters: (u64, u64),
    /// Sizes of the unchanging part and of a pool, after which their contents lie.
    sizes: (u64, u64),
    zeros: bool,
}

/// The entries of a table, by their names.
fn table(
    read: &Read<'_>,
    (first, stride): (u64, u64),
    names: &[u64],
) -> Option<FxHashMap<String, Vec<u8>>> {
    let (first, stride) = (word(read, first)?, word(read, stride)?);
    let names: Vec<u64> = names
        .iter()
        .map(|name| word(read, *name))
        .collect::<Option<_>>()?;
    if !(16..256).contains(&stride) {
        return None; // not filled in yet
    }
    let mut found = FxHashMap::default();
    for number in 0..ENTRIES as u64 {
        let entry = read(first.checked_add(number * stride)?, stride as usize);
        let part = |offset: &u64| text(read, at(&entry, *offset).filter(|at| *at != 0)?);
        let Some(name) = names.iter().map(part).collect::<Option<Vec<String>>>() else {
            break; // the last one has no name
        };
        found.insert(name.join("."), entry);
    }
    Some(found)
}

impl Java {
    /// A machine whose [`SYMBOLS`] are at these addresses.
    pub(super) fn new(symbols: &[u64], read: &Read<'_>) -> Option<Java> {
        let s: [u64; 10] = symbols.try_into().ok()?;
        let fields = table(read, (s[0], s[1]), &[s[2], s[3]])?;
        let types = table(read, (s[5], s[6]), &[s[7]])?;
        let [offset, size, address] = [s[4], s[8], s[9]].map(|at| word(read, at));
        let (offset, size, address) = (offset?, size?, address?);
        let field = |name: &str| at(fields.get(name)?, offset);
        let sized = |name: &str| at(types.get(name)?, size);
        let version = fields.get("Abstract_VM_Version._vm_major_version");
        let version = word(read, at(version?, address)?)? as u32;
        let of_class = field("InstanceKlass._source_file_name_index").map(|at| (at, true));
        let of_pool = field("ConstantPool._source_file_name_index").map(|at| (at, false));
        Some(Java {
            constant: field("Method._constMethod")?,
            pool: field("ConstMethod._constants")?,
            code_length: field("ConstMethod._code_size")?,
            name: field("ConstMethod._name_index")?,
            class: field("ConstantPool._pool_holder")?,
            source: of_class.or(of_pool)?,
            class_name: field("Klass._name")?,
            letters: (field("Symbol._length")?, field("Symbol._body[0]")?),
            sizes: (sized("ConstMethod")?, sized("ConstantPool")?),
            zeros: version < NO_ZEROS,
        })
    }

    /// The frames whose pointers are given; of those that are none of Java, none.
    pub(super) fn frames(&self, pointers: &[u64], read: &Read<'_>) -> Vec<ScriptFrame> {
        let known = pointers.iter().filter_map(|at| self.frame(*at, read));
        known.collect()
    }

    fn frame(&self, pointer: u64, read: &Read<'_>) -> Option<ScriptFrame> {
        let method = word(read, pointer.checked_sub(METHOD * 8)?)?;
        let place = word(read, pointer.checked_sub(PLACE * 8)?)?;
        let constant = word(read, method.checked_add(self.constant)?)?;
        let short = |address: u64| {
            let bytes = read(address, 2);
            Some(u64::from(u16::from_le_bytes(bytes.try_into().ok()?)))
        };
        let length = short(constant.checked_add(self.code_length)?)?;
        let code = constant.checked_add(self.sizes.0)?;
        let at = place.checked_sub(code).filter(|at| *at < length)?;
        let pool = word(read, constant.checked_add(self.pool)?)?;
        let symbol = |number: u64| {
            let entry = pool.checked_add(self.sizes.1)?.checked_add(number * 8)?;
            self.symbol(word(read, entry)? & !1, read)
        };
        let class = word(read, pool.checked_add(self.class)?)?;
        let (source, of_class) = self.source;
        let holder = if of_class { class } else { pool };
        let name = word(read, class.checked_add(self.class_name)?)?;
        let class = self.symbol(name, read)?;
        let function = symbol(short(constant.checked_add(self.name)?)?)?;
        let file = symbol(short(holder.checked_add(source)?)?)?;
        let lines = read_most(read, code.checked_add(length)?);
        Some(ScriptFrame {
            library: is_library(&class),
            line: line(&lines, at, self.zeros),
            function: Some(format!("{}.{function}", class.replace('/', "."))),
            file,
        })
    }

    fn symbol(&self, symbol: u64, read: &Read<'_>) -> Option<String> {
        let length = read(symbol.checked_add(self.letters.0)?, 2);
        let length = u16::from_le_bytes(length.try_into().ok()?);
        let bytes = read(symbol.checked_add(self.letters.1)?, usize::from(length));
        (bytes.len() == usize::from(length)).then(|| String::from_utf8(bytes).ok())?
    }
}

/// As many bytes as there are, because what lies after them may not exist.
fn read_most(read: &Read<'_>, address: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST {
        let from = address + bytes.len() as u64;
        let part = read(from, 256 - from as usize % 256);
        // The table ends with a zero.
        if part.is_empty() || bytes.ends_with(&[0]) {
            break;
        }
        bytes.extend(part);
    }
    bytes
}

fn is_library(class: &str) -> bool {
    let parts = [
        "java/", "javax/", "jdk/", "sun/", "com/sun/", "kotlin/", "scala/",
    ];
    parts.iter().any(|part| class.starts_with(part))
}

/// The line of a place in a method's code. A byte has the distances to the next place and line, or says that two
/// numbers follow (`CompressedLineNumberReadStream`).
fn line(mut table: &[u8], place: u64, zeros: bool) -> Option<u32> {
    let (mut at, mut line) = (0_i64, 0_i64);
    let mut found = None;
    loop {
        let (&byte, rest) = table.split_first()?;
        table = rest;
        match byte {
            0 => return found,
            0xff => {
                at += signed(&mut table, zeros)?;
                line += signed(&mut table, zeros)?;
            }
            _ => {
                at += i64::from(byte >> 3);
                line += i64::from(byte & 7);
            }
        }
        if at > place as i64 {
            return found;
        }
        found = u32::try_from(line).ok();
    }
}

/// A number of at most five bytes (`UNSIGNED5`), the sign in its lowest bit.
fn signed(table: &mut &[u8], zeros: bool) -> Option<i64> {
    const HIGH: u32 = 6;
    let skipped = u32::from(!zeros);
    let most = 256 - (1 << HIGH) - skipped;
    let mut value: u32 = 0;
    for number in 0..5 {
        let (&byte, rest) = table.split_first()?;
        *table = rest;
        let byte = u32::from(byte).checked_sub(skipped)?;
        value = value.wrapping_add(byte << (HIGH * number));
        if byte < most {
            break;
        }
    }
    Some(i64::from((value >> 1) as i32 ^ -((value & 1) as i32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places 0, 4 and 9 have the lines 7, 9 and 8; the last two by numbers of their own.
    #[test]
    fn a_line_is_what_the_table_says() {
        let table = [7, 4 << 3 | 2, 0xff, 10, 1, 0];
        let at = |place| line(&table, place, true);
        assert_eq!([0, 3, 4, 8, 9, 99].map(at), [7, 7, 9, 9, 8, 8].map(Some));
        let later = [7, 4 << 3 | 2, 0xff, 11, 2, 0];
        assert_eq!(
            [8, 9].map(|place| line(&later, place, false)),
            [9, 8].map(Some)
        );
        assert_eq!(line(&table[..3], 9, true), None);
        assert_eq!(line(&[], 0, true), None);
    }

    #[test]
    fn numbers_may_have_five_bytes() {
        let number = |bytes: &[u8]| signed(&mut &*bytes, true);
        assert_eq!(number(&[191]), Some(-96));
        assert_eq!(number(&[192, 0]), Some(96));
        assert_eq!(number(&[194, 2]), Some(161));
        assert_eq!(number(&[255, 255, 255]), None);
    }

    #[test]
    fn memory_that_is_no_machine_has_no_frames() {
        assert!(Java::new(&[8; 10], &|_, length| vec![0; length]).is_none());
        assert!(Java::new(&[8; 10], &|_, _| Vec::new()).is_none());
    }
}
