//! One thread's reader: turns the work of a batch into entries and data.
//!
//! Small files are read one after the other into a shared buffer, large ones fill buffers of their
//! own. A file costs open, fstat, flistxattr, read and close; without its data, and unless it may
//! have holes, fstatat and listxattrat.

mod partial;

use super::batch::Work;
use super::handle::{self, Handle};
use super::holes::data_ranges;
use super::links::{LinkTable, LinkedName};
use super::sizes::TrueSizes;
use super::xattrs::{Target, XattrReader};
use crate::FileError;
use crate::entry::{MAX_FILE_SIZE, MAX_SYMLINK_TARGET};
use crate::pool::{BUFFER_SIZE, BufferPool};
use crate::{
    Chunk, Data, DataRange, Device, Entry, EntryPath, Kind, Lending, LentFile, Links, SourceError,
    Xattr,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Stat, fstat, major, minor, readlinkat, statat};
use rustix::io::{Errno, pread, retry_on_intr};
use std::ops::Range;
use std::sync::Arc;

/// Starts of files in a shared buffer are multiples of this: copies between cache lines are faster.
const ALIGNMENT: usize = 64;
/// Bytes of entries (paths, attributes, range maps) at which results are handed over.
const ENTRY_WEIGHT: usize = 256 * 1024;
/// What an open file counts for in a queue, and how many are held back, so that a consumer is not
/// woken for each: some 300 are open at a time, of the 1,024 that a process may have in most places.
const LENT_WEIGHT: usize = 256 * 1024;
const LENT_MAX: usize = 8;

/// What a reader produces, in order: an entry, then its data.
pub(super) enum Item {
    /// An entry; with a place among the names of its file when that has several.
    Entry(Entry, Option<LinkedName>),
    Data(Data),
    /// The file itself in the place of its data.
    Lent(Box<LentFile>),
    /// The walk ends here.
    Error(SourceError),
}

/// The receiver of finished items; `false` when they are not wanted any more.
pub(super) trait Sink {
    fn accept(&mut self, items: Vec<Item>, weight: usize) -> bool;
}

/// An item whose data may still be in the buffer that is being filled.
enum Pending {
    Item(Item),
    Data { offset: u64, range: Range<usize> },
}

/// What a consumer wants of files.
#[derive(Clone, Copy)]
pub(super) struct ReaderWants<'a> {
    /// Their data; a scan takes entries only.
    pub(super) data: bool,
    /// Large ones themselves.
    pub(super) lending: Option<&'a Lending>,
}

/// Why a batch is not read to its end.
pub(super) enum Stop {
    Error(SourceError),
    /// The consumer is gone.
    Abandoned,
}

impl<E: Into<SourceError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

pub(super) struct Reader<'a, S> {
    pool: &'a Arc<BufferPool>,
    links: &'a LinkTable,
    wants: ReaderWants<'a>,
    sink: S,
    xattrs: XattrReader,
    sizes: TrueSizes,
    pending: Vec<Pending>,
    /// Bytes in `pending` outside of the buffer.
    entry_weight: usize,
    /// Files in `pending` that stay open.
    lent: usize,
    /// Nothing else refers to it while it is here.
    buffer: Arc<Vec<u8>>,
    filled: usize,
}

impl<'a, S: Sink> Reader<'a, S> {
    pub(super) fn new(
        pool: &'a Arc<BufferPool>,
        links: &'a LinkTable,
        wants: ReaderWants<'a>,
        sink: S,
    ) -> Self {
        Self {
            pool,
            links,
            wants,
            sink,
            xattrs: XattrReader::new(),
            sizes: TrueSizes::default(),
            pending: Vec::new(),
            entry_weight: 0,
            lent: 0,
            buffer: pool.take(),
            filled: 0,
        }
    }

    pub(super) fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Reads one entry. `order` is its place in the walk.
    pub(super) fn read(&mut self, work: Work, order: u64) -> Result<(), Stop> {
        match work {
            Work::Entry(entry) => self.push_entry(entry, None),
            Work::Partial(partial) => self.read_partial(*partial),
            Work::Other { directory, path, kind: FileType::RegularFile } => {
                self.read_file(&directory, path, order)
            }
            Work::Other { directory, path, kind } => {
                self.read_special(&directory, path, kind, order)
            }
        }
    }

