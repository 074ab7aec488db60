//! The few x86-64 instructions that need more than QEMU's memory callbacks: flushes, the states of the floating-point unit and of
//! vectors (no callback at all), fences, and stores past the caches. Intel SDM volume 2: `clwb`, `clflush`, `clflushopt`, `sfence`,
//! `mfence`, `movnt*`, `xsave` and its like.

use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, Instruction, Mnemonic, OpKind, Register,
};

use crate::codec::op;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// QEMU's callbacks tell everything.
    Plain,
    NonTemporal,
    /// sfence, mfence.
    Fence,
    /// clwb, clflush or clflushopt, with the code of its operation.
    Flush(u8),
    /// `SARDONYX_MARK` of `sardonyx.h`.
    Mark,
    /// A store, or else a load, of numbers of 80 bits or a whole state. QEMU 10.0 makes it in one piece without a
    /// callback.
    Unseen {
        stores: bool,
    },
}

/// The displacement of the no-operation in `sardonyx.h`: "SDNX".
const MARK: u64 = 0x584E_4453;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Call,
    Return,
    None,
}

pub fn turn(instruction: &Instruction) -> Turn {
    match instruction.mnemonic() {
        Mnemonic::Call => Turn::Call,
        Mnemonic::Ret => Turn::Return,
        _ => Turn::None,
    }
}

/// Whether the instruction waits for flushes as a fence does (Intel SDM, CLWB: "LOCK-prefixed instructions").
pub fn locked(instruction: &Instruction) -> bool {
    let exchange = instruction.mnemonic() == Mnemonic::Xchg;
    let memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    instruction.has_lock_prefix() || exchange && memory
}

/// Decodes the instruction that `bytes` at `address` begin with, if they are one.
pub fn decode(bytes: &[u8], address: u64) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let whole = decoder.last_error() == DecoderError::None && instruction.len() == bytes.len();
    whole.then_some(instruction)
}

pub fn kind(instruction: &Instruction) -> InstructionKind {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Movnti | Movntq | Movntdq | Movntps | Movntpd | Vmovntdq | Vmovntps | Vmovntpd
        | Maskmovq | Maskmovdqu => InstructionKind::NonTemporal,
        Sfence | Mfence => InstructionKind::Fence,
        Clwb => InstructionKind::Flush(op::CLWB),
        Clflushopt => InstructionKind::Flush(op::CLFLUSHOPT),
        Clflush => InstructionKind::Flush(op::CLFLUSH),
        Nop if instruction.memory_displacement64() == MARK
            && instruction.memory_base() == Register::RAX =>
        {
            InstructionKind::Mark
        }
        Fxsave | Fxsave64 | Xsave | Xsave64 | Xsavec | Xsavec64 | Xsaveopt | Xsaveopt64
        | Fnsave | Fnstenv | Fbstp => InstructionKind::Unseen { stores: true },
        Fxrstor | Fxrstor64 | Xrstor | Xrstor64 | Frstor | Fldenv | Fbld => {
            InstructionKind::Unseen { stores: false }
        }
        Fstp if instruction.code() == Code::Fstp_m80fp => InstructionKind::Unseen { stores: true },
        Fld if instruction.code() == Code::Fld_m80fp => InstructionKind::Unseen { stores: false },
        _ => InstructionKind::Plain,
    }
}

/// The most bytes that such an instruction accesses; `mask` says which components of a state are asked for (Intel SDM
/// volume 1, 13.4).
pub fn unseen_bytes(instruction: &Instruction, mask: u64) -> u64 {
    /// The end of each component in the standard format: vectors of 256 bits, bounds and their configuration, keys.
    const ENDS: [(u64, u64); 4] = [
        (1 << 9, 2696),
        (1 << 4, 1088),
        (1 << 3, 1024),
        (1 << 2, 832),
    ];
    const LEGACY_AND_HEADER: u64 = 576;
    let known = instruction.memory_size().size() as u64;
    let end = ENDS.iter().find(|(component, _)| mask & component != 0);
    match known {
        0 => end.map_or(LEGACY_AND_HEADER, |(_, end)| *end),
        known => known,
    }
}

/// The address of the operand in memory, with the values of general registers and the bases of fs and gs from `value_of`.
pub fn operand(instruction: &Instruction, value_of: impl Fn(Register) -> u64) -> u64 {
    let value = |register: Register, _, _| match register {
        Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
        _ => Some(value_of(register.full_register())),
    };
    let mut operands = 0..instruction.op_count();
    let memory = operands.find(|&i| instruction.op_kind(i) == OpKind::Memory);
    (instruction.virtual_address(memory.unwrap_or(0), 0, value)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(bytes: &[u8]) -> InstructionKind {
        decode(bytes, 0).map_or(InstructionKind::Plain, |instruction| kind(&instruction))
    }

    fn flush(bytes: &[u8]) -> (u8, u64) {
        let instruction = decode(bytes, 0x1000).unwrap();
        let InstructionKind::Flush(code) = kind(&instruction) else {
            panic!("{instruction:?}")
        };
        let value = |register| match register {
            Register::FS => 7 << 40,
            general => 0x100_0000 * (general.number() as u64 + 1),
        };
        (code, operand(&instruction, value))
    }

    #[test]
    fn flushes_have_their_address() {
        // These bytes are as GNU as 2.40 assembles them.
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
            assert_eq!(kind_of(fence), InstructionKind::Fence);
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
            assert_eq!(kind_of(store), InstructionKind::NonTemporal, "{store:02x?}");
        }
    }

    #[test]
    fn states_are_as_large_as_their_components() {
        let unseen: [(&[u8], bool, u64); 6] = [
            (b"\x0f\xae\x37", true, 832),      // xsaveopt (%rdi)
            (b"\x48\x0f\xc7\x27", true, 832),  // xsavec64 (%rdi)
            (b"\x0f\xae\x07", true, 512),      // fxsave (%rdi)
            (b"\x48\x0f\xae\x2f", false, 832), // xrstor64 (%rdi)
            (b"\xdb\x3f", true, 10),           // fstpt (%rdi)
            (b"\xd9\x37", true, 28),           // fnstenv (%rdi)
        ];
        for (bytes, stores, size) in unseen {
            let instruction = decode(bytes, 0).unwrap();
            assert_eq!(kind(&instruction), InstructionKind::Unseen { stores });
            assert_eq!(unseen_bytes(&instruction, 0b111), size, "{bytes:02x?}");
            assert_eq!(operand(&instruction, |_| 77), 77);
        }
        let xsave = decode(b"\x0f\xae\x27", 0).unwrap();
        assert_eq!(unseen_bytes(&xsave, 0b11), 576);
        assert_eq!(unseen_bytes(&xsave, u64::MAX), 2696);
    }

    #[test]
    fn neighbours_in_the_opcode_map_are_plain() {
        let others: [&[u8]; 8] = [
            b"\x0f\xae\xe8",     // lfence
            b"\xdd\x18",         // fstpl (%rax)
            b"\xf3\x0f\xae\xf0", // umonitor %rax
            b"\x66\x0f\xae\xf0", // tpause %eax
            b"\x0f\xf7\xc1\x00"[..1].as_ref(),
            b"\xc5\xfd\x7f\x07",     // vmovdqa %ymm0,(%rdi)
            b"\xc4\xe2\x7d\x2b\x07", // vpackusdw (map 0F38)
            b"",
        ];
        for other in others {
            assert_eq!(kind_of(other), InstructionKind::Plain, "{other:02x?}");
        }
    }
}
