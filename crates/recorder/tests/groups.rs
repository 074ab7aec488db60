//! Groups of accesses against running the instructions: whatever the registers hold, a group's members are where it says.

use sardonyx_base::random::SplitMix64;
use sardonyx_recorder::flow::{Flow, Use};
use sardonyx_recorder::group::{AccessGroup, groups};

struct Numbers(SplitMix64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0.draw()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[derive(Clone, Copy, Debug)]
enum Does {
    Load(u8, u8, i8, u8),
    Store(u8, u8, i8, u8),
    LoadIndexed(u8, u8, u8, u8, i8),
    StoreVector(u8, i8),
    Increment(u8, i8),
    Move(u8, u8),
    Constant(u8, i32),
    Add(u8, i8),
    Subtract(u8, i32),
    AddRegister(u8, u8),
    AddOne(u8),
    SubtractOne(u8),
    Lea(u8, u8, i8),
    LeaIndexed(u8, u8, u8, u8, i8),
    Push(u8),
    Pop(u8),
    Leave,
    MoveHalf(u8, u8),
    MoveIf(u8, u8),
    Exchange(u8, u8),
    LoadRelative(u8, i32),
    Byte(u8),
    Clwb(u8),
}

const RSP: u8 = 4;
const RBP: u8 = 5;

fn rex(wide: bool, register: u8, index: u8, base: u8) -> u8 {
    0x40 | u8::from(wide) << 3 | register >> 3 << 2 | index >> 3 << 1 | base >> 3
}

fn operand(register: u8, base: u8, displacement: i8) -> Vec<u8> {
    let mut bytes = vec![0x40 | (register & 7) << 3 | base & 7];
    if base & 7 == 4 {
        bytes.push(0x24);
    }
    bytes.push(displacement as u8);
    bytes
}

fn indexed(register: u8, base: u8, index: u8, shift: u8, displacement: i8) -> Vec<u8> {
    let sib = shift << 6 | (index & 7) << 3 | base & 7;
    vec![0x44 | (register & 7) << 3, sib, displacement as u8]
}

fn both(register: u8, other: u8) -> u8 {
    0xC0 | (register & 7) << 3 | other & 7
}

impl Does {
    fn any(numbers: &mut Numbers) -> Does {
        // Few registers, so that they meet; r12 and r13 have encodings of their own.
        let mut register = || [0, 3, RSP, RBP, 12, 13][numbers.below(6) as usize];
        let (a, b) = (register(), register());
        let mut index = register();
        if index == RSP {
            index = 0;
        }
        let displacement = (numbers.below(32) * 8) as u8 as i8;
        let shift = numbers.below(4) as u8;
        match numbers.below(32) {
            0..=5 => Does::Load(a, b, displacement, 3),
            6 => Does::Load(a, b, displacement, 2),
            7..=10 => Does::Store(a, b, displacement, 3),
            11 => Does::Store(a, b, displacement, 0),
            12 => Does::LoadIndexed(a, b, index, shift, displacement),
            13 => Does::StoreVector(b, displacement),
            14 => Does::Increment(b, displacement),
            15 => Does::Move(a, b),
            16 => Does::Constant(a, numbers.below(256) as i32 - 128),
            17 => Does::Add(a, displacement),
            18 => Does::Subtract(a, i32::from(displacement) * 1000),
            19 => Does::AddRegister(a, b),
            20 => Does::Lea(a, b, displacement),
            21 => Does::LeaIndexed(a, b, index, shift, displacement),
            22 | 23 => Does::Push(a),
            24 | 25 => Does::Pop(a),
            26 => [Does::Leave, Does::Clwb(b), Does::Byte(a)][numbers.below(3) as usize],
            27 => [Does::MoveHalf(a, b), Does::MoveIf(a, b)][numbers.below(2) as usize],
            28 => Does::Exchange(a, b),
            29 => Does::AddOne(a),
            30 => Does::SubtractOne(a),
            _ => Does::LoadRelative(a, numbers.below(64) as i32),
        }
    }

    fn bytes(self) -> Vec<u8> {
        let with = |head: &[u8], rest: Vec<u8>| [head, &rest].concat();
        match self {
            Does::Load(to, base, by, size) => {
                with(&[rex(size == 3, to, 0, base), 0x8B], operand(to, base, by))
            }
            Does::Store(from, base, by, 0) => {
                with(&[rex(false, from, 0, base), 0x88], operand(from, base, by))
            }
            Does::Store(from, base, by, _) => {
                with(&[rex(true, from, 0, base), 0x89], operand(from, base, by))
            }
            Does::LoadIndexed(to, base, index, shift, by) => with(
                &[rex(true, to, index, base), 0x8B],
                indexed(to, base, index, shift, by),
            ),
            Does::StoreVector(base, by) => {
                with(&[rex(false, 0, 0, base), 0x0F, 0x11], operand(0, base, by))
            }
            Does::Increment(base, by) => with(&[rex(true, 0, 0, base), 0xFF], operand(0, base, by)),
            Does::Move(to, from) => vec![rex(true, from, 0, to), 0x89, both(from, to)],
            Does::Constant(to, value) => with(
                &[rex(true, 0, 0, to), 0xC7, both(0, to)],
                value.to_le_bytes().to_vec(),
            ),
            Does::Add(to, by) => vec![rex(true, 0, 0, to), 0x83, both(0, to), by as u8],
            Does::Subtract(to, by) => with(
                &[rex(true, 0, 0, to), 0x81, both(5, to)],
                by.to_le_bytes().to_vec(),
            ),
            Does::AddOne(to) => vec![rex(true, 0, 0, to), 0xFF, both(0, to)],
            Does::SubtractOne(to) => vec![rex(true, 0, 0, to), 0xFF, both(1, to)],
            Does::AddRegister(to, from) => vec![rex(true, from, 0, to), 0x01, both(from, to)],
            Does::Lea(to, base, by) => with(&[rex(true, to, 0, base), 0x8D], operand(to, base, by)),
            Does::LeaIndexed(to, base, index, shift, by) => with(
                &[rex(true, to, index, base), 0x8D],
                indexed(to, base, index, shift, by),
            ),
            Does::Push(from) => vec![rex(false, 0, 0, from), 0x50 | from & 7],
            Does::Pop(to) => vec![rex(false, 0, 0, to), 0x58 | to & 7],
            Does::Leave => vec![0xC9],
            Does::MoveHalf(to, from) => vec![rex(false, from, 0, to), 0x89, both(from, to)],
            Does::MoveIf(to, from) => vec![rex(true, to, 0, from), 0x0F, 0x44, both(to, from)],
            Does::Exchange(a, b) => vec![rex(true, a, 0, b), 0x87, both(a, b)],
            Does::LoadRelative(to, by) => with(
                &[rex(true, to, 0, 0), 0x8B, 0x05 | (to & 7) << 3],
                by.to_le_bytes().to_vec(),
            ),
            Does::Byte(to) => vec![rex(false, 0, 0, to), 0xB0 | to & 7, 0x5A], // mov $0x5a,%r8b
            Does::Clwb(base) => with(
                &[0x66, rex(false, 0, 0, base), 0x0F, 0xAE],
                operand(6, base, 0),
            ),
        }
    }

    /// Runs it; gives where and how much it accesses, and whether it stores.
    fn run(self, r: &mut [u64; 16], next: u64, numbers: &mut Numbers) -> Option<(u64, u8, bool)> {
        let at = |r: &[u64; 16], base: u8, by: i8| r[usize::from(base)].wrapping_add(by as u64);
        let sum = |r: &[u64; 16], base: u8, index: u8, shift: u8, by: i8| {
            at(r, base, by).wrapping_add(r[usize::from(index)] << shift)
        };
        let (sp, bp) = (usize::from(RSP), usize::from(RBP));
        let mut access = None;
        match self {
            Does::Load(to, base, by, size) => {
                access = Some((at(r, base, by), 1 << size, false));
                r[usize::from(to)] = numbers.next() >> if size == 2 { 32 } else { 0 };
            }
            Does::Store(_, base, by, size) => access = Some((at(r, base, by), 1 << size, true)),
            Does::LoadIndexed(to, base, index, shift, by) => {
                access = Some((sum(r, base, index, shift, by), 8, false));
                r[usize::from(to)] = numbers.next();
            }
            Does::StoreVector(base, by) => access = Some((at(r, base, by), 16, true)),
            Does::Increment(base, by) => access = Some((at(r, base, by), 8, true)),
            Does::Move(to, from) => r[usize::from(to)] = r[usize::from(from)],
            Does::Constant(to, value) => r[usize::from(to)] = value as u64,
            Does::Add(to, by) => r[usize::from(to)] = at(r, to, by),
            Does::AddOne(to) => r[usize::from(to)] = at(r, to, 1),
            Does::SubtractOne(to) => r[usize::from(to)] = at(r, to, -1),
            Does::Subtract(to, by) => {
                r[usize::from(to)] = r[usize::from(to)].wrapping_sub(by as u64);
            }
            Does::AddRegister(to, from) => {
                r[usize::from(to)] = r[usize::from(to)].wrapping_add(r[usize::from(from)]);
            }
            Does::Lea(to, base, by) => r[usize::from(to)] = at(r, base, by),
            Does::LeaIndexed(to, base, index, shift, by) => {
                r[usize::from(to)] = sum(r, base, index, shift, by);
            }
            Does::Push(_) => {
                r[sp] = r[sp].wrapping_sub(8);
                access = Some((r[sp], 8, true));
            }
            Does::Pop(to) => {
                access = Some((r[sp], 8, false));
                r[sp] = r[sp].wrapping_add(8);
                r[usize::from(to)] = numbers.next();
            }
            Does::Leave => {
                access = Some((r[bp], 8, false));
                r[sp] = r[bp].wrapping_add(8);
                r[bp] = numbers.next();
            }
            Does::MoveHalf(to, from) => r[usize::from(to)] = r[usize::from(from)] & 0xFFFF_FFFF,
            Does::MoveIf(to, from) => {
                if numbers.below(2) == 0 {
                    r[usize::from(to)] = r[usize::from(from)];
                }
            }
            Does::Exchange(a, b) => r.swap(usize::from(a), usize::from(b)),
            Does::LoadRelative(to, by) => {
                access = Some((next.wrapping_add(by as u64), 8, false));
                r[usize::from(to)] = numbers.next();
            }
            Does::Byte(to) => r[usize::from(to)] = r[usize::from(to)] & !0xFF | 0x5A,
            Does::Clwb(_) => {}
        }
        access
    }
}

const START: u64 = 0x40_1FE0;

fn flow(block: &[Does]) -> Vec<Use> {
    let (mut flow, mut at) = (Flow::default(), START);
    let mut each = |does: &Does| {
        let bytes = does.bytes();
        let what = flow.next(&bytes, at);
        at += bytes.len() as u64;
        what
    };
    block.iter().map(&mut each).collect()
}

/// Runs the block and holds the groups against what happens.
fn hold(block: &[Does], groups: &[AccessGroup], numbers: &mut Numbers) {
    // Now and then registers have the same value, or nearly.
    let mut registers: [u64; 16] =
        std::array::from_fn(|_| numbers.next() >> (numbers.below(2) * 58));
    let mut at = START;
    let accesses: Vec<Option<(u64, u8, bool)>> = block
        .iter()
        .map(|does| {
            at += does.bytes().len() as u64;
            does.run(&mut registers, at, numbers)
        })
        .collect();
    for group in groups {
        let first = &group.members[0];
        let low = accesses[first.insn].expect("an access").0;
        let low = low
            .wrapping_sub(first.access.distance)
            .wrapping_add(group.low);
        assert!(group.span <= 64);
        for member in &group.members {
            let (address, size, stores) = accesses[member.insn].expect("an access");
            let from = address.wrapping_sub(low);
            assert_eq!(
                from,
                member.access.distance.wrapping_sub(group.low),
                "{block:?}"
            );
            assert!(from + u64::from(size) <= group.span, "{block:?}");
            assert_eq!(
                (size, stores),
                (member.access.size, member.stores),
                "{block:?}"
            );
        }
    }
}

#[test]
fn members_are_where_their_group_says() {
    let mut numbers = Numbers(SplitMix64(1));
    let (mut accesses, mut spared) = (0, 0);
    for _ in 0..20_000 {
        let block: Vec<Does> = (0..2 + numbers.below(14))
            .map(|_| Does::any(&mut numbers))
            .collect();
        let uses = flow(&block);
        let groups = groups(&uses, false);
        for _ in 0..3 {
            hold(&block, &groups, &mut numbers);
        }
        let mut members: Vec<usize> = groups
            .iter()
            .flat_map(|g| g.members.iter().map(|m| m.insn))
            .collect();
        accesses += members.len();
        spared += members.len() - groups.len();
        members.sort_unstable();
        let known = |i: &usize| matches!(uses[*i], Use::One { .. });
        assert_eq!(
            members,
            (0..uses.len()).filter(known).collect::<Vec<_>>(),
            "each once"
        );
        for group in &groups {
            let in_order = group
                .members
                .windows(2)
                .all(|two| two[0].insn < two[1].insn);
            assert!(in_order, "{block:?}");
            let (first, last) = (group.members[0].insn, group.members.last().unwrap().insn);
            let barrier = |does: &Does| matches!(does, Does::Clwb(_));
            assert!(!block[first..=last].iter().any(barrier), "{block:?}");
        }
    }
    assert!(
        accesses > 80_000 && spared > 15_000,
        "{spared} of {accesses}"
    );
}

#[test]
fn what_changes_in_place_can_be_kept_out() {
    let block = [
        Does::Load(0, 3, 8, 3),
        Does::Increment(3, 8),
        Does::Store(0, 3, 16, 3),
    ];
    let insns = |apart| -> Vec<Vec<usize>> {
        let each = |group: &AccessGroup| group.members.iter().map(|m| m.insn).collect();
        groups(&flow(&block), apart).iter().map(each).collect()
    };
    assert_eq!(insns(false), [vec![0, 1, 2]]);
    assert_eq!(insns(true), [vec![0, 2]]);
}

#[test]
fn what_qemu_makes_in_its_own_way_is_in_no_group() {
    let others: [&[u8]; 12] = [
        b"\xf0\x48\xff\x00",         // lock incq (%rax)
        b"\x48\x87\x18",             // xchg %rbx,(%rax)
        b"\x48\x0f\xb1\x18",         // cmpxchg %rbx,(%rax)
        b"\xf3\x48\xa5",             // rep movsq
        b"\x48\xa5",                 // movsq
        b"\x0f\xae\x00",             // fxsave (%rax)
        b"\xdb\x28",                 // fldt (%rax)
        b"\xff\x30",                 // push (%rax)
        b"\x8f\x00",                 // pop (%rax)
        b"\x67\x8b\x00",             // mov (%eax),%eax
        b"\xc4\xe2\x7d\x92\x04\x08", // vgatherdps
        b"\x48\x0f\xa3\x18",         // bt %rbx,(%rax)
    ];
    for other in others {
        let what = Flow::default().next(other, START);
        assert!(
            matches!(what, Use::Unknown | Use::Barrier),
            "{other:02x?}: {what:?}"
        );
    }
    let barriers: [&[u8]; 5] = [
        b"\x66\x0f\xae\x30",     // clwb (%rax)
        b"\x0f\xae\xf8",         // sfence
        b"\x48\x0f\xc3\x07",     // movnti %rax,(%rdi)
        b"\xf3\x48\x0f\xae\xd0", // wrfsbase %rax
        b"\x06",                 // nothing in 64 bits
    ];
    for barrier in barriers {
        assert_eq!(
            Flow::default().next(barrier, START),
            Use::Barrier,
            "{barrier:02x?}"
        );
    }
}