    fn read_file(&mut self, directory: &Handle, path: EntryPath, order: u64) -> Result<(), Stop> {
        let name = path.split_last().map_or(&b""[..], |(_, name)| name);
        let file = if self.wants.data { Some(open(directory, name, &path)?) } else { None };
        let stat = match &file {
            Some(fd) => fstat(fd),
            None => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW),
        }
        .map_err(FileError::reading("examine", &path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(FileError::Replaced { path }.into());
        }
        let linked = linked_name(&stat, order);
        let first = linked.is_none_or(|name| self.links.claim(name, &path));
        if !first {
            // The consumer turns this into a hard link; nothing more is needed.
            let kind = Kind::Regular { size: 0, data: Vec::new() };
            return self.push_entry(entry(path, kind, &stat, Vec::new()), linked);
        }
        let target = match &file {
            Some(fd) => Target::File(fd.as_fd()),
            None => Target::Name(directory, name),
        };
        let xattrs = self
            .xattrs
            .read(target)
            .map_err(FileError::reading("read the attributes of", &path))?;
        let size = stat.st_size as u64;
        if size == 0
            && file.is_none()
            && !self.sizes.are_true(&stat, || open(directory, name, &path))?
        {
            check_empty(&open(directory, name, &path)?, &path)?;
        }
        let data = match maybe_sparse(&stat, &xattrs) {
            true => match &file {
                Some(fd) => ranges(fd, &path, size)?,
                None => ranges(&open(directory, name, &path)?, &path, size)?,
            },
            false => whole(size),
        };
        let Some(fd) = file else {
            let kind = Kind::Regular { size, data };
            return self.push_entry(entry(path, kind, &stat, xattrs), linked);
        };
        let kind = Kind::Regular { size, data: data.clone() };
        self.push_entry(entry(path.clone(), kind, &stat, xattrs), linked)?;
        match self.lending(&stat, &data) {
            Some(lending) => self.lend(fd, path, &stat, lending),
            None => self.read_data(&fd, &path, size, &data, &mut |_, _| ()),
        }
    }

