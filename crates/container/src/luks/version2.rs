//! The header of version 2: two copies, each of fixed fields and a document of JSON.

use super::header::{Derivation, Digest, Hash, Header, Obstacle, Segment, Slot, check_cipher};
use crate::field::be64;
use crate::layer_error::LayerError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use undercroft_block::{BlockDevice, Sector, read_buffer};

/// Lengths that a header may have, its document included.
const LENGTHS: [u64; 9] =
    [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20];
/// Bytes of the fixed fields.
const FIXED: usize = 4096;
/// Where the checksum is, and its bytes.
const CHECKSUM: std::ops::Range<usize> = 448..512;
const MAGICS: [&[u8; 6]; 2] = [b"LUKS\xba\xbe", b"SKUL\xba\xbe"];

/// Reads the newest copy that is sound.
pub(super) fn read(
    device: &dyn BlockDevice,
    front: &[u8],
) -> Result<Result<Header, Obstacle>, LayerError> {
    let mut newest: Option<(u64, Vec<u8>)> = None;
    let mut fault = "neither of its copies is there".to_owned();
    // The second is behind the first, whose length may be damaged.
    let own = be64(front, 8);
    let seconds = LENGTHS.into_iter().filter(|length| !LENGTHS.contains(&own) || *length == own);
    let places = std::iter::once((0, own)).chain(seconds.map(|length| (length, length)));
    for (number, (start, length)) in places.enumerate() {
        let magic = MAGICS[number.min(1)];
        match copy(device, start, length, magic)? {
            Ok((sequence, _)) if newest.as_ref().is_some_and(|(newest, _)| *newest >= sequence) => {
            }
            Ok(found) => newest = Some(found),
            Err(found) if number == 0 => fault = found,
            Err(_) => {}
        }
    }
    let Some((_, bytes)) = newest else { return Ok(Err(Obstacle::Damaged(fault))) };
    Ok(parse(&bytes))
}

/// The sequence number and the bytes of a copy.
fn copy(
    device: &dyn BlockDevice,
    start: u64,
    length: u64,
    magic: &[u8; 6],
) -> Result<Result<(u64, Vec<u8>), String>, LayerError> {
    let on_device = start.checked_add(length);
    let is_there =
        on_device.is_some_and(|end| end <= device.capacity().to_bytes().unwrap_or(u64::MAX));
    if !LENGTHS.contains(&length) || !is_there {
        return Ok(Err(format!("it is said to have {length} bytes")));
    }
    let mut bytes = read_buffer(device, Sector(start / 512), length as usize)?.to_vec();
    if !bytes.starts_with(magic) || be64(&bytes, 8) != length || be64(&bytes, 256) != start {
        return Ok(Err("it is not that of this place".into()));
    }
    if !bytes[72..104].starts_with(b"sha256\0") {
        return Ok(Err("it has a checksum other than SHA-256".into()));
    }
    let said = bytes[CHECKSUM].to_vec();
    bytes[CHECKSUM].fill(0);
    if Sha256::digest(&bytes)[..] != said[..32] {
        return Ok(Err("its checksum is wrong".into()));
    }
    Ok(Ok((be64(&bytes, 16), bytes)))
}

fn parse(bytes: &[u8]) -> Result<Header, Obstacle> {
    let document = &bytes[FIXED..];
    let end = document.iter().position(|byte| *byte == 0).unwrap_or(document.len());
    let document: Value = serde_json::from_slice(&document[..end])
        .map_err(|error| Obstacle::Damaged(format!("its document: {error}")))?;
    let document = Object { value: &document, path: "the document".into() };
    let required = document.value.pointer("/config/requirements/mandatory");
    if let Some([first, ..]) = required.and_then(Value::as_array).map(Vec::as_slice) {
        let what = first.as_str().unwrap_or("something new").escape_debug().to_string();
        return Err(Obstacle::NotSupported(format!("in need of {what}")));
    }
    let segments = document.get("segments")?;
    let mut all = segments.entries()?;
    let (Some((number, segment)), None) = (all.next(), all.next()) else {
        return Err(Obstacle::NotSupported("in several segments".into()));
    };
    let digests = document.get("digests")?;
    let mut slots = Vec::new();
    let mut passed_over = None;
    for (name, slot) in document.get("keyslots")?.entries()? {
        let digest = digests
            .entries()?
            .map(|(_, digest)| digest)
            .find(|digest| digest.lists("keyslots", &name) && digest.lists("segments", &number));
        // Slots of other keys and kinds are for others.
        let Some(digest) = digest else { continue };
        match of_slot(&slot, &digest).and_then(|slot| slot.check(&name).map(|()| slot)) {
            Ok(slot) => slots.push(slot),
            Err(obstacle) => passed_over = Some(obstacle),
        }
    }
    if slots.is_empty() {
        let nothing = "no key slot is in use, so that nobody can open it";
        return Err(passed_over.unwrap_or_else(|| Obstacle::Damaged(nothing.into())));
    }
    let uuid = String::from_utf8_lossy(&bytes[168..208]).trim_end_matches('\0').to_owned();
    Ok(Header { uuid, slots, segment: of_segment(&segment)? })
}

