//! A volume of the kernel's XFS with the files of a user, for what can be lost.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs};

/// Makes the volume in `home`, with what `add` adds to the directory of the user and to the root; returns
/// its image.
pub(crate) fn volume(home: &Path, add: impl FnOnce(&Path, &Path)) -> PathBuf {
    let image = home.join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, &[]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    let ann = mount.join("home/ann");
    fs::create_dir_all(ann.join("deep")).unwrap();
    fs::write(ann.join("letter.txt"), "dear Bob\n").unwrap();
    fs::hard_link(ann.join("letter.txt"), ann.join("deep/copy.txt")).unwrap();
    fs::write(ann.join("picture.jpg"), vec![7; 100_000]).unwrap();
    symlink("letter.txt", ann.join("link")).unwrap();
    chown(ann.join("picture.jpg"), Some(1000), Some(1001)).unwrap();
    add(&ann, mount.path());
    mount.unmount().unwrap();
    image
}

/// Sets an extended attribute.
pub(crate) fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}
