//! Finds constant distances between the addresses of a block's loads and stores, as far as its instructions tell.
//!
//! Each general register is an unknown value plus a known distance. Moves, `lea`, additions of constants, pushes, pops
//! and calls change what is known; any other write makes a new unknown value. Two addresses over the same unknown
//! values are at a constant distance.

use iced_x86::{
    Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use crate::insn::{self, InstructionKind};

/// The base of an address: the address is a constant distance from it. Two equal bases in one block have the same
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    segment: Register,
    base: u32,
    index: u32,
    scale: u32,
}

/// A load or store with a known address, which QEMU makes with one callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub origin: Origin,
    pub distance: u64,
    pub size: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Nothing,
    /// A load or a store of one place, or a load of it and then a store.
    One {
        access: Access,
        loads: bool,
        stores: bool,
    },
    Unknown,
    /// Unknown, and no access before it may be grouped with one after it.
    Barrier,
}

#[derive(Clone, Copy)]
struct Value {
    /// The number of the unknown value; 0 stands for none.
    unknown: u32,
    plus: u64,
}

const RSP: usize = 4;

pub struct Flow {
    registers: [Value; 16],
    unknowns: u32,
    factory: InstructionInfoFactory,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            registers: std::array::from_fn(|i| Value {
                unknown: i as u32 + 1,
                plus: 0,
            }),
            unknowns: 16,
            factory: InstructionInfoFactory::new(),
        }
    }
}

/// The number of a whole 64-bit general register.
fn number(register: Register) -> Option<usize> {
    register.is_gpr64().then(|| register.number())
}

impl Flow {
    fn fresh(&mut self) -> Value {
        self.unknowns += 1;
        Value {
            unknown: self.unknowns,
            plus: 0,
        }
    }

    fn value(&self, register: Register) -> Option<Value> {
        match register {
            Register::None | Register::RIP => Some(Value {
                unknown: 0,
                plus: 0,
            }),
            _ => Some(self.registers[number(register)?]),
        }
    }

    /// Follows the next instruction of the block, given by its bytes and their address.
    pub fn next(&mut self, bytes: &[u8], address: u64) -> Use {
        let Some(instruction) = insn::decode(bytes, address) else {
            for register in 0..16 {
                self.registers[register] = self.fresh();
            }
            return Use::Barrier;
        };
        let what = self.what(&instruction);
        self.step(&instruction);
        let barrier = insn::kind(&instruction) != InstructionKind::Plain
            || matches!(
                instruction.mnemonic(),
                Mnemonic::Wrfsbase | Mnemonic::Wrgsbase | Mnemonic::Syscall
            );
        if barrier { Use::Barrier } else { what }
    }

