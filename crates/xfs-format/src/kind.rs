//! The kind of content of a metadata buffer: decides how it is verified and stamped.

/// The B+trees of the format (docs/format/btrees.md#trees).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// Free space by block.
    Bnobt,
    /// Free space by size.
    Cntbt,
    /// Inode chunks.
    Inobt,
    /// Inode chunks with a free inode.
    Finobt,
    /// Reverse mappings.
    Rmapbt,
    /// Reference counts.
    Refcountbt,
    /// Mappings of one file fork.
    Bmbt,
}

impl TreeKind {
    /// All trees, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Bnobt,
        Self::Cntbt,
        Self::Inobt,
        Self::Finobt,
        Self::Rmapbt,
        Self::Refcountbt,
        Self::Bmbt,
    ];

    /// The tree whose blocks have a magic number on v5 volumes.
    #[must_use]
    pub fn of_magic_v5(magic: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|tree| tree.magic_v5() == magic)
    }

    /// Name used in messages, as in docs/format/btrees.md.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bnobt => "bnobt",
            Self::Cntbt => "cntbt",
            Self::Inobt => "inobt",
            Self::Finobt => "finobt",
            Self::Rmapbt => "rmapbt",
            Self::Refcountbt => "refcountbt",
            Self::Bmbt => "bmbt",
        }
    }

    /// Magic number of its blocks on v5 volumes.
    #[must_use]
    pub const fn magic_v5(self) -> u32 {
        match self {
            Self::Bnobt => 0x4142_3342,
            Self::Cntbt => 0x4142_3343,
            Self::Inobt => 0x4941_4233,
            Self::Finobt => 0x4649_4233,
            Self::Rmapbt => 0x524d_4233,
            Self::Refcountbt => 0x5233_4643,
            Self::Bmbt => 0x424d_4133,
        }
    }

    /// Magic number of its blocks on v4 volumes; trees that need v5 have none.
    #[must_use]
    pub const fn magic_v4(self) -> Option<u32> {
        match self {
            Self::Bnobt => Some(u32::from_be_bytes(*b"ABTB")),
            Self::Cntbt => Some(u32::from_be_bytes(*b"ABTC")),
            Self::Inobt => Some(u32::from_be_bytes(*b"IABT")),
            Self::Finobt => Some(u32::from_be_bytes(*b"FIBT")),
            Self::Bmbt => Some(u32::from_be_bytes(*b"BMAP")),
            Self::Rmapbt | Self::Refcountbt => None,
        }
    }

    /// Whether blocks carry the long header (64-bit pointers), as file-rooted trees do.
    #[must_use]
    pub const fn long_pointers(self) -> bool {
        matches!(self, Self::Bmbt)
    }
}

impl BufferKind {
    /// Name used in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Agf => "AGF",
            Self::Agi => "AGI",
            Self::Agfl => "AGFL",
            Self::Tree(tree) => tree.name(),
            Self::InodeCluster => "inode cluster",
            Self::DirBlock => "directory block",
            Self::DirData => "directory data block",
            Self::DirLeaf1 | Self::DirLeafN => "directory hash block",
            Self::DirFree => "directory free-index block",
            Self::DaNode => "hash tree node",
            Self::AttrLeaf => "attribute leaf",
            Self::DaAny => "hash tree block",
            Self::AttrRemote => "remote attribute value",
            Self::Symlink => "symbolic link target",
        }
    }

    /// Whether a buffer of kind `found` is what a reader that asked for this kind expects.
    #[must_use]
    pub fn accepts(self, found: Self) -> bool {
        self == found
            || (self == Self::DaAny
                && matches!(found, Self::DaNode | Self::DirLeaf1 | Self::DirLeafN | Self::AttrLeaf))
    }
}

/// The kind of content of a metadata buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferKind {
    /// A superblock copy.
    Superblock,
    /// Free-space header of a group.
    Agf,
    /// Inode header of a group.
    Agi,
    /// Free list of a group.
    Agfl,
    /// A block of a B+tree.
    Tree(TreeKind),
    /// A cluster of inodes.
    InodeCluster,
    /// Directory in block form (data and index in one block).
    DirBlock,
    /// Directory data block.
    DirData,
    /// The single hash block of a leaf-form directory.
    DirLeaf1,
    /// A hash block of a node-form directory.
    DirLeafN,
    /// Free-index block of a node-form directory.
    DirFree,
    /// Interior node of a directory or attribute hash tree.
    DaNode,
    /// Attribute leaf.
    AttrLeaf,
    /// A block of the hash range of a directory or of an attribute fork whose kind (node or leaf)
    /// only its magic tells; a read resolves it.
    DaAny,
    /// Remote attribute value.
    AttrRemote,
    /// Remote symbolic link target (one mapped extent).
    Symlink,
}
