//! The bytes of a new FAT32 file system.

use super::directory::{Entries, Leads};
use super::geometry::{FIRST_CLUSTER, TABLES};
use super::tree::Child;
use super::{FatPlan, Geometry};
use crate::disk::DiskError;
use crate::disk::copy::Copier;
use std::fs::File;
use undercroft_block::{SECTOR_SIZE, Sector, Window, write_all_at};

/// Marks the last cluster of a file.
const END: u32 = 0x0fff_ffff;
/// The first two entries of a table: the kind of medium, and that it was unmounted.
const HEAD: [u32; 2] = [0x0fff_fff8, 0x0fff_ffff];
/// Sectors of the description of free clusters and of the copy of the boot record.
const INFO: u64 = 1;
const BACKUP: u64 = 6;

pub(super) struct Writer<'a> {
    plan: &'a FatPlan,
    window: &'a Window,
    /// First clusters; 0 of empty files.
    directories: Vec<u32>,
    files: Vec<u32>,
    /// The table, as far as clusters are in use.
    table: Vec<u32>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(plan: &'a FatPlan, window: &'a Window) -> Self {
        let mut table = HEAD.to_vec();
        let cluster = plan.geometry.cluster;
        let mut run = |bytes: u64| {
            // The plan has as many clusters, and FAT32 fewer than 2^28.
            let first = table.len() as u32;
            let count = bytes.div_ceil(cluster) as u32;
            table.extend((1..count).map(|index| first + index));
            table.extend((count > 0).then_some(END));
            if count > 0 { first } else { 0 }
        };
        let directories = plan.tree.directories.iter().map(|one| run(one.bytes)).collect();
        let files = plan.tree.files.iter().map(|one| run(one.length)).collect();
        Self { plan, window, directories, files, table }
    }

    /// Writes everything; `start` is where the window starts on its disk, in bytes.
    pub(super) fn write(&self, start: u64, copier: &mut Copier<'_>) -> Result<(), DiskError> {
        let Self { plan, .. } = self;
        for index in 0..plan.tree.directories.len() {
            let bytes = self.entries(index);
            copier.identity.add(&bytes);
            self.put(plan.geometry.cluster_at(self.directories[index].into()), &bytes)?;
        }
        for (file, first) in plan.tree.files.iter().zip(&self.files) {
            let (action, path) = ("open", &file.path);
            let opened = File::open(path).map_err(|source| DiskError::Source {
                action,
                path: path.clone(),
                source,
            })?;
            check_length(&opened, file)?;
            if *first != 0 {
                let at = plan.geometry.cluster_at((*first).into());
                copier.copy((&opened, path), file.length, self.window, at)?;
            }
        }
        self.write_tables()?;
        // Firmware and systems tell file systems apart by this number.
        let id = copier.identity.id("fat", start).as_u128() as u32;
        let boot = self.boot_record(start, id);
        let info = self.info();
        let sector = plan.geometry.sector;
        for first in [BACKUP, 0] {
            self.put((first + INFO) * sector, &info)?;
            self.put(first * sector, &boot)?;
        }
        Ok(())
    }

    /// The entries of a directory.
    fn entries(&self, index: usize) -> Vec<u8> {
        let directory = &self.plan.tree.directories[index];
        let mut entries = match index {
            0 => Entries::of_root(&self.plan.label),
            _ => {
                // The root is 0 when it is above.
                let above = directory.parent;
                let parent = if above == 0 { 0 } else { self.directories[above] };
                Entries::of_directory(self.directories[index], parent)
            }
        };
        for (name, child) in &directory.children {
            let leads = match *child {
                Child::Directory(child) => {
                    Leads { is_directory: true, cluster: self.directories[child], length: 0 }
                }
                Child::File(child) => Leads {
                    is_directory: false,
                    cluster: self.files[child],
                    // Longer ones were refused.
                    length: self.plan.tree.files[child].length as u32,
                },
            };
            entries.add(name, leads);
        }
        entries.into_bytes()
    }

    fn write_tables(&self) -> Result<(), DiskError> {
        /// Entries written at a time.
        const PIECE: usize = 1 << 18;
        for number in 0..TABLES {
            for (index, piece) in self.table.chunks(PIECE).enumerate() {
                let bytes: Vec<u8> = piece.iter().flat_map(|entry| entry.to_le_bytes()).collect();
                let at = self.plan.geometry.table_at(number) + (index * PIECE * 4) as u64;
                self.put(at, &bytes)?;
            }
        }
        Ok(())
    }

    fn boot_record(&self, start: u64, id: u32) -> Vec<u8> {
        let Geometry { sector, sectors, cluster, reserved, table, .. } = self.plan.geometry;
        let mut boot = vec![0; sector as usize];
        let mut put = |at: usize, bytes: &[u8]| boot[at..at + bytes.len()].copy_from_slice(bytes);
        // A jump over the fields, to where there is a halt for ever.
        put(0, &[0xeb, 0x58, 0x90]);
        put(3, b"MSWIN4.1");
        put(11, &(sector as u16).to_le_bytes());
        put(13, &[(cluster / sector) as u8]);
        put(14, &(reserved as u16).to_le_bytes());
        put(16, &[TABLES as u8]);
        // A hard disk.
        put(21, &[0xf8]);
        // Sectors of a track and heads, which mean nothing.
        put(24, &63_u16.to_le_bytes());
        put(26, &255_u16.to_le_bytes());
        put(28, &u32::try_from(start / sector).unwrap_or(0).to_le_bytes());
        put(32, &(sectors as u32).to_le_bytes());
        put(36, &(table as u32).to_le_bytes());
        put(44, &(FIRST_CLUSTER as u32).to_le_bytes());
        put(48, &(INFO as u16).to_le_bytes());
        put(50, &(BACKUP as u16).to_le_bytes());
        put(64, &[0x80, 0, 0x29]);
        put(67, &id.to_le_bytes());
        put(71, &self.plan.label);
        put(82, b"FAT32   ");
        put(90, &[0xf4, 0xeb, 0xfd]);
        put(510, &[0x55, 0xaa]);
        boot
    }

    /// The description of free clusters.
    fn info(&self) -> Vec<u8> {
        let Geometry { sector, clusters, .. } = self.plan.geometry;
        let mut info = vec![0; sector as usize];
        let mut put = |at: usize, value: u32| {
            info[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        let used = self.table.len() as u64 - FIRST_CLUSTER;
        put(0, 0x4161_5252);
        put(484, 0x6141_7272);
        put(488, (clusters - used) as u32);
        put(492, self.table.len() as u32);
        put(508, 0xaa55_0000);
        info
    }

    /// Writes `bytes`, filled up with zeros to whole sectors.
    fn put(&self, at: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(SECTOR_SIZE as usize), 0);
        Ok(write_all_at(self.window, Sector(at / SECTOR_SIZE), &padded)?)
    }
}

/// Refuses a file that has not the length that its place was made for.
fn check_length(opened: &File, file: &super::tree::FileNode) -> Result<(), DiskError> {
    let path = &file.path;
    let metadata = opened.metadata().map_err(|source| DiskError::Source {
        action: "look at",
        path: path.clone(),
        source,
    })?;
    let (expected, found) = (file.length, metadata.len());
    if found == expected {
        return Ok(());
    }
    Err(DiskError::Changed { path: path.clone(), expected, found })
}
