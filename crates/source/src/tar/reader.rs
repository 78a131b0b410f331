//! The entries of an archive, one after the other.
//!
//! Questions that the format leaves open are decided like this:
//! - An archive ends with two zero blocks, or one at the end of the stream; one that ends behind a whole
//!   entry without them gives a warning, as does one with a single zero block and more behind it, which is
//!   its end for GNU tar and bsdtar, too. What follows the end is read, so that a decompressor sees its
//!   check sums, and ignored.
//! - An archive without any entry is one if all of it is zeros, and no more than some records: any other
//!   file that begins with zeros is something else.
//! - Something below a symbolic link that came before is where the link leads, as when the archive is
//!   unpacked: below the root, which is that of the archive.
//! - Absolute names are refused unless they are to be stripped. In a layer the root is that of the image.
//! - A name in a pax header counts, whatever GNU long name stands before or behind it.
//! - Parents that do not come before their children are delivered as directories with mode 0755, owner
//!   0:0 and the mtime of the first child.
//! - A directory may come again, and its later entry replaces its metadata. Anything else that comes
//!   again takes the place of what came before, as when the archive is unpacked; a directory does not
//!   become something else, nor something else a directory.
//! - Extended attributes in no namespace of Linux, as other systems have them, are left out with a
//!   warning.
//! - A hard link's size field counts only after a pax header; the data is that of the target and is
//!   skipped.
//! - A directory of an incremental archive has the names in it as its data. They are skipped: of an archive
//!   of changes the changed files are packed, as `tar -x` unpacks them.
//! - A regular entry whose name ends in a slash is a directory, as in archives older than POSIX.

use super::bytes::Bytes;
use super::error::{Problem, TarError, io_problem};
use super::extended::Extended;
use super::header::{BLOCK, Header, continue_gnu_sparse};
use super::input::{Headers, Input, Stream};
use super::path::clean;
use super::pax::Extensions;
use super::seen_paths::{Admitted, Seen, SeenPaths};
use super::sparse::{self, MapText};
use crate::entry::{MAX_DATA_RANGES, MAX_FILE_SIZE, MAX_SYMLINK_TARGET};
use crate::foreign::{Foreign, ForeignKind, HEAD, recognise};
use crate::region::Region;
use crate::{
    Data, DataRange, Device, Entry, EntryPath, Kind, Links, Metadata, Options, Timestamp, Warnings,
    Xattr,
};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<TarError>>;
type Checked<T> = std::result::Result<T, Problem>;

/// An entry, and what only readers of image layers ask for.
pub(crate) struct Member {
    pub(crate) entry: Entry,
    /// A parent that the archive has no entry for.
    pub(crate) is_implicit: bool,
    /// Offset in the archive of the stored data, which are the data ranges one after the other.
    pub(crate) data: u64,
}

/// What an archive holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A tree.
    Tree,
    /// A layer: hard links may name what is in the layers below, and whiteouts hide it.
    Layer,
}

/// What the name of a whiteout in a layer begins with.
pub(crate) const WHITEOUT: &[u8] = b".wh.";

/// Most bytes of an archive without entries: some records of 10 KiB, or a long one of `tar -b`.
const EMPTY: usize = 64 * 1024;

/// A directory in an archive of `tar --listed-incremental`.
const DUMPED_DIRECTORY: u8 = b'D';

/// Reads an uncompressed archive from a stream.
pub struct TarReader {
    archive: String,
    options: Options,
    bytes: Bytes,
    extended: Extended,
    seen: SeenPaths,
    content: Content,
    /// Implicit parents, then the entry itself.
    ready: VecDeque<Member>,
    file: FileData,
    /// Header of the entry at hand, and its name where it is known.
    at: u64,
    name: Option<Vec<u8>>,
    ended: bool,
    warnings: Warnings,
}

/// The rest of the current file.
#[derive(Default)]
pub(super) struct FileData {
    /// Ranges whose data is still to come; the first may be the rest of one.
    ranges: VecDeque<DataRange>,
    /// Bytes in the archive up to the next header, with padding.
    stored: u64,
}

impl FileData {
    /// All data of a file; what follows it in the archive is of no interest.
    pub(super) fn of(data: &[DataRange]) -> Self {
        let stored = data.iter().map(|range| range.length).sum();
        Self { ranges: data.iter().copied().collect(), stored }
    }

