//! The fields of every structure of the format, as data (the tables of docs/format). Checksums are
//! left out: they are made right again.

/// Bits of a structure, counted from its first one; big-endian, at most 128.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    at: usize,
    pub(crate) bits: usize,
}

const fn bits(name: &'static str, at: usize, bits: usize) -> Field {
    Field { name, at, bits }
}

const fn field(name: &'static str, offset: usize, len: usize) -> Field {
    bits(name, offset * 8, len * 8)
}

impl Field {
    /// The value in the structure at `base`.
    pub(crate) fn get(&self, bytes: &[u8], base: usize) -> u128 {
        let bit = |at: usize| u128::from(bytes[base + at / 8] >> (7 - at % 8) & 1);
        (self.at..self.at + self.bits).fold(0, |value, at| value << 1 | bit(at))
    }

    /// Stores the low bits of `value` in the structure at `base`.
    pub(crate) fn set(&self, bytes: &mut [u8], base: usize, value: u128) {
        for index in 0..self.bits {
            let (at, mask) = (self.at + index, 1 << (7 - (self.at + index) % 8));
            let byte = &mut bytes[base + at / 8];
            let one = value >> (self.bits - 1 - index) & 1 == 1;
            *byte = if one { *byte | mask } else { *byte & !mask };
        }
    }
}

pub(crate) const SUPERBLOCK: &[Field] = &[
    field("magicnum", 0, 4),
    field("blocksize", 4, 4),
    field("dblocks", 8, 8),
    field("rblocks", 16, 8),
    field("rextents", 24, 8),
    field("uuid", 32, 16),
    field("logstart", 48, 8),
    field("rootino", 56, 8),
    field("rbmino", 64, 8),
    field("rsumino", 72, 8),
    field("rextsize", 80, 4),
    field("agblocks", 84, 4),
    field("agcount", 88, 4),
    field("rbmblocks", 92, 4),
    field("logblocks", 96, 4),
    field("versionnum", 100, 2),
    field("sectsize", 102, 2),
    field("inodesize", 104, 2),
    field("inopblock", 106, 2),
    field("fname", 108, 12),
    field("blocklog", 120, 1),
    field("sectlog", 121, 1),
    field("inodelog", 122, 1),
    field("inopblog", 123, 1),
    field("agblklog", 124, 1),
    field("rextslog", 125, 1),
    field("inprogress", 126, 1),
    field("imax_pct", 127, 1),
    field("icount", 128, 8),
    field("ifree", 136, 8),
    field("fdblocks", 144, 8),
    field("frextents", 152, 8),
    field("uquotino", 160, 8),
    field("gquotino", 168, 8),
    field("qflags", 176, 2),
    field("flags", 178, 1),
    field("shared_vn", 179, 1),
    field("inoalignmt", 180, 4),
    field("unit", 184, 4),
    field("width", 188, 4),
    field("dirblklog", 192, 1),
    field("logsectlog", 193, 1),
    field("logsectsize", 194, 2),
    field("logsunit", 196, 4),
    field("features2", 200, 4),
    field("bad_features2", 204, 4),
    field("features_compat", 208, 4),
    field("features_ro_compat", 212, 4),
    field("features_incompat", 216, 4),
    field("features_log_incompat", 220, 4),
    field("spino_align", 228, 4),
    field("pquotino", 232, 8),
    field("lsn", 240, 8),
    field("meta_uuid", 248, 16),
    field("metadirino", 264, 8),
    field("rgcount", 272, 4),
    field("rgextents", 276, 4),
    field("rgblklog", 280, 1),
    field("pad", 281, 7),
    field("rtstart", 288, 8),
    field("rtreserved", 296, 8),
    field("tail", 400, 8),
];

