//! Flag words of an inode (docs/format/inodes.md#flags).

use bitflags::bitflags;

bitflags! {
    /// First flag word. Bits without a name are kept, and refused by the verifier.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InodeFlags: u16 {
        /// Data on the realtime device (regular files).
        const REALTIME = 0x1;
        /// Space was preallocated.
        const PREALLOC = 0x2;
        /// On the realtime bitmap inode: its access time holds a sequence number.
        const NEWRTBM = 0x4;
        /// May not be changed.
        const IMMUTABLE = 0x8;
        /// May only grow.
        const APPEND = 0x10;
        /// Writes are synchronous.
        const SYNC = 0x20;
        /// The access time is not kept.
        const NOATIME = 0x40;
        /// Left out by dump.
        const NODUMP = 0x80;
        /// New files in this directory are realtime files.
        const RTINHERIT = 0x100;
        /// New files in this directory take its project.
        const PROJINHERIT = 0x200;
        /// No symbolic links may be made in this directory.
        const NOSYMLINKS = 0x400;
        /// The extent size hint is set (regular files).
        const EXTSIZE = 0x800;
        /// New files in this directory take its extent size hint.
        const EXTSZINHERIT = 0x1000;
        /// Left alone by the defragmenter.
        const NODEFRAG = 0x2000;
        /// Uses the file stream allocator.
        const FILESTREAM = 0x4000;
    }
}

bitflags! {
    /// Second flag word, version 5 only. Bits without a name are kept, and refused by the verifier.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InodeFlags2: u64 {
        /// Direct access to persistent memory.
        const DAX = 0x1;
        /// May share blocks with other files.
        const REFLINK = 0x2;
        /// The copy-on-write extent size hint is set.
        const COWEXTSIZE = 0x4;
        /// Timestamps use the wide encoding.
        const BIGTIME = 0x8;
        /// Extent counters use the wide fields.
        const NREXT64 = 0x10;
        /// Belongs to the metadata directory tree.
        const METADATA = 0x20;
    }
}
