//! The headers of an archive in a file, read by a thread of their own before they are decoded.
//!
//! It goes from header to header by their sizes alone, which is a guess: records before a header may
//! state another size, and the map of a sparse file may follow one. So a scan takes bytes from here
//! only where it is at their very place, and reads by itself elsewhere: a wrong guess costs time, and
//! nothing else.

use super::extended::{Extended, LIMIT};
use super::header::{BLOCK, Header};
use crate::Chunk;
use crate::region::Region;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes that are read at a time: a header, and behind an empty file the next.
pub(super) const READ_SIZE: usize = 2 * BLOCK;
/// Reads in a batch: enough that handing it over costs nothing for each.
const BATCH_READS: usize = 64;
/// Batches that wait for the scan.
const BATCHES: usize = 4;

/// What was read, as far as the thread has come. The thread ends with the archive, at bytes that are no
/// header, or with this.
pub(super) struct HeaderWalk {
    batches: Receiver<Batch>,
    /// The rest of the one at hand.
    batch: Batch,
}

/// Some reads, in the order of their places.
#[derive(Default)]
struct Batch {
    bytes: Arc<Vec<u8>>,
    /// Offset in the archive, and the bytes that were there.
    reads: VecDeque<(u64, Range<usize>)>,
}

impl HeaderWalk {
    /// Starts the thread; `None` where there is none to be had.
    pub(super) fn start(region: Region) -> Option<Self> {
        let (sender, batches) = sync_channel(BATCHES);
        let walker = Walker { region, sender, bytes: new_bytes(), reads: VecDeque::new(), end: 0 };
        let thread = thread::Builder::new().name("tar-headers".into());
        thread.spawn(move || walker.run()).ok()?;
        Some(Self { batches, batch: Batch::default() })
    }

    /// What was read at `position`, which is never before an earlier one; `None` if nothing was.
    pub(super) fn at(&mut self, position: u64) -> Option<Chunk> {
        loop {
            while self.batch.reads.front().is_some_and(|(place, _)| *place < position) {
                self.batch.reads.pop_front();
            }
            if let Some((place, range)) = self.batch.reads.front() {
                let chunk = || Chunk::new(Arc::clone(&self.batch.bytes), range.clone());
                return (*place == position).then(chunk);
            }
            self.batch = self.batches.recv().ok()?;
        }
    }
}

/// The side of the thread.
struct Walker {
    region: Region,
    sender: SyncSender<Batch>,
    /// The batch that is being filled.
    bytes: Vec<u8>,
    reads: VecDeque<(u64, Range<usize>)>,
    /// Offset behind the bytes that were read last.
    end: u64,
}

impl Walker {
    fn run(mut self) {
        self.walk();
        // The scan may be gone.
        let _ = self.flush();
    }

    /// Reads all headers; `None` where there is none.
    fn walk(&mut self) -> Option<()> {
        let mut at = 0;
        loop {
            let block = self.block(at)?;
            let header = Header::new(&block).ok()?;
            at += BLOCK as u64;
            let size = header.size().ok()?;
            let is_extended = Extended::takes(header.entry_type());
            if is_extended {
                // The scan refuses a larger one.
                if size > LIMIT {
                    return None;
                }
                self.read_to(at + size)?;
            }
            if is_extended || matches!(header.entry_type(), b'0' | 0 | b'7' | b'S') {
                at = at.checked_add(size.checked_next_multiple_of(BLOCK as u64)?)?;
            }
        }
    }

    /// The block at `at`, which is never before what was read last.
    fn block(&mut self, at: u64) -> Option<[u8; BLOCK]> {
        if at >= self.end {
            self.read(at)?;
        }
        let (place, range) = self.reads.back()?;
        // In the read, which is short.
        let start = range.start + at.checked_sub(*place)? as usize;
        self.bytes[..range.end].get(start..)?.first_chunk().copied()
    }

