//! Pieces kept in a file, which processes share and which outlives them.
//!
//! The file has slots of a piece each. Eight slots are a set, and the key of a piece says its set, so nothing
//! has to be kept in memory, and the file never is longer than it may be. It is opened once: a server that may
//! not open files any more goes on using it.
//!
//! Whoever reads takes no lock: the checksum of a piece, and that of its entry, tell what was cut short or is
//! being overwritten. Locks are those of an open file (OFD), which end with it, however that ends: one
//! for each set that is written, and one for each group of pieces that is being fetched.
//!
//! ```text
//! 0      header: magic, slots, checksum
//! 4096   entries of 64 bytes: key, length, checksum of the piece, checksum of these; time of the last use
//! ...    pieces, 1 MiB each
//! ```

use crate::digest::Digest;
use crate::error::StoreError;
use nix::fcntl::{FcntlArg, fcntl};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a piece.
pub(crate) const PIECE: u64 = 1 << 20;

const FILE: &str = "pieces";
const MAGIC: &[u8; 8] = b"UCPIECE1";
const HEADER: usize = 20;
const ENTRIES: u64 = 4096;
const ENTRY: usize = 64;
/// Bytes of an entry below its checksum.
const CHECKED: usize = 40;
/// Where the time of the last use stands in an entry.
const USED: usize = 48;
/// Slots of a set.
const WAYS: u64 = 8;
/// Locks of sets, and of groups, are behind all bytes that a file can have here.
const SET_LOCKS: i64 = 1 << 61;
const GROUP_LOCKS: i64 = 1 << 62;
/// Mutexes by which threads of this process write sets in turn.
const TURNS: usize = 16;

/// Where pieces are kept, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The directory; it is made if it is not there.
    pub directory: PathBuf,
    /// Most bytes of pieces, at least 64 MiB. It counts when the file is made.
    pub bytes: u64,
}

/// A file of pieces.
pub(crate) struct DiskCache {
    file: File,
    slots: u64,
    turns: [Mutex<()>; TURNS],
    /// How many of this process have each lock of a group: it is one lock for all of them.
    groups: Mutex<HashMap<i64, usize>>,
}

/// The lock of a group of pieces, which the process that fetches them has.
pub(crate) struct GroupLock<'c> {
    cache: &'c DiskCache,
    at: i64,
}

struct Entry {
    key: [u8; 32],
    length: u32,
    checksum: u32,
    used: u64,
}

impl Entry {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let number =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let is_good = number(CHECKED) == crc32c::crc32c(&bytes[..CHECKED]) && number(32) != 0;
        is_good.then(|| Self {
            key: bytes[..32].try_into().unwrap_or_default(),
            length: number(32),
            checksum: number(36),
            used: u64::from_le_bytes(bytes[USED..USED + 8].try_into().unwrap_or_default()),
        })
    }

    fn encode(&self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..32].copy_from_slice(&self.key);
        bytes[32..36].copy_from_slice(&self.length.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..CHECKED + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes[USED..USED + 8].copy_from_slice(&self.used.to_le_bytes());
        bytes
    }
}

