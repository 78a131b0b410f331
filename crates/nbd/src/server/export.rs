//! What a client can ask for: a device, and what is known of its ranges.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::{BlockDevice, SECTOR_SIZE};

use super::writers::Writers;
use crate::protocol::{
    BASE_ALLOCATION, BlockSizes, Export as ExportInfo, MAX_STRING, PORTABLE_PAYLOAD, StatusExtent,
    TransmissionFlags,
};

/// The longest payload that a request may have: twice what all servers take, as clients that were written
/// for others send so much.
pub(crate) const MAX_PAYLOAD: u32 = 2 * PORTABLE_PAYLOAD;

/// A metadata context: what is known of the ranges of a device.
pub trait Extents: Send + Sync {
    /// The name of the context, with its namespace.
    fn name(&self) -> &str;

    /// The extent that begins at `offset`. It may end behind `end`, or before it although the next
    /// one has the same flags; it is not empty. Where nothing is known its flags are zero.
    fn at(&self, offset: u64, end: u64) -> StatusExtent;
}

/// A device under a name.
pub struct Export {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) device: Arc<dyn BlockDevice>,
    /// Bytes that clients see, if not all of the device.
    length: Option<u64>,
    pub(crate) read_only: bool,
    pub(crate) fast_zeroes: bool,
    /// Whether several programs may change it at once.
    shared: bool,
    pub(crate) writers: Writers,
    /// Held by a write that does not end with a block, from the read of what is around to the write.
    pub(crate) patching: Mutex<()>,
    /// [`BASE_ALLOCATION`] is the first.
    pub(crate) contexts: Vec<Arc<dyn Extents>>,
}

impl Export {
    /// `device` under `name`; with the empty name it is the default export.
    #[must_use]
    pub fn new(name: &str, device: Arc<dyn BlockDevice>) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            length: None,
            read_only: device.is_read_only(),
            fast_zeroes: false,
            shared: false,
            writers: Writers::new(Arc::clone(&device)),
            patching: Mutex::default(),
            contexts: vec![Arc::new(AllData)],
            device,
        }
    }

    /// With words for people; what the protocol has no room for is cut.
    #[must_use]
    pub fn description(mut self, words: &str) -> Self {
        let ends = words.char_indices().map(|(start, letter)| start + letter.len_utf8());
        let length = ends.take_while(|end| *end <= MAX_STRING).last().unwrap_or(0);
        words[..length].clone_into(&mut self.description);
        self
    }

    /// Of the device only so many bytes are seen, for instance of a file that ends within a sector. No more
    /// than the device has.
    #[must_use]
    pub fn length(mut self, bytes: u64) -> Self {
        self.length = Some(bytes);
        self
    }

    /// Refuses all that modifies, also if the device would not.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Lets several programs change it at once that each ask to be the only one, as an `undercroft` with a
    /// volume on it does. They have to agree by themselves on who changes what.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Whether one program alone may change it, if that asks for it.
    pub(crate) fn has_one_writer(&self) -> bool {
        !self.shared && !self.read_only
    }

    /// Says that the device makes zeroes of any range faster than it writes bytes.
    #[must_use]
    pub fn fast_zeroes(mut self) -> Self {
        self.fast_zeroes = true;
        self
    }

    /// With one more context; one of the same name is replaced.
    #[must_use]
    pub fn context(mut self, context: Arc<dyn Extents>) -> Self {
        match self.contexts.iter_mut().find(|other| other.name() == context.name()) {
            Some(other) => *other = context,
            None => self.contexts.push(context),
        }
        self
    }

    /// Its length in bytes.
    pub(crate) fn size(&self) -> u64 {
        let device = self.device.capacity().to_bytes().unwrap_or(i64::MAX as u64);
        self.length.map_or(device, |length| length.min(device))
    }

    /// Requests should be multiples of this.
    pub(crate) fn minimum(&self) -> u32 {
        // Logical blocks of disks are some KiB at most; the protocol has no more than 64.
        u32::try_from(self.device.limits().block_bytes).unwrap_or(1 << 16).min(1 << 16)
    }

    /// What is told of that: requests of any length are served, and some clients cannot cut the end of what
    /// they write.
    pub(crate) fn block_sizes(&self) -> BlockSizes {
        let block = self.minimum();
        // Of a disk with larger blocks than most it is good to know them.
        let minimum = if u64::from(block) == SECTOR_SIZE { 1 } else { block };
        BlockSizes { minimum, preferred: block.max(4096), maximum: MAX_PAYLOAD }
    }

    /// Size and abilities; some of them a client has only with chunks, or if nothing `keeps_out` what it
    /// writes.
    pub(crate) fn info(&self, chunks: bool, filter: bool, keeps_out: bool) -> ExportInfo {
        type Flags = TransmissionFlags;
        let mut flags = Flags::HAS_FLAGS
            | Flags::SEND_FLUSH
            | Flags::SEND_FUA
            | Flags::CAN_MULTI_CONN
            | Flags::SEND_CACHE;
        flags |= if self.read_only || keeps_out {
            Flags::READ_ONLY
        } else {
            Flags::SEND_TRIM | Flags::SEND_WRITE_ZEROES | Flags::SEND_FAST_ZERO
        };
        flags.set(Flags::SEND_DF, chunks);
        flags.set(Flags::BLOCK_STATUS_PAYLOAD, filter);
        ExportInfo { size: self.size(), flags }
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("name", &self.name)
            .field("device", &self.device.name())
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// The allocation of a device that does not tell: all of it may be data.
struct AllData;

impl Extents for AllData {
    fn name(&self) -> &str {
        BASE_ALLOCATION
    }

    fn at(&self, offset: u64, end: u64) -> StatusExtent {
        StatusExtent { length: end - offset, flags: 0 }
    }
}
