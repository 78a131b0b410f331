//! Hostile bytes: the reader ends with entries or an error, never with a panic, and never delivers
//! entries that break their rules.

use crate::archive::{Archive, header, seal};
use crate::collect::{Delivered, read_bytes};
use proptest::prelude::*;
use std::collections::HashMap;
use undercroft_source::{Kind, Options};

/// One of everything.
fn archive() -> Vec<u8> {
    let mut sparse = header(b"gnu-sparse", b'S', 512);
    sparse[257..265].copy_from_slice(b"ustar  \0");
    sparse[386..410].copy_from_slice(b"00000010000\x0000000001000\0");
    sparse[483..495].copy_from_slice(b"00000100000\0");
    let text: [(&str, &[u8]); 4] = [
        ("GNU.sparse.major", b"1"),
        ("GNU.sparse.minor", b"0"),
        ("GNU.sparse.realsize", b"1000"),
        ("GNU.sparse.name", b"dir/pax-sparse"),
    ];
    let records: [(&str, &[u8]); 4] = [
        ("path", b"dir/long"),
        ("mtime", b"12.5"),
        ("SCHILY.xattr.user.x", b"value"),
        ("SCHILY.acl.access", b"user::rw-,group::r--,other::r--"),
    ];
    let map = [&b"1\n0\n5\n"[..], &[0; 506], b"12345"].concat();
    Archive::default()
        .directory("./")
        .directory("dir")
        .file("dir/file", &[1; 700])
        .link("dir/hard", b'1', "dir/file")
        .link("soft", b'2', "dir/file")
        .entry("g", b'g', &crate::archive::record("uid", b"5"))
        .pax(&records)
        .file("x", b"pax")
        .entry("L", b'L', b"long-name\0")
        .file("y", b"")
        .raw(&seal(sparse))
        .raw(&[2; 512])
        .pax(&text)
        .file("z", &map)
        .end()
}

/// Checks the rules on paths, links and ranges that hold for every stream.
fn check(delivered: &[Delivered]) -> Result<(), TestCaseError> {
    let mut kinds: HashMap<Vec<u8>, bool> = HashMap::from([(Vec::new(), true)]);
    for Delivered { entry, data } in delivered {
        for component in entry.path.components() {
            let allowed = component != b"." && component != b".." && component.len() <= 255;
            prop_assert!(allowed && !component.contains(&0));
        }
        let directory = entry.kind == Kind::Directory;
        if let Some((parent, _)) = entry.path.split_last() {
            prop_assert_eq!(kinds.get(parent), Some(&true));
        }
        let before = kinds.insert(entry.path.as_bytes().to_vec(), directory);
        prop_assert!(before.is_none_or(|before| before == directory));
        prop_assert_eq!(entry.replaces, before == Some(false));
        if let Kind::HardLink(target) = &entry.kind {
            prop_assert_eq!(kinds.get(target.as_bytes()), Some(&false));
        }
        let total: u64 = match &entry.kind {
            Kind::Regular { size, data } => {
                prop_assert!(data.iter().all(|range| range.length > 0 && range.end() <= *size));
                prop_assert!(data.windows(2).all(|pair| pair[0].end() < pair[1].offset));
                data.iter().map(|range| range.length).sum()
            }
            _ => 0,
        };
        prop_assert_eq!(total, data.len() as u64);
    }
    Ok(())
}

/// Puts right checksums at the places where the unchanged archive has headers.
fn seal_all(bytes: &mut [u8]) {
    for block in bytes.chunks_exact_mut(512) {
        let is_header = block[257..262] == *b"ustar";
        if let (true, Ok(header)) = (is_header, <[u8; 512]>::try_from(&*block)) {
            block.copy_from_slice(&seal(header));
        }
    }
}

#[test]
fn the_archive_that_is_mutated_is_good() {
    let all = read_bytes(&archive(), &Options::default()).unwrap();
    assert_eq!(all.len(), 9);
    check(&all).unwrap();
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        if let Ok(all) = read_bytes(&bytes, &Options::default()) {
            check(&all)?;
        }
    }

    #[test]
    fn random_headers_with_right_sums_never_panic(
        blocks in prop::collection::vec(
            (prop::array::uniform32(any::<u8>()), any::<[u8; 4]>(), 0usize..512), 1..8)
    ) {
        let mut bytes = Vec::new();
        for (content, tail, at) in blocks {
            let mut block = header(b"name", b"01257SLKxg"[usize::from(tail[0]) % 10], 0);
            for (index, byte) in content.into_iter().enumerate() {
                block[(at + index) % 512] = byte;
            }
            bytes.extend_from_slice(&seal(block));
        }
        if let Ok(all) = read_bytes(&bytes, &Options::default()) {
            check(&all)?;
        }
    }

    #[test]
    fn mutated_archives_never_panic_and_keep_the_rules(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        sealed in any::<bool>(),
    ) {
        let mut bytes = archive();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if sealed {
            seal_all(&mut bytes);
        }
        if let Ok(all) = read_bytes(&bytes, &Options::default()) {
            check(&all)?;
        }
    }
}