    /// The consumer takes the file itself, if it is large.
    fn lending(&self, stat: &Stat, data: &[DataRange]) -> Option<&'a Lending> {
        self.wants.lending.filter(|lending| is_lent(lending, stat, data))
    }

    fn read_special(
        &mut self,
        directory: &Handle,
        path: EntryPath,
        kind: FileType,
        order: u64,
    ) -> Result<(), Stop> {
        let name = path.split_last().map_or(&b""[..], |(_, name)| name);
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(FileError::reading("examine", &path))?;
        if FileType::from_raw_mode(stat.st_mode) != kind {
            return Err(FileError::Replaced { path }.into());
        }
        let device = Device { major: major(stat.st_rdev), minor: minor(stat.st_rdev) };
        let kind = match kind {
            FileType::Symlink => {
                let target = readlinkat(directory, name, Vec::new())
                    .map_err(FileError::reading("read the target of", &path))?
                    .into_bytes();
                if target.len() > MAX_SYMLINK_TARGET {
                    let length = target.len();
                    return Err(FileError::SymlinkTarget { path, length }.into());
                }
                Kind::Symlink(target)
            }
            FileType::CharacterDevice => Kind::CharDevice(device),
            FileType::BlockDevice => Kind::BlockDevice(device),
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            _ => return Err(FileError::Replaced { path }.into()),
        };
        let xattrs = self
            .xattrs
            .read(Target::Name(directory, name))
            .map_err(FileError::reading("read the attributes of", &path))?;
        let linked = linked_name(&stat, order);
        if let Some(name) = linked {
            self.links.claim(name, &path);
        }
        self.push_entry(entry(path, kind, &stat, xattrs), linked)
    }

    fn push_entry(&mut self, entry: Entry, linked: Option<LinkedName>) -> Result<(), Stop> {
        self.entry_weight += entry.weight();
        self.pending.push(Pending::Item(Item::Entry(entry, linked)));
        if self.entry_weight >= ENTRY_WEIGHT { self.flush() } else { Ok(()) }
    }

    /// Hands over a file in the place of its data.
    fn lend(
        &mut self,
        fd: OwnedFd,
        path: EntryPath,
        stat: &Stat,
        lending: &Lending,
    ) -> Result<(), Stop> {
        let numbers = (stat.st_size as u64, stat.st_blksize as u64, handle::identity(stat).device);
        let file = LentFile::new(fd.into(), path, numbers, lending, self.pool);
        self.pending.push(Pending::Item(Item::Lent(Box::new(file))));
        self.lent += 1;
        if self.lent >= LENT_MAX { self.flush() } else { Ok(()) }
    }

    /// Reads a file's data ranges and makes sure that the file ends where it did when it was opened.
    /// `see` is shown all data, in order.
    fn read_data(
        &mut self,
        fd: &OwnedFd,
        path: &EntryPath,
        size: u64,
        ranges: &[DataRange],
        see: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), Stop> {
        for range in ranges {
            let mut offset = range.offset;
            while offset < range.end() {
                // Only files larger than a buffer are cut.
                let length = (range.end() - offset).min(BUFFER_SIZE as u64) as usize;
                if self.filled + length > BUFFER_SIZE {
                    self.flush()?;
                }
                let start = self.filled;
                self.read_piece(fd, path, size, offset, length)?;
                see(offset, &self.buffer[start..start + length]);
                offset += length as u64;
            }
        }
        if size == 0 {
            check_empty(fd, path)?;
        } else if ranges.last().is_none_or(|last| last.end() < size) {
            // The file ends with a hole, so reading did not meet its end.
            let stat = fstat(fd).map_err(FileError::reading("examine", path))?;
            check_size(path, size, stat.st_size as u64)?;
        }
        Ok(())
    }

    /// Reads `length` bytes at `offset` into the buffer, which has room. At the end of the file asks
    /// for one byte more: that it does not come says that the file did not grow.
    fn read_piece(
        &mut self,
        fd: &OwnedFd,
        path: &EntryPath,
        size: u64,
        offset: u64,
        length: usize,
    ) -> Result<(), Stop> {
        let start = self.filled;
        // The largest file cannot grow, and the system refuses to read behind its end.
        let beyond = usize::from(offset + length as u64 == size && size < MAX_FILE_SIZE);
        let buffer = Arc::get_mut(&mut self.buffer).expect("a buffer is shared only by flush()");
        let space = &mut buffer[start..start + length + beyond];
        let mut done = 0;
        while done < length {
            let place = offset + done as u64;
            match retry_on_intr(|| pread(fd, &mut space[done..], place)) {
                Ok(0) => check_size(path, size, place)?,
                Ok(count) => done += count,
                Err(error) => return Err(FileError::read("read", path, error).into()),
            }
        }
        if done > length {
            check_size(path, size, size + 1)?;
        }
        self.pending.push(Pending::Data { offset, range: start..start + length });
        self.filled = (start + length).next_multiple_of(ALIGNMENT);
        Ok(())
    }

    /// Hands over everything that is pending.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        let pending = std::mem::take(&mut self.pending);
        let lent = std::mem::take(&mut self.lent) * LENT_WEIGHT;
        let weight = std::mem::take(&mut self.entry_weight) + self.filled + lent;
        let filled = std::mem::take(&mut self.filled);
        let buffer = (filled > 0).then(|| self.pool.hand_out(&mut self.buffer, filled));
        let items = pending.into_iter().filter_map(|pending| match pending {
            Pending::Item(item) => Some(item),
            // Data is pending only while the buffer holds some.
            Pending::Data { offset, range } => buffer.as_ref().map(|buffer| {
                Item::Data(Data { offset, chunk: Chunk::new(Arc::clone(buffer), range) })
            }),
        });
        if self.sink.accept(items.collect(), weight) { Ok(()) } else { Err(Stop::Abandoned) }
    }
}

/// Opens a file that is to be regular.
fn open(directory: &Handle, name: &[u8], path: &EntryPath) -> Result<OwnedFd, FileError> {
    directory.file(name).map_err(|error| match error {
        Errno::LOOP | Errno::NXIO => FileError::Replaced { path: path.clone() },
        error => FileError::read("open", path, error),
    })
}

/// Whether a file may have holes. Attributes and the file's own map may have blocks too, which hide as
/// many of a hole: only the exact number of blocks, and no attributes, say that there is none.
fn maybe_sparse(stat: &Stat, xattrs: &[Xattr]) -> bool {
    let size = stat.st_size as u64;
    let allocated = (stat.st_blocks as u64).saturating_mul(512);
    let full = size.checked_next_multiple_of((stat.st_blksize as u64).max(1));
    Some(allocated) != full || !(size == 0 || xattrs.is_empty())
}

/// The data ranges of an open file.
fn ranges(fd: &OwnedFd, path: &EntryPath, size: u64) -> Result<Vec<DataRange>, FileError> {
    data_ranges(fd, size)
        .map_err(FileError::reading("find the holes of", path))?
        .ok_or_else(|| FileError::Fragmented { path: path.clone() })
}

