//! The features that a new volume can have, and presets of them per kernel.

use super::kernel::Kernel;
use std::fmt;

/// What `mkfs.xfs` of the time of a long-term kernel turned on, all of which that kernel can
/// mount (docs/format/features.md#presets).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Linux 4.19.
    Linux4_19,
    /// Linux 5.4.
    Linux5_4,
    /// Linux 5.10.
    Linux5_10,
    /// Linux 5.15.
    Linux5_15,
    /// Linux 6.1.
    Linux6_1,
    /// Linux 6.6.
    Linux6_6,
    /// Linux 6.12.
    Linux6_12,
    /// Linux 6.18.
    Linux6_18,
    /// `mkfs.xfs` 7.2, the newest known.
    #[default]
    Default,
}

const PRESETS: [(&str, Preset); 9] = [
    ("default", Preset::Default),
    ("4.19", Preset::Linux4_19),
    ("5.4", Preset::Linux5_4),
    ("5.10", Preset::Linux5_10),
    ("5.15", Preset::Linux5_15),
    ("6.1", Preset::Linux6_1),
    ("6.6", Preset::Linux6_6),
    ("6.12", Preset::Linux6_12),
    ("6.18", Preset::Linux6_18),
];

impl Preset {
    /// All names, for messages and help.
    #[must_use]
    pub fn names() -> String {
        PRESETS.map(|(name, _)| name).join(", ")
    }

    /// All, the default first, then from the oldest to the newest.
    pub fn all() -> impl Iterator<Item = Self> {
        PRESETS.into_iter().map(|(_, preset)| preset)
    }

    /// Its name: the version of its kernel, or `default`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let own = PRESETS.iter().find(|(_, preset)| *preset == self);
        own.map(|(name, _)| *name).unwrap_or_default()
    }

    /// The kernel that it is named after; the default is of none.
    pub(super) fn kernel(self) -> Option<Kernel> {
        Kernel::of_release(self.name().as_bytes())
    }

    /// The preset of that name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        PRESETS.iter().find(|(known, _)| *known == name).map(|(_, preset)| *preset)
    }

    /// The features it turns on, beyond the ones that every volume has.
    #[must_use]
    pub fn features(self) -> &'static [Feature] {
        use Feature::{
            Bigtime, Exchange, Finobt, Inobtcount, Nrext64, Parent, Reflink, Rmapbt, Sparse,
        };
        match self {
            Self::Linux4_19 => &[Finobt, Sparse],
            Self::Linux5_4 | Self::Linux5_10 => &[Finobt, Sparse, Reflink],
            Self::Linux5_15 | Self::Linux6_1 => &[Finobt, Sparse, Reflink, Inobtcount, Bigtime],
            Self::Linux6_6 | Self::Linux6_12 => {
                &[Finobt, Sparse, Reflink, Inobtcount, Bigtime, Rmapbt, Nrext64]
            }
            Self::Linux6_18 | Self::Default => {
                &[Finobt, Sparse, Reflink, Inobtcount, Bigtime, Rmapbt, Nrext64, Exchange, Parent]
            }
        }
    }
}

/// A feature by its name in `mkfs.xfs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Checksums; always on.
    Crc,
    /// File types in directory entries; always on.
    Ftype,
    /// Tree of inode chunks with free inodes.
    Finobt,
    /// Sparse inode chunks.
    Sparse,
    /// Reverse mapping tree.
    Rmapbt,
    /// Shared blocks.
    Reflink,
    /// Timestamps beyond 2038.
    Bigtime,
    /// Counted inode tree blocks.
    Inobtcount,
    /// Wide extent counters.
    Nrext64,
    /// Exchange-range.
    Exchange,
    /// Parent pointers.
    Parent,
}

const FEATURES: [(&str, Feature); 11] = [
    ("crc", Feature::Crc),
    ("ftype", Feature::Ftype),
    ("finobt", Feature::Finobt),
    ("sparse", Feature::Sparse),
    ("rmapbt", Feature::Rmapbt),
    ("reflink", Feature::Reflink),
    ("bigtime", Feature::Bigtime),
    ("inobtcount", Feature::Inobtcount),
    ("nrext64", Feature::Nrext64),
    ("exchange", Feature::Exchange),
    ("parent", Feature::Parent),
];

impl Feature {
    /// All names, for messages and help.
    #[must_use]
    pub fn names() -> String {
        FEATURES.map(|(name, _)| name).join(", ")
    }

    /// The feature of that name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        FEATURES.iter().find(|(known, _)| *known == name).map(|(_, feature)| *feature)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FEATURES.iter().find(|(_, feature)| feature == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

impl Feature {
    /// The oldest kernel that knows it (docs/format/features.md#masks).
    #[must_use]
    pub const fn first_kernel(self) -> Kernel {
        match self {
            Self::Crc | Self::Ftype => Kernel::new(3, 12),
            Self::Finobt => Kernel::new(3, 16),
            Self::Sparse => Kernel::new(4, 2),
            Self::Rmapbt => Kernel::new(4, 8),
            Self::Reflink => Kernel::new(4, 9),
            Self::Bigtime | Self::Inobtcount => Kernel::new(5, 10),
            Self::Nrext64 => Kernel::new(5, 19),
            Self::Exchange | Self::Parent => Kernel::new(6, 10),
        }
    }
}

impl Preset {
    /// The preset for a kernel: the default if it mounts that, else the newest of a version that is
    /// no newer; `None` if it mounts none.
    #[must_use]
    pub fn for_kernel(kernel: Kernel) -> Option<Self> {
        let mounts = |preset: Self| first_kernel(preset.features().iter().copied()) <= kernel;
        if mounts(Self::Default) {
            return Some(Self::Default);
        }
        let fits = |preset: &Self| preset.kernel().is_some_and(|of| of <= kernel);
        let newest = Self::all().filter(fits).last();
        newest.or_else(|| Some(Self::Linux4_19).filter(|oldest| mounts(*oldest)))
    }
}

/// The oldest kernel that knows all of them.
pub(super) fn first_kernel(features: impl Iterator<Item = Feature>) -> Kernel {
    features.map(Feature::first_kernel).fold(Feature::Crc.first_kernel(), Kernel::max)
}
