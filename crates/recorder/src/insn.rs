//! The few x86-64 instructions that need more than QEMU's memory callbacks: flushes (no callback at all), fences, and
//! stores past the caches. Intel SDM volume 2: `clwb`, `clflush`, `clflushopt`, `sfence`, `mfence`, `movnt*`.

use crate::codec::op;

/// What an instruction is to the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// QEMU's callbacks say all.
    Plain,
    /// Its stores go past the caches.
    NonTemporal,
    /// sfence, mfence.
    Fence,
    /// clwb, clflush, clflushopt: the operation's code and the address.
    Flush(u8, Address),
}

/// The address of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Number of the base register, in the order rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15.
    pub base: Option<u8>,
    /// Number of the index register.
    pub index: Option<u8>,
    /// What the index is shifted by.
    pub shift: u8,
    /// Displacement; an operand relative to the next instruction has its address here.
    pub displacement: i64,
    /// Added segment base.
    pub segment: Option<Segment>,
    /// Cut to 32 bits by an address-size prefix.
    pub short: bool,
}

/// A segment whose base is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// fs
    Fs,
    /// gs
    Gs,
}

impl Address {
    /// The address, with the registers' values from `register` and the segment's base from `base_of`.
    pub fn value(
        &self,
        mut register: impl FnMut(u8) -> u64,
        mut base_of: impl FnMut(Segment) -> u64,
    ) -> u64 {
        let base = self.base.map_or(0, &mut register);
        let index = self.index.map_or(0, &mut register) << self.shift;
        let mut sum = base
            .wrapping_add(index)
            .wrapping_add(self.displacement as u64);
        if self.short {
            sum &= u64::from(u32::MAX);
        }
        sum.wrapping_add(self.segment.map_or(0, &mut base_of))
    }
}

/// What the instruction of `bytes` at `address` is.
pub fn kind(bytes: &[u8], address: u64) -> Kind {
    decode(bytes, address).unwrap_or(Kind::Plain)
}

#[derive(Default)]
struct Prefixes {
    operand: bool,
    short: bool,
    repeat: bool,
    segment: Option<Segment>,
    rex: u8,
}

fn decode(bytes: &[u8], address: u64) -> Option<Kind> {
    let (mut at, mut prefixes) = (0, Prefixes::default());
    loop {
        match *bytes.get(at)? {
            0x66 => prefixes.operand = true,
            0x67 => prefixes.short = true,
            0xF2 | 0xF3 => prefixes.repeat = true,
            0x64 => prefixes.segment = Some(Segment::Fs),
            0x65 => prefixes.segment = Some(Segment::Gs),
            0x26 | 0x2E | 0x36 | 0x3E | 0xF0 => {}
            _ => break,
        }
        at += 1;
    }
    match *bytes.get(at)? {
        // Two-byte VEX always means map 0F; three-byte VEX and EVEX name the map in their first byte.
        0xC5 => return vector(*bytes.get(at + 2)?),
        0xC4 if bytes.get(at + 1)? & 0x1F == 1 => return vector(*bytes.get(at + 3)?),
        0x62 if bytes.get(at + 1)? & 0x07 == 1 => return vector(*bytes.get(at + 4)?),
        rex @ 0x40..=0x4F => {
            prefixes.rex = rex;
            at += 1;
        }
        _ => {}
    }
    if *bytes.get(at)? != 0x0F {
        return None;
    }
    let modrm = *bytes.get(at + 2)?;
    let memory = modrm >> 6 != 3;
    match (*bytes.get(at + 1)?, modrm >> 3 & 7) {
        (0xC3 | 0x2B | 0xE7, _) if memory && !prefixes.repeat => Some(Kind::NonTemporal),
        (0xF7, _) if !memory && !prefixes.repeat => Some(Kind::NonTemporal),
        (0xAE, 6 | 7) if !memory && !prefixes.repeat && !prefixes.operand => Some(Kind::Fence),
        (0xAE, register @ (6 | 7)) if memory && !prefixes.repeat => {
            let code = match (register, prefixes.operand) {
                (6, true) => op::CLWB,
                (7, true) => op::CLFLUSHOPT,
                (7, false) => op::CLFLUSH,
                _ => return None, // xsaveopt
            };
            let next = address.wrapping_add(bytes.len() as u64);
            Some(Kind::Flush(code, operand(&prefixes, bytes, at + 2, next)?))
        }
        _ => None,
    }
}

fn vector(opcode: u8) -> Option<Kind> {
    matches!(opcode, 0x2B | 0xE7).then_some(Kind::NonTemporal)
}

