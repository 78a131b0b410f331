//! The status of a file as plain values, from which Python makes an `os.stat_result`.

use undercroft_fs::{Metadata, Timestamp};

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

/// The time of these nanoseconds since 1970.
pub(crate) fn timestamp(nanoseconds: i128) -> Option<Timestamp> {
    let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    Some(Timestamp { seconds, nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as u32 })
}

/// Mode, number, links, owner and group; size, units of 512 bytes, bytes of a block, device; last access,
/// change of content and of the inode, birth; generation.
pub(crate) type Status =
    ((u32, u64, u32, u32, u32), (u64, u64, u32, u32, u32), (i128, i128, i128, i128), u32);

pub(crate) fn status(known: &Metadata) -> Status {
    let times = [known.accessed, known.modified, known.changed, known.created].map(nanoseconds);
    (
        (known.full_mode().into(), known.number.0, known.nlink, known.uid, known.gid),
        (known.size, known.blocks, known.block_size, known.device.major, known.device.minor),
        times.into(),
        known.generation,
    )
}
