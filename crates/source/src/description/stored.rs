//! A described file in few bytes, as all of them are in memory at once: 48 of them and its digests,
//! for a regular file or a directory that is described no further than mtree(5) does.

use super::arena::{Arena, Piece};
use super::described::{Expected, Told};
use super::digest;
use super::tree::{File, Whence};
use crate::Timestamp;
use crate::entry::{Kind, Xattr};

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
pub(super) struct Stored {
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
    whence: Whence,
}

/// The bit of something, if it is so.
fn bit(is_so: bool, bit: u8) -> u8 {
    if is_so { bit } else { 0 }
}

impl Stored {
    pub(super) fn kind(&self) -> &Kind {
        match &self.rare {
            Some(rare) => &rare.kind,
            None if self.has(DIRECTORY) => &Kind::Directory,
            None => &REGULAR,
        }
    }

    /// The file; its digests are in `arena`.
    pub(super) fn file(&self, arena: &Arena) -> File {
        let (xattrs, whence) = match &self.rare {
            Some(rare) => (rare.xattrs.clone(), rare.whence.clone()),
            None if self.has(AT_PATH) => (Box::default(), Whence::AtPath),
            None => (Box::default(), Whence::Nowhere),
        };
        let mtime = Timestamp { seconds: self.seconds, nanoseconds: self.nanoseconds };
        let told = Told {
            mode: self.has(MODE).then_some(self.mode),
            uid: self.has(UID).then_some(self.uid),
            gid: self.has(GID).then_some(self.gid),
            mtime: self.has(MTIME).then_some(mtime),
        };
        let size = self.has(SIZE).then_some(self.size);
        let expected = Expected { size, digests: digest::unpacked(arena.get(self.digests)) };
        File { kind: self.kind().clone(), told, xattrs, whence, expected }
    }

    /// Puts the digests into `arena`.
    pub(super) fn new(file: File, arena: &mut Arena) -> Self {
        let File { kind, told, xattrs, whence, expected } = file;
        let Told { mode, uid, gid, mtime } = told;
        let mut bits = bit(mode.is_some(), MODE)
            | bit(uid.is_some(), UID)
            | bit(gid.is_some(), GID)
            | bit(mtime.is_some(), MTIME)
            | bit(expected.size.is_some(), SIZE);
        let is_plain = match (&kind, &whence) {
            _ if !xattrs.is_empty() => false,
            (Kind::Directory | Kind::Regular { .. }, Whence::Nowhere | Whence::AtPath) => true,
            _ => false,
        };
        let rare = if is_plain {
            bits |=
                bit(kind == Kind::Directory, DIRECTORY) | bit(whence == Whence::AtPath, AT_PATH);
            None
        } else {
            Some(Box::new(Rare { kind, xattrs, whence }))
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
    use crate::description::digest::{Algorithm, Digest};

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
        let all = Told { mode: Some(0), uid: Some(0), gid: Some(u32::MAX), mtime: Some(mtime) };
        let one = |told| Told { uid: Some(7), ..told };
        let mut files = Vec::new();
        for kind in [regular, link, Kind::Directory, Kind::Fifo, Kind::HardLink(path.clone())] {
            for whence in [Whence::Nowhere, Whence::AtPath, Whence::Below(path.clone())] {
                for (told, size, digests) in [
                    (all, Some(0), digests.clone()),
                    (one(Told::default()), None, Vec::new()),
                    (Told { mtime: Some(mtime), ..Told::default() }, Some(u64::MAX), Vec::new()),
                ] {
                    for xattrs in [Box::default(), Box::from([xattr.clone()])] {
                        let (kind, whence) = (kind.clone(), whence.clone());
                        let expected = Expected { size, digests: digests.clone() };
                        files.push(File { kind, told, xattrs, whence, expected });
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
            let stored = Stored::new(file.clone(), &mut arena);
            assert_eq!(*stored.kind(), file.kind);
            assert_eq!(stored.file(&arena), file);
        }
        assert_eq!(size_of::<Stored>(), 48);
    }
}
