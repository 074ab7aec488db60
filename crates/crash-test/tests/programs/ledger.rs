// A ledger in Rust, of transfers between two accounts with an undo record: `ledger FILE run` and `ledger FILE check`.
use std::arch::x86_64::{_mm_clflush, _mm_sfence};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, prot: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
}

#[repr(C, align(64))]
struct Line<T>(T);

#[repr(C)]
struct Undo {
    valid: u64,
    account: [u64; 2],
    balance: [u64; 2],
}

#[repr(C)]
struct Ledger {
    undo: Line<Undo>,
    balances: [Line<u64>; 8],
}

fn persist<T>(what: &T) {
    let from = what as *const T as usize & !63;
    let to = what as *const T as usize + size_of::<T>();
    for line in (from..to).step_by(64) {
        unsafe { _mm_clflush(line as *const u8) };
    }
    unsafe { _mm_sfence() };
}

impl Ledger {
    fn transfer(&mut self, from: usize, to: usize, sum: u64) {
        let undo = &mut self.undo.0;
        undo.account = [from as u64, to as u64];
        undo.balance = [self.balances[from].0, self.balances[to].0];
        persist(undo);
        undo.valid = 1;
        persist(&undo.valid);
        self.balances[from].0 -= sum;
        self.balances[to].0 += sum;
        persist(&self.balances[from]);
        persist(&self.balances[to]);
        self.undo.0.valid = 0;
        persist(&self.undo.0.valid);
    }

    fn recover(&mut self) {
        if self.undo.0.valid == 1 {
            for i in 0..2 {
                let account = self.undo.0.account[i] as usize;
                self.balances[account].0 = self.undo.0.balance[i];
                persist(&self.balances[account]);
            }
            self.undo.0.valid = 0;
            persist(&self.undo.0.valid);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let running = words[2] == "run";
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(running)
        .open(&words[1])
        .unwrap();
    if running {
        file.set_len(size_of::<Ledger>() as u64).unwrap();
    }
    let ledger = unsafe {
        let at = mmap(
            std::ptr::null_mut(),
            size_of::<Ledger>(),
            3,
            1,
            file.as_raw_fd(),
            0,
        );
        &mut *at.cast::<Ledger>()
    };
    if running {
        for balance in &mut ledger.balances {
            balance.0 = 1000;
        }
        persist(&ledger.balances);
        for i in 0..40 {
            ledger.transfer(i % 8, (i * 3 + 1) % 8, 10 + i as u64);
        }
        return;
    }
    ledger.recover();
    let sum: u64 = ledger.balances.iter().map(|b| b.0).sum();
    if sum != 8000 {
        println!("the sum is {sum}");
        std::process::exit(10);
    }
}
