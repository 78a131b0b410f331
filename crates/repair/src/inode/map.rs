//! The map of a fork: as the fork says where it is sound; else from what is legible of it, and from the
//! reverse mappings.

use std::collections::BTreeSet;
use std::ops::Range;

use undercroft_block::is_zero;
use undercroft_recover::pieces::{self, Map};
use undercroft_xfs::format::{Extent, ForkFormat};
use undercroft_xfs::units::{AgNumber, FileBlock, FsBlock, InodeNumber};

use crate::subject::Subject;

/// File blocks a mapping can end at.
const FILE_BLOCKS_END: u64 = 1 << 54;

/// The map of a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForkMap {
    /// Ascending, disjoint, in range.
    pub(crate) extents: Vec<Extent>,
    /// Blocks of its tree, as far as it stays as it is.
    pub(crate) tree: Vec<FsBlock>,
    /// The fork has to be written anew.
    pub(crate) is_new: bool,
    /// Parts that are not known.
    pub(crate) is_partial: bool,
}

/// What reverse mappings say of one fork.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'e> {
    pub(crate) extents: &'e [Extent],
    /// The groups that they are complete for.
    pub(crate) groups: &'e BTreeSet<AgNumber>,
}

/// The map that the bytes of a fork say.
pub(crate) fn read(
    subject: &Subject,
    number: InodeNumber,
    (format, count): (ForkFormat, u64),
    fork: &[u8],
    evidence: Option<Evidence<'_>>,
    is_doubted: bool,
) -> ForkMap {
    if !matches!(format, ForkFormat::Extents | ForkFormat::Btree) {
        return ForkMap::default();
    }
    let told = pieces::map(&subject.disk, number, (format, count), fork);
    let is_whole = |map: &Map| {
        !is_doubted
            && map.missing.is_empty()
            && map.extents.len() as u64 == count
            && in_range(&map.extents)
            && !(format == ForkFormat::Btree && count == 0)
    };
    let own = match told {
        Some(map) if is_whole(&map) => {
            return ForkMap { extents: map.extents, tree: map.tree, ..ForkMap::default() };
        }
        Some(map) => {
            let is_partial = !map.missing.is_empty();
            let extents: Vec<_> =
                map.extents.into_iter().filter(|it| it.end().0 <= FILE_BLOCKS_END).collect();
            (extents, is_partial)
        }
        None if format == ForkFormat::Extents => (legible(subject, fork), true),
        None => (Vec::new(), true),
    };
    let (extents, mut is_partial) = own;
    let extents = match evidence {
        Some(evidence) => {
            if evidence.groups.len() == subject.geometry.ag_count as usize {
                is_partial = false;
            }
            joined(subject, extents, evidence)
        }
        None => extents,
    };
    ForkMap { extents, tree: Vec::new(), is_new: true, is_partial }
}

fn in_range(extents: &[Extent]) -> bool {
    extents.last().is_none_or(|last| last.end().0 <= FILE_BLOCKS_END)
}

/// The extents of a fork that can be some, in their order.
fn legible(subject: &Subject, fork: &[u8]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for record in fork.chunks_exact(Extent::LEN) {
        if is_zero(record) {
            break;
        }
        let extent = Extent::decode(record);
        let follows = extents.last().is_none_or(|last| last.end() <= extent.offset);
        if follows && is_sound(subject, &extent) {
            extents.push(extent);
        }
    }
    extents
}

fn is_sound(subject: &Subject, extent: &Extent) -> bool {
    extent.validate().is_ok()
        && extent.end().0 <= FILE_BLOCKS_END
        && subject.geometry.valid_extent(extent.start, extent.len.into())
}

/// Extents by reverse mappings, and those of the fork where these say nothing.
fn joined(subject: &Subject, own: Vec<Extent>, evidence: Evidence<'_>) -> Vec<Extent> {
    let is_unknown = |extent: &Extent| {
        let (ag, _) = subject.geometry.split_block(extent.start);
        !evidence.groups.contains(&ag)
    };
    let mut all: Vec<Extent> = own.into_iter().filter(is_unknown).collect();
    all.extend(evidence.extents.iter().filter(|extent| is_sound(subject, extent)));
    all.sort_unstable_by_key(|extent| (extent.offset, extent.start));
    let mut joined: Vec<Extent> = Vec::new();
    for extent in all {
        let end = joined.last().map_or(FileBlock(0), Extent::end);
        if extent.offset >= end {
            joined.push(extent);
        }
    }
    joined
}

impl ForkMap {
    /// Takes blocks away; whether any were there.
    pub(crate) fn without(&mut self, blocks: &[Range<u64>]) -> bool {
        let mut extents = Vec::with_capacity(self.extents.len());
        let mut is_changed = false;
        for extent in &self.extents {
            let mut rest = vec![(0, extent.len)];
            for range in blocks {
                let (start, end) = (extent.start.0, extent.start.0 + u64::from(extent.len));
                let from = range.start.clamp(start, end) - start;
                let to = range.end.clamp(start, end) - start;
                if from >= to {
                    continue;
                }
                is_changed = true;
                rest = rest
                    .into_iter()
                    .flat_map(|(first, len)| cut(first, len, from as u32, to as u32))
                    .collect();
            }
            extents.extend(rest.into_iter().map(|(first, len)| Extent {
                offset: FileBlock(extent.offset.0 + u64::from(first)),
                start: FsBlock(extent.start.0 + u64::from(first)),
                len,
                unwritten: extent.unwritten,
            }));
        }
        if self.tree.iter().any(|block| blocks.iter().any(|range| range.contains(&block.0))) {
            is_changed = true;
        }
        if is_changed {
            self.extents = extents;
            self.tree.clear();
            self.is_new = true;
            self.is_partial = true;
        }
        is_changed
    }
}

/// What is left of a run without the part from `from` to `to`.
fn cut(first: u32, len: u32, from: u32, to: u32) -> Vec<(u32, u32)> {
    let end = first + len;
    let before = (first, from.clamp(first, end) - first);
    let behind = (to.clamp(first, end), end - to.clamp(first, end));
    [before, behind].into_iter().filter(|(_, len)| *len > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut() {
        assert_eq!(cut(0, 10, 3, 5), [(0, 3), (5, 5)]);
        assert_eq!(cut(0, 10, 0, 10), []);
        assert_eq!(cut(5, 5, 0, 6), [(6, 4)]);
        assert_eq!(cut(5, 5, 12, 20), [(5, 5)]);
    }
}
