//! Inputs to start from, where a fuzzer would take long to find the first that leads anywhere.
//!
//! Archives are made when they are wanted, by the programs that people make them with, one for each
//! form in which something is stored, and by the writer of this project.

use crate::archive::open_checksums;
use crate::managers;
use crate::partitions;
use rustix::fs::{Mode, XattrFlags, mkfifoat, setxattr};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_image::{pack, unpack};
use undercroft_source::SourceSpec;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{Acl, AclEntry, AclTag};

/// Pieces of a file: so many that an old map of them has two more blocks, both more than half full, as
/// what looks like an empty checksum is filled in.
const PIECES: u64 = 40;

/// What is archived, and how: arguments of GNU tar.
const GNU: &[(&str, &[&str])] = &[
    ("kinds", &["--format=v7", "--exclude=pipe"]),
    ("kinds", &["--format=oldgnu"]),
    ("kinds", &["--format=gnu"]),
    ("kinds", &["--format=ustar"]),
    ("kinds", &["--format=posix"]),
    ("kinds", &["--format=gnu", "--owner=x:4000000000", "--group=x:4000000000", "--mtime=@-5"]),
    ("kinds", &["--format=posix", "--owner=x:4000000000", "--mtime=@-5.25"]),
    ("kinds", &["--format=posix", "--pax-option=comment=all,gname=other"]),
    ("kinds", &["--format=gnu", "--label=volume"]),
    ("kinds", &["--format=posix", "--incremental"]),
    ("names", &["--format=gnu"]),
    ("names", &["--format=ustar", "--exclude=*x"]),
    ("names", &["--format=posix"]),
    ("holes", &["--format=oldgnu", "--sparse"]),
    ("holes", &["--format=posix", "--sparse", "--sparse-version=0.0"]),
    ("holes", &["--format=posix", "--sparse", "--sparse-version=0.1"]),
    ("holes", &["--format=posix", "--sparse", "--sparse-version=1.0"]),
    ("pieces", &["--format=gnu", "--sparse", "--hole-detection=raw"]),
    ("pieces", &["--format=posix", "--sparse", "--hole-detection=raw"]),
    ("attributes", &["--format=posix", "--xattrs", "--xattrs-include=*", "--acls"]),
];

/// The same of bsdtar.
const BSD: &[(&str, &[&str])] = &[
    ("kinds", &["--format=ustar"]),
    ("kinds", &["--format=pax"]),
    ("kinds", &["--format=gnutar"]),
    ("names", &["--format=pax"]),
    ("names", &["--format=gnutar"]),
    ("holes", &["--format=pax"]),
    ("attributes", &["--format=pax", "--xattrs", "--acls"]),
    ("bytes", &["--format=pax"]),
    ("bytes", &["--format=pax", "--options=hdrcharset=BINARY"]),
];

/// Inputs for a target, by name; most have none. They are made in an empty directory, whose file system
/// has holes and extended attributes.
///
/// # Errors
/// A file or directory cannot be made, or a program is missing or fails.
pub fn seeds(target: &str, scratch: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    match target {
        "tar" => archives(scratch),
        "partition_table" => {
            let seeds = partitions::seeds().into_iter();
            Ok((1..).map(|number: u32| format!("disk-{number}")).zip(seeds).collect())
        }
        "volume_managers" => {
            let seeds = managers::seeds().into_iter();
            Ok((1..).map(|number: u32| format!("disk-{number}")).zip(seeds).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn archives(scratch: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    make_trees(scratch)?;
    let mut archives = Vec::new();
    for (program, all) in [("tar", GNU), ("bsdtar", BSD)] {
        for (number, (tree, arguments)) in all.iter().enumerate() {
            let mut command = Command::new(program);
            // Without a blocking factor there would be zeros to the end of 20 blocks.
            command.args(["-c", "-f", "-", "-b", "1"]).args(*arguments);
            let made = command.arg("-C").arg(scratch.join(tree)).arg(".").output()?;
            if !made.status.success() {
                let said = String::from_utf8_lossy(&made.stderr);
                return Err(io::Error::other(format!("{program} {arguments:?}: {said}")));
            }
            archives.push((format!("{program}-{number}-{tree}"), made.stdout));
        }
    }
    for tree in ["kinds", "names", "holes", "attributes", "bytes"] {
        let made = written(&scratch.join(tree), &scratch.join("image"));
        archives.push((format!("own-{tree}"), made.map_err(io::Error::other)?));
    }
    archives.iter_mut().for_each(|(_, archive)| open_checksums(archive));
    Ok(archives)
}

/// A tree as our own writer puts it into an archive.
fn written(tree: &Path, image: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut options = pack::PackOptions::new(SourceSpec::Path(tree.into()), image.to_owned());
    options.force = true;
    pack::build(&options, &mut |_| ())?;
    let volume = Arc::new(Volume::open(Arc::new(FileDevice::open(image, true)?))?);
    let mut archive = Vec::new();
    unpack::to_tar(&volume, &mut archive, &mut |_| ())?;
    Ok(archive)
}

/// The trees that are archived: each a few blocks.
fn make_trees(scratch: &Path) -> io::Result<()> {
    for tree in ["kinds/d", "names", "holes", "pieces", "attributes", "bytes"] {
        fs::create_dir_all(scratch.join(tree))?;
    }
    let kinds = scratch.join("kinds");
    fs::write(kinds.join("d/file"), "contents")?;
    fs::write(kinds.join("empty"), "")?;
    fs::hard_link(kinds.join("d/file"), kinds.join("linked"))?;
    symlink("d/file", kinds.join("link"))?;
    mkfifoat(rustix::fs::CWD, kinds.join("pipe"), Mode::from_raw_mode(0o600))?;

    let names = scratch.join("names");
    let long = names.join("directory".repeat(9));
    fs::create_dir(&long)?;
    fs::write(long.join("file".repeat(9)), "")?;
    fs::write(long.join("x".repeat(200)), "")?;
    symlink("target/".repeat(30), names.join("link-x"))?;

    let holes = File::create(scratch.join("holes/file"))?;
    holes.set_len(1 << 20)?;
    holes.write_all_at(b"data", 64 << 10)?;
    let pieces = File::create(scratch.join("pieces/file"))?;
    pieces.set_len(1 << 20)?;
    for piece in 0..PIECES {
        pieces.write_all_at(b"data", piece * 1024)?;
    }

    let attributes = scratch.join("attributes/file");
    fs::write(&attributes, "labelled")?;
    setxattr(&attributes, "user.name", b"va\0lue\n", XattrFlags::empty())?;
    setxattr(&attributes, "system.posix_acl_access", &access_list()?, XattrFlags::empty())?;

    let name = std::ffi::OsStr::from_bytes(b"not \xff\xfe text");
    fs::write(scratch.join("bytes").join(name), "")
}

/// An access control list with an entry for a user of its own.
fn access_list() -> io::Result<Vec<u8>> {
    let entries = [
        (AclTag::UserObj, 6),
        (AclTag::User(1000), 4),
        (AclTag::GroupObj, 4),
        (AclTag::Mask, 4),
        (AclTag::Other, 4),
    ];
    let list = Acl::new(entries.map(|(tag, permissions)| AclEntry { tag, permissions }).to_vec());
    Ok(list.map_err(io::Error::other)?.to_xattr())
}
