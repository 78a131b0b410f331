//! Recovery of single items: the cases of docs/format/journal/writing.md#answers-to-mistakes that
//! depend on what the disk holds, or on how an item describes it.

use super::recover;
use super::tests::{Journal, framed, refused};
use crate::bytes::{be16, be64, put_be16, put_be64};
use crate::format::log_record::CRC_OFFSET;
use crate::format::{
    BufferItem, BufferItemType, BufferKind, Header, INODE_LSN_OFFSET, InodeItem, InodeItemFields,
    core_to_log, stamp_inode_crc,
};
use crate::units::{AgBlock, AgNumber, Lsn};
use crate::volume::Volume;
use std::sync::Arc;
use undercroft_block::{Sector, read_exact_at, write_all_at};

const MODE: usize = 2;

impl Journal {
    /// First sector of the cluster with the root directory, which is its first inode, and its
    /// length in sectors.
    fn root_cluster(&self) -> (Sector, u32) {
        let geometry = &self.geometry;
        let (ag, number) = geometry.split_inode(geometry.root_inode);
        let block = AgBlock(number.0 >> geometry.inodes_per_block_log());
        let sectors = geometry.cluster_blocks() * geometry.sectors_per_block();
        (geometry.ag_sector(ag, block), sectors)
    }

    fn root_inode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.geometry.inode_size()];
        read_exact_at(self.device.as_ref(), self.root_cluster().0, &mut bytes).unwrap();
        bytes
    }

    /// Stamps the root directory on the disk with a position.
    fn stamp_root(&self, lsn: Lsn) {
        let mut inode = self.root_inode();
        put_be64(&mut inode, INODE_LSN_OFFSET, lsn.0);
        stamp_inode_crc(&mut inode);
        write_all_at(self.device.as_ref(), self.root_cluster().0, &inode).unwrap();
    }

    /// An item that sets the mode of the root directory, and nothing else of it.
    fn mode_regions(&self, mode: u16) -> Vec<Vec<u8>> {
        let mut inode = self.root_inode();
        put_be16(&mut inode, MODE, mode);
        let (cluster, cluster_sectors) = self.root_cluster();
        let item = InodeItem {
            fields: InodeItemFields::CORE,
            attr_len: 0,
            data_len: 0,
            inode: self.geometry.root_inode,
            device: 0,
            cluster,
            cluster_sectors,
            offset: 0,
        };
        let mut first = Vec::new();
        item.encode(&mut first);
        vec![first, core_to_log(&inode).to_vec()]
    }

    /// An item of the first bytes of a buffer.
    fn image_regions(
        (sector, sectors): (Sector, u32),
        buffer_type: BufferItemType,
        bytes: &[u8],
    ) -> Vec<Vec<u8>> {
        let mut item = BufferItem::new(sector, sectors as u16, buffer_type);
        item.mark(0..bytes.len());
        let mut first = Vec::new();
        item.encode(&mut first);
        vec![first, bytes.to_vec()]
    }

    fn mode(&self) -> u16 {
        be16(&self.root_inode(), MODE)
    }
}

#[test]
fn a_tail_hides_records_before_it() {
    let mut journal = Journal::new();
    journal.labelled(2, "one");
    let (own, regions) = (journal.head, journal.mode_regions(0o40_711));
    journal.record(own, 32 << 10, &framed(2, regions));
    assert_eq!(journal.outcome().unwrap(), "", "the first record was not in its place");
    assert_eq!(journal.mode(), 0o40_711);
}

#[test]
fn inodes_on_the_disk_are_replayed_unless_they_are_newer() {
    for (lsn, applied) in [(Lsn::new(1, 1), true), (Lsn::new(1, 2), true), (Lsn::new(1, 3), false)]
    {
        let mut journal = Journal::new();
        journal.stamp_root(lsn);
        let regions = journal.mode_regions(0o40_711);
        journal.record(2, 32 << 10, &framed(1, regions));
        journal.labelled(2, "one");
        assert_eq!(journal.outcome().unwrap(), "one");
        assert_eq!(journal.mode() == 0o40_711, applied, "{lsn:?}");
    }
}

