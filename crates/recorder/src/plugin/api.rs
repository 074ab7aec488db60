//! QEMU's plugin interface, version 1, and what else its executable exports that a recorder needs.
//!
//! Declared by hand and looked up when the plugin is loaded, so that a symbol that is missing is a message and not a
//! crash, and so that the crate links into its own tests. Checked with QEMU 7.2, as Debian 12 has it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

pub type Id = u64;
pub type MemInfo = u32;
pub type Block = *mut c_void;
pub type Insn = *mut c_void;

pub type OnBlock = extern "C" fn(Id, Block);
pub type OnExec = extern "C" fn(c_uint, *mut c_void);
pub type OnAccess = extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
pub type OnVcpu = extern "C" fn(Id, c_uint);
pub type OnExit = extern "C" fn(Id, *mut c_void);
pub type OnSyscall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub type OnReturn = extern "C" fn(Id, c_uint, i64, i64);

/// `QEMU_PLUGIN_CB_R_REGS`
pub const READS_REGISTERS: c_uint = 1;
/// `QEMU_PLUGIN_CB_NO_REGS`
pub const NO_REGISTERS: c_uint = 0;
/// `QEMU_PLUGIN_MEM_RW`
pub const READS_AND_WRITES: c_uint = 3;
/// What makes 7.2 call for stores only. It is `QEMU_PLUGIN_MEM_R`, and not `QEMU_PLUGIN_MEM_W`, which gets loads too:
/// `op_rw` (accel/tcg/plugin-gen.c) compares with the access's own bits plus one, which are 2 for loads and 3 for stores.
pub const STORES: c_uint = 1;
/// `QEMU_PLUGIN_INLINE_ADD_U64`
pub const ADD_U64: c_uint = 0;

/// GLib's growing array of bytes.
#[repr(C)]
pub struct GByteArray {
    pub data: *mut u8,
    pub len: c_uint,
}

macro_rules! symbols {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal: $kind:ty,)*) => {
        /// The addresses.
        #[derive(Clone, Copy)]
        pub struct Api { $($(#[$doc])* pub $name: $kind,)* }

        impl Api {
            /// Looks everything up.
            ///
            /// # Errors
            /// The name of what is not there.
            pub fn find() -> Result<Api, String> {
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
    count_block = c"qemu_plugin_register_vcpu_tb_exec_inline":
        extern "C" fn(Block, c_uint, *mut c_void, u64),
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
    insn_data = c"qemu_plugin_insn_data": extern "C" fn(Insn) -> *const u8,
    insn_size = c"qemu_plugin_insn_size": extern "C" fn(Insn) -> usize,
    insn_address = c"qemu_plugin_insn_vaddr": extern "C" fn(Insn) -> u64,
    size_shift = c"qemu_plugin_mem_size_shift": extern "C" fn(MemInfo) -> c_uint,
    is_store = c"qemu_plugin_mem_is_store": extern "C" fn(MemInfo) -> bool,
    /// What is added to a guest address for the host's.
    guest_base = c"guest_base": *const usize,
    /// The program's file, as it was given.
    exec_path = c"exec_path": *const *const c_char,
    page_flags = c"page_get_flags": extern "C" fn(u64) -> c_int,
    cpu = c"qemu_get_cpu": extern "C" fn(c_int) -> *mut c_void,
    read_register = c"x86_cpu_gdb_read_register":
        extern "C" fn(*mut c_void, *mut GByteArray, c_int) -> c_int,
    new_bytes = c"g_byte_array_new": extern "C" fn() -> *mut GByteArray,
    set_length = c"g_byte_array_set_size": extern "C" fn(*mut GByteArray, c_uint) -> *mut GByteArray,
}

/// `PAGE_READ`
pub const PAGE_READ: c_int = 1;

/// The beginning of `qemu_info_t`.
#[repr(C)]
pub struct Info {
    pub target_name: *const c_char,
    pub version_min: c_int,
    pub version_cur: c_int,
    pub system_emulation: bool,
}
