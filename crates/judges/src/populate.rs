//! A volume that a kernel filled and aged: every structure of the format in use, free space in
//! pieces, blocks shared and unwritten.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use rustix::fs::{FallocateFlags, XattrFlags, fallocate, ioctl_ficlone, setxattr};
use rustix::io::Errno;

use crate::Error;
use crate::random::Random;

/// Fills the mounted volume at `root`. With 4 KiB blocks it holds, under fixed paths:
///
/// | path | structure |
/// |---|---|
/// | `directories/{short,block,leaf,node}` | a directory of each form |
/// | `attributes/{short,leaf,node,remote}` | an attribute fork of each form |
/// | `links/{short,remote}` | symbolic links |
/// | `files/{extents,btree,punched,unwritten,shared,clone,truncated}` | data forks |
/// | `aged/` | the rest of many files, created and removed by turns |
///
/// Everything depends on `root` alone, but for times and the kernel's choice of blocks.
///
/// # Errors
/// The volume is too small (about 96 MiB are needed at 4 KiB blocks), or not writable.
pub fn populate(root: &Path) -> Result<(), Error> {
    directories(&root.join("directories"))?;
    attributes(&root.join("attributes"))?;
    links(&root.join("links"))?;
    files(&root.join("files"))?;
    age(&root.join("aged"))
}

fn make_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("cannot create", path))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::io("cannot write", path))
}

fn directories(home: &Path) -> Result<(), Error> {
    for (form, entries) in [("short", 3), ("block", 40), ("leaf", 300), ("node", 3_000)] {
        let directory = home.join(form);
        make_directory(&directory)?;
        for number in 0..entries {
            write(&directory.join(format!("entry-{number:06}-with-a-longer-name")), b"")?;
        }
    }
    Ok(())
}

fn attributes(home: &Path) -> Result<(), Error> {
    make_directory(home)?;
    for (form, count, length) in
        [("short", 2, 10), ("leaf", 15, 100), ("node", 400, 100), ("remote", 2, 10_000)]
    {
        let path = home.join(form);
        write(&path, b"")?;
        for number in 0..count {
            let name = format!("user.attribute-number-{number:05}");
            setxattr(&path, name.as_str(), &vec![b'v'; length], XattrFlags::empty())
                .map_err(Error::io("cannot set an attribute of", &path))?;
        }
    }
    Ok(())
}

fn links(home: &Path) -> Result<(), Error> {
    make_directory(home)?;
    for (form, length) in [("short", 20), ("remote", 1_000)] {
        let path = home.join(form);
        symlink("t".repeat(length), &path).map_err(Error::io("cannot create", &path))?;
    }
    Ok(())
}

fn files(home: &Path) -> Result<(), Error> {
    /// A unit that is a whole number of blocks of any size.
    const UNIT: u64 = 65_536;
    make_directory(home)?;
    let open = |name: &str| {
        let path = home.join(name);
        let options =
            File::options().read(true).write(true).create(true).truncate(true).open(&path);
        options.map_err(Error::io("cannot create", &path)).map(|file| (file, path))
    };

    let (file, path) = open("extents")?;
    for piece in 0..6 {
        file.write_all_at(b"piece", piece * 3 * UNIT).map_err(Error::io("cannot write", &path))?;
    }
    // Each piece is an extent of its own: far more than an inode of any size can hold.
    let (file, path) = open("btree")?;
    for piece in 0..700 {
        file.write_all_at(b"piece", piece * 2 * UNIT).map_err(Error::io("cannot write", &path))?;
    }
    let (file, path) = open("punched")?;
    file.write_all_at(&vec![b'p'; 1 << 20], 0).map_err(Error::io("cannot write", &path))?;
    file.sync_all().map_err(Error::io("cannot write", &path))?;
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for hole in 0..4 {
        fallocate(&file, punch, (4 * hole + 1) * UNIT, 2 * UNIT)
            .map_err(Error::io("cannot punch a hole into", &path))?;
    }
    let (file, path) = open("unwritten")?;
    fallocate(&file, FallocateFlags::empty(), 0, 8 * UNIT)
        .map_err(Error::io("cannot allocate", &path))?;
    file.write_all_at(b"written", 3 * UNIT).map_err(Error::io("cannot write", &path))?;

    let (shared, path) = open("shared")?;
    shared.write_all_at(&vec![b's'; 1 << 20], 0).map_err(Error::io("cannot write", &path))?;
    let (clone, path) = open("clone")?;
    match ioctl_ficlone(&clone, &shared) {
        // The volume has no reflink: the clone is an ordinary file.
        Ok(()) | Err(Errno::OPNOTSUPP) => {}
        Err(error) => return Err(Error::io("cannot clone", &path)(error)),
    }
    clone.write_all_at(b"changed", 5 * UNIT).map_err(Error::io("cannot write", &path))?;

    let (file, path) = open("truncated")?;
    file.write_all_at(&vec![b't'; 1 << 20], 0).map_err(Error::io("cannot write", &path))?;
    file.set_len(UNIT + 5).map_err(Error::io("cannot truncate", &path))
}

/// Creates, rewrites and removes files by turns, so that free blocks and inodes lie in pieces.
fn age(home: &Path) -> Result<(), Error> {
    const TURNS: u64 = 1_500;
    const NAMES: u64 = 300;
    make_directory(home)?;
    let mut random = Random::new(1);
    for _ in 0..TURNS {
        let path = home.join(random.below(NAMES).to_string());
        if path.exists() && random.one_in(2) {
            fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
        } else {
            let length = usize::try_from(random.magnitude(15)).unwrap_or(0);
            write(&path, &vec![b'a'; length])?;
        }
    }
    Ok(())
}
