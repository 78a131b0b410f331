//! A tree as a text, so that two trees can be compared, or one built again from its description.
//!
//! A [`Listing`] is taken from any source in one pass over its entries and their data. It has the
//! order of a directory, whatever the order of the source was, so equal trees have equal listings. A
//! name costs some 250 bytes of memory. [`mtree`](Listing::mtree) and
//! [`composefs`](Listing::composefs) write it in the languages that [`description`](crate::description)
//! reads.

mod composefs;
mod mtree;

use crate::digest::{Algorithm, Hasher};
use crate::{Entry, EntryPath, Kind, Metadata, Source, SourceError, Timestamp, Xattr};
use rustc_hash::FxHashMap;

/// Files of fewer bytes have a digest that is not that of fs-verity: the zeros of a hole have
/// to be hashed one by one, and a hole may have 8 EiB.
const HASHED_BELOW: u64 = 1 << 40;

/// A file or directory without its names.
#[derive(Debug)]
struct File {
    kind: Kind,
    metadata: Metadata,
    xattrs: Box<[Xattr]>,
    digest: Option<Box<str>>,
}

/// A tree in the order of a directory.
#[derive(Debug)]
pub struct Listing {
    files: Vec<File>,
    /// Sorted.
    names: Vec<(EntryPath, usize)>,
    /// For each file its first name, and how many it has.
    counts: Vec<(usize, u32)>,
}

/// A name in a listing.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Its path.
    pub path: &'a EntryPath,
    /// What it is; never a [`Kind::HardLink`].
    pub kind: &'a Kind,
    /// Permission bits, owner and time.
    pub metadata: &'a Metadata,
    /// Extended attributes, sorted by name.
    pub xattrs: &'a [Xattr],
    /// The digest of the contents of a regular file, in hexadecimal digits.
    pub digest: Option<&'a str>,
    /// Number of names that the file has.
    pub links: u32,
    /// The first of its names, if this is another one.
    pub first: Option<&'a EntryPath>,
}

impl Listing {
    /// Reads a source to its end, with digests of the contents; only those of fs-verity are there for
    /// files of 1 TiB and more, too. `report` is called now and then with the entries and bytes so far.
    ///
    /// # Errors
    /// Those of the source.
    pub fn of(
        source: &mut dyn Source,
        algorithm: Algorithm,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, SourceError> {
        let mut taken = Taken::default();
        let (mut entries, mut bytes) = (0, 0);
        while let Some(entry) = source.next_entry()? {
            let digest = match entry.kind {
                Kind::Regular { size, .. }
                    if algorithm == Algorithm::Verity || size < HASHED_BELOW =>
                {
                    let mut hasher = Hasher::new(algorithm);
                    while let Some(data) = source.next_data()? {
                        hasher.update(data.offset, data.chunk.as_slice());
                        bytes += data.chunk.len() as u64;
                        report(entries, bytes);
                    }
                    Some(hasher.finish(size).digits().into_boxed_str())
                }
                _ => None,
            };
            entries += 1;
            report(entries, bytes);
            taken.take(entry, digest);
        }
        Ok(taken.finish())
    }

    /// All names in their order; the root comes first.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.names.iter().enumerate().map(|(index, (path, file))| {
            let File { kind, metadata, xattrs, digest } = &self.files[*file];
            let (first, links) = self.counts[*file];
            Item {
                path,
                kind,
                metadata,
                xattrs,
                digest: digest.as_deref(),
                links,
                first: (first != index).then(|| &self.names[first].0),
            }
        })
    }
}

/// The entries of a source, as far as it was read.
#[derive(Default)]
struct Taken {
    files: Vec<File>,
    names: FxHashMap<EntryPath, usize>,
}

impl Taken {
    fn take(&mut self, entry: Entry, digest: Option<Box<str>>) {
        let Entry { path, kind, metadata, xattrs, .. } = entry;
        let known = self.names.get(&path).copied();
        let file = match &kind {
            // A source delivers a file before its links.
            Kind::HardLink(first) => match self.names.get(first) {
                Some(&file) => file,
                None => return,
            },
            _ => {
                let file = File { kind, metadata, xattrs: xattrs.into_boxed_slice(), digest };
                let is_directory = |file: &File| file.kind == Kind::Directory;
                match known {
                    // The later entry of a directory counts; its children stay.
                    Some(known) if is_directory(&file) && is_directory(&self.files[known]) => {
                        self.files[known] = file;
                        known
                    }
                    _ => {
                        self.files.push(file);
                        self.files.len() - 1
                    }
                }
            }
        };
        self.names.insert(path, file);
    }

    fn finish(mut self) -> Listing {
        if !self.names.contains_key(&EntryPath::root()) {
            // As a build makes the root of an archive that does not describe it.
            let metadata = Metadata { mode: 0o755, uid: 0, gid: 0, mtime: Timestamp::default() };
            let (kind, xattrs) = (Kind::Directory, Box::default());
            self.files.push(File { kind, metadata, xattrs, digest: None });
            self.names.insert(EntryPath::root(), self.files.len() - 1);
        }
        let mut names: Vec<(EntryPath, usize)> = self.names.into_iter().collect();
        names.sort_by(|(one, _), (other, _)| one.components().cmp(other.components()));
        let mut counts = vec![(0, 0); self.files.len()];
        for (index, (_, file)) in names.iter().enumerate() {
            let (first, count) = &mut counts[*file];
            if *count == 0 {
                *first = index;
            }
            *count += 1;
        }
        Listing { files: self.files, names, counts }
    }
}

/// The number that systems with glibc have for a device.
fn device_number(device: &crate::Device) -> u64 {
    let (major, minor) = (u64::from(device.major), u64::from(device.minor));
    (major & 0xfff) << 8 | (major & 0xffff_f000) << 32 | minor & 0xff | (minor & 0xffff_ff00) << 12
}