    fn what(&mut self, instruction: &Instruction) -> Use {
        let used = self.factory.info(instruction).used_memory();
        let mut there = used
            .iter()
            .filter(|memory| !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess));
        let Some(&memory) = there.next() else {
            return Use::Nothing;
        };
        let (loads, stores) = match memory.access() {
            OpAccess::Read => (true, false),
            OpAccess::Write => (false, true),
            OpAccess::ReadWrite => (true, true),
            _ => return Use::Unknown,
        };
        if there.next().is_some() || !plain(instruction) {
            return Use::Unknown;
        }
        match self.access(&memory) {
            Some(access) => Use::One {
                access,
                loads,
                stores,
            },
            None => Use::Unknown,
        }
    }

    /// The place of an instruction that makes one access of a known size through whole registers.
    fn access(&self, memory: &UsedMemory) -> Option<Access> {
        let size = memory.memory_size().size();
        if !matches!(size, 1 | 2 | 4 | 8 | 16) || memory.vsib_size() != 0 {
            return None;
        }
        let segment = match memory.segment() {
            segment @ (Register::FS | Register::GS) => segment,
            _ => Register::None,
        };
        let (base, index) = (self.value(memory.base())?, self.value(memory.index())?);
        let scale = memory.scale();
        let distance = memory
            .displacement()
            .wrapping_add(base.plus)
            .wrapping_add(index.plus.wrapping_mul(u64::from(scale)));
        let origin = Origin {
            segment,
            base: base.unknown,
            index: index.unknown,
            scale: if index.unknown == 0 { 0 } else { scale },
        };
        Some(Access {
            origin,
            distance,
            size: size as u8,
        })
    }

    fn step(&mut self, instruction: &Instruction) {
        let stack = self.registers[RSP];
        let known = self.result(instruction);
        let left = (instruction.mnemonic() == Mnemonic::Leave).then(|| self.registers[RSP + 1]);
        let info = self.factory.info(instruction);
        let written: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead))
            .map(|used| used.register().full_register())
            .collect();
        for register in written {
            if let Some(number) = number(register) {
                self.registers[number] = self.fresh();
            }
        }
        let moved = match instruction.mnemonic() {
            Mnemonic::Push | Mnemonic::Call | Mnemonic::Ret => true,
            Mnemonic::Pop => instruction.op0_register() != Register::RSP,
            _ => false,
        };
        if let Some(base) = left {
            self.registers[RSP] = Value {
                unknown: base.unknown,
                plus: base.plus.wrapping_add(8),
            };
        } else if moved {
            let by = i64::from(instruction.stack_pointer_increment()) as u64;
            self.registers[RSP] = Value {
                unknown: stack.unknown,
                plus: stack.plus.wrapping_add(by),
            };
        } else if let Some((register, value)) = known {
            self.registers[register] = value;
        }
    }

    /// The register and value of an instruction that computes one from a register and constants.
    fn result(&self, instruction: &Instruction) -> Option<(usize, Value)> {
        let to = number(instruction.op0_register().full_register())?;
        let whole = number(instruction.op0_register()).is_some();
        let constant = |plus| Value { unknown: 0, plus };
        let plus = |value: Value, by: u64| Value {
            unknown: value.unknown,
            plus: value.plus.wrapping_add(by),
        };
        if instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let immediate = || instruction.try_immediate(1).ok();
        let value = match instruction.mnemonic() {
            Mnemonic::Mov if instruction.op1_kind() == OpKind::Register && whole => {
                self.registers[number(instruction.op1_register())?]
            }
            Mnemonic::Mov if instruction.code() == Code::Mov_r32_imm32 || whole => {
                constant(immediate()?)
            }
            Mnemonic::Lea if whole && instruction.memory_index() == Register::None => {
                let base = self.value(instruction.memory_base())?;
                plus(base, instruction.memory_displacement64())
            }
            Mnemonic::Add if whole => plus(self.registers[to], immediate()?),
            Mnemonic::Sub if whole => plus(self.registers[to], immediate()?.wrapping_neg()),
            Mnemonic::Inc if whole => plus(self.registers[to], 1),
            Mnemonic::Dec if whole => plus(self.registers[to], 1u64.wrapping_neg()),
            _ => return None,
        };
        Some((to, value))
    }
}

/// Whether QEMU makes each of the instruction's accesses whole, as recordings with `check` have found. Vectors of 32
/// bytes are made in two halves. Locked and repeated instructions, and accesses that may not happen, are left out.
fn plain(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    if instruction.has_lock_prefix() || instruction.has_xacquire_prefix() {
        return false;
    }
    if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
        return matches!(instruction.mnemonic(), Ret | Call | Jmp);
    }
    let register_or_immediate = |operand: u32| {
        !matches!(
            instruction.op_kind(operand),
            OpKind::Memory | OpKind::FarBranch16 | OpKind::FarBranch32
        )
    };
    match instruction.mnemonic() {
        Mov | Movzx | Movsx | Movsxd | Add | Adc | Sub | Sbb | And | Or | Xor | Cmp | Test
        | Inc | Dec | Neg | Not | Imul | Mul | Div | Idiv | Bsf | Bsr | Tzcnt | Lzcnt | Popcnt => {
            true
        }
        Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle | Cmovne
        | Cmovno | Cmovnp | Cmovns | Cmovo | Cmovp | Cmovs => true,
        Seta | Setae | Setb | Setbe | Sete | Setg | Setge | Setl | Setle | Setne | Setno
        | Setnp | Setns | Seto | Setp | Sets => true,
        Push | Leave => true,
        Pop => register_or_immediate(0),
        Ret => matches!(instruction.code(), Code::Retnq | Code::Retnq_imm16),
        Call => matches!(instruction.code(), Code::Call_rel32_64 | Code::Call_rm64),
        Jmp => instruction.code() == Code::Jmp_rm64,
        Movd | Movq | Movss | Movsd | Movups | Movaps | Movupd | Movapd | Movdqu | Movdqa
        | Movhps | Movlps | Movhpd | Movlpd | Lddqu => true,
        Vmovd | Vmovq | Vmovss | Vmovsd | Vmovups | Vmovaps | Vmovupd | Vmovapd | Vmovdqu
        | Vmovdqa | Vmovhps | Vmovlps | Vmovhpd | Vmovlpd | Vlddqu => true,
        Pcmpeqb | Vpcmpeqb | Pminub | Vpminub | Pxor | Vpxor | Por | Vpor | Pand | Vpand => true,
        Addsd | Subsd | Mulsd | Divsd | Addss | Subss | Mulss | Divss | Comisd | Comiss
        | Ucomisd | Ucomiss | Cvtsi2sd | Cvtsi2ss => true,
        _ => false,
    }
}
