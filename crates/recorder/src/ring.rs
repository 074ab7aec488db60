//! A ring of bytes in a file that both processes map: the plugin writes, the recorder reads.
//!
//! Neither needs a descriptor once it is mapped, so a program that closes all of its own loses nothing, and what was
//! written outlives the writer, however it dies. One reader, and one writer at a time: processes that share a ring take turns under
//! its lock. The head and the tail only grow.
use std::cell::UnsafeCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"sdxring1");
const HEADER: usize = 4096;

/// The name of the first process's ring, which exists before the process.
pub const FIRST: &str = "first";

/// The first page of the ring.
#[repr(C)]
pub struct RingHeader {
    magic: AtomicU64,
    capacity: AtomicU64,
    pub writer: AtomicU32,
    pub reader: AtomicU32,
    pub instructions: AtomicU64,
    pub stop: AtomicU32,
    pub begun: AtomicU32,
    _apart: [u64; 8],
    head: AtomicU64,
    _apart_too: [u64; 8],
    tail: AtomicU64,
    /// Set after the writer has seen that the reader wants no more, and has sent what its caches hold.
    pub told: AtomicU32,
    /// The words of [`crate::codec::CacheContents`].
    pub cached: [AtomicU64; 5],
    /// Set if several processes write, and take turns under the lock.
    pub shared: AtomicU32,
    pub turn: AtomicU32,
    /// The number of processes that were forked, or are about to be.
    pub forks: AtomicU32,
    pub lock: Lock,
}

/// A lock between processes. The kernel frees it when its holder dies, so that the others can continue.
pub struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made to be shared, this one between processes too.
unsafe impl Sync for Lock {}

impl Lock {
    /// Makes it in shared memory that no other process has yet.
    fn init(&self) -> io::Result<()> {
        let done = |error: libc::c_int| match error {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        };
        // SAFETY: zeros are room for attributes, which the first call fills.
        unsafe {
            let mut how: libc::pthread_mutexattr_t = std::mem::zeroed();
            done(libc::pthread_mutexattr_init(&raw mut how))?;
            done(libc::pthread_mutexattr_setpshared(
                &raw mut how,
                libc::PTHREAD_PROCESS_SHARED,
            ))?;
            done(libc::pthread_mutexattr_setrobust(
                &raw mut how,
                libc::PTHREAD_MUTEX_ROBUST,
            ))?;
            done(libc::pthread_mutex_init(self.0.get(), &raw const how))
        }
    }

    pub fn take(&self) {
        // SAFETY: it was made by `init`. A dead holder leaves only whole events in the ring, because the head moves
        // over whole events.
        unsafe {
            if libc::pthread_mutex_lock(self.0.get()) == libc::EOWNERDEAD {
                libc::pthread_mutex_consistent(self.0.get());
            }
        }
    }

    pub fn give_back(&self) {
        // SAFETY: the caller holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

pub struct Ring {
    map: NonNull<u8>,
    length: usize,
    capacity: u64,
    /// The position of the writer or the reader, and what it knows of the other's.
    mine: u64,
    other: u64,
}

// SAFETY: the mapping is shared memory that any thread may use; positions are behind `&mut`.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes a ring of `capacity` bytes, a power of two, in a new file whose space is reserved.
    ///
    /// # Errors
    /// The file exists or cannot be written, or there is no space.
    pub fn create(path: &Path, capacity: u64, reader: u32) -> io::Result<Ring> {
        assert!(capacity.is_power_of_two(), "masks need a power of two");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        let length = HEADER as u64 + capacity;
        // SAFETY: a plain system call on an open descriptor. Without the space a store would be a SIGBUS.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as libc::off_t) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        let ring = Ring::map(&file, length as usize, capacity)?;
        ring.header().capacity.store(capacity, Ordering::Relaxed);
        ring.header().reader.store(reader, Ordering::Relaxed);
        ring.header().lock.init()?;
        ring.header().magic.store(MAGIC, Ordering::Release);
        Ok(ring)
    }

    /// Opens a ring that [`Ring::create`] made.
    pub fn open(path: &Path) -> io::Result<Ring> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        let none = || io::Error::other(format!("{} is not a ring", path.display()));
        let capacity = length.checked_sub(HEADER as u64).ok_or_else(none)?;
        if !capacity.is_power_of_two() {
            return Err(none());
        }
        let ring = Ring::map(&file, length as usize, capacity)?;
        if ring.header().magic.load(Ordering::Acquire) != MAGIC
            || ring.header().capacity.load(Ordering::Relaxed) != capacity
        {
            return Err(none());
        }
        Ok(ring)
    }