    /// The next piece; `None` behind the last.
    pub(super) fn next(&mut self, bytes: &mut Bytes) -> Checked<Option<Data>> {
        let Some(range) = self.ranges.front_mut() else { return Ok(None) };
        let chunk = bytes.take(range.length).map_err(io_problem)?;
        let chunk = chunk.ok_or(Problem::Truncated { missing: "it ends inside a file" })?;
        let (offset, length) = (range.offset, chunk.len() as u64);
        range.offset += length;
        range.length -= length;
        if range.length == 0 {
            self.ranges.pop_front();
        }
        self.stored -= length;
        Ok(Some(Data { offset, chunk }))
    }
}

/// The item that a header starts.
enum Body {
    /// `size` bytes of data, of which the archive stores `ranges`.
    File {
        size: u64,
        ranges: Vec<DataRange>,
    },
    Other(Kind),
}

impl TarReader {
    /// Reads the archive from `reader`, which is not compressed. `archive` names it in errors.
    pub fn new(archive: &str, reader: impl Read + Send + 'static, options: &Options) -> Self {
        Self::over(archive, Box::new(Stream::new(reader, Arc::default())), options)
    }

    /// The archive in a region of a file, of which only headers are read.
    pub(crate) fn headers_of(archive: &str, region: Region, options: &Options) -> Self {
        Self::over(archive, Box::new(Headers::new(region)), options)
    }

    pub(super) fn over(archive: &str, input: Box<dyn Input>, options: &Options) -> Self {
        Self {
            archive: archive.to_owned(),
            options: options.clone(),
            bytes: Bytes::new(input),
            extended: Extended::default(),
            seen: SeenPaths::default(),
            content: Content::Tree,
            ready: VecDeque::new(),
            file: FileData::default(),
            at: 0,
            name: None,
            ended: false,
            warnings: Warnings::default(),
        }
    }

