//! Options of a mount, and arguments of `ioctl` that the kernel hands on.

use crate::input::Input;
use undercroft_fuse::Settings;
use undercroft_fuse::ioctl::{FileFlags, decode_word, flags_of, word_of};
use undercroft_fuse::options::MountOptions;
use undercroft_xfs::format::InodeFlags;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    if input.byte() % 2 == 0 {
        let mut options = MountOptions::default();
        if options.add(&String::from_utf8_lossy(input.0)).is_ok() {
            options.apply(&mut Settings::new("image"));
        }
        return;
    }
    if let Some(flags) = FileFlags::decode(input.0) {
        let again = FileFlags::decode(&flags.encode());
        assert_eq!(again, Some(flags), "not read as it was written");
        let settable = flags.inode_flags();
        assert!(InodeFlags::all().contains(settable), "a flag that no inode has");
    }
    let old = InodeFlags::NODEFRAG;
    if let Some(word) = decode_word(input.0)
        && let Some((flags, is_direct)) = flags_of(word, old)
    {
        assert_eq!(word_of(flags, is_direct), word, "not the flags that were asked for");
        assert!(flags.contains(old), "a flag without a place in the word is lost");
    }
}
