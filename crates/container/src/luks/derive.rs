//! Keys from passphrases, at a cost that is bounded.

use super::header::{Derivation, Digest, Hash};
use argon2::{Algorithm, Argon2, Params, Version};
use pbkdf2::pbkdf2_hmac;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use zeroize::Zeroizing;

/// Iterations of PBKDF2 that are done: about a minute. cryptsetup takes as many as last two seconds.
pub(super) const MAX_ITERATIONS: u32 = 50_000_000;
/// Memory that Argon2 gets, in KiB: the most that cryptsetup asks for.
pub(super) const MAX_MEMORY: u32 = 1 << 20;
/// Passes over so much memory as [`MAX_MEMORY`].
pub(super) const MAX_PASSES: u64 = 64;
const MAX_LANES: u32 = 16;

/// A key of `length` bytes; an error says what would cost too much.
pub(super) fn derive(
    derivation: &Derivation,
    passphrase: &[u8],
    length: usize,
) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut key = Zeroizing::new(vec![0; length]);
    match derivation {
        Derivation::Pbkdf2 { hash, iterations, salt } => {
            pbkdf2(*hash, passphrase, salt, *iterations, &mut key)?;
        }
        Derivation::Argon2 { is_id, time, memory, lanes, salt } => {
            let passes = u64::from(*time) * u64::from(*memory);
            if *memory > MAX_MEMORY
                || passes > MAX_PASSES * u64::from(MAX_MEMORY)
                || *lanes > MAX_LANES
            {
                return Err(format!(
                    "its key wants {memory} KiB of memory, {time} passes and {lanes} lanes; the most are \
                     {MAX_MEMORY} KiB, {MAX_PASSES} passes over these, and {MAX_LANES}"
                ));
            }
            let algorithm = if *is_id { Algorithm::Argon2id } else { Algorithm::Argon2i };
            let made = Params::new(*memory, *time, *lanes, Some(length)).and_then(|parameters| {
                let argon2 = Argon2::new(algorithm, Version::V0x13, parameters);
                argon2.hash_password_into(passphrase, salt, &mut key)
            });
            made.map_err(|error| format!("its key cannot be derived: {error}"))?;
        }
    }
    Ok(key)
}

/// Whether a key is the one of a digest.
pub(super) fn is_right(digest: &Digest, key: &[u8]) -> Result<bool, String> {
    // A digest of no bytes would be that of every key.
    if digest.value.len() < 16 || digest.value.len() > 64 {
        return Err(format!("a digest of {} bytes", digest.value.len()));
    }
    let mut found = vec![0; digest.value.len()];
    pbkdf2(digest.hash, key, &digest.salt, digest.iterations, &mut found)?;
    Ok(found == digest.value)
}

fn pbkdf2(
    hash: Hash,
    secret: &[u8],
    salt: &[u8],
    iterations: u32,
    out: &mut [u8],
) -> Result<(), String> {
    if !(1..=MAX_ITERATIONS).contains(&iterations) {
        return Err(format!(
            "its key wants {iterations} iterations; the most are {MAX_ITERATIONS}"
        ));
    }
    match hash {
        Hash::Sha1 => pbkdf2_hmac::<Sha1>(secret, salt, iterations, out),
        Hash::Sha256 => pbkdf2_hmac::<Sha256>(secret, salt, iterations, out),
        Hash::Sha512 => pbkdf2_hmac::<Sha512>(secret, salt, iterations, out),
    }
    Ok(())
}