    /// Reads on to `end`.
    fn read_to(&mut self, end: u64) -> Option<()> {
        while self.end < end {
            self.read(self.end)?;
        }
        Some(())
    }

    /// Reads at `at`; `None` if there is nothing, or nobody who wants it.
    fn read(&mut self, at: u64) -> Option<()> {
        if self.reads.len() == BATCH_READS {
            self.flush()?;
        }
        let start = self.reads.len() * READ_SIZE;
        let count = self.region.read_at(&mut self.bytes[start..start + READ_SIZE], at).ok()?;
        if count == 0 {
            return None;
        }
        self.reads.push_back((at, start..start + count));
        self.end = at + count as u64;
        Some(())
    }

    /// Hands the batch on.
    fn flush(&mut self) -> Option<()> {
        let bytes = Arc::new(std::mem::replace(&mut self.bytes, new_bytes()));
        let reads = std::mem::take(&mut self.reads);
        self.sender.send(Batch { bytes, reads }).ok()
    }
}

fn new_bytes() -> Vec<u8> {
    vec![0; BATCH_READS * READ_SIZE]
}

#[cfg(test)]
mod tests {
    use super::super::TarReader;
    use super::super::input::Input;
    use super::*;
    use std::fs::{self, File};
    use std::io;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// What a scan reads, from a walk alone.
    struct OnlyWalked {
        walk: HeaderWalk,
        position: u64,
        length: u64,
        reads: Arc<AtomicUsize>,
    }

    impl Input for OnlyWalked {
        fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
            if self.position == self.length {
                return Ok(None);
            }
            let missing = || io::Error::other(format!("nothing was read at {}", self.position));
            let chunk = self.walk.at(self.position).ok_or_else(missing)?;
            self.position += chunk.len() as u64;
            self.reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(chunk))
        }

        fn skip(&mut self, length: u64) -> io::Result<u64> {
            let skipped = length.min(self.length - self.position);
            self.position += skipped;
            Ok(skipped)
        }
    }

    /// An archive by `tar`, in this format.
    fn archive(format: &str) -> Region {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        for sub in ["empty", "many", "long"] {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        for (number, size) in (0..300).zip([0, 1, 511, 512, 513, 1024, 5000].iter().cycle()) {
            fs::write(root.join(format!("many/{number}")), vec![1; *size]).unwrap();
        }
        for length in [90, 120, 200] {
            let name = root.join("long").join("n".repeat(length));
            fs::write(&name, vec![2; length * 10]).unwrap();
            std::os::unix::fs::symlink("t".repeat(length), root.join(format!("link{length}")))
                .unwrap();
            fs::hard_link(&name, root.join(format!("hard{length}"))).unwrap();
        }
        let path = directory.path().join("archive");
        let mut tar = Command::new("tar");
        tar.args(["--format", format, "--sort=name", "--create", "--file"]).arg(&path);
        assert!(tar.arg("--directory").arg(&root).arg(".").status().unwrap().success());
        Region::whole(Arc::new(File::open(path).unwrap())).unwrap()
    }

    #[test]
    fn a_walk_is_where_a_scan_is() {
        for format in ["gnu", "posix"] {
            let region = archive(format);
            let (reads, length) = (Arc::new(AtomicUsize::new(0)), region.length());
            let walk = HeaderWalk::start(region).unwrap();
            let input = OnlyWalked { walk, position: 0, length, reads: Arc::clone(&reads) };
            let mut reader =
                TarReader::over("archive", Box::new(input), &crate::Options::default());
            let mut entries = 0;
            while reader.next_entry().unwrap_or_else(|error| panic!("{format}: {error}")).is_some()
            {
                entries += 1;
            }
            assert_eq!(entries, 1 + 3 + 300 + 9);
            assert!(reads.load(Ordering::Relaxed) > 2 * BATCH_READS, "{reads:?} reads");
        }
    }
}