/// The operand whose ModRM byte is `bytes[at]`; `next` is the address after the instruction.
fn operand(prefixes: &Prefixes, bytes: &[u8], mut at: usize, next: u64) -> Option<Address> {
    let modrm = bytes[at];
    at += 1;
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let mut address = Address {
        base: Some(rm | (prefixes.rex & 1) << 3),
        index: None,
        shift: 0,
        displacement: 0,
        segment: prefixes.segment,
        short: prefixes.short,
    };
    let mut wide = mode == 2;
    if rm == 4 {
        let sib = *bytes.get(at)?;
        at += 1;
        let index = sib >> 3 & 7 | (prefixes.rex & 2) << 2;
        address.index = (index != 4).then_some(index);
        address.shift = sib >> 6;
        address.base = Some(sib & 7 | (prefixes.rex & 1) << 3);
        if sib & 7 == 5 && mode == 0 {
            address.base = None;
            wide = true;
        }
    } else if rm == 5 && mode == 0 {
        address.base = None;
        address.displacement = next as i64;
        wide = true;
    }
    let displacement = if wide {
        i64::from(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    } else if mode == 1 {
        i64::from(*bytes.get(at)? as i8)
    } else {
        0
    };
    address.displacement = address.displacement.wrapping_add(displacement);
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush(bytes: &[u8]) -> (u8, u64) {
        match kind(bytes, 0x1000) {
            Kind::Flush(code, address) => {
                let value = address.value(
                    |register| 0x100_0000 * (u64::from(register) + 1),
                    |segment| {
                        if segment == Segment::Fs {
                            7 << 40
                        } else {
                            9 << 40
                        }
                    },
                );
                (code, value)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flushes_have_their_address() {
        // As GNU as 2.40 assembles them.
        assert_eq!(flush(b"\x66\x0f\xae\x30"), (op::CLWB, 0x100_0000)); // clwb (%rax)
        assert_eq!(flush(b"\x66\x41\x0f\xae\x34\x24"), (op::CLWB, 0xD00_0000)); // clwb (%r12)
        assert_eq!(
            flush(b"\x66\x0f\xae\x7f\xc0"),
            (op::CLFLUSHOPT, 0x800_0000 - 64)
        ); // clflushopt -64(%rdi)
        assert_eq!(
            flush(b"\x42\x0f\xae\xbc\xc3\x78\x56\x34\x12"), // clflush 0x12345678(%rbx,%r8,8)
            (op::CLFLUSH, 0x400_0000 + 8 * 0x900_0000 + 0x1234_5678)
        );
        assert_eq!(
            flush(b"\x0f\xae\x3d\x10\x00\x00\x00"),
            (op::CLFLUSH, 0x1017)
        ); // clflush 16(%rip)
        assert_eq!(
            flush(b"\x64\x66\x0f\xae\x34\x25\x08\x00\x00\x00"), // clwb %fs:8
            (op::CLWB, (7 << 40) + 8)
        );
        assert_eq!(flush(b"\x67\x66\x0f\xae\x33").1, 0x400_0000); // clwb (%ebx)
    }

    #[test]
    fn fences_and_stores_past_the_caches_are_known() {
        for fence in [b"\x0f\xae\xf8", b"\x0f\xae\xf0"] {
            assert_eq!(kind(fence, 0), Kind::Fence);
        }
        let stores: [&[u8]; 8] = [
            b"\x0f\xc3\x07",             // movnti %eax,(%rdi)
            b"\x48\x0f\xc3\x07",         // movnti %rax,(%rdi)
            b"\x66\x0f\xe7\x07",         // movntdq %xmm0,(%rdi)
            b"\x0f\x2b\x07",             // movntps %xmm0,(%rdi)
            b"\xc5\xfd\xe7\x07",         // vmovntdq %ymm0,(%rdi)
            b"\xc4\xc1\x7d\xe7\x00",     // vmovntdq %ymm0,(%r8)
            b"\x62\xf1\x7d\x48\xe7\x07", // vmovntdq %zmm0,(%rdi)
            b"\x66\x0f\xf7\xc1",         // maskmovdqu %xmm1,%xmm0
        ];
        for store in stores {
            assert_eq!(kind(store, 0), Kind::NonTemporal, "{store:02x?}");
        }
    }

    #[test]
    fn neighbours_in_the_opcode_map_are_plain() {
        let others: [&[u8]; 9] = [
            b"\x0f\xae\xe8",     // lfence
            b"\x0f\xae\x37",     // xsaveopt (%rdi)
            b"\x0f\xae\x07",     // fxsave (%rdi)
            b"\xf3\x0f\xae\xf0", // umonitor %rax
            b"\x66\x0f\xae\xf0", // tpause %eax
            b"\x0f\xf7\xc1\x00"[..1].as_ref(),
            b"\xc5\xfd\x7f\x07",     // vmovdqa %ymm0,(%rdi)
            b"\xc4\xe2\x7d\x2b\x07", // vpackusdw (map 0F38)
            b"",
        ];
        for other in others {
            assert_eq!(kind(other, 0), Kind::Plain, "{other:02x?}");
        }
    }
}
