//! A described file in few bytes, as all of them are in memory at once: 48 of them and its digests,
//! for a regular file or a directory that is described no further than mtree(5) does.

use super::arena::{Arena, Piece};
use super::file::{File, Origin};
use crate::Timestamp;
use crate::digest;
use crate::entry::{Kind, Xattr};
use crate::files::{Expected, PartialMetadata};

// What is there, as bits.
const MODE: u8 = 1;
const UID: u8 = 1 << 1;
const GID: u8 = 1 << 2;
const MTIME: u8 = 1 << 3;
const SIZE: u8 = 1 << 4;
const DIRECTORY: u8 = 1 << 5;
const AT_PATH: u8 = 1 << 6;

static REGULAR: Kind = Kind::Regular { size: 0, data: Vec::new() };

/// A [`File`].
pub(super) struct PackedFile {
    seconds: i64,
    size: u64,
    digests: Piece,
    rare: Option<Box<Rare>>,
    nanoseconds: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    bits: u8,
}

/// What few files have. Kind and place are here then, not in the bits.
struct Rare {
    kind: Kind,
    xattrs: Box<[Xattr]>,
    origin: Origin,
}

/// The bit of something, if it is so.
fn bit(is_so: bool, bit: u8) -> u8 {
    if is_so { bit } else { 0 }
}

impl PackedFile {
    pub(super) fn kind(&self) -> &Kind {
        match &self.rare {
            Some(rare) => &rare.kind,
            None if self.has(DIRECTORY) => &Kind::Directory,
            None => &REGULAR,
        }
    }

    /// The file; its digests are in `arena`.
    pub(super) fn file(&self, arena: &Arena) -> File {
        let (xattrs, origin) = match &self.rare {
            Some(rare) => (rare.xattrs.clone(), rare.origin.clone()),
            None if self.has(AT_PATH) => (Box::default(), Origin::AtPath),
            None => (Box::default(), Origin::Nowhere),
        };
        let mtime = Timestamp { seconds: self.seconds, nanoseconds: self.nanoseconds };
        let metadata = PartialMetadata {
            mode: self.has(MODE).then_some(self.mode),
            uid: self.has(UID).then_some(self.uid),
            gid: self.has(GID).then_some(self.gid),
            mtime: self.has(MTIME).then_some(mtime),
        };
        let size = self.has(SIZE).then_some(self.size);
        let expected = Expected { size, digests: digest::unpacked(arena.get(self.digests)) };
        File { kind: self.kind().clone(), metadata, xattrs, origin, expected }
    }

    /// Puts the digests into `arena`.
    pub(super) fn new(file: File, arena: &mut Arena) -> Self {
        let File { kind, metadata, xattrs, origin, expected } = file;
        let PartialMetadata { mode, uid, gid, mtime } = metadata;
        let mut bits = bit(mode.is_some(), MODE)
            | bit(uid.is_some(), UID)
            | bit(gid.is_some(), GID)
            | bit(mtime.is_some(), MTIME)
            | bit(expected.size.is_some(), SIZE);
        let is_plain = match (&kind, &origin) {
            _ if !xattrs.is_empty() => false,
            (Kind::Directory | Kind::Regular { .. }, Origin::Nowhere | Origin::AtPath) => true,
            _ => false,
        };
        let rare = if is_plain {
            bits |=
                bit(kind == Kind::Directory, DIRECTORY) | bit(origin == Origin::AtPath, AT_PATH);
            None
        } else {
            Some(Box::new(Rare { kind, xattrs, origin }))
        };
        let Timestamp { seconds, nanoseconds } = mtime.unwrap_or_default();
        Self {
            seconds,
            size: expected.size.unwrap_or_default(),
            digests: arena.push(&digest::packed(&expected.digests)),
            rare,
            nanoseconds,
            uid: uid.unwrap_or_default(),
            gid: gid.unwrap_or_default(),
            mode: mode.unwrap_or_default(),
            bits,
        }
    }

    fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntryPath;
    use crate::digest::{Algorithm, Digest};

    fn files() -> Vec<File> {
        let regular = Kind::Regular { size: 0, data: Vec::new() };
        let link = Kind::Symlink(b"target".to_vec());
        let path = EntryPath::from_checked(b"a/b".to_vec());
        let xattr = Xattr { name: b"user.x".to_vec(), value: b"y".to_vec() };
        let digests = vec![
            Digest::parse(Algorithm::Md5, &[b'1'; 32]).unwrap(),
            Digest::parse(Algorithm::Verity, &[b'f'; 64]).unwrap(),
            Digest::parse(Algorithm::Sha512, &[b'0'; 128]).unwrap(),
        ];
        let mtime = Timestamp { seconds: -1, nanoseconds: 999_999_999 };
        let all = PartialMetadata {
            mode: Some(0),
            uid: Some(0),
            gid: Some(u32::MAX),
            mtime: Some(mtime),
        };
        let one = |metadata| PartialMetadata { uid: Some(7), ..metadata };
        let mut files = Vec::new();
        for kind in [regular, link, Kind::Directory, Kind::Fifo, Kind::HardLink(path.clone())] {
            for origin in [Origin::Nowhere, Origin::AtPath, Origin::Below(path.clone())] {
                for (metadata, size, digests) in [
                    (all, Some(0), digests.clone()),
                    (one(PartialMetadata::default()), None, Vec::new()),
                    (
                        PartialMetadata { mtime: Some(mtime), ..PartialMetadata::default() },
                        Some(u64::MAX),
                        Vec::new(),
                    ),
                ] {
                    for xattrs in [Box::default(), Box::from([xattr.clone()])] {
                        let (kind, origin) = (kind.clone(), origin.clone());
                        let expected = Expected { size, digests: digests.clone() };
                        files.push(File { kind, metadata, xattrs, origin, expected });
                    }
                }
            }
        }
        files
    }

    #[test]
    fn what_is_stored_comes_back() {
        let mut arena = Arena::default();
        for file in files() {
            let packed = PackedFile::new(file.clone(), &mut arena);
            assert_eq!(*packed.kind(), file.kind);
            assert_eq!(packed.file(&arena), file);
        }
        assert_eq!(size_of::<PackedFile>(), 48);
    }
}
