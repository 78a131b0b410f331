//! AES in the mode XTS, a number for each sector.

use aes::cipher::KeyInit;
use aes::{Aes128, Aes256};
use xts_mode::Xts128;

/// The cipher of an area or of a volume.
pub(super) enum Cipher {
    Aes128(Box<Xts128<Aes128>>),
    Aes256(Box<Xts128<Aes256>>),
}

impl Cipher {
    /// With a key that is two keys; `None` if it has another length than they have.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let (one, other) = key.split_at(key.len() / 2);
        match key.len() {
            32 => Some(Self::Aes128(Box::new(Xts128::new(
                Aes128::new_from_slice(one).ok()?,
                Aes128::new_from_slice(other).ok()?,
            )))),
            64 => Some(Self::Aes256(Box::new(Xts128::new(
                Aes256::new_from_slice(one).ok()?,
                Aes256::new_from_slice(other).ok()?,
            )))),
            _ => None,
        }
    }

    /// Encrypts whole sectors of `sector_bytes`; `first` is the number of the first, in units of 512 bytes.
    pub(super) fn encrypt(&self, bytes: &mut [u8], sector_bytes: usize, first: u64) {
        self.each(bytes, sector_bytes, first, |cipher, sector, tweak| match cipher {
            Self::Aes128(cipher) => cipher.encrypt_sector(sector, tweak),
            Self::Aes256(cipher) => cipher.encrypt_sector(sector, tweak),
        });
    }

    /// Decrypts them.
    pub(super) fn decrypt(&self, bytes: &mut [u8], sector_bytes: usize, first: u64) {
        self.each(bytes, sector_bytes, first, |cipher, sector, tweak| match cipher {
            Self::Aes128(cipher) => cipher.decrypt_sector(sector, tweak),
            Self::Aes256(cipher) => cipher.decrypt_sector(sector, tweak),
        });
    }

    fn each(
        &self,
        bytes: &mut [u8],
        sector_bytes: usize,
        first: u64,
        change: impl Fn(&Self, &mut [u8], [u8; 16]),
    ) {
        let units = (sector_bytes / 512) as u64;
        for (number, sector) in (0..).zip(bytes.chunks_exact_mut(sector_bytes)) {
            let number = first.wrapping_add(units * number);
            change(self, sector, u128::from(number).to_le_bytes());
        }
    }
}