/// The data range of a file without holes.
fn whole(size: u64) -> Vec<DataRange> {
    if size == 0 { Vec::new() } else { vec![DataRange { offset: 0, length: size }] }
}

/// Whether the consumer takes the file itself.
fn is_lent(lending: &Lending, stat: &Stat, data: &[DataRange]) -> bool {
    data.iter().any(|range| range.length >= lending.least())
        && lending.wants_from(handle::identity(stat).device)
}

/// Makes sure that a file of size 0 is empty: those of the kernel's own file systems have contents.
fn check_empty(fd: &OwnedFd, path: &EntryPath) -> Result<(), FileError> {
    let mut byte = [0];
    let found =
        retry_on_intr(|| pread(fd, &mut byte, 0)).map_err(FileError::reading("read", path))?;
    check_size(path, 0, found as u64)
}

fn check_size(path: &EntryPath, expected: u64, found: u64) -> Result<(), FileError> {
    let path = path.clone();
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(FileError::Shrank { path, expected, found }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(FileError::Grew { path, expected, found }),
    }
}

fn linked_name(stat: &Stat, order: u64) -> Option<LinkedName> {
    let links = handle::links(stat);
    (links > 1).then(|| LinkedName { identity: handle::identity(stat), order, links })
}

fn entry(path: EntryPath, kind: Kind, stat: &Stat, xattrs: Vec<Xattr>) -> Entry {
    let links = if handle::links(stat) > 1 { Links::Several } else { Links::Single };
    Entry { path, kind, metadata: handle::metadata(stat), xattrs, links, replaces: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[derive(Default)]
    struct Collected(Vec<Item>);

    impl Sink for Collected {
        fn accept(&mut self, items: Vec<Item>, _weight: usize) -> bool {
            self.0.extend(items);
            true
        }
    }

    /// Reads a file of `actual` bytes that had `expected` bytes when it was opened.
    fn read(actual: usize, expected: usize, ranges: &[DataRange]) -> Result<usize, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; actual]).unwrap();
        let (pool, links) = (Arc::default(), LinkTable::default());
        let wants = ReaderWants { data: true, lending: None };
        let mut reader = Reader::new(&pool, &links, wants, Collected::default());
        let path = EntryPath::from_checked(b"some/file".to_vec());
        match reader.read_data(&file.into(), &path, expected as u64, ranges, &mut |_, _| ()) {
            Err(Stop::Error(error)) => return Err(error.to_string()),
            Err(Stop::Abandoned) => panic!("the sink takes everything"),
            Ok(()) => {}
        }
        assert!(reader.flush().is_ok());
        let data = reader.sink.0.iter().filter_map(|item| match item {
            Item::Data(data) => {
                Some(data.chunk.as_slice().iter().filter(|&&byte| byte == 7).count())
            }
            _ => None,
        });
        Ok(data.sum())
    }

    #[test]
    fn files_of_all_sizes_around_the_buffer_size_are_read_to_their_end() {
        for size in [1, 511, BUFFER_SIZE - 1, BUFFER_SIZE, BUFFER_SIZE + 1, 3 * BUFFER_SIZE] {
            assert_eq!(read(size, size, &whole(size as u64)), Ok(size));
        }
        assert_eq!(read(0, 0, &[]), Ok(0));
    }

    #[test]
    fn a_file_that_shrank_is_told_with_both_sizes() {
        for (actual, expected) in [(0, 10), (9, 10), (BUFFER_SIZE, BUFFER_SIZE + 10)] {
            let error = read(actual, expected, &whole(expected as u64)).unwrap_err();
            let text = format!("some/file shrank while it was read: it had {expected} bytes");
            assert!(
                error.contains(&text) && error.contains(&format!("after {actual};")),
                "{error}"
            );
        }
        let hole_at_the_end = [DataRange { offset: 0, length: 10 }];
        assert!(read(20, 30, &hole_at_the_end).unwrap_err().contains("shrank"));
    }

    #[test]
    fn a_file_that_grew_is_told_with_its_size() {
        for (actual, expected) in [(1, 0), (11, 10), (2 * BUFFER_SIZE + 5, 2 * BUFFER_SIZE)] {
            let error = read(actual, expected, &whole(expected as u64)).unwrap_err();
            let text = format!("some/file grew while it was read: it had {expected} bytes");
            assert!(error.contains(&text), "{error}");
        }
        let hole_at_the_end = [DataRange { offset: 0, length: 10 }];
        assert!(read(31, 30, &hole_at_the_end).unwrap_err().contains("grew"));
    }
}
