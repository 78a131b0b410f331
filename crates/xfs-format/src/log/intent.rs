//! Intents: work that a kernel promised in one transaction and did, or did not do, in a later one
//! (docs/format/journal/intents.md).
//!
//! An intent has a number; the item that says that it is done carries the same one. Numbers come
//! back once they are done.

use super::intent_attr::AttrChange;
use super::intent_exchange::Exchange;
use super::intent_space::{ExtentChange, MappingChange, RefcountChange, ReverseChange};
use super::item::{check_at_least, check_length};
use crate::bytes::{le32, le64};
use crate::{FieldDefect, LogItemKind, Rule};

/// Unfinished work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Number that its done item carries.
    pub id: u64,
    /// Which device the blocks are on.
    pub device: IntentDevice,
    /// The work to be done.
    pub work: IntentWork,
}

/// The device that an intent is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntentDevice {
    /// The data device.
    Data,
    /// The realtime device.
    Realtime,
}

/// The work of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntentWork {
    /// Extents become free.
    Free(Vec<ExtentChange>),
    /// Reverse mappings change.
    Reverse(Vec<ReverseChange>),
    /// Reference counts change.
    Refcount(Vec<RefcountChange>),
    /// A mapping of a fork changes.
    Mapping(MappingChange),
    /// An attribute changes.
    Attr(AttrChange),
    /// Two files exchange a range.
    Exchange(Exchange),
}

/// Fields that most intents start with: kind, regions, count, number.
const HEADER_LEN: usize = 16;

/// The records behind the header of an intent, `len` bytes each.
fn records(region: &[u8], len: usize) -> Result<impl Iterator<Item = &[u8]>, FieldDefect> {
    check_at_least(region, HEADER_LEN)?;
    let count = le32(region, 4);
    let expected = (count as usize).checked_mul(len).map(|bytes| bytes.saturating_add(HEADER_LEN));
    let rule = Rule::Text("as many as the region holds");
    FieldDefect::unless(expected == Some(region.len()), "number of extents", count, rule)?;
    Ok(region[HEADER_LEN..].chunks_exact(len))
}

/// Length of the extents of an item that frees: 16 bytes, or 12 from 32-bit kernels.
fn extent_len(region: &[u8]) -> Result<usize, FieldDefect> {
    check_at_least(region, HEADER_LEN)?;
    let count = le32(region, 4) as usize;
    let narrow = count.checked_mul(ExtentChange::LEN_32) == Some(region.len() - HEADER_LEN);
    Ok(if narrow && count > 0 { ExtentChange::LEN_32 } else { ExtentChange::LEN })
}

impl Intent {
    /// Reads the item whose regions these are; `None` if its kind is no intent.
    ///
    /// # Errors
    /// The field that cannot be.
    pub fn decode(kind: LogItemKind, regions: &[&[u8]]) -> Result<Option<Self>, FieldDefect> {
        use LogItemKind as Kind;
        let region = regions.first().copied().unwrap_or_default();
        let work = match kind {
            Kind::FreeIntent | Kind::RealtimeFreeIntent => {
                let extents = records(region, extent_len(region)?)?;
                IntentWork::Free(extents.map(ExtentChange::decode).collect())
            }
            Kind::ReverseIntent | Kind::RealtimeReverseIntent => {
                let changes = records(region, ReverseChange::LEN)?;
                IntentWork::Reverse(changes.map(ReverseChange::decode).collect::<Result<_, _>>()?)
            }
            Kind::RefcountIntent | Kind::RealtimeRefcountIntent => {
                let changes = records(region, RefcountChange::LEN)?;
                IntentWork::Refcount(changes.map(RefcountChange::decode).collect::<Result<_, _>>()?)
            }
            Kind::MappingIntent => {
                check_length(region, HEADER_LEN + MappingChange::LEN)?;
                let mut changes = records(region, MappingChange::LEN)?.map(MappingChange::decode);
                let none = FieldDefect { field: "length", found: 0, rule: Rule::AtLeast(1) };
                IntentWork::Mapping(changes.next().unwrap_or(Err(none))?)
            }
            Kind::AttrIntent => IntentWork::Attr(AttrChange::decode(regions)?),
            Kind::ExchangeIntent => IntentWork::Exchange(Exchange::decode(region)?),
            _ => return Ok(None),
        };
        let device = match kind {
            Kind::RealtimeFreeIntent
            | Kind::RealtimeReverseIntent
            | Kind::RealtimeRefcountIntent => IntentDevice::Realtime,
            _ => IntentDevice::Data,
        };
        Ok(Some(Self { id: le64(region, 8), device, work }))
    }

