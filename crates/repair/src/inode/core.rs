//! The core of an inode, field by field: the smallest change that makes it sound.

use undercroft_xfs::format::{
    AttrShortform, FileType, ForkFormat, Geometry, INODE_MAGIC, InodeCore, InodeFlags, InodeFlags2,
    Timestamp, bytes,
};
use undercroft_xfs::units::{AgInode, InodeNumber};

/// Where fields are.
mod at {
    pub(super) const VERSION: usize = 4;
    pub(super) const FORMAT: usize = 5;
    pub(super) const WIDE_EXTENTS: usize = 24;
    pub(super) const ATTR_EXTENTS: usize = 80;
    pub(super) const ATTR_FORMAT: usize = 83;
    pub(super) const FLAGS2: usize = 120;
    pub(super) const NUMBER: usize = 152;
    pub(super) const UUID: usize = 160;
}

/// Longest extent, in blocks, and so the longest hint.
const EXTENT_MAX: u32 = (1 << 21) - 1;

/// Whether bytes can be what is left of the inode of a number: magic and version, or number and volume.
pub(crate) fn is_left_of(inode: &[u8], number: InodeNumber, geometry: &Geometry) -> bool {
    let has_magic = bytes::be16(inode, 0) == INODE_MAGIC;
    let is_own = bytes::be64(inode, at::NUMBER) == number.0;
    let is_of_volume = inode[at::UUID..at::UUID + 16] == *geometry.meta_uuid.as_bytes();
    [has_magic, is_own, is_of_volume].into_iter().filter(|holds| *holds).count() >= 2
}

/// The core that bytes say, as far as they can be one.
pub(crate) fn read(inode: &[u8], number: InodeNumber, geometry: &Geometry) -> Option<InodeCore> {
    let mut copy = inode.to_vec();
    bytes::put_be16(&mut copy, 0, INODE_MAGIC);
    copy[at::VERSION] = 3;
    for place in [at::FORMAT, at::ATTR_FORMAT] {
        if ForkFormat::from_raw(copy[place]).is_none_or(|format| format == ForkFormat::Uuid) {
            copy[place] = ForkFormat::Extents as u8;
        }
    }
    // Counters that the flags select the field of: of the other nothing is known.
    let wide = InodeFlags2::from_bits_retain(bytes::be64(&copy, at::FLAGS2))
        .contains(InodeFlags2::NREXT64);
    if wide {
        bytes::put_be16(&mut copy, at::ATTR_EXTENTS, 0);
    } else {
        bytes::put_be64(&mut copy, at::WIDE_EXTENTS, 0);
    }
    let mut core = InodeCore::decode(&copy, geometry).ok()?;
    core.number = number;
    core.uuid = geometry.meta_uuid;
    Some(core)
}

/// Makes the fields right that have nothing to do with what forks hold. `kind` is what the inode is taken
/// to be.
pub(crate) fn settle(core: &mut InodeCore, kind: FileType, inode: &[u8], geometry: &Geometry) {
    core.mode = core.mode & 0o7777 | kind.mode_bits();
    core.version = 3;
    core.metatype = 0;
    core.next_unlinked = AgInode::NULL;
    flags(core, kind, geometry);
    hints(core, kind, geometry);
    let encoding = core.timestamp_encoding();
    for time in [&mut core.atime, &mut core.mtime, &mut core.ctime, &mut core.crtime] {
        if time.encode(encoding).is_err() {
            let nanoseconds = if time.nanoseconds < 1_000_000_000 { time.nanoseconds } else { 0 };
            *time = Timestamp { nanoseconds, ..*time }.clamped(encoding);
        }
    }
    fork_offset(core, kind, inode, geometry);
    if core.attr_format == ForkFormat::Local {
        core.attr_extents = 0;
    }
    if core.data_format == ForkFormat::Local {
        core.data_extents = 0;
    }
    if kind.is_special() {
        core.data_format = ForkFormat::Dev;
        (core.size, core.data_extents) = (0, 0);
    } else if matches!(core.data_format, ForkFormat::Dev | ForkFormat::MetaBtree)
        || (kind == FileType::Regular && core.data_format == ForkFormat::Local)
        || (kind == FileType::Symlink && core.data_format == ForkFormat::Btree)
    {
        core.data_format = ForkFormat::Extents;
    }
}