pub(crate) const AGF: &[Field] = &[
    field("magicnum", 0, 4),
    field("versionnum", 4, 4),
    field("seqno", 8, 4),
    field("length", 12, 4),
    field("bno_root", 16, 4),
    field("cnt_root", 20, 4),
    field("rmap_root", 24, 4),
    field("bno_level", 28, 4),
    field("cnt_level", 32, 4),
    field("rmap_level", 36, 4),
    field("flfirst", 40, 4),
    field("fllast", 44, 4),
    field("flcount", 48, 4),
    field("freeblks", 52, 4),
    field("longest", 56, 4),
    field("btreeblks", 60, 4),
    field("uuid", 64, 16),
    field("rmap_blocks", 80, 4),
    field("refcount_blocks", 84, 4),
    field("refcount_root", 88, 4),
    field("refcount_level", 92, 4),
    field("spare64", 96, 16),
    field("lsn", 208, 8),
    field("spare2", 220, 4),
];

pub(crate) const AGI: &[Field] = &[
    field("magicnum", 0, 4),
    field("versionnum", 4, 4),
    field("seqno", 8, 4),
    field("length", 12, 4),
    field("count", 16, 4),
    field("root", 20, 4),
    field("level", 24, 4),
    field("freecount", 28, 4),
    field("newino", 32, 4),
    field("dirino", 36, 4),
    field("unlinked", 40 + 4 * 5, 4),
    field("uuid", 296, 16),
    field("pad32", 316, 4),
    field("lsn", 320, 8),
    field("free_root", 328, 4),
    field("free_level", 332, 4),
    field("iblocks", 336, 4),
    field("fblocks", 340, 4),
];

pub(crate) const AGFL: &[Field] =
    &[field("magicnum", 0, 4), field("seqno", 4, 4), field("uuid", 8, 16), field("lsn", 24, 8)];

/// A word of four bytes: a block of the free list, a pointer.
pub(crate) const BLOCK_NUMBER: &[Field] = &[field("block", 0, 4)];

/// A pointer of eight bytes.
pub(crate) const LONG_NUMBER: &[Field] = &[field("block", 0, 8)];

pub(crate) const SHORT_TREE: &[Field] = &[
    field("magic", 0, 4),
    field("level", 4, 2),
    field("numrecs", 6, 2),
    field("leftsib", 8, 4),
    field("rightsib", 12, 4),
    field("blkno", 16, 8),
    field("lsn", 24, 8),
    field("uuid", 32, 16),
    field("owner", 48, 4),
];

pub(crate) const LONG_TREE: &[Field] = &[
    field("magic", 0, 4),
    field("level", 4, 2),
    field("numrecs", 6, 2),
    field("leftsib", 8, 8),
    field("rightsib", 16, 8),
    field("blkno", 24, 8),
    field("lsn", 32, 8),
    field("uuid", 40, 16),
    field("owner", 56, 8),
    field("pad", 68, 4),
];

pub(crate) const FREE_SPACE: &[Field] = &[field("startblock", 0, 4), field("blockcount", 4, 4)];

pub(crate) const CHUNK: &[Field] = &[
    field("startino", 0, 4),
    field("holemask", 4, 2),
    field("count", 6, 1),
    field("freecount", 7, 1),
    field("free", 8, 8),
];

pub(crate) const RMAP: &[Field] = &[
    field("startblock", 0, 4),
    field("blockcount", 4, 4),
    field("owner", 8, 8),
    bits("attribute flag", 128, 1),
    bits("bmbt flag", 129, 1),
    bits("unwritten flag", 130, 1),
    bits("unused flags", 131, 7),
    bits("offset", 138, 54),
];

pub(crate) const RMAP_KEYS: &[Field] = &[
    field("low startblock", 0, 4),
    field("low owner", 4, 8),
    field("low offset", 12, 8),
    field("high startblock", 20, 4),
    field("high owner", 24, 8),
    field("high offset", 32, 8),
];

pub(crate) const REFCOUNT: &[Field] = &[
    bits("copy-on-write flag", 0, 1),
    bits("startblock", 1, 31),
    field("blockcount", 4, 4),
    field("refcount", 8, 4),
];