    fn map(file: &File, length: usize, capacity: u64) -> io::Result<Ring> {
        // SAFETY: a new shared mapping of a file of at least `length` bytes, at an address of the kernel's choice.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            map: NonNull::new(map.cast()).expect("the kernel does not map page 0"),
            length,
            capacity,
            mine: 0,
            other: 0,
        })
    }

    /// The ring for a writer that continues where an earlier one stopped.
    #[must_use]
    pub fn resumed(mut self) -> Ring {
        self.catch_up();
        self
    }

    pub fn catch_up(&mut self) {
        self.mine = self.header().head.load(Ordering::Acquire);
        self.other = self.header().tail.load(Ordering::Acquire);
    }

    #[inline]
    pub fn header(&self) -> &RingHeader {
        // SAFETY: the mapping begins with a page for the header, which has only atomics and lives as long as `self`.
        unsafe { self.map.cast::<RingHeader>().as_ref() }
    }

    /// Appends `bytes` if there is room; the reader sees all of them or none. Returns whether there was room.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let length = bytes.len() as u64;
        if self.mine + length - self.other > self.capacity {
            self.other = self.header().tail.load(Ordering::Acquire);
            if self.mine + length - self.other > self.capacity {
                return false;
            }
        }
        let at = (self.mine & (self.capacity - 1)) as usize;
        let first = bytes.len().min(self.capacity as usize - at);
        // SAFETY: `at + first` and the rest lie within the ring's bytes, and the reader does not look at them before
        // the head has moved over them.
        unsafe {
            let ring = self.map.as_ptr().add(HEADER);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), ring.add(at), first);
            if first < bytes.len() {
                std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), ring, bytes.len() - first);
            }
        }
        self.mine += length;
        self.header().head.store(self.mine, Ordering::Release);
        true
    }

    /// Appends at most `most` bytes of what was written to `out`, and returns how many.
    pub fn read(&mut self, out: &mut Vec<u8>, most: usize) -> usize {
        self.other = self.header().head.load(Ordering::Acquire);
        let length = (self.other - self.mine).min(most as u64) as usize;
        let at = (self.mine & (self.capacity - 1)) as usize;
        let first = length.min(self.capacity as usize - at);
        // SAFETY: the bytes lie within the ring, and the writer does not touch them before the tail has moved over them.
        unsafe {
            let ring = self.map.as_ptr().add(HEADER);
            out.extend_from_slice(std::slice::from_raw_parts(ring.add(at), first));
            out.extend_from_slice(std::slice::from_raw_parts(ring, length - first));
        }
        self.mine += length as u64;
        self.header().tail.store(self.mine, Ordering::Release);
        length
    }

    /// Whether a process lives, or belongs to another user and may not be asked about.
    pub fn lives(process: u32) -> bool {
        // SAFETY: signal 0 is sent to nobody.
        let sent = unsafe { libc::kill(process as libc::pid_t, 0) };
        sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
    }

    pub fn name(writer: u32) -> String {
        format!("ring-{writer}")
    }

    pub fn writer_of(name: &std::ffi::OsStr) -> Option<u32> {
        let name = std::str::from_utf8(name.as_bytes()).ok()?;
        name.strip_prefix("ring-")?.parse().ok()
    }
}

/// Asks a process to end, or ends it.
pub fn end(process: u32, at_once: bool) {
    let signal = if at_once {
        libc::SIGKILL
    } else {
        libc::SIGTERM
    };
    // SAFETY: a system call without memory; the worst is that the process is not ours.
    unsafe { libc::kill(process as libc::pid_t, signal) };
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no reference into it is left.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.length) };
    }
}