    /// The warnings of the archive, as far as it was read.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// The next entry, or `None` at the end; see [`Source::next_entry`](crate::Source::next_entry).
    ///
    /// # Errors
    /// The first fault in the archive; afterwards it is at its end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        Ok(self.next_member()?.map(|member| member.entry))
    }

    /// Takes the archive as one of such content.
    pub(crate) fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// The next entry with its place.
    pub(crate) fn next_member(&mut self) -> Result<Option<Member>> {
        if let Some(member) = self.ready.pop_front() {
            return Ok(Some(member));
        }
        if self.ended {
            return Ok(None);
        }
        let result = self.fill();
        self.ended = !matches!(result, Ok(true));
        match result {
            Ok(_) => Ok(self.ready.pop_front()),
            Err(problem) => Err(self.fault(problem)),
        }
    }

    /// The next data of the current file; see [`Source::next_data`](crate::Source::next_data).
    ///
    /// # Errors
    /// The archive ends inside the file or cannot be read.
    pub fn next_data(&mut self) -> Result<Option<Data>> {
        // Implicit parents come before the file whose data follows.
        if !self.ready.is_empty() || self.ended {
            return Ok(None);
        }
        self.file.next(&mut self.bytes).map_err(|problem| self.end(problem))
    }

    fn end(&mut self, problem: Problem) -> Box<TarError> {
        self.ended = true;
        self.fault(problem)
    }

    fn fault(&mut self, problem: Problem) -> Box<TarError> {
        let offset = match problem {
            Problem::Io(_) | Problem::Truncated { .. } => self.bytes.position(),
            _ => self.at,
        };
        let archive = self.archive.clone();
        Box::new(TarError { archive, offset, entry: self.name.take(), problem })
    }

    /// Reads headers up to the next entry that is wanted and puts it into `ready`. `false` at the end.
    fn fill(&mut self) -> Checked<bool> {
        self.skip_file()?;
        loop {
            self.name = None;
            self.at = self.bytes.position();
            let mut block = [0; BLOCK];
            let Some(header) = self.header(&mut block)? else {
                self.extended.check_unused()?;
                self.drain()?;
                return Ok(false);
            };
            let size = header.size()?;
            if Extended::takes(header.entry_type()) {
                let content = self.extended_content(size)?;
                self.extended.apply(header.entry_type(), content)?;
            } else if header.entry_type() == b'V' {
                // A volume label is no entry.
                self.skip(padded(size)?)?;
            } else if self.entry(&header)? {
                return Ok(true);
            } else {
                self.skip_file()?;
            }
        }
    }

    /// The next header; `None` after the blocks that end an archive.
    fn header<'a>(&mut self, block: &'a mut [u8; BLOCK]) -> Checked<Option<Header<'a>>> {
        let length = self.bytes.read(block).map_err(io_problem)?;
        let is_first = self.at == 0;
        match length {
            // Some tools make a layer of no entries without its end.
            0 if is_first && self.content == Content::Layer => return Ok(None),
            // Nothing at all is no archive.
            0 if !is_first && !self.options.strict => {
                self.warnings.no_end = true;
                return Ok(None);
            }
            0 => return Err(Problem::Truncated { missing: "the two zero blocks at its end" }),
            BLOCK => {}
            _ => {
                let problem = Problem::Truncated { missing: "it ends inside a header" };
                return Err(if is_first {
                    self.otherwise(&block[..length], problem)
                } else {
                    problem
                });
            }
        }
        if is_first && *block == [0; BLOCK] {
            return self.no_entries().map(|()| None);
        }
        if *block != [0; BLOCK] {
            return match Header::new(block) {
                Err(problem) if is_first => Err(self.otherwise(block, problem)),
                header => header.map(Some),
            };
        }
        let second = self.bytes.read(block).map_err(io_problem)?;
        if block[..second].iter().any(|&byte| byte != 0) {
            if self.options.strict {
                return Err(Problem::LoneZeroBlock);
            }
            self.warnings.lone_zero_block = Some(self.at);
        }
        Ok(None)
    }

    /// Checks that an archive that begins with a block of zeros has nothing else.
    fn no_entries(&mut self) -> Checked<()> {
        let head = self.head(&[0; BLOCK]).map_err(io_problem)?;
        match foreign(&head) {
            Some(foreign) => Err(Problem::Foreign(foreign)),
            None if head.len() <= EMPTY && head.iter().all(|byte| *byte == 0) => Ok(()),
            None => Err(Problem::Zeros),
        }
    }

    /// What is wrong with a file that does not begin as an archive does: its format, if that is known,
    /// or `problem`.
    fn otherwise(&mut self, first: &[u8], problem: Problem) -> Problem {
        let head = self.head(first).unwrap_or_else(|_| first.to_vec());
        foreign(&head).map_or(problem, Problem::Foreign)
    }

    /// The bytes by which a format is told, of which the `first` were read.
    fn head(&mut self, first: &[u8]) -> io::Result<Vec<u8>> {
        let mut head = first.to_vec();
        head.resize(HEAD, 0);
        let more = self.bytes.read(&mut head[first.len()..])?;
        head.truncate(first.len() + more);
        Ok(head)
    }

    /// Reads to the end of the stream: decompressors verify there, and a writer into a pipe is not cut off.
    fn drain(&mut self) -> Checked<()> {
        self.bytes.skip(u64::MAX).map(|_| ()).map_err(io_problem)
    }

    /// Skips the rest of the current file.
    fn skip_file(&mut self) -> Checked<()> {
        let file = std::mem::take(&mut self.file);
        self.skip(file.stored)
    }

    fn skip(&mut self, length: u64) -> Checked<()> {
        if self.bytes.skip(length).map_err(io_problem)? < length {
            return Err(Problem::Truncated { missing: "it ends inside the data of an entry" });
        }
        Ok(())
    }

    fn extended_content(&mut self, size: u64) -> Checked<Vec<u8>> {
        let mut content = vec![0; self.extended.reserve(size)?];
        if self.bytes.read(&mut content).map_err(io_problem)? < content.len() {
            return Err(Problem::Truncated { missing: "it ends inside an extended header" });
        }
        self.skip(padded(size)? - size)?;
        Ok(content)
    }

    /// Decodes one entry into `ready` and `file`. `false` when it is excluded or hides nothing;
    /// then only its data in `file` is left to skip.
    fn entry(&mut self, header: &Header<'_>) -> Checked<bool> {
        let mut extensions = self.extended.take();
        let raw = extensions.sparse.name.take().or(extensions.take_path());
        let raw = raw.unwrap_or_else(|| header.name());
        self.name = Some(raw.clone());
        let path = self.clean(&raw)?;
        let hides_nothing = self.hides_nothing(&path);
        let path = if hides_nothing { path } else { self.seen.resolve(path)? };
        let link = extensions.take_link_path().unwrap_or_else(|| header.link_name().to_vec());
        let mut stored = extensions.size.map_or_else(|| header.size(), Ok)?;
        let body = match header.entry_type() {
            b'0' | 0 | b'7' if !raw.ends_with(b"/") => {
                self.regular(&extensions.sparse, &mut stored)?
            }
            b'S' => self.gnu_sparse(header, stored)?,
            b'0' | 0 | b'7' | b'5' | DUMPED_DIRECTORY => Body::Other(Kind::Directory),
            b'1' => self.hard_link(&link, extensions.is_pax, &mut stored)?,
            b'2' => Body::Other(Kind::Symlink(symlink_target(link)?)),
            b'3' => Body::Other(Kind::CharDevice(device(header, &extensions)?)),
            b'4' => Body::Other(Kind::BlockDevice(device(header, &extensions)?)),
            b'6' => Body::Other(Kind::Fifo),
            b'M' => return Err(Problem::Continuation),
            other => return Err(Problem::EntryType(other)),
        };
        let has_data = matches!(body, Body::File { .. } | Body::Other(Kind::HardLink(_)))
            || header.entry_type() == DUMPED_DIRECTORY;
        self.file.stored = if has_data { padded(stored)? } else { 0 };
        let kind = match body {
            Body::File { size, ranges } => {
                self.file.ranges = ranges.iter().copied().collect();
                Kind::Regular { size, data: ranges }
            }
            Body::Other(kind) => kind,
        };
        if self.options.exclude.prunes(path.as_bytes(), kind == Kind::Directory, false)
            || hides_nothing
        {
            return Ok(false);
        }
        if let Kind::HardLink(target) = &kind {
            self.check_link(&path, target)?;
            self.file.ranges.clear();
        }
        let mtime = match extensions.mtime {
            Some(mtime) => mtime,
            None => Timestamp { seconds: header.mtime()?, nanoseconds: 0 },
        };
        let metadata = Metadata {
            mode: header.mode()?,
            uid: extensions.uid.map_or_else(|| header.uid(), Ok)?,
            gid: extensions.gid.map_or_else(|| header.gid(), Ok)?,
            mtime,
        };
        let xattrs = match kind {
            Kind::HardLink(_) => Vec::new(),
            _ => self.xattrs(&path, &mut extensions)?,
        };
        let directory = kind == Kind::Directory;
        let links = if directory { Links::Single } else { Links::Several };
        let replaces = self.register(&path, directory, mtime)?;
        self.seen
            .set_link(&path, if let Kind::Symlink(target) = &kind { Some(target) } else { None });
        let entry = Entry { path, kind, metadata, xattrs, links, replaces };
        let data = self.bytes.position();
        self.ready.push_back(Member { entry, is_implicit: false, data });
        Ok(true)
    }

    /// Whether the entry is a whiteout below a file of its own layer: umoci writes one for each
    /// child of a directory that became a file, which hides them by itself.
    fn hides_nothing(&self, path: &EntryPath) -> bool {
        self.content == Content::Layer
            && path.split_last().is_some_and(|(parent, name)| {
                name.starts_with(WHITEOUT) && self.seen.is_below_file(parent)
            })
    }

    /// Refuses a hard link whose target cannot be there.
    fn check_link(&self, path: &EntryPath, target: &EntryPath) -> Checked<()> {
        if self.options.exclude.matches_within(target.as_bytes()) {
            return Err(Problem::LinkTargetExcluded { target: target.as_bytes().to_vec() });
        }
        match self.seen.check_link_target(target) {
            Err(Problem::LinkTargetMissing { .. }) if self.content == Content::Layer => {}
            other => other?,
        }
        if target == path { Err(Problem::LinkToItself) } else { Ok(()) }
    }

    /// The attributes of an entry, without those that no file of Linux can have, which become
    /// warnings.
    fn xattrs(&mut self, path: &EntryPath, extensions: &mut Extensions) -> Checked<Vec<Xattr>> {
        for name in extensions.take_foreign() {
            if self.options.strict {
                return Err(Problem::ForeignAttribute(name));
            }
            let warnings = &mut self.warnings;
            warnings.foreign_attributes += 1;
            let text = || format!("{path}: {}", name.escape_ascii());
            warnings.first_foreign.get_or_insert_with(text);
        }
        extensions.take_xattrs()
    }

    /// A regular file, which in pax archives may be sparse. `stored` becomes what follows the map.
    fn regular(&mut self, records: &super::pax::SparseRecords, stored: &mut u64) -> Checked<Body> {
        let map = match (records.major, &records.map) {
            (Some(1), _) => self.sparse_map_text(stored)?,
            (None | Some(0), Some(map)) => map.clone(),
            (None | Some(0), None) => {
                let size = *stored;
                if size > MAX_FILE_SIZE {
                    return Err(Problem::FileSize(size));
                }
                let whole = DataRange { offset: 0, length: size };
                return Ok(Body::File {
                    size,
                    ranges: (size > 0).then_some(whole).into_iter().collect(),
                });
            }
            (Some(_), _) => {
                return Err(Problem::SparseMap { at: 0, reason: "its version is unknown" });
            }
        };
        let size = records
            .real_size
            .ok_or(Problem::SparseMap { at: 0, reason: "the size of the file is missing" })?;
        Ok(Body::File { size, ranges: sparse::check(map, size, *stored)? })
    }

    /// The map of version 1.0, which is in the first blocks of the data.
    fn sparse_map_text(&mut self, stored: &mut u64) -> Checked<Vec<DataRange>> {
        let mut text = MapText::default();
        let mut block = [0; BLOCK];
        loop {
            *stored = stored
                .checked_sub(BLOCK as u64)
                .ok_or(Problem::SparseMap { at: 0, reason: "the data ends inside the map" })?;
            self.read_block(&mut block)?;
            if text.feed(&block)? {
                return Ok(text.into_ranges());
            }
        }
    }

    /// A sparse file of GNU tar's own format: the map is in the header and blocks that follow it.
    fn gnu_sparse(&mut self, header: &Header<'_>, stored: u64) -> Checked<Body> {
        let (mut map, mut more) = header.gnu_sparse()?;
        let mut block = [0; BLOCK];
        while more {
            self.read_block(&mut block)?;
            more = continue_gnu_sparse(&block, &mut map)?;
            if map.len() > MAX_DATA_RANGES {
                return Err(Problem::SparseRanges);
            }
        }
        let size = header.gnu_real_size()?;
        Ok(Body::File { size, ranges: sparse::check(map, size, stored)? })
    }

    fn read_block(&mut self, block: &mut [u8; BLOCK]) -> Checked<()> {
        if self.bytes.read(block).map_err(io_problem)? < BLOCK {
            return Err(Problem::Truncated { missing: "it ends inside a sparse map" });
        }
        Ok(())
    }

    fn hard_link(&self, link: &[u8], is_pax: bool, stored: &mut u64) -> Checked<Body> {
        if !is_pax {
            *stored = 0;
        }
        Ok(Body::Other(Kind::HardLink(self.seen.resolve(self.clean(link)?)?)))
    }

    /// The path of a name or of the target of a hard link.
    fn clean(&self, raw: &[u8]) -> Checked<EntryPath> {
        clean(raw, self.options.strip_absolute || self.content == Content::Layer)
    }

    /// Records the path and puts the parents that are missing into `ready`. Whether something was
    /// there that is replaced.
    fn register(&mut self, path: &EntryPath, directory: bool, mtime: Timestamp) -> Checked<bool> {
        let seen = Seen { offset: self.at, directory };
        let Admitted { missing, replaces } = self.seen.admit(path, seen)?;
        for path in missing {
            let metadata = Metadata { mode: 0o755, uid: 0, gid: 0, mtime };
            let (kind, links, xattrs) = (Kind::Directory, Links::Single, Vec::new());
            let entry = Entry { path, kind, metadata, xattrs, links, replaces: false };
            self.ready.push_back(Member { entry, is_implicit: true, data: 0 });
        }
        Ok(replaces)
    }
}

/// The number of a device: each half by an extended header, or else by its own.
fn device(header: &Header<'_>, extensions: &Extensions) -> Checked<Device> {
    let (major, minor) = (extensions.dev_major, extensions.dev_minor);
    if let (Some(major), Some(minor)) = (major, minor) {
        return Ok(Device { major, minor });
    }
    let stored = header.device()?;
    let (major, minor) = (major.unwrap_or(stored.major), minor.unwrap_or(stored.minor));
    Ok(Device { major, minor })
}

/// What else than a tar archive begins like this, if it is known.
fn foreign(head: &[u8]) -> Option<Foreign> {
    recognise(head).filter(|found| found.kind != ForeignKind::Tar)
}

fn symlink_target(target: Vec<u8>) -> Checked<Vec<u8>> {
    if target.is_empty() || target.len() > MAX_SYMLINK_TARGET {
        return Err(Problem::SymlinkTarget(target.len()));
    }
    if target.contains(&0) {
        return Err(Problem::NulInName);
    }
    Ok(target)
}

/// The bytes that `size` bytes take up in an archive.
fn padded(size: u64) -> Checked<u64> {
    size.checked_next_multiple_of(BLOCK as u64).ok_or(Problem::FileSize(size))
}