pub(crate) const EXTENT: &[Field] = &[
    bits("state", 0, 1),
    bits("startoff", 1, 54),
    bits("startblock", 55, 52),
    bits("blockcount", 107, 21),
];

pub(crate) const FORK_ROOT: &[Field] =
    &[field("level", 0, 2), field("numrecs", 2, 2), field("key", 4, 8)];

pub(crate) const INODE: &[Field] = &[
    field("magic", 0, 2),
    bits("mode type", 16, 4),
    bits("mode permissions", 20, 12),
    field("version", 4, 1),
    field("format", 5, 1),
    field("metatype", 6, 2),
    field("uid", 8, 4),
    field("gid", 12, 4),
    field("nlink", 16, 4),
    field("projid_lo", 20, 2),
    field("projid_hi", 22, 2),
    field("big_nextents", 24, 8),
    field("atime", 32, 8),
    field("mtime", 40, 8),
    field("ctime", 48, 8),
    field("size", 56, 8),
    field("nblocks", 64, 8),
    field("extsize", 72, 4),
    field("anextents", 76, 4),
    field("small anextents", 80, 2),
    field("forkoff", 82, 1),
    field("aformat", 83, 1),
    field("dmevmask", 84, 4),
    field("dmstate", 88, 2),
    field("flags", 90, 2),
    field("gen", 92, 4),
    field("next_unlinked", 96, 4),
    field("changecount", 104, 8),
    field("lsn", 112, 8),
    field("flags2", 120, 8),
    field("cowextsize", 128, 4),
    field("pad2", 132, 12),
    field("crtime", 144, 8),
    field("ino", 152, 8),
    field("uuid", 160, 16),
];

pub(crate) const DIR_BLOCK: &[Field] = &[
    field("magic", 0, 4),
    field("blkno", 8, 8),
    field("lsn", 16, 8),
    field("uuid", 24, 16),
    field("owner", 40, 8),
    field("bestfree offset", 48, 2),
    field("bestfree length", 50, 2),
    field("second bestfree offset", 52, 2),
    field("second bestfree length", 54, 2),
    field("pad", 60, 4),
];

/// Behind the name come the type and, at the end of the entry, the tag: fields of their own.
pub(crate) const DIR_ENTRY: &[Field] =
    &[field("inumber", 0, 8), field("namelen", 8, 1), field("name", 9, 1)];

pub(crate) const FREE_ENTRY: &[Field] = &[field("freetag", 0, 2), field("length", 2, 2)];

pub(crate) const TYPE: &[Field] = &[field("ftype", 0, 1)];

pub(crate) const TAG: &[Field] = &[field("tag", 0, 2)];

pub(crate) const HASH_ENTRY: &[Field] = &[field("hashval", 0, 4), field("address", 4, 4)];

pub(crate) const BLOCK_TAIL: &[Field] = &[field("count", 0, 4), field("stale", 4, 4)];

/// What all blocks of hash trees begin with, and the header of a leaf of a directory.
pub(crate) const DIR_LEAF: &[Field] = &[
    field("forw", 0, 4),
    field("back", 4, 4),
    field("magic", 8, 2),
    field("pad", 10, 2),
    field("blkno", 16, 8),
    field("lsn", 24, 8),
    field("uuid", 32, 16),
    field("owner", 48, 8),
    field("count", 56, 2),
    field("stale", 58, 2),
    field("pad3", 60, 4),
];

pub(crate) const NODE: &[Field] = &[
    field("forw", 0, 4),
    field("back", 4, 4),
    field("magic", 8, 2),
    field("pad", 10, 2),
    field("blkno", 16, 8),
    field("lsn", 24, 8),
    field("uuid", 32, 16),
    field("owner", 48, 8),
    field("count", 56, 2),
    field("level", 58, 2),
    field("pad3", 60, 4),
];

pub(crate) const BEST: &[Field] = &[field("best", 0, 2)];

pub(crate) const BEST_COUNT: &[Field] = &[field("bestcount", 0, 4)];