/// Seconds since 1970: only the order of uses counts.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl DiskCache {
    /// Opens the cache in a directory, or makes it.
    ///
    /// # Errors
    /// It cannot be made, opened or locked.
    pub(crate) fn open(options: &CacheOptions) -> Result<Self, StoreError> {
        let path = options.directory.join(FILE);
        let failed = |error: io::Error| {
            StoreError::local(format!("cannot use the cache {}", path.display()), &error)
        };
        // What is in it may be secret.
        DirBuilder::new().recursive(true).mode(0o700).create(&options.directory).map_err(failed)?;
        let file = open_file(&path).map_err(failed)?;
        lock(&file, libc::F_WRLCK, 0).map_err(failed)?;
        let slots = prepare(&file, options.bytes).map_err(failed)?;
        lock(&file, libc::F_UNLCK, 0).map_err(failed)?;
        Ok(Self { file, slots, turns: Default::default(), groups: Mutex::default() })
    }

    const fn sets(&self) -> u64 {
        self.slots / WAYS
    }

    fn set_of(&self, key: &Digest) -> u64 {
        number(&key.0[..8]) % self.sets()
    }

    const fn entry_at(slot: u64) -> u64 {
        ENTRIES + slot * ENTRY as u64
    }

    const fn piece_at(&self, slot: u64) -> u64 {
        (ENTRIES + self.slots * ENTRY as u64).next_multiple_of(PIECE) + slot * PIECE
    }

    fn entries(&self, set: u64) -> io::Result<[Option<Entry>; WAYS as usize]> {
        let mut bytes = [0; ENTRY * WAYS as usize];
        self.file.read_exact_at(&mut bytes, Self::entry_at(set * WAYS))?;
        Ok(std::array::from_fn(|way| Entry::decode(&bytes[way * ENTRY..(way + 1) * ENTRY])))
    }

    /// A piece of this length, if it is there and whole.
    pub(crate) fn get(&self, key: &Digest, length: usize) -> Option<Box<[u8]>> {
        let set = self.set_of(key);
        let entries = self.entries(set).ok()?;
        let is_wanted = |entry: &Entry| entry.key == key.0 && entry.length as usize == length;
        let way = entries.iter().position(|entry| entry.as_ref().is_some_and(is_wanted))?;
        let entry = entries[way].as_ref()?;
        let slot = set * WAYS + way as u64;
        let mut piece = vec![0; length].into_boxed_slice();
        self.file.read_exact_at(&mut piece, self.piece_at(slot)).ok()?;
        if crc32c::crc32c(&piece) != entry.checksum {
            return None;
        }
        let now = now();
        if now > entry.used {
            // Only the order of evictions suffers where that fails.
            let at = Self::entry_at(slot) + USED as u64;
            let _ = self.file.write_all_at(&now.to_le_bytes(), at);
        }
        Some(piece)
    }

    /// Keeps a piece of at most [`PIECE`] bytes in the place of the one that was not used for longest.
    pub(crate) fn put(&self, key: &Digest, piece: &[u8]) -> io::Result<()> {
        let set = self.set_of(key);
        let _turn = self.turns[set as usize % TURNS].lock();
        let at = SET_LOCKS + i64::try_from(set).map_err(io::Error::other)?;
        lock(&self.file, libc::F_WRLCK, at)?;
        let done = self.put_locked(key, piece, set);
        lock(&self.file, libc::F_UNLCK, at)?;
        done
    }

    fn put_locked(&self, key: &Digest, piece: &[u8], set: u64) -> io::Result<()> {
        let entries = self.entries(set)?;
        let own = entries.iter().position(|entry| entry.as_ref().is_some_and(|e| e.key == key.0));
        let oldest = || {
            let ways = entries.iter().enumerate();
            ways.min_by_key(|(_, entry)| entry.as_ref().map_or(0, |entry| entry.used + 1))
        };
        let way = own.or_else(|| oldest().map(|(way, _)| way)).unwrap_or(0);
        let slot = set * WAYS + way as u64;
        // Nobody takes a part of the new piece for all of the old one.
        self.file.write_all_at(&[0; ENTRY], Self::entry_at(slot))?;
        self.file.write_all_at(piece, self.piece_at(slot))?;
        let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
        let checksum = crc32c::crc32c(piece);
        let entry = Entry { key: key.0, length, checksum, used: now() };
        self.file.write_all_at(&entry.encode(), Self::entry_at(slot))
    }

    /// Waits until no other process fetches the group of pieces with this key. Without locks, where the
    /// file system has none, several may fetch it.
    pub(crate) fn lock_group(&self, key: &Digest) -> Option<GroupLock<'_>> {
        // Below 2^61.
        let at = GROUP_LOCKS + (number(&key.0[8..16]) >> 3) as i64;
        // Counted before, so that nobody gives it back meanwhile.
        *self.groups.lock().entry(at).or_default() += 1;
        let held = GroupLock { cache: self, at };
        lock(&self.file, libc::F_WRLCK, at).ok()?;
        Some(held)
    }
}

