//! Cipher feedback: AES-128 whose pad for a block is the encryption of the ciphertext before it, so that
//! lines in a row need no counters, only an initial vector for the first.
//! Source: NIST SP 800-38A Sec. 6.3 (CFB128) and Appendix C for the vectors. Left out: where lines lie.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, InnerIvInit};
use cfb_mode::{Decryptor, Encryptor};

use super::pad;
use crate::line::{LINE_BYTES, Line};
use crate::settings::Settings;

/// A block of AES: an initial vector, or the most recent ciphertext of a chain.
pub type Block = [u8; 16];

/// Blocks of a line, each of which is encrypted under the ciphertext of the one before.
pub const BLOCKS: usize = LINE_BYTES / size_of::<Block>();

/// Encrypts and decrypts chains of lines.
pub struct Feedback {
    cipher: Aes128,
}

impl Feedback {
    /// Chains under the processor's key.
    pub fn new(settings: &Settings) -> Feedback {
        Feedback {
            cipher: pad::cipher(settings),
        }
    }

    /// The initial vector of chain `chain` number `nonce`, which must never be asked for twice. It is an encrypted
    /// nonce (SP 800-38A Appendix C), so that nobody can foresee it. Counter mode encrypts no such block: the last byte
    /// of its blocks is below 4.
    pub fn initial_vector(&self, nonce: u64, chain: u8) -> Block {
        let mut block = [0; 16];
        block[..8].copy_from_slice(&nonce.to_be_bytes());
        (block[8], block[15]) = (chain, u8::MAX);
        let mut block = Array::from(block);
        self.cipher.encrypt_block(&mut block);
        block.into()
    }

    /// Encrypts the next line of a chain whose most recent ciphertext is `recent`.
    pub fn encrypt(&self, recent: &mut Block, line: &Line) -> Line {
        let mut line = *line;
        let chain = Encryptor::inner_iv_init(self.cipher.clone(), &Array::from(*recent));
        chain.encrypt(&mut line);
        *recent = last(&line);
        line
    }

    /// Decrypts the next line of a chain whose most recent ciphertext is `recent`.
    pub fn decrypt(&self, recent: &mut Block, line: &Line) -> Line {
        let mut plain = *line;
        let chain = Decryptor::inner_iv_init(self.cipher.clone(), &Array::from(*recent));
        chain.decrypt(&mut plain);
        *recent = last(line);
        plain
    }
}

fn last(line: &Line) -> Block {
    let (blocks, _) = line.as_chunks();
    blocks[BLOCKS - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::KeyInit;
    use pad::tests::bytes;

    fn under(key: &str) -> Feedback {
        Feedback {
            cipher: Aes128::new(&Array::from(bytes::<16>(key))),
        }
    }

    /// NIST SP 800-38A, F.3.13 and F.3.14: CFB128-AES128, encrypted and decrypted.
    #[test]
    fn the_chain_is_nists() {
        let feedback = under("2b7e151628aed2a6abf7158809cf4f3c");
        let iv: Block = bytes("000102030405060708090a0b0c0d0e0f");
        let plain: Line = bytes(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
        );
        let secret: Line = bytes(
            "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b\
             26751f67a3cbb140b1808cf187a4f4dfc04b05357c5d1c0eeac4c66f9ff7f2e6",
        );
        let (mut there, mut back) = (iv, iv);
        assert_eq!(feedback.encrypt(&mut there, &plain), secret);
        assert_eq!(feedback.decrypt(&mut back, &secret), plain);
        assert_eq!((there, back), (last(&secret), last(&secret)));
    }

    /// Checks chains across lines against the definition, C = P xor E(the ciphertext before it).
    #[test]
    fn lines_go_on_where_the_line_before_ended() {
        let feedback = under("000102030405060708090a0b0c0d0e0f");
        let iv = feedback.initial_vector(7, 1);
        let (mut recent, mut before) = (iv, iv);
        for number in 0..5_u8 {
            let plain: Line = std::array::from_fn(|byte| number ^ byte as u8);
            let secret = feedback.encrypt(&mut recent, &plain);
            let blocks = secret.as_chunks::<16>().0.iter();
            for (secret, plain) in blocks.zip(plain.as_chunks::<16>().0) {
                let mut pad = Array::from(before);
                feedback.cipher.encrypt_block(&mut pad);
                assert!((0..16).all(|byte| secret[byte] == plain[byte] ^ pad[byte]));
                before = *secret;
            }
        }
    }

    #[test]
    fn vectors_differ_by_nonce_chain_and_key() {
        let (this, other) = (under(&"00".repeat(16)), under(&"01".repeat(16)));
        let mut vectors = std::collections::HashSet::new();
        for nonce in 0..100 {
            for chain in 0..2 {
                vectors.insert(this.initial_vector(nonce, chain));
                vectors.insert(other.initial_vector(nonce, chain));
            }
        }
        assert_eq!(vectors.len(), 400);
    }
}
