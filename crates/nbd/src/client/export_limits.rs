//! What an export is and can do, as long as a device is open on it.

use undercroft_block::{Limits, SECTOR_SIZE, Sector};

use super::session::handshake::Terms;
use crate::protocol::TransmissionFlags;

/// Longest request with data, unless the server prefers longer ones: one connection carries several
/// at the same time, and what is sent is copied once.
const LONGEST: u64 = 256 << 10;
/// Longest range of a command without data. All servers take it, and it is a multiple of all blocks.
const STEP: u64 = 1 << 30;
/// Most pieces of memory in a request.
const SEGMENTS: usize = 1024;
/// Abilities that have to do with changes.
const CHANGES: TransmissionFlags = TransmissionFlags::READ_ONLY
    .union(TransmissionFlags::SEND_TRIM)
    .union(TransmissionFlags::SEND_WRITE_ZEROES)
    .union(TransmissionFlags::SEND_FAST_ZERO);

/// An export, as a device sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportLimits {
    terms: Terms,
    /// Whether the device refuses changes.
    pub(crate) read_only: bool,
    /// Unit of offsets and lengths in bytes.
    pub(crate) block: u64,
    /// Longest request with data in bytes.
    pub(crate) payload: u64,
    /// Longest range of a command without data in bytes.
    pub(crate) step: u64,
}

impl ExportLimits {
    pub(crate) fn new(terms: Terms, read_only: bool) -> Self {
        let sizes = terms.sizes;
        let block = SECTOR_SIZE.max(sizes.minimum.into());
        let longest = LONGEST.max(sizes.preferred.into()).min(sizes.maximum.into());
        // Of a server that takes less than a block nothing could be read: it gets one.
        let payload = (longest - longest % block).max(block);
        Self { terms, read_only, block, payload, step: STEP }
    }

    fn can(&self, flag: TransmissionFlags) -> bool {
        self.terms.export.flags.contains(flag)
    }

    pub(crate) fn can_flush(&self) -> bool {
        self.can(TransmissionFlags::SEND_FLUSH)
    }

    pub(crate) fn can_force_unit_access(&self) -> bool {
        self.can(TransmissionFlags::SEND_FUA)
    }

    pub(crate) fn can_trim(&self) -> bool {
        self.can(TransmissionFlags::SEND_TRIM)
    }

    pub(crate) fn can_write_zeroes(&self) -> bool {
        self.can(TransmissionFlags::SEND_WRITE_ZEROES)
    }

    /// Connections of which `wanted` are asked for.
    pub(crate) fn connections(&self, wanted: usize) -> usize {
        if self.can(TransmissionFlags::CAN_MULTI_CONN) { wanted } else { 1 }
    }

    /// Whether writes are kept until they are flushed: where there is no flush, the server keeps
    /// nothing back.
    pub(crate) fn keeps(&self) -> bool {
        !self.read_only && self.can_flush()
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let size = self.terms.export.size;
        size - size % self.block
    }

    pub(crate) fn capacity(&self) -> Sector {
        Sector(self.bytes() / SECTOR_SIZE)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            block_bytes: self.block,
            max_request_bytes: self.payload,
            max_segments: SEGMENTS,
            ..Limits::default()
        }
    }

    /// The difference that keeps a device from going on with the export as it is by now.
    pub(crate) fn difference(&self, now: &Terms) -> Option<String> {
        let (old, new) = (&self.terms.export, &now.export);
        if old.size != new.size {
            return Some(format!("it had {} bytes and has {} now", old.size, new.size));
        }
        // Nothing is changed here, and the server may forbid that while another client changes the export.
        let unused = if self.read_only { CHANGES } else { TransmissionFlags::empty() };
        let (was, is) = (old.flags - unused, new.flags - unused);
        if was != is {
            let (old, new) = (was.bits(), is.bits());
            return Some(format!("its flags were {old:#06x} and are {new:#06x} now"));
        }
        let fits = u64::from(now.sizes.minimum) <= self.block
            && u64::from(now.sizes.maximum) >= self.payload;
        (!fits).then(|| {
            let (minimum, maximum) = (now.sizes.minimum, now.sizes.maximum);
            format!("it takes requests of {minimum} to {maximum} bytes by now")
        })
    }
}
