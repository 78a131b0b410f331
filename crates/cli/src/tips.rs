//! Words that other tools have for what a command here does under another name.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words, and the way.
const TIPS: &[(&[&str], &str)] = &[
    (&["uuid", "admin", "tune", "tune2fs"], "`undercroft set` changes UUID and label"),
    (&["xfs_repair", "mend"], "`undercroft repair` makes a damaged volume sound again"),
    (
        &["resize", "resize2fs", "growfs", "expand"],
        "`undercroft grow` and `undercroft shrink` change the size",
    ),
    (
        &["partitions", "lsblk", "blkid", "fdisk", "parted"],
        "`undercroft disks IMAGE` shows what is in an image: partitions, and what they hold",
    ),
    (
        &["cp", "copy-in", "copy-out"],
        "`undercroft put` copies into a volume, `undercroft get` out of it, `undercroft clone` within, \
         `undercroft copy` to another",
    ),
    (&["rmdir"], "`undercroft rm --dir` removes empty directories"),
    (&["format"], "`undercroft mkfs` makes an empty volume"),
    (&["recover", "restore"], "`undercroft deleted` and `undercroft undelete` bring files back"),
    (&["discard", "fstrim", "sparsify"], "`undercroft trim` gives free space back"),
    (&["dedup", "duperemove"], "`undercroft dedupe` lets files share blocks"),
    (&["tar", "unpack"], "`undercroft extract IMAGE -` writes a tar stream"),
    (&["pack", "create"], "`undercroft build` makes a volume of a tree"),
    (&["defrag", "fsr"], "`undercroft frag` says how files lie; `undercroft build` lays them anew"),
];

/// The way to what a word means elsewhere, if an error is that it is no command.
pub(crate) fn of(error: &clap::Error) -> Option<&'static str> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    TIPS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, way)| *way)
}