pub(crate) const DIR_FREE: &[Field] = &[
    field("magic", 0, 4),
    field("blkno", 8, 8),
    field("lsn", 16, 8),
    field("uuid", 24, 16),
    field("owner", 40, 8),
    field("firstdb", 48, 4),
    field("nvalid", 52, 4),
    field("nused", 56, 4),
    field("pad", 60, 4),
];

pub(crate) const SHORT_DIR: &[Field] =
    &[field("count", 0, 1), field("i8count", 1, 1), field("parent", 2, 4)];

pub(crate) const SHORT_DIR_ENTRY: &[Field] =
    &[field("namelen", 0, 1), field("offset", 1, 2), field("name", 3, 1)];

/// Behind the name of an entry in short form.
pub(crate) const SHORT_DIR_TARGET: &[Field] = &[field("ftype", 0, 1), field("inumber", 1, 4)];

pub(crate) const SHORT_ATTRS: &[Field] =
    &[field("totsize", 0, 2), field("count", 2, 1), field("padding", 3, 1)];

pub(crate) const SHORT_ATTR: &[Field] =
    &[field("namelen", 0, 1), field("valuelen", 1, 1), field("flags", 2, 1), field("name", 3, 1)];

pub(crate) const PARENT_VALUE: &[Field] = &[field("inumber", 0, 8), field("gen", 8, 4)];

pub(crate) const ATTR_LEAF: &[Field] = &[
    field("forw", 0, 4),
    field("back", 4, 4),
    field("magic", 8, 2),
    field("pad", 10, 2),
    field("blkno", 16, 8),
    field("lsn", 24, 8),
    field("uuid", 32, 16),
    field("owner", 48, 8),
    field("count", 56, 2),
    field("usedbytes", 58, 2),
    field("firstused", 60, 2),
    field("holes", 62, 1),
    field("pad1", 63, 1),
    field("freemap base", 64, 2),
    field("freemap size", 66, 2),
    field("second freemap base", 68, 2),
    field("second freemap size", 70, 2),
    field("pad2", 76, 4),
];

pub(crate) const ATTR_ENTRY: &[Field] =
    &[field("hashval", 0, 4), field("nameidx", 4, 2), field("flags", 6, 1), field("pad2", 7, 1)];

pub(crate) const LOCAL_ATTR: &[Field] =
    &[field("valuelen", 0, 2), field("namelen", 2, 1), field("name", 3, 1)];

pub(crate) const REMOTE_ATTR: &[Field] = &[
    field("valueblk", 0, 4),
    field("valuelen", 4, 4),
    field("namelen", 8, 1),
    field("name", 9, 1),
];

/// A block of a remote value, or of the target of a link.
pub(crate) const REMOTE: &[Field] = &[
    field("magic", 0, 4),
    field("offset", 4, 4),
    field("bytes", 8, 4),
    field("uuid", 16, 16),
    field("owner", 32, 8),
    field("blkno", 40, 8),
    field("lsn", 48, 8),
];

/// What structures of version 4 have in the places of those above: their beginning, without what
/// verifies itself.
pub(crate) const OLD_AGF: &[Field] = AGF.split_at(16).0;
pub(crate) const OLD_AGI: &[Field] = AGI.split_at(11).0;
pub(crate) const OLD_SHORT_TREE: &[Field] = SHORT_TREE.split_at(5).0;
pub(crate) const OLD_INODE: &[Field] = INODE.split_at(27).0;

pub(crate) const OLD_DIR_BLOCK: &[Field] = &[
    field("magic", 0, 4),
    field("bestfree offset", 4, 2),
    field("bestfree length", 6, 2),
    field("second bestfree offset", 8, 2),
    field("second bestfree length", 10, 2),
];

pub(crate) const OLD_DIR_LEAF: &[Field] = &[
    field("forw", 0, 4),
    field("back", 4, 4),
    field("magic", 8, 2),
    field("pad", 10, 2),
    field("count", 12, 2),
    field("stale", 14, 2),
];
