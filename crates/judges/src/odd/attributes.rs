//! Extended attributes of all namespaces, ACLs, labels and capabilities.

use std::path::Path;

use rustix::fs::{XattrFlags, lsetxattr};

use super::Maker;
use crate::Error;

pub(super) fn make(maker: &mut Maker) -> Result<(), Error> {
    let directory = maker.directory("attributes")?;
    namespaces(maker, &directory)?;
    values(maker, &directory)?;
    many(maker, &directory)?;
    acls(maker, &directory)?;
    on_other_kinds(maker, &directory)
}

/// Sets one attribute.
fn set(maker: &mut Maker, path: &Path, name: &[u8], value: &[u8]) -> Result<(), Error> {
    let done = lsetxattr(path, name, value, XattrFlags::empty());
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let what = format!("{} bytes in {} of {file}", value.len(), name.escape_ascii());
    maker.attempt(&what, path, done)
}

fn namespaces(maker: &mut Maker, directory: &Path) -> Result<(), Error> {
    let path = directory.join("namespaces");
    Maker::file(&path)?;
    set(maker, &path, b"user.one", b"user value")?;
    set(maker, &path, b"trusted.one", b"trusted value")?;
    set(maker, &path, b"security.one", b"security value")?;
    set(maker, &path, b"security.selinux", b"system_u:object_r:etc_t:s0\0")?;
    // cap_net_raw, permitted and effective, in the second revision of the format.
    let mut capability = [0_u8; 20];
    capability[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
    capability[4..8].copy_from_slice(&(1_u32 << 13).to_le_bytes());
    set(maker, &path, b"security.capability", &capability)
}

fn values(maker: &mut Maker, directory: &Path) -> Result<(), Error> {
    for length in [0, 1, 100, 255, 256, 1_000, 3_000, 4_096, 10_000, 65_535, 65_536] {
        let path = directory.join(format!("value-of-{length}"));
        Maker::file(&path)?;
        let value: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
        set(maker, &path, b"user.value", &value)?;
    }
    let path = directory.join("names");
    Maker::file(&path)?;
    let mut longest = b"user.".to_vec();
    longest.resize(255, b'n');
    set(maker, &path, &longest, b"longest name")?;
    set(maker, &path, b"user.not utf-8 \xff\xfe\n", b"odd name")?;
    set(maker, &path, b"user.binary", &[0, 1, 2, 0xff, 0])
}

fn many(maker: &mut Maker, directory: &Path) -> Result<(), Error> {
    // Local, leaf and node form of an attribute fork.
    for count in [2, 20, 60, 1_500] {
        let path = directory.join(format!("with-{count}"));
        Maker::file(&path)?;
        for number in 0..count {
            let name = format!("user.attribute-number-{number:05}");
            let done = lsetxattr(&path, name.as_str(), name.as_bytes(), XattrFlags::empty());
            let refused = done.is_err();
            maker.attempt(&format!("{count} attributes of one file"), &path, done)?;
            if refused {
                break;
            }
        }
    }
    Ok(())
}

fn acls(maker: &mut Maker, directory: &Path) -> Result<(), Error> {
    let access = acl(3);
    let file = directory.join("acl-file");
    Maker::file(&file)?;
    set(maker, &file, b"system.posix_acl_access", &access)?;
    let inner = maker.directory("attributes/acl-directory")?;
    set(maker, &inner, b"system.posix_acl_access", &access)?;
    set(maker, &inner, b"system.posix_acl_default", &acl(20))?;
    Maker::file(&inner.join("inherits"))
}

/// An ACL with `named` users, in the form of the system call.
fn acl(named: u32) -> Vec<u8> {
    const ANY: u32 = u32::MAX;
    let mut entries = vec![(0x01_u16, 7_u16, ANY)];
    entries.extend((0..named).map(|user| (0x02, 5, 1_000 + user)));
    entries.extend([(0x04, 5, ANY), (0x08, 4, 2_000), (0x10, 7, ANY), (0x20, 0, ANY)]);
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn on_other_kinds(maker: &mut Maker, directory: &Path) -> Result<(), Error> {
    let inner = maker.directory("attributes/directory")?;
    set(maker, &inner, b"user.on-directory", b"value")?;
    let link = directory.join("link");
    std::os::unix::fs::symlink("l".repeat(700), &link)
        .map_err(Error::io("cannot create", &link))?;
    set(maker, &link, b"trusted.on-link", &[b'v'; 900])?;
    let fifo = directory.join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
        .map_err(Error::io("cannot create", &fifo))?;
    set(maker, &fifo, b"trusted.on-fifo", b"value")
}
