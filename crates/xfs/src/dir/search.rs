//! Finding a name through the hash index of block, leaf and node form.

use super::form::{Form, form, hash_tree, read};
use super::{Entry, Slot, SlotBlock};
use crate::cache::BufferRef;
use crate::da::{DaFork, Path};
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::dir_layout::DirLayout;
use crate::format::{dir_block, dir_data, dir_pairs};
use crate::units::FileBlock;
use std::ops::Range;

/// Where a name was found.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) entry: Entry,
    /// The block of the entry.
    pub(super) data: BufferRef,
    /// Pointer to the entry.
    pub(super) pointer: u32,
    /// Index of its pair in the hash block.
    pub(super) pair: usize,
    pub(super) index: Index,
}

/// The hash block of a hit.
#[derive(Debug)]
pub(super) enum Index {
    /// The table in the same block.
    Block,
    Leaf(BufferRef),
    Node(Path),
}

/// Result of a search.
#[derive(Debug)]
pub(super) enum Search {
    Hit(Hit),
    Absent(Slot),
}

/// An entry that has the name, without the hash block it was found through.
#[derive(Debug)]
struct Match {
    entry: Entry,
    data: BufferRef,
    pointer: u32,
    pair: usize,
}

/// The result for a name in the pairs of one hash block.
#[derive(Debug)]
enum Scan {
    Match(Match),
    /// It is not in the directory.
    Absent,
    /// The block ends before the hashes pass that of the name.
    Open,
}

/// Searches a directory that is not in short form.
pub(super) fn search<F: DaFork + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    name: &[u8],
) -> Result<Search, Error> {
    let wanted = Wanted { layout, name, hash: layout.hash(name) };
    let (scan, place) = match form(fork, layout)? {
        Form::Short | Form::Block => {
            let block = read(fork, FileBlock(0), BufferKind::DirBlock)?;
            let table = dir_block::table(&block.read());
            (
                wanted.scan(fork, &block, table.base, table.count, Some(&block))?,
                SlotBlock::Block(block),
            )
        }
        Form::Leaf => {
            let leaf = read(fork, fork.geometry().dir_leaf_block(), BufferKind::DirLeaf1)?;
            (wanted.scan_leaf(fork, &leaf)?, SlotBlock::Leaf(leaf))
        }
        Form::Node => return wanted.search_tree(fork),
    };
    Ok(match scan {
        Scan::Match(found) => Search::Hit(found.in_place(match place {
            SlotBlock::Leaf(leaf) => Index::Leaf(leaf),
            _ => Index::Block,
        })),
        Scan::Absent | Scan::Open => Search::Absent(Slot { hash: wanted.hash, place }),
    })
}

impl Match {
    fn in_place(self, index: Index) -> Hit {
        let Self { entry, data, pointer, pair } = self;
        Hit { entry, data, pointer, pair, index }
    }
}

/// A name that is searched for.
#[derive(Clone, Copy, Debug)]
struct Wanted<'a> {
    layout: DirLayout,
    name: &'a [u8],
    hash: u32,
}

impl Wanted<'_> {
    fn search_tree<F: DaFork + ?Sized>(&self, fork: &mut F) -> Result<Search, Error> {
        let tree = hash_tree(fork, self.layout);
        let first = tree.descend(fork, self.hash)?;
        // Pairs with this hash may go on in the next leaves; a new one goes to the first leaf.
        let mut later: Option<Path> = None;
        loop {
            let leaf = later.as_ref().unwrap_or(&first).leaf().clone();
            match self.scan_leaf(fork, &leaf)? {
                Scan::Match(found) => {
                    return Ok(Search::Hit(found.in_place(Index::Node(later.unwrap_or(first)))));
                }
                Scan::Open => {
                    let mut next = later.take().unwrap_or_else(|| first.clone());
                    if tree.next_leaf(fork, &mut next)? {
                        later = Some(next);
                        continue;
                    }
                }
                Scan::Absent => {}
            }
            return Ok(Search::Absent(Slot { hash: self.hash, place: SlotBlock::Node(first) }));
        }
    }

    fn scan_leaf<F: DaFork + ?Sized>(&self, fork: &mut F, leaf: &BufferRef) -> Result<Scan, Error> {
        let da = self.layout.da();
        let count = da.count(&leaf.read());
        self.scan(fork, leaf, da.header_size(), count, None)
    }

    /// Looks at the pairs with the wanted hash in a hash block. `data` is the block with the
    /// entries if it is known; otherwise the pointers tell.
    fn scan<F: DaFork + ?Sized>(
        &self,
        fork: &mut F,
        index: &BufferRef,
        base: usize,
        count: usize,
        data: Option<&BufferRef>,
    ) -> Result<Scan, Error> {
        let mut next = {
            let bytes = index.read();
            let first = dir_pairs::search(&bytes, base, count, self.hash);
            self.next_pair(&bytes, base, first..count)
        };
        // Pairs of one hash often point into the same block.
        let mut known: Option<(u32, BufferRef)> = data.map(|data| (0, data.clone()));
        loop {
            let (pair, pointer) = match next {
                Ok(found) => found,
                Err(end) => return Ok(end),
            };
            // The block of pairs is not open here: it may be that of the entries, too.
            let (data_block, offset) = self.layout.split_pointer(pointer);
            let data = match known.take().filter(|(at, _)| *at == data_block) {
                Some((_, data)) => data,
                None => read(fork, self.layout.data_file_block(data_block), BufferKind::DirData)?,
            };
            if let Some(entry) = self.entry_at(fork, &data, data_block, offset)? {
                return Ok(Scan::Match(Match { entry, data, pointer, pair }));
            }
            known = Some((data_block, data));
            next = self.next_pair(&index.read(), base, pair + 1..count);
        }
    }

    /// The first of these pairs that has the wanted hash and stands for an entry, and its pointer;
    /// or how the scan ends without one.
    fn next_pair(
        &self,
        bytes: &[u8],
        base: usize,
        pairs: Range<usize>,
    ) -> Result<(usize, u32), Scan> {
        for pair in pairs {
            if dir_pairs::hash(bytes, base, pair) != self.hash {
                return Err(Scan::Absent);
            }
            let pointer = dir_pairs::pointer(bytes, base, pair);
            if pointer != 0 {
                return Ok((pair, pointer));
            }
        }
        Err(Scan::Open)
    }

    /// The entry at `offset` of a data block, if it has the wanted name.
    fn entry_at<F: DaFork + ?Sized>(
        &self,
        fork: &F,
        data: &BufferRef,
        data_block: u32,
        offset: usize,
    ) -> Result<Option<Entry>, Error> {
        let bytes = data.read();
        let end = dir_block::tiling_end(&bytes, bytes.kind());
        match dir_data::entry(&bytes, self.layout, offset, end) {
            Ok(found) if self.layout.same_name(found.name, self.name) => {
                Ok(Some(Entry { inode: found.inode, ftype: found.ftype }))
            }
            Ok(_) => Ok(None),
            Err(what) => Err(fork.corrupt(self.layout.data_file_block(data_block), what)),
        }
    }
}