#[test]
fn headers_of_groups_are_stamped_by_their_type() {
    for (buffer_type, sound) in [(BufferItemType::Agi, true), (BufferItemType::Unknown, false)] {
        let mut journal = Journal::new();
        let sector = journal.geometry.header_sector(AgNumber(0), 2);
        let mut bytes = vec![0; 512];
        read_exact_at(journal.device.as_ref(), sector, &mut bytes).unwrap();
        // Position and checksum (docs/format/groups.md#agi) are of long ago.
        bytes[312..316].fill(0xee);
        put_be64(&mut bytes, 320, 0);
        let regions = Journal::image_regions((sector, 1), buffer_type, &bytes);
        journal.record(2, 32 << 10, &framed(1, regions));
        let outcome = journal.outcome();
        assert_eq!(outcome.is_ok(), sound, "{buffer_type:?}: {outcome:?}");
        if sound {
            let mut after = vec![0; 512];
            read_exact_at(journal.device.as_ref(), sector, &mut after).unwrap();
            assert_eq!(be64(&after, 320), Lsn::new(1, 2).0);
        }
    }
}

#[test]
fn clusters_are_replayed_as_they_were_logged() {
    for valid in [true, false] {
        let mut journal = Journal::new();
        let mut inode = journal.root_inode();
        put_be16(&mut inode, MODE, 0o40_711);
        if valid {
            stamp_inode_crc(&mut inode);
        }
        let cluster = journal.root_cluster();
        let regions = Journal::image_regions(cluster, BufferItemType::Inodes, &inode);
        journal.record(2, 32 << 10, &framed(1, regions));
        // A read of the inode finds the defect.
        let root = recover(&journal.device, &mut |_| {})
            .and_then(|_| Volume::open(Arc::clone(&journal.device)))
            .and_then(|volume| volume.inode(volume.geometry().root_inode).map(drop));
        assert_eq!(root.is_ok(), valid, "{root:?}");
        assert!(!valid || journal.mode() == 0o40_711);
    }
}

#[test]
fn an_item_with_an_empty_map_is_nothing() {
    let mut journal = Journal::new();
    let mut item = Vec::new();
    BufferItem::cancel(Sector(0), 1).encode(&mut item);
    // A superblock that is not freed.
    item[4..6].copy_from_slice(&(18_u16 << 11).to_le_bytes());
    journal.record(2, 32 << 10, &framed(1, vec![item]));
    assert_eq!(journal.outcome().unwrap(), "");
}

#[test]
fn an_unmount_record_needs_no_checksum() {
    let mut journal = Journal::new();
    let before = journal.labelled(2, "one");
    assert_eq!(journal.outcome().unwrap(), "one");
    // What recovery wrote behind it.
    let unmount = before + 2;
    journal.damage(unmount, |header| {
        assert_eq!(header[..4], 0xfeed_babe_u32.to_be_bytes());
        header[CRC_OFFSET..CRC_OFFSET + 4].fill(0);
    });
    assert_eq!(recover(&journal.device, &mut |_| {}).unwrap(), None);
    let volume = Volume::open(Arc::clone(&journal.device)).unwrap();
    assert!(volume.recovery().is_none());
}

#[test]
fn unknown_features_of_the_journal_are_refused() {
    let mut journal = Journal::new();
    journal.labelled(2, "one");
    let mut superblock = vec![0; 512];
    read_exact_at(journal.device.as_ref(), Sector(0), &mut superblock).unwrap();
    // sb_features_log_incompat.
    superblock[220] = 0x40;
    Header::of(BufferKind::Superblock).unwrap().stamp(&mut superblock, Lsn(0), 4096);
    write_all_at(journal.device.as_ref(), Sector(0), &superblock).unwrap();
    refused(&journal, "sb_features_log_incompat");
}

#[test]
fn what_a_crash_cut_off_is_told_with_its_place() {
    let mut journal = Journal::new();
    journal.labelled(2, "one");
    let last = journal.labelled(2, "two");
    journal.damage(last + 1, |data| data[77] ^= 1);
    let report = recover(&journal.device, &mut |_| {}).unwrap().unwrap();
    let torn = report.torn.unwrap();
    assert_eq!(torn.lsn, Lsn::new(1, last as u32));
    assert!(torn.what.contains("checksum"), "{}", torn.what);
}
