//! Salvage: everything that can be read from a volume that cannot be mounted.
//!
//! The scan says where pieces are. Trees of the groups are walked where they are sound, else their
//! leaves count. Then the inodes are read, with later copies from the journal; the blocks of directories
//! and attributes; and what is lost is put together from what others say of it: names from directories or
//! from the files themselves, maps from blocks of their trees or from the trees of owners. At last each
//! file is judged by who has its blocks.

mod blocks;
mod copies;
mod groups;
mod index;
mod inodes;
mod judge;
mod links;
mod lost;
mod naming;
mod others;
mod paths;
mod places;
mod symlinks;
mod unowned;

use std::sync::Arc;

use undercroft_block::BlockDevice;
use undercroft_xfs_format::FileType;
use uuid::Uuid;

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::found::{FoundFile, State};
use crate::progress::{Progress, Step};
use crate::scan::{Scan, Traces};
use blocks::Blocks;
use groups::Groups;
use index::Index;
use inodes::Inodes;

/// What was found of a volume, and what is missing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The volume.
    pub uuid: Uuid,
    /// Its first byte on the device.
    pub start: u64,
    /// Its sizes are those of a copy of its superblock; else they follow from numbers in its metadata.
    pub has_superblock: bool,
    /// Files with all of their content, directories not counted.
    pub whole: u64,
    /// Files of which parts are lost.
    pub partial: u64,
    /// Files whose inode is lost: the size is known to a block.
    pub unsized_files: u64,
    /// Files of which nothing but the name is left.
    pub lost: u64,
    /// Directories.
    pub directories: u64,
    /// Files and directories of which no name is left, or no way up to the root.
    pub nameless: u64,
    /// Headers of groups that are damaged: data near them may be as well, of which nothing tells.
    pub lost_headers: u64,
    /// Inodes that are lost, of which something is known nevertheless.
    pub lost_inodes: u64,
    /// Inodes that look as if in use, and were removed.
    pub stale: u64,
    /// Files that were open, or being removed, without a name.
    pub unlinked: u64,
    /// Statements that contradict others.
    pub contradictions: u64,
    /// Attributes whose values have blocks of their own, and were left out because they are too much.
    pub values_left_out: u64,
    /// Sectors of the device that could not be read.
    pub unreadable: u64,
}

impl SalvageReport {
    /// Whether nothing is known to be missing.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.partial == 0
            && self.unsized_files == 0
            && self.lost == 0
            && self.nameless == 0
            && self.lost_headers == 0
            && self.lost_inodes == 0
            && self.unreadable == 0
    }
}

/// The files of a volume.
#[derive(Debug)]
pub struct Salvaged {
    /// In the order of their paths; files without any come last.
    pub files: Arc<[FoundFile]>,
    /// What was found, and what is missing.
    pub report: SalvageReport,
}

impl Salvaged {
    /// Puts together the files of a volume. `device` is what was scanned, or the same with the journal
    /// replayed, which was scanned then.
    ///
    /// # Errors
    /// Too little is left of the volume.
    pub fn find(
        device: &Arc<dyn BlockDevice>,
        scan: &Scan,
        traces: &Traces,
        report: &mut dyn FnMut(Step, u64, u64),
    ) -> Result<(Disk, Self), RecoverError> {
        let shapeless = || RecoverError::Shapeless { uuid: traces.uuid };
        let shape = traces.shape(device.capacity().0).ok_or_else(shapeless)?;
        let mut disk = Disk::placed(device, device, &shape).ok_or_else(shapeless)?;
        let mut index = Index::new(traces, shape.start, &disk.geometry);
        let groups = Groups::read(&disk, &index);
        if !disk.geometry.features.crc {
            index.keep_inodes(&disk.geometry, |number| groups.may_have(&disk, number));
        }
        let mut progress = Progress::new(report);
        let mut inodes = Inodes::read(&disk, &index, &groups, &mut progress);
        if !disk.geometry.features.crc {
            unowned::own_by_maps(&mut index, &disk, &inodes);
        }
        let mut blocks = Blocks::read(&disk, &index, &groups, &mut inodes);
        let mut links = std::mem::take(&mut inodes.links);
        links.append(&mut blocks.links);
        links.sort_unstable();
        let lost_inodes = lost::add(&disk, &groups, &mut inodes, &links);
        lost::fill(&disk, &index, &groups, &mut inodes);
        symlinks::read(&disk, &mut inodes.files);
        let naming = naming::name(&mut inodes, &blocks, &links);
        drop(links);
        inodes.remove(&naming.stale);
        let root = paths::root(&disk, &inodes, &blocks);
        disk.geometry.root_inode = root;
        paths::give(&mut inodes, root);
        inodes.remove(&internal(&inodes, root.0));
        // Their paths say them now.
        inodes.files.iter_mut().for_each(|file| file.names = Vec::new());
        let taken = others::taken(scan, traces, &shape, &index, device.capacity().0);
        let contested = judge::judge(&disk, &groups, &mut inodes, &taken);
        let mut report = SalvageReport {
            uuid: traces.uuid,
            start: shape.start * 512,
            has_superblock: shape.is_told,
            lost_headers: traces.lost_headers(&shape),
            lost_inodes,
            stale: inodes.stale + naming.stale.len() as u64,
            unlinked: inodes.unlinked,
            contradictions: naming.contradictions + contested,
            values_left_out: blocks.left_out,
            unreadable: scan.unreadable.iter().map(|range| range.end - range.start).sum(),
            ..SalvageReport::default()
        };
        // Before the list is copied.
        let mut files = inodes.into_files();
        drop((blocks, groups, index));
        files.sort_by(|one, other| one.order().cmp(&other.order()));
        files.iter().for_each(|file| report.count(file));
        Ok((disk, Self { files: files.into(), report }))
    }
}

impl SalvageReport {
    fn count(&mut self, file: &FoundFile) {
        self.nameless += u64::from(!file.paths.iter().any(|path| path.is_complete));
        if file.kind == Some(FileType::Directory) {
            self.directories += 1;
            return;
        }
        match file.state {
            // Only those that were removed are likely.
            State::Whole | State::Shared | State::Likely => self.whole += 1,
            State::Partly => self.partial += 1,
            State::Unsized => self.unsized_files += 1,
            State::Lost => self.lost += 1,
        }
    }
}

/// What is no file of people: the root, which is the place of all; and files without a name and without
/// rights, such as quotas and the bitmap of the realtime device.
fn internal(inodes: &Inodes, root: u64) -> Vec<usize> {
    let is_internal = |file: &FoundFile| {
        if file.id.number.0 == root {
            return true;
        }
        let is_bitmap = file.id.number.0 == root + 1 || file.id.number.0 == root + 2;
        file.names.is_empty()
            && matches!(file.kind, Some(FileType::Regular) | None)
            && (is_bitmap || (file.mode == Some(0) && file.uid == 0))
    };
    let files = inodes.files.iter().enumerate();
    files.filter(|(_, file)| is_internal(file)).map(|(place, _)| place).collect()
}
