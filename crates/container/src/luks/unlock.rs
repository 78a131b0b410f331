//! The key of the volume from a passphrase.

use super::cipher::Cipher;
use super::derive::{derive, is_right};
use super::header::{Hash, Header, Slot};
use super::keys::Keys;
use crate::layer_error::LayerError;
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, read_buffer};
use zeroize::Zeroizing;

/// The key of the volume, if one of the keys opens one of the slots.
pub(super) fn volume_key(
    device: &dyn BlockDevice,
    header: &Header,
    keys: &Keys,
) -> Result<Option<Zeroizing<Vec<u8>>>, LayerError> {
    let damaged = |fault: String| LayerError::Damaged {
        what: "the LUKS header".into(),
        device: device.name().to_owned(),
        fault,
    };
    let mut obstacle = None;
    for key in keys.iter() {
        for slot in &header.slots {
            let area = area(device, slot)?;
            let found = area.ok_or_else(|| "a key slot ends behind the device".to_owned());
            match found.and_then(|area| open(slot, area, key)) {
                Ok(Some(key)) => return Ok(Some(key)),
                Ok(None) => {}
                Err(fault) => obstacle = Some(fault),
            }
        }
    }
    obstacle.map_or(Ok(None), |fault| Err(damaged(fault)))
}

/// The encrypted stripes of a slot; `None` if they are not on the device.
fn area(device: &dyn BlockDevice, slot: &Slot) -> Result<Option<Zeroizing<Vec<u8>>>, LayerError> {
    let Some(bytes) = slot.area_bytes() else { return Ok(None) };
    let whole = bytes.next_multiple_of(SECTOR_SIZE);
    let capacity = device.capacity().to_bytes().unwrap_or(u64::MAX);
    if slot.start.checked_add(whole).is_none_or(|end| end > capacity) {
        return Ok(None);
    }
    let read = read_buffer(device, Sector(slot.start / SECTOR_SIZE), whole as usize)?;
    Ok(Some(Zeroizing::new(read.to_vec())))
}

fn open(
    slot: &Slot,
    mut area: Zeroizing<Vec<u8>>,
    passphrase: &[u8],
) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    let key = derive(&slot.derivation, passphrase, slot.area_key_bytes)?;
    let cipher = Cipher::new(&key).ok_or("a key slot with a key of another length")?;
    cipher.decrypt(&mut area, SECTOR_SIZE as usize, 0);
    area.truncate(slot.stripes * slot.key_bytes);
    let key = merged(slot.hash, &area, slot.key_bytes);
    Ok(is_right(&slot.digest, &key)?.then_some(key))
}

/// What was spread over stripes: all are needed for any bit of it.
fn merged(hash: Hash, stripes: &[u8], length: usize) -> Zeroizing<Vec<u8>> {
    let mut sum = Zeroizing::new(vec![0; length]);
    let count = stripes.len() / length;
    for (number, stripe) in stripes.chunks_exact(length).enumerate() {
        sum.iter_mut().zip(stripe).for_each(|(sum, byte)| *sum ^= byte);
        if number + 1 < count {
            mix(hash, &mut sum);
        }
    }
    sum
}

/// Each piece as long as a hash becomes that of its number and itself.
fn mix(hash: Hash, bytes: &mut [u8]) {
    let length = match hash {
        Hash::Sha1 => 20,
        Hash::Sha256 => 32,
        Hash::Sha512 => 64,
    };
    for (number, piece) in bytes.chunks_mut(length).enumerate() {
        let number = (number as u32).to_be_bytes();
        match hash {
            Hash::Sha1 => hash_into::<Sha1>(number, piece),
            Hash::Sha256 => hash_into::<Sha256>(number, piece),
            Hash::Sha512 => hash_into::<Sha512>(number, piece),
        }
    }
}

fn hash_into<H: Digest>(number: [u8; 4], piece: &mut [u8]) {
    let hash = H::new().chain_update(number).chain_update(&*piece).finalize();
    let length = piece.len();
    piece.copy_from_slice(&hash[..length]);
}