impl Drop for GroupLock<'_> {
    fn drop(&mut self) {
        let mut groups = self.cache.groups.lock();
        if let Some(count) = groups.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                groups.remove(&self.at);
                // It ends with the file at the latest.
                let _ = lock(&self.cache.file, libc::F_UNLCK, self.at);
            }
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Reads the header, or makes the file anew if it has none. Returns the number of slots.
fn prepare(file: &File, bytes: u64) -> io::Result<u64> {
    let mut header = [0; HEADER];
    if file.read_exact_at(&mut header, 0).is_ok() {
        let slots = u64::from_le_bytes(header[8..16].try_into().unwrap_or_default());
        let checksum = u32::from_le_bytes(header[16..].try_into().unwrap_or_default());
        let is_good = header.starts_with(MAGIC)
            && checksum == crc32c::crc32c(&header[..16])
            && slots.is_multiple_of(WAYS)
            && (WAYS..1 << 40).contains(&slots);
        if is_good {
            return Ok(slots);
        }
    }
    let slots = (bytes / PIECE).clamp(64, 1 << 24) / WAYS * WAYS;
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&slots.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..16]);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    file.set_len(0)?;
    let end = (ENTRIES + slots * ENTRY as u64).next_multiple_of(PIECE) + slots * PIECE;
    file.set_len(end)?;
    file.write_all_at(&header, 0)?;
    Ok(slots)
}

/// Waits for the lock of a byte, or gives it back.
fn lock(file: &File, kind: i32, at: i64) -> io::Result<()> {
    let range = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at,
        l_len: 1,
        l_pid: 0,
    };
    loop {
        match fcntl(file, FcntlArg::F_OFD_SETLKW(&range)) {
            Ok(_) => return Ok(()),
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn cache(directory: &Path) -> DiskCache {
        let bytes = 64 << 20;
        DiskCache::open(&CacheOptions { directory: directory.to_owned(), bytes }).unwrap()
    }

    #[test]
    fn pieces_survive_and_damage_is_seen() {
        let home = std::env::temp_dir().join(format!("undercroft-pieces-{}", std::process::id()));
        let key = Digest::of(b"key");
        let first = cache(&home);
        assert!(first.get(&key, 5).is_none());
        first.put(&key, b"piece").unwrap();
        drop(first);
        let second = cache(&home);
        assert_eq!(second.get(&key, 5).as_deref(), Some(&b"piece"[..]));
        assert!(second.get(&key, 4).is_none());
        let slot = (0..second.slots)
            .find(|slot| {
                let mut entry = [0; ENTRY];
                second.file.read_exact_at(&mut entry, DiskCache::entry_at(*slot)).unwrap();
                Entry::decode(&entry).is_some()
            })
            .unwrap();
        second.file.write_all_at(b"P", second.piece_at(slot)).unwrap();
        assert!(second.get(&key, 5).is_none(), "a damaged piece was believed");
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn the_file_does_not_grow_and_what_was_used_stays() {
        let home = std::env::temp_dir().join(format!("undercroft-bound-{}", std::process::id()));
        let cache = cache(&home);
        let length = cache.file.metadata().unwrap().len();
        for number in 0..500_u32 {
            cache.put(&Digest::of(&number.to_le_bytes()), &[1; 100]).unwrap();
        }
        assert_eq!(cache.file.metadata().unwrap().len(), length);
        let is_there = |number: &u32| cache.get(&Digest::of(&number.to_le_bytes()), 100).is_some();
        let kept = (0..500).filter(is_there).count();
        assert!((32..=64).contains(&kept), "{kept} of 64 slots");
        assert!(is_there(&499));
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_group_is_fetched_by_one_at_a_time() {
        let home = std::env::temp_dir().join(format!("undercroft-group-{}", std::process::id()));
        // Two files are two processes, as far as these locks know.
        let (one, two) = (cache(&home), cache(&home));
        let key = Digest::of(b"group");
        let held = one.lock_group(&key).unwrap();
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = two.lock_group(&key).unwrap();
                sender.send(()).unwrap();
            });
            assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
            drop(held);
            receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        });
        std::fs::remove_dir_all(home).unwrap();
    }
}
