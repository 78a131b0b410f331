//! LUKS, versions 1 and 2: containers opened with a passphrase, read and written.
//!
//! A header has key slots (`header`). A slot's area, decrypted with what is derived from the passphrase
//! (`derive`), holds the key of the volume in many stripes, and a digest says whether it is right
//! (`unlock`). With it each sector is encrypted for itself (`cipher`, `device`). Headers are never
//! written.
//!
//! The format is known from its specifications: the LUKS On-Disk Format Specification 1.2.3, and that of
//! LUKS2, 1.1. What numbers in a header may cost is bounded.

mod cipher;
mod derive;
mod device;
mod header;
mod keys;
mod unlock;
mod version1;
mod version2;

pub use keys::{Keys, MAX_KEY_BYTES};

use crate::guarded::{Guard, Guarded};
use crate::layer_error::LayerError;
use device::LuksDriver;
use header::{Header, Obstacle};
use std::sync::Arc;
use undercroft_block::{
    BlockDevice, Drive, Leaf, QueueOptions, SECTOR_SIZE, Sector, Window, read_buffer,
};

/// Threads that encrypt.
const THREADS: usize = 4;
/// Bytes of the first header that tell its version and its length.
const FRONT: usize = 4096;

/// A device with a header of LUKS.
pub struct Container {
    device: Arc<dyn BlockDevice>,
    header: Header,
}

impl Container {
    /// Reads the header of a device; `None` without one.
    ///
    /// # Errors
    /// The device fails, or the header is damaged or of a kind that is not read.
    pub fn read(device: &Arc<dyn BlockDevice>) -> Result<Option<Self>, LayerError> {
        if device.capacity().to_bytes().unwrap_or(u64::MAX) < FRONT as u64 {
            return Ok(None);
        }
        let front = read_buffer(&**device, Sector::ZERO, FRONT)?;
        let parsed = match front.get(..8) {
            Some([b'L', b'U', b'K', b'S', 0xba, 0xbe, 0, 1]) => version1::parse(&front),
            Some([b'L', b'U', b'K', b'S', 0xba, 0xbe, 0, 2]) => version2::read(&**device, &front)?,
            _ => return Ok(None),
        };
        let name = || device.name().to_owned();
        match parsed {
            Ok(header) => Ok(Some(Self { device: Arc::clone(device), header })),
            Err(Obstacle::Damaged(fault)) => {
                Err(LayerError::Damaged { what: "the LUKS header".into(), device: name(), fault })
            }
            Err(Obstacle::NotSupported(kind)) => Err(LayerError::NotSupported {
                what: format!("the LUKS container on {}", name()),
                kind,
                way: "`cryptsetup open` makes what is in it a disk: name that",
            }),
        }
    }

    /// Its UUID, as it is in the header.
    #[must_use]
    pub fn uuid(&self) -> &str {
        &self.header.uuid
    }

    /// Opens it with the first of the keys that fits. Each is tried on each slot, which takes as long as who
    /// made the slot wanted.
    ///
    /// # Errors
    /// There is no key, none fits, or the device fails or is too short.
    pub fn open(&self, keys: &Keys) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let name = self.device.name().to_owned();
        if keys.is_empty() {
            return Err(LayerError::Locked { device: name });
        }
        let Some(key) = unlock::volume_key(&*self.device, &self.header, keys)? else {
            return Err(LayerError::WrongKey { device: name, slots: self.header.slots.len() });
        };
        let damaged = |fault: String| LayerError::Damaged {
            what: "the LUKS header".into(),
            device: self.device.name().to_owned(),
            fault,
        };
        let segment = &self.header.segment;
        let start = Sector(segment.start / SECTOR_SIZE);
        let window = match segment.length {
            Some(length) => {
                Window::new(Arc::clone(&self.device), start, Sector(length / SECTOR_SIZE))
            }
            None => Window::from_sector(Arc::clone(&self.device), start),
        };
        let window = window.ok_or_else(|| {
            let has = self.device.capacity();
            damaged(format!("data from sector {start} on, on a device of {has}; is it cut?"))
        })?;
        let cipher = cipher::Cipher::new(&key)
            .ok_or_else(|| damaged(format!("a key of {} bytes", key.len())))?;
        let below = Arc::new(window.named(name));
        let driver = LuksDriver::new(Arc::clone(&below) as _, cipher, segment);
        let queue = QueueOptions { drive: Drive::Threads(THREADS), ..QueueOptions::default() };
        let leaf = Leaf::start(driver, queue).map_err(undercroft_block::stack::StackError::from)?;
        Ok(Arc::new(Guarded { leaf, guard: Guard::Below(below) }))
    }
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container").field("device", &self.device.name()).finish_non_exhaustive()
    }
}
