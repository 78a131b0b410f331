//! Feature masks of the superblock (docs/format/features.md#masks).

use bitflags::bitflags;

bitflags! {
    /// Features that older code may ignore for reading (`features_ro_compat`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RoCompat: u32 {
        /// Tree of inode chunks with free inodes.
        const FINOBT = 0x1;
        /// Reverse mapping tree.
        const RMAPBT = 0x2;
        /// Reference counts, shared blocks.
        const REFLINK = 0x4;
        /// Block counts of the inode trees in the AGI.
        const INOBTCNT = 0x8;
    }
}

bitflags! {
    /// Features that code must know to read a volume (`features_incompat`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Incompat: u32 {
        /// File type in directory entries.
        const FTYPE = 0x1;
        /// Sparse inode chunks.
        const SPINODES = 0x2;
        /// Metadata carries `meta_uuid` instead of `uuid`.
        const META_UUID = 0x4;
        /// Timestamps up to the year 2486.
        const BIGTIME = 0x8;
        /// Needs `xfs_repair` before it may be mounted.
        const NEEDSREPAIR = 0x10;
        /// Wide extent counters.
        const NREXT64 = 0x20;
        /// Exchange-range log items may appear.
        const EXCHRANGE = 0x40;
        /// Parent pointers.
        const PARENT = 0x80;
        /// Metadata directory tree.
        const METADIR = 0x100;
        /// Zoned realtime device.
        const ZONED = 0x200;
        /// Gaps between zones.
        const ZONE_GAPS = 0x400;
    }
}

bitflags! {
    /// Bits of `versionnum` above the version (docs/format/features.md#version-bits).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct VersionBits: u16 {
        /// Some inode has, or may have, an attribute fork.
        const ATTR = 0x0010;
        /// Link counts of 32 bits.
        const NLINK = 0x0020;
        /// Quota inodes exist.
        const QUOTA = 0x0040;
        /// Inode chunks are aligned.
        const ALIGN = 0x0080;
        /// Stripe unit and width are set.
        const DALIGN = 0x0100;
        /// Never valid.
        const SHARED = 0x0200;
        /// Log version 2.
        const LOGV2 = 0x0400;
        /// Sectors larger than 512 bytes.
        const SECTOR = 0x0800;
        /// Unwritten extents.
        const EXTFLG = 0x1000;
        /// Directory version 2.
        const DIRV2 = 0x2000;
        /// ASCII case-insensitive names.
        const BORG = 0x4000;
        /// `features2` is valid.
        const MOREBITS = 0x8000;
    }
}

bitflags! {
    /// `features2` of the superblock (docs/format/features.md#features2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Features2: u32 {
        /// Lazy superblock counters.
        const LAZYSBCOUNT = 0x2;
        /// Attribute fork offset is free.
        const ATTR2 = 0x8;
        /// Project ids of 32 bits.
        const PROJID32 = 0x80;
        /// Version 5.
        const CRC = 0x100;
        /// File type in directory entries, v4 form.
        const FTYPE = 0x200;
    }
}

/// All features of a volume, as decoded from its superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Version bits.
    pub version: VersionBits,
    /// Second word of version bits.
    pub features2: Features2,
    /// Features that permit reading without being known.
    pub ro_compat: RoCompat,
    /// Unknown bits of the same mask: the volume is read-only.
    pub unknown_ro_compat: u32,
    /// Features that must be known.
    pub incompat: Incompat,
    /// Log features: [`LOGGED_ATTRIBUTES`](Self::LOGGED_ATTRIBUTES), or bits that a writer of the
    /// journal must know.
    pub log_incompat: u32,
    /// Version 5: checksums and self-describing metadata.
    pub crc: bool,
}

impl Features {
    /// The one log feature that is known: changes of attributes are in the journal as intents.
    pub const LOGGED_ATTRIBUTES: u32 = 1;

    /// Bits of the log features that are not known.
    #[must_use]
    pub const fn unknown_log_incompat(&self) -> u32 {
        self.log_incompat & !Self::LOGGED_ATTRIBUTES
    }

    /// Whether directory entries carry a file type.
    #[must_use]
    pub fn ftype(&self) -> bool {
        self.incompat.contains(Incompat::FTYPE) || self.features2.contains(Features2::FTYPE)
    }

    /// Whether names compare without regard to ASCII case.
    #[must_use]
    pub fn ascii_ci(&self) -> bool {
        self.version.contains(VersionBits::BORG)
    }

    /// Whether there is a free-inode tree.
    #[must_use]
    pub fn finobt(&self) -> bool {
        self.ro_compat.contains(RoCompat::FINOBT)
    }

    /// Whether there is a reverse-mapping tree.
    #[must_use]
    pub fn rmapbt(&self) -> bool {
        self.ro_compat.contains(RoCompat::RMAPBT)
    }

    /// Whether blocks may be shared.
    #[must_use]
    pub fn reflink(&self) -> bool {
        self.ro_compat.contains(RoCompat::REFLINK)
    }

    /// Whether the AGI counts the blocks of the inode trees.
    #[must_use]
    pub fn inobtcnt(&self) -> bool {
        self.ro_compat.contains(RoCompat::INOBTCNT)
    }

    /// Whether inode chunks may be sparse.
    #[must_use]
    pub fn sparse_inodes(&self) -> bool {
        self.incompat.contains(Incompat::SPINODES)
    }

    /// Whether inodes have parent pointers.
    #[must_use]
    pub fn parent_pointers(&self) -> bool {
        self.incompat.contains(Incompat::PARENT)
    }

    /// Whether new inodes use wide timestamps.
    #[must_use]
    pub fn bigtime(&self) -> bool {
        self.incompat.contains(Incompat::BIGTIME)
    }

    /// Whether new inodes use wide extent counters.
    #[must_use]
    pub fn nrext64(&self) -> bool {
        self.incompat.contains(Incompat::NREXT64)
    }

    /// Whether there is a metadata directory tree.
    #[must_use]
    pub fn metadir(&self) -> bool {
        self.incompat.contains(Incompat::METADIR)
    }

    /// Whether the realtime device is allocated by zones.
    #[must_use]
    pub fn zoned(&self) -> bool {
        self.incompat.contains(Incompat::ZONED)
    }
}
