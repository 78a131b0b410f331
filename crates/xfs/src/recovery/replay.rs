//! The second pass: changes go into images of the blocks, transaction by transaction
//! (docs/format/journal/replay.md#passes).

use super::cancels::Cancels;
use super::images::Images;
use super::intents::PendingIntents;
use super::pieces::Pieces;
use super::reads::Wanted;
use crate::cache::BufferAddress;
use crate::error::Error;
use crate::format::{
    BufferItem, BufferItemFlags, Intent, IntentDone, LogItem, LogItemKind, LoggedTransaction,
    Superblock,
};
use crate::geometry::Geometry;
use crate::units::Lsn;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector};

/// The state of the replay so far.
pub(super) struct Replay {
    /// Sizes; those of the volume's group count change when it was grown.
    pub(super) geometry: Geometry,
    pub(super) images: Images,
    pub(super) cancels: Cancels,
    pub(super) intents: PendingIntents,
    pub(super) pieces: Pieces,
    /// Quota records are not kept: quotas must be counted anew.
    pub(super) dropped_quotas: bool,
    pub(super) transactions: u64,
    pub(super) items: u64,
    /// Position of the transactions at hand.
    group: Lsn,
}

/// The order in which the items of a transaction are replayed: chunks of inodes exist before their
/// inodes, list pointers come after the inodes, and inodes that were freed are freed at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Blocks,
    Others,
    ListPointers,
    Cancels,
}

impl Replay {
    pub(super) fn new(
        device: Arc<dyn BlockDevice>,
        geometry: Geometry,
        cancels: Cancels,
        wanted: Wanted,
    ) -> Self {
        Self {
            geometry,
            images: Images::new(device, wanted),
            cancels,
            intents: PendingIntents::default(),
            pieces: Pieces::default(),
            dropped_quotas: false,
            transactions: 0,
            items: 0,
            group: Lsn(0),
        }
    }

    /// Replays a transaction that was committed.
    pub(super) fn transaction(&mut self, transaction: &LoggedTransaction) -> Result<(), Error> {
        if transaction.lsn != self.group {
            self.images.balance(&self.geometry)?;
            self.group = transaction.lsn;
        }
        let items = transaction.items().collect::<Result<Vec<_>, _>>()?;
        let mut buffers = Vec::with_capacity(items.len());
        for item in &items {
            let buffer = match item.kind {
                LogItemKind::Buffer => Some(
                    BufferItem::decode(item.regions[0])
                        .map_err(|defect| transaction.damaged(defect))?,
                ),
                _ => None,
            };
            let stage = stage(item.kind, buffer.as_ref());
            buffers.push((stage, item, buffer));
        }
        let of = |stage: Stage| buffers.iter().filter(move |(own, ..)| *own == stage);
        let blocks = of(Stage::Blocks).map(|(_, item, buffer)| (*item, buffer.as_ref()));
        self.blocks(transaction, &blocks.collect::<Vec<_>>())?;
        for (_, item, _) in of(Stage::Others) {
            self.other(transaction, item)?;
        }
        for (_, item, buffer) in of(Stage::ListPointers).rev() {
            if let Some(buffer) = buffer {
                self.list_pointers(transaction, buffer, item)?;
            }
        }
        for (.., buffer) in of(Stage::Cancels).rev() {
            buffer.iter().for_each(|buffer| self.cancels.reach(buffer));
        }
        self.transactions += 1;
        self.items += items.len() as u64;
        Ok(())
    }

    /// Replays an item that is neither a buffer nor a new chunk of inodes.
    fn other(&mut self, transaction: &LoggedTransaction, item: &LogItem<'_>) -> Result<(), Error> {
        let damaged = |what: String| transaction.damaged(what);
        match item.kind {
            LogItemKind::Inode => return self.inode(transaction, item),
            LogItemKind::Quota | LogItemKind::QuotaOff => {
                self.dropped_quotas = true;
                return Ok(());
            }
            _ => {}
        }
        let intent = Intent::decode(item.kind, &item.regions);
        if let Some(intent) = intent.map_err(|defect| damaged(defect.to_string()))? {
            self.intents.add(intent, transaction.lsn);
            return Ok(());
        }
        let done = IntentDone::decode(item.kind, item.regions[0]);
        if let Some(done) = done.map_err(|defect| damaged(defect.to_string()))? {
            self.intents.finish(&done);
        }
        Ok(())
    }

    /// Takes over the sizes of a superblock that was replayed: later changes may be in groups that
    /// did not exist before.
    pub(super) fn resize(&mut self) {
        if let Some(bytes) = self.images.peek(Sector(0))
            && let Ok(superblock) = Superblock::decode(bytes)
        {
            let new = superblock.geometry();
            (self.geometry.ag_count, self.geometry.blocks) = (new.ag_count, new.blocks);
        }
    }
}

fn stage(kind: LogItemKind, buffer: Option<&BufferItem>) -> Stage {
    match (kind, buffer) {
        (_, Some(item)) if item.flags.contains(BufferItemFlags::CANCEL) => Stage::Cancels,
        (_, Some(item)) if item.flags.contains(BufferItemFlags::UNLINKED_POINTERS) => {
            Stage::ListPointers
        }
        (_, Some(_)) | (LogItemKind::InodeCreate, None) => Stage::Blocks,
        _ => Stage::Others,
    }
}

/// One contiguous buffer.
pub(super) fn flat(sector: Sector, sectors: u32) -> BufferAddress {
    BufferAddress::contiguous(sector, sectors)
}