fn of_segment(segment: &Object<'_>) -> Result<Segment, Obstacle> {
    if segment.text("type")? != "crypt" {
        return Err(Obstacle::NotSupported("of another kind than encrypted".into()));
    }
    if segment.value.get("integrity").is_some() {
        return Err(Obstacle::NotSupported("with checks of integrity (dm-integrity)".into()));
    }
    check_cipher(segment.text("encryption")?)?;
    let sector_bytes = segment.number("sector_size")?;
    if !matches!(sector_bytes, 512 | 1024 | 2048 | 4096) {
        return Err(Obstacle::Damaged(format!("sectors of {sector_bytes} bytes")));
    }
    let start = segment.number("offset")?;
    let length = match segment.text("size")? {
        "dynamic" => None,
        _ => Some(segment.number("size")?),
    };
    if !start.is_multiple_of(512) || length.is_some_and(|length| !length.is_multiple_of(512)) {
        return Err(Obstacle::Damaged(format!(
            "data from byte {start} on, which is within a sector"
        )));
    }
    Ok(Segment { start, length, sector_bytes, first_number: segment.number("iv_tweak")? })
}

fn of_slot(slot: &Object<'_>, digest: &Object<'_>) -> Result<Slot, Obstacle> {
    let (area, split, kdf) = (slot.get("area")?, slot.get("af")?, slot.get("kdf")?);
    check_cipher(area.text("encryption")?)?;
    let salt = kdf.bytes("salt")?;
    let derivation = match kdf.text("type")? {
        "pbkdf2" => Derivation::Pbkdf2 {
            hash: Hash::of(kdf.text("hash")?)?,
            iterations: kdf.small("iterations")?,
            salt,
        },
        kind @ ("argon2i" | "argon2id") => Derivation::Argon2 {
            is_id: kind == "argon2id",
            time: kdf.small("time")?,
            memory: kdf.small("memory")?,
            lanes: kdf.small("cpus")?,
            salt,
        },
        other => {
            let what = format!("with keys derived by {}", other.escape_debug());
            return Err(Obstacle::NotSupported(what));
        }
    };
    Ok(Slot {
        derivation,
        area_key_bytes: area.small("key_size")? as usize,
        key_bytes: slot.small("key_size")? as usize,
        stripes: split.small("stripes")? as usize,
        hash: Hash::of(split.text("hash")?)?,
        start: area.number("offset")?,
        digest: Digest {
            hash: Hash::of(digest.text("hash")?)?,
            iterations: digest.small("iterations")?,
            salt: digest.bytes("salt")?,
            value: digest.bytes("digest")?,
        },
    })
}

/// A part of the document, and where it is.
struct Object<'v> {
    value: &'v Value,
    path: String,
}

impl<'v> Object<'v> {
    fn get(&self, name: &str) -> Result<Self, Obstacle> {
        match self.value.get(name) {
            Some(value) => Ok(Self { value, path: name.to_owned() }),
            None => Err(Obstacle::Damaged(format!("{} has no {name}", self.path))),
        }
    }

    fn entries(&self) -> Result<impl Iterator<Item = (String, Self)> + use<'v>, Obstacle> {
        let entries: &'v Map<String, Value> = self
            .value
            .as_object()
            .ok_or_else(|| Obstacle::Damaged(format!("{} is no object", self.path)))?;
        let path = self.path.clone();
        Ok(entries.iter().map(move |(name, value)| {
            (name.clone(), Object { value, path: format!("{path} {}", name.escape_debug()) })
        }))
    }

    fn text(&self, name: &str) -> Result<&'v str, Obstacle> {
        let text = self.value.get(name).and_then(Value::as_str);
        text.ok_or_else(|| Obstacle::Damaged(format!("{} has no text {name}", self.path)))
    }

    /// A number, or one in quotes as large ones are.
    fn number(&self, name: &str) -> Result<u64, Obstacle> {
        let number = self.value.get(name).and_then(|value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        });
        number.ok_or_else(|| Obstacle::Damaged(format!("{} has no number {name}", self.path)))
    }

    fn small(&self, name: &str) -> Result<u32, Obstacle> {
        let number = self.number(name)?;
        let too_large = |_| Obstacle::Damaged(format!("{} has {number} as {name}", self.path));
        number.try_into().map_err(too_large)
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, Obstacle> {
        let text = self.text(name)?;
        let wrong = |_| Obstacle::Damaged(format!("{} has a {name} that is no base64", self.path));
        STANDARD.decode(text).map_err(wrong)
    }

    /// Whether a list has a word.
    fn lists(&self, name: &str, word: &str) -> bool {
        let list = self.value.get(name).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(word)))
    }
}
