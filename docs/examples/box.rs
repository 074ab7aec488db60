// box.rs: the same in Rust. ./box FILE run, ./box FILE check
use std::arch::asm;
use std::os::fd::AsRawFd;

unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, may: i32, how: i32, file: i32, from: i64) -> *mut u8;
}

#[repr(C)]
struct Letter {
    text: [u8; 120],
    length: u64,
}
#[repr(C)]
struct Letters {
    count: u64,
    pad: [u64; 7],
    letters: [Letter; 100],
}

fn flush<T>(what: &T) {
    let at = std::ptr::from_ref(what) as usize;
    for line in (at & !63..at + size_of::<T>()).step_by(64) {
        unsafe { asm!("clwb [{}]", in(reg) line) };
    }
}

fn fence() {
    unsafe { asm!("sfence") };
}

fn write_letter(all: &mut Letters, number: usize) {
    let text = format!("letter {number}");
    let letter = &mut all.letters[all.count as usize];
    letter.text[..text.len()].copy_from_slice(text.as_bytes());
    letter.length = text.len() as u64;
    flush(letter);
    all.count += 1;
    flush(&all.count);
    fence();
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut open = std::fs::OpenOptions::new();
    let file = open
        .read(true)
        .write(true)
        .create(true)
        .open(&words[1])
        .unwrap();
    let bytes = size_of::<Letters>();
    file.set_len(bytes as u64).unwrap();
    let all = unsafe { mmap(std::ptr::null_mut(), bytes, 3, 1, file.as_raw_fd(), 0) };
    let all = unsafe { &mut *all.cast::<Letters>() };
    if words[2] == "run" {
        (0..20).for_each(|number| write_letter(all, number));
        return;
    }
    for (number, letter) in all.letters[..all.count as usize].iter().enumerate() {
        let length = letter.text.iter().take_while(|&&byte| byte != 0).count() as u64;
        if length != letter.length {
            println!("letter {number} should have {} bytes", letter.length);
            std::process::exit(1);
        }
    }
}
