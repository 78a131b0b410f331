//! The features that a volume is to have, and what stands against them.

use undercroft_xfs::format::{Features, Incompat, RoCompat, Superblock, VersionBits};
use undercroft_xfs::mkfs::{Feature, Preset};

use crate::error::RepairError;
use crate::superblock::root_inode;

/// Features to be turned on and off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What this preset has is turned on; what it has not stays as it is.
    pub preset: Option<Preset>,
    /// Single features, which go before the preset; the last of a name counts.
    pub features: Vec<(Feature, bool)>,
}

/// Features that are in use by inodes once they were on.
const NEVER_OFF: [Feature; 4] =
    [Feature::Ftype, Feature::Bigtime, Feature::Nrext64, Feature::Parent];

impl Wanted {
    /// What changes on a volume with these features: each feature once.
    pub(super) fn changes(&self, features: &Features) -> Vec<(Feature, bool)> {
        let preset = self.preset.into_iter().flat_map(Preset::features);
        let all = preset.map(|feature| (*feature, true)).chain(self.features.iter().copied());
        let mut last: Vec<(Feature, bool)> = Vec::new();
        for (feature, on) in all {
            last.retain(|(known, _)| *known != feature);
            last.push((feature, on));
        }
        last.retain(|(feature, on)| is_on(features, *feature) != *on);
        last
    }
}

/// Whether a volume has a feature.
fn is_on(features: &Features, feature: Feature) -> bool {
    match feature {
        Feature::Crc => features.crc,
        Feature::Ftype => features.ftype(),
        Feature::Finobt => features.finobt(),
        Feature::Sparse => features.sparse_inodes(),
        Feature::Rmapbt => features.rmapbt(),
        Feature::Reflink => features.reflink(),
        Feature::Bigtime => features.bigtime(),
        Feature::Inobtcount => features.inobtcnt(),
        Feature::Nrext64 => features.nrext64(),
        Feature::Exchange => features.incompat.contains(Incompat::EXCHRANGE),
        Feature::Parent => features.parent_pointers(),
    }
}

/// The superblock of a volume with changed features.
///
/// # Errors
/// Features contradict each other, or cannot be changed on this volume: all that stands against it.
pub(super) fn target(
    old: &Superblock,
    changes: &[(Feature, bool)],
) -> Result<Superblock, RepairError> {
    let mut new = old.clone();
    let mut against = Vec::new();
    for (feature, on) in changes {
        if *feature == Feature::Crc || (!on && NEVER_OFF.contains(feature)) {
            against.push(format!("{feature} cannot be turned off once it was on"));
            continue;
        }
        set(&mut new, *feature, *on);
    }
    if new.features.inobtcnt() && !new.features.finobt() {
        against.push("inobtcount needs finobt: turn both on or both off".into());
    }
    against.extend(root(old, &new));
    if against.is_empty() { Ok(new) } else { Err(RepairError::Refused(against)) }
}

/// Refuses a superblock that moves the root directory.
pub(super) fn check_root(old: &Superblock, new: &Superblock) -> Result<(), RepairError> {
    root(old, new).map_or(Ok(()), |what| Err(RepairError::Refused(vec![what])))
}

/// Why the root directory would be in the wrong place: it is counted from the first blocks of trees, and the journal
/// where that is in the first group.
fn root(old: &Superblock, new: &Superblock) -> Option<String> {
    let [before, after] = [old, new].map(|superblock| root_inode(&superblock.geometry()));
    (old.root_inode == before && new.root_inode != after).then(|| {
        format!(
            "xfs_repair would look for the root directory at inode {after} and not at {before}, where it is, as the \
             space in front of it would be counted otherwise; `undercroft copy` puts the files on a new volume"
        )
    })
}

fn set(superblock: &mut Superblock, feature: Feature, on: bool) {
    let features = &mut superblock.features;
    let (ro_compat, incompat) = (&mut features.ro_compat, &mut features.incompat);
    match feature {
        Feature::Crc | Feature::Ftype => {}
        Feature::Finobt => ro_compat.set(RoCompat::FINOBT, on),
        Feature::Rmapbt => ro_compat.set(RoCompat::RMAPBT, on),
        Feature::Reflink => ro_compat.set(RoCompat::REFLINK, on),
        Feature::Inobtcount => ro_compat.set(RoCompat::INOBTCNT, on),
        Feature::Bigtime => incompat.set(Incompat::BIGTIME, on),
        Feature::Nrext64 => incompat.set(Incompat::NREXT64, on),
        Feature::Exchange => incompat.set(Incompat::EXCHRANGE, on),
        Feature::Parent => {
            incompat.set(Incompat::PARENT, on);
            features.version |= VersionBits::ATTR;
        }
        Feature::Sparse => {
            incompat.set(Incompat::SPINODES, on);
            let cluster = (8192_u32 << (superblock.inode_log - 8)) >> superblock.block_log;
            let chunk = (64 << superblock.inode_log) >> superblock.block_log;
            superblock.sparse_alignment = if on { cluster } else { 0 };
            superblock.inode_alignment = if on { chunk } else { cluster };
        }
    }
}