    /// The kind of the intent's own item.
    #[must_use]
    pub const fn kind(&self) -> LogItemKind {
        let realtime = matches!(self.device, IntentDevice::Realtime);
        match &self.work {
            IntentWork::Free(_) if realtime => LogItemKind::RealtimeFreeIntent,
            IntentWork::Free(_) => LogItemKind::FreeIntent,
            IntentWork::Reverse(_) if realtime => LogItemKind::RealtimeReverseIntent,
            IntentWork::Reverse(_) => LogItemKind::ReverseIntent,
            IntentWork::Refcount(_) if realtime => LogItemKind::RealtimeRefcountIntent,
            IntentWork::Refcount(_) => LogItemKind::RefcountIntent,
            IntentWork::Mapping(_) => LogItemKind::MappingIntent,
            IntentWork::Attr(_) => LogItemKind::AttrIntent,
            IntentWork::Exchange(_) => LogItemKind::ExchangeIntent,
        }
    }

    /// The regions of the intent's item.
    #[must_use]
    pub fn encode(&self) -> Vec<Vec<u8>> {
        let mut first = Vec::new();
        let mut start = |regions: usize, count: usize| {
            first.extend(self.kind().encode(regions));
            first.extend((count as u32).to_le_bytes());
            first.extend(self.id.to_le_bytes());
        };
        match &self.work {
            IntentWork::Free(extents) => {
                start(1, extents.len());
                extents.iter().for_each(|extent| extent.encode(&mut first));
            }
            IntentWork::Reverse(changes) => {
                start(1, changes.len());
                changes.iter().for_each(|change| change.encode(&mut first));
            }
            IntentWork::Refcount(changes) => {
                start(1, changes.len());
                changes.iter().for_each(|change| change.encode(&mut first));
            }
            IntentWork::Mapping(change) => {
                start(1, 1);
                change.encode(&mut first);
            }
            IntentWork::Attr(change) => {
                start(change.regions(), 0);
                return change.encode(first);
            }
            IntentWork::Exchange(exchange) => {
                start(1, 0);
                exchange.encode(&mut first);
            }
        }
        vec![first]
    }

    /// What says that this intent is done.
    #[must_use]
    pub fn done(&self) -> IntentDone {
        let freed = match &self.work {
            IntentWork::Free(extents) => extents.clone(),
            _ => Vec::new(),
        };
        IntentDone { intent: self.kind(), id: self.id, freed }
    }
}

/// What says that an intent is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentDone {
    /// Kind of the intent.
    pub intent: LogItemKind,
    /// Number of the intent.
    pub id: u64,
    /// The extents that were freed, if that was the work.
    pub freed: Vec<ExtentChange>,
}

impl IntentDone {
    /// The kinds of intents, and of what says that they are done.
    const PAIRS: [(LogItemKind, LogItemKind); 9] = [
        (LogItemKind::FreeIntent, LogItemKind::FreeDone),
        (LogItemKind::ReverseIntent, LogItemKind::ReverseDone),
        (LogItemKind::RefcountIntent, LogItemKind::RefcountDone),
        (LogItemKind::MappingIntent, LogItemKind::MappingDone),
        (LogItemKind::AttrIntent, LogItemKind::AttrDone),
        (LogItemKind::ExchangeIntent, LogItemKind::ExchangeDone),
        (LogItemKind::RealtimeFreeIntent, LogItemKind::RealtimeFreeDone),
        (LogItemKind::RealtimeReverseIntent, LogItemKind::RealtimeReverseDone),
        (LogItemKind::RealtimeRefcountIntent, LogItemKind::RealtimeRefcountDone),
    ];

    /// Reads the only region of an item; `None` if its kind does not end an intent.
    ///
    /// # Errors
    /// The region is too short, or its extents do not fit it.
    pub fn decode(kind: LogItemKind, region: &[u8]) -> Result<Option<Self>, FieldDefect> {
        let Some((intent, _)) = Self::PAIRS.into_iter().find(|(_, done)| *done == kind) else {
            return Ok(None);
        };
        check_at_least(region, HEADER_LEN)?;
        let freed = match kind {
            LogItemKind::FreeDone | LogItemKind::RealtimeFreeDone => {
                records(region, extent_len(region)?)?.map(ExtentChange::decode).collect()
            }
            _ => Vec::new(),
        };
        Ok(Some(Self { intent, id: le64(region, 8), freed }))
    }

    /// Appends the region.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let pair = Self::PAIRS.into_iter().find(|(intent, _)| *intent == self.intent);
        let kind = pair.map_or(self.intent, |(_, done)| done);
        out.extend(kind.encode(1));
        out.extend((self.freed.len() as u32).to_le_bytes());
        out.extend(self.id.to_le_bytes());
        self.freed.iter().for_each(|extent| extent.encode(out));
    }
}
