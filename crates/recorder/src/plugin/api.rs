//! QEMU's plugin interface, of version 4 (QEMU 10.0), as its header `qemu-plugin.h` has it; and two functions of GLib, whose
//! arrays of bytes the interface takes. It is declared here because the registry's bindings are GPL and fail in the loader.
//!
//! Nothing else of QEMU's is used. Functions are looked up when the plugin is loaded, so that one that is missing is a message and not a
//! crash, and so that the crate links into its own tests.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

pub const VERSION: c_int = 4;

pub type Id = u64;
pub type MemInfo = u32;
pub type Block = *mut c_void;
pub type Insn = *mut c_void;
pub type Scoreboard = *mut c_void;
pub type Handle = *mut c_void;

pub type OnBlock = extern "C" fn(Id, Block);
pub type OnExec = extern "C" fn(c_uint, *mut c_void);
pub type OnAccess = extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
pub type OnVcpu = extern "C" fn(Id, c_uint);
pub type OnExit = extern "C" fn(Id, *mut c_void);
pub type OnSyscall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub type OnReturn = extern "C" fn(Id, c_uint, i64, i64);

pub const READS_REGISTERS: c_uint = 1;
pub const NO_REGISTERS: c_uint = 0;
pub const LOADS: c_uint = 1;
pub const STORES: c_uint = 2;
/// `QEMU_PLUGIN_INLINE_ADD_U64`
pub const ADD_U64: c_uint = 0;

/// `qemu_plugin_u64`: a counter for each thread.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Counter {
    pub score: Scoreboard,
    pub offset: usize,
}

/// GLib's growing array, of bytes or other elements.
#[repr(C)]
pub struct GArray<T> {
    pub data: *mut T,
    pub len: c_uint,
}

#[repr(C)]
pub struct RegisterName {
    pub handle: Handle,
    pub name: *const c_char,
    pub feature: *const c_char,
}

macro_rules! symbols {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal: $kind:ty,)*) => {
        pub struct Api { $($(#[$doc])* pub $name: $kind,)* }

        impl Api {
            fn find() -> Result<Api, String> {
                Ok(Api { $($name: {
                    let symbol: &CStr = $symbol;
                    // SAFETY: a look-up by name in the objects of this process.
                    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
                    if found.is_null() {
                        return Err(format!("this QEMU has no `{}`", symbol.to_string_lossy()));
                    }
                    // SAFETY: the symbol has this type in QEMU's and GLib's headers; all are pointers.
                    unsafe { std::mem::transmute_copy::<*mut c_void, $kind>(&found) }
                },)* })
            }
        }
    };
}

symbols! {
    on_vcpu_init = c"qemu_plugin_register_vcpu_init_cb": extern "C" fn(Id, OnVcpu),
    on_translation = c"qemu_plugin_register_vcpu_tb_trans_cb": extern "C" fn(Id, OnBlock),
    on_block = c"qemu_plugin_register_vcpu_tb_exec_cb":
        extern "C" fn(Block, OnExec, c_uint, *mut c_void),
    count_block = c"qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu":
        extern "C" fn(Block, c_uint, Counter, u64),
    on_insn = c"qemu_plugin_register_vcpu_insn_exec_cb":
        extern "C" fn(Insn, OnExec, c_uint, *mut c_void),
    on_access = c"qemu_plugin_register_vcpu_mem_cb":
        extern "C" fn(Insn, OnAccess, c_uint, c_uint, *mut c_void),
    on_syscall = c"qemu_plugin_register_vcpu_syscall_cb": extern "C" fn(Id, OnSyscall),
    on_return = c"qemu_plugin_register_vcpu_syscall_ret_cb": extern "C" fn(Id, OnReturn),
    on_exit = c"qemu_plugin_register_atexit_cb": extern "C" fn(Id, OnExit, *mut c_void),
    insns = c"qemu_plugin_tb_n_insns": extern "C" fn(Block) -> usize,
    block_address = c"qemu_plugin_tb_vaddr": extern "C" fn(Block) -> u64,
    insn = c"qemu_plugin_tb_get_insn": extern "C" fn(Block, usize) -> Insn,
    insn_data = c"qemu_plugin_insn_data": extern "C" fn(Insn, *mut c_void, usize) -> usize,
    insn_address = c"qemu_plugin_insn_vaddr": extern "C" fn(Insn) -> u64,
    /// The address at which QEMU has the instruction itself.
    insn_host = c"qemu_plugin_insn_haddr": extern "C" fn(Insn) -> *const u8,
    size_shift = c"qemu_plugin_mem_size_shift": extern "C" fn(MemInfo) -> c_uint,
    new_scoreboard = c"qemu_plugin_scoreboard_new": extern "C" fn(usize) -> Scoreboard,
    counter = c"qemu_plugin_scoreboard_find": extern "C" fn(Scoreboard, c_uint) -> *mut u64,
    read_memory = c"qemu_plugin_read_memory_vaddr":
        extern "C" fn(u64, *mut GArray<u8>, usize) -> bool,
    registers = c"qemu_plugin_get_registers": extern "C" fn() -> *mut GArray<RegisterName>,
    /// The bytes are in the array; what it answers differs between versions.
    read_register = c"qemu_plugin_read_register": extern "C" fn(Handle, *mut GArray<u8>) -> c_int,
    new_bytes = c"g_byte_array_new": extern "C" fn() -> *mut GArray<u8>,
    set_length = c"g_byte_array_set_size": extern "C" fn(*mut GArray<u8>, c_uint) -> *mut GArray<u8>,
}

static API: OnceLock<Api> = OnceLock::new();

pub fn find() -> Result<(), String> {
    let found = Api::find()?;
    API.get_or_init(|| found);
    Ok(())
}

/// The functions, which are looked up before QEMU calls anything of the plugin's.
#[inline(always)]
pub fn api() -> &'static Api {
    API.get().expect("looked up when the plugin is loaded")
}

#[repr(C)]
pub struct Info {
    pub target_name: *const c_char,
    pub version_min: c_int,
    pub version_cur: c_int,
    pub system_emulation: bool,
}
