//! The kinds of items in a transaction (docs/format/journal/items.md#types).

use crate::bytes::le16;
use crate::{FieldDefect, Rule};

/// Kind of an item: the first two bytes of its first region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum LogItemKind {
    /// Extents to free.
    FreeIntent = 0x1236,
    /// They are freed.
    FreeDone = 0x1237,
    /// An inode.
    Inode = 0x123b,
    /// Parts of a metadata buffer.
    Buffer = 0x123c,
    /// A quota record.
    Quota = 0x123d,
    /// Quotas are being turned off (old kernels).
    QuotaOff = 0x123e,
    /// A chunk of inodes to initialise.
    InodeCreate = 0x123f,
    /// Reverse mappings to change.
    ReverseIntent = 0x1240,
    /// They are changed.
    ReverseDone = 0x1241,
    /// Reference counts to change.
    RefcountIntent = 0x1242,
    /// They are changed.
    RefcountDone = 0x1243,
    /// A mapping of a fork to change.
    MappingIntent = 0x1244,
    /// It is changed.
    MappingDone = 0x1245,
    /// An attribute to change.
    AttrIntent = 0x1246,
    /// It is changed.
    AttrDone = 0x1247,
    /// Ranges of two files to exchange.
    ExchangeIntent = 0x1248,
    /// They are exchanged.
    ExchangeDone = 0x1249,
    /// As [`FreeIntent`](Self::FreeIntent), on the realtime device.
    RealtimeFreeIntent = 0x124a,
    /// As [`FreeDone`](Self::FreeDone), on the realtime device.
    RealtimeFreeDone = 0x124b,
    /// As [`ReverseIntent`](Self::ReverseIntent), on the realtime device.
    RealtimeReverseIntent = 0x124c,
    /// As [`ReverseDone`](Self::ReverseDone), on the realtime device.
    RealtimeReverseDone = 0x124d,
    /// As [`RefcountIntent`](Self::RefcountIntent), on the realtime device.
    RealtimeRefcountIntent = 0x124e,
    /// As [`RefcountDone`](Self::RefcountDone), on the realtime device.
    RealtimeRefcountDone = 0x124f,
}

/// Most regions of one item.
const REGIONS_MAX: u16 = 257;

impl LogItemKind {
    const ALL: [Self; 23] = [
        Self::FreeIntent,
        Self::FreeDone,
        Self::Inode,
        Self::Buffer,
        Self::Quota,
        Self::QuotaOff,
        Self::InodeCreate,
        Self::ReverseIntent,
        Self::ReverseDone,
        Self::RefcountIntent,
        Self::RefcountDone,
        Self::MappingIntent,
        Self::MappingDone,
        Self::AttrIntent,
        Self::AttrDone,
        Self::ExchangeIntent,
        Self::ExchangeDone,
        Self::RealtimeFreeIntent,
        Self::RealtimeFreeDone,
        Self::RealtimeReverseIntent,
        Self::RealtimeReverseDone,
        Self::RealtimeRefcountIntent,
        Self::RealtimeRefcountDone,
    ];

    /// The kind of this number.
    #[must_use]
    pub fn from_raw(raw: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == raw)
    }

    /// Reads what every item starts with, its kind and its number of regions, from the first bytes
    /// of its first region.
    ///
    /// # Errors
    /// Fewer than four bytes, a kind that does not exist, or an impossible number of regions.
    pub fn decode(region: &[u8]) -> Result<(Self, usize), FieldDefect> {
        FieldDefect::unless(region.len() >= 4, "length", region.len() as u64, Rule::AtLeast(4))?;
        let (raw, regions) = (le16(region, 0), le16(region, 2));
        let known = Rule::Text("a kind of log item that this version knows");
        let kind = Self::from_raw(raw);
        let kind =
            kind.ok_or(FieldDefect { field: "item type", found: raw.into(), rule: known })?;
        let range = Rule::Text("1 to 257");
        let sound = (1..=REGIONS_MAX).contains(&regions);
        FieldDefect::unless(sound, "number of regions", regions, range)?;
        Ok((kind, usize::from(regions)))
    }

    /// The four bytes that every item starts with.
    #[must_use]
    pub fn encode(self, regions: usize) -> [u8; 4] {
        let (kind, regions) = ((self as u16).to_le_bytes(), (regions as u16).to_le_bytes());
        [kind[0], kind[1], regions[0], regions[1]]
    }
}

/// Checks the length of a region.
pub(crate) fn check_length(region: &[u8], expected: usize) -> Result<(), FieldDefect> {
    let (found, rule) = (region.len() as u64, Rule::Equal(expected as u64));
    FieldDefect::unless(region.len() == expected, "length", found, rule)
}

/// Checks the length of a region that may have more.
pub(crate) fn check_at_least(region: &[u8], expected: usize) -> Result<(), FieldDefect> {
    let (found, rule) = (region.len() as u64, Rule::AtLeast(expected as u64));
    FieldDefect::unless(region.len() >= expected, "length", found, rule)
}