fn flags(core: &mut InodeCore, kind: FileType, geometry: &Geometry) {
    let features = &geometry.features;
    let mut flags = InodeFlags::from_bits_truncate(core.flags.bits());
    flags -= InodeFlags::REALTIME | InodeFlags::NEWRTBM;
    let directory = InodeFlags::RTINHERIT
        | InodeFlags::PROJINHERIT
        | InodeFlags::NOSYMLINKS
        | InodeFlags::EXTSZINHERIT;
    if kind != FileType::Directory {
        flags -= directory;
    }
    if kind != FileType::Regular {
        flags -= InodeFlags::EXTSIZE;
    }
    core.flags = flags;
    let mut flags2 = InodeFlags2::from_bits_truncate(core.flags2.bits());
    flags2 -= InodeFlags2::METADATA;
    let has_data = matches!(kind, FileType::Regular | FileType::Directory);
    for (flag, holds) in [
        (InodeFlags2::BIGTIME, features.bigtime()),
        (InodeFlags2::NREXT64, features.nrext64()),
        (InodeFlags2::REFLINK, features.reflink() && kind == FileType::Regular),
        (InodeFlags2::COWEXTSIZE, features.reflink() && has_data),
        (InodeFlags2::DAX, has_data),
    ] {
        if !holds {
            flags2 -= flag;
        }
    }
    core.flags2 = flags2;
}

fn hints(core: &mut InodeCore, kind: FileType, geometry: &Geometry) {
    let limit = EXTENT_MAX.min(geometry.ag_blocks / 2);
    let flag =
        if kind == FileType::Directory { InodeFlags::EXTSZINHERIT } else { InodeFlags::EXTSIZE };
    if !core.flags.contains(flag) || core.extsize == 0 || core.extsize > limit {
        core.flags -= flag;
        core.extsize = 0;
    }
    let wanted = core.flags2.contains(InodeFlags2::COWEXTSIZE);
    if !wanted || core.cowextsize == 0 || core.cowextsize > limit {
        core.flags2 -= InodeFlags2::COWEXTSIZE;
        core.cowextsize = 0;
    }
}

/// Where the attributes begin: as the core says, if there can be any; else where there are some.
fn fork_offset(core: &mut InodeCore, kind: FileType, inode: &[u8], geometry: &Geometry) {
    /// Where the attributes of a new inode begin.
    const USUAL: u8 = 24;
    let room = geometry.literal_size();
    let literal = &inode[geometry.inode_core_size()..];
    let has_list = |units: u8| {
        let fork = literal.get(usize::from(units) * 8..);
        fork.and_then(|fork| AttrShortform::parse(fork).ok())
            .is_some_and(|list| list.entries().count() > 0)
    };
    let is_valid = |units: u8| {
        units > 0 && usize::from(units) * 8 < room && (units == 1 || !kind.is_special())
    };
    let own = core.forkoff;
    let told = match core.attr_format {
        ForkFormat::Local => is_valid(own) && has_list(own),
        ForkFormat::Btree => is_valid(own),
        ForkFormat::Extents => own == 0 || is_valid(own),
        _ => own == 0,
    };
    if told {
        return;
    }
    let places = if kind.is_special() { vec![1] } else { vec![own, USUAL] };
    let all = (1..room.div_ceil(8) as u8).filter(|_| !kind.is_special());
    match places.into_iter().chain(all).find(|units| is_valid(*units) && has_list(*units)) {
        Some(units) => {
            core.forkoff = units;
            core.attr_format = ForkFormat::Local;
            core.attr_extents = 0;
        }
        None if is_valid(own) && core.attr_format != ForkFormat::Local => {
            core.attr_format = ForkFormat::Extents;
        }
        None if is_valid(own) => {}
        None => {
            core.forkoff = 0;
            core.attr_format = ForkFormat::Extents;
            core.attr_extents = 0;
        }
    }
}
