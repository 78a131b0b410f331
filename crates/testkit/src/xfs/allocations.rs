//! A random history of allocations and frees on a volume, beside a model that knows which blocks
//! were given out.
//!
//! Every answer of the allocator is checked when it comes: its blocks are free in the model, and
//! the extent is as requested. A refusal is checked against the space left in the groups. At the
//! end the extents become those of a file, so that the whole volume can be judged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::random::Random;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{AllocRecord, Extent, FileType, RmapOwner};
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::Pool;
use undercroft_xfs::internals::alloc::{self, Allocation, Mode, Request};
use undercroft_xfs::internals::btree::{Bnobt, Cntbt};
use undercroft_xfs::internals::{bmap, group_tree};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::{AgBlock, AgNumber, FileBlock, FsBlock};

/// In whose name the extents are taken while the history runs.
const OWNER: RmapOwner = RmapOwner::COW;

/// A description of a new inode.
pub fn new_inode(kind: FileType) -> NewInode<'static> {
    NewInode::new(kind, 0o755)
}

/// A volume under test and the extents taken from it.
pub struct History {
    volume: Volume,
    random: Random,
    /// Extents given out, by first block, and where each is in `order`.
    held: BTreeMap<(u32, u32), (u32, usize)>,
    /// The same extents in no order, to pick one from.
    order: Vec<(u32, u32)>,
    held_blocks: u64,
    /// Blocks of each group that are not held by the model: they never change.
    capacity: Vec<u64>,
    /// Log2 of the longest request.
    largest: u32,
    /// Refusals seen.
    pub refused: u64,
}

/// The blocks of a group, and the free ones of them.
struct GroupFigures {
    free: u64,
    list: u64,
    trees: u64,
    reserved: u64,
}

impl History {
    /// A new volume in a file, allocating as `install` makes it.
    pub fn start(
        image: &Path,
        options: &MkfsOptions,
        install: impl FnOnce(&mut Volume),
        seed: u64,
    ) -> Self {
        let file = std::fs::File::create(image).unwrap();
        file.set_len(options.size).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
        let plan = mkfs::plan(options).unwrap();
        let mut volume = mkfs::begin(&device, plan, &new_inode(FileType::Directory)).unwrap();
        install(&mut volume);
        let mut history = Self {
            random: Random::new(seed),
            held: BTreeMap::new(),
            order: Vec::new(),
            held_blocks: 0,
            capacity: Vec::new(),
            largest: 13,
            refused: 0,
            volume,
        };
        history.capacity = history.groups().map(|ag| history.unheld(ag)).collect();
        history
    }

    fn groups(&self) -> impl Iterator<Item = AgNumber> + use<> {
        (0..self.volume.geometry().ag_count).map(AgNumber)
    }

    fn figures(&self, ag: AgNumber) -> GroupFigures {
        let mut trans = self.volume.begin().unwrap();
        trans
            .with_group(ag, true, |_, group| {
                let reserved = group.reserved.outstanding(&group.agf, &group.agi, Pool::Ordinary);
                Ok(GroupFigures {
                    free: group.agf.free_blocks.into(),
                    list: group.agf.free_list_count.into(),
                    trees: group.agf.tree_blocks.into(),
                    reserved: reserved.into(),
                })
            })
            .unwrap()
            .unwrap()
    }

    /// Blocks that are free, or hold the trees of the free space.
    fn unheld(&self, ag: AgNumber) -> u64 {
        let figures = self.figures(ag);
        figures.free + figures.list + figures.trees
    }

    /// Fills and drains the volume in turns, with requests of changing size, and compares it with
    /// the model `looks` times.
    pub fn wander(&mut self, operations: u64, looks: u64) {
        for operation in 0..operations {
            if operation.is_multiple_of((operations / 64).max(1)) {
                self.largest = 2 + self.random.below(12) as u32;
            }
            if operation.is_multiple_of((operations / looks).max(1)) {
                self.compare();
            }
            // Up and down four times.
            let phase = operation * 8 / operations;
            self.step(phase.is_multiple_of(2));
        }
        self.compare();
    }

    /// One random operation; `fill` makes allocations more likely than frees.
    fn step(&mut self, fill: bool) {
        let allocate = if fill { 7 } else { 3 };
        if self.order.is_empty() || self.random.below(10) < allocate {
            self.allocate();
        } else {
            self.free();
        }
    }

    fn allocate(&mut self) {
        let ag = AgNumber(self.random.below(self.volume.geometry().ag_count.into()) as u32);
        let length = self.volume.geometry().ag_length(ag);
        let block = AgBlock(self.random.below(length.into()) as u32);
        let mut request = self.request(self.volume.geometry().fs_block(ag, block));
        let mut trans = self.volume.begin().unwrap();
        let way = self.random.below(12);
        let mode = match way {
            0 => Some(Mode::BySize),
            1 => Some(Mode::Exact(block)),
            2 => Some(Mode::Near(block)),
            _ => None,
        };
        if way == 1 {
            request.alignment = 1;
        }
        let found = match mode {
            Some(mode) => trans
                .with_group(ag, true, |trans, group| {
                    alloc::allocate_in_group(trans, group, &request, mode)
                })
                .unwrap()
                .unwrap(),
            None if way < 8 => alloc::allocate(&mut trans, &request).unwrap(),
            None => {
                request.alignment = 1;
                request.min_len = 1;
                alloc::allocate_best(&mut trans, &request, None).unwrap()
            }
        };
        trans.commit(&mut []).unwrap();
        match found {
            Some(found) => {
                self.judge(&request, mode, &found);
                self.hold(found.ag.0, found.start.0, found.len);
            }
            None => {
                self.refused += 1;
                // The first group that accepts a request decides, so limits of place or alignment
                // can fail a request that others could serve.
                let plain = request.alignment == 1 && request.range.is_none();
                if mode.is_none() && request.min_len == 1 && plain {
                    self.expect_full(&request);
                }
            }
        }
    }

    fn request(&mut self, target: FsBlock) -> Request {
        let random = &mut self.random;
        let max_len = 1 + random.magnitude(self.largest) as u32;
        let min_len = match random.below(3) {
            0 => 1,
            1 => max_len,
            _ => 1 + random.below(max_len.into()) as u32,
        };
        let mut request = Request { min_len, ..Request::metadata(target, max_len, OWNER) };
        request.user_data = random.one_in(2);
        if random.one_in(4) {
            request.alignment = 1 << random.below(6);
        }
        if random.one_in(8) {
            request.multiple = 1 + random.below(max_len.into()) as u32;
            request.remainder = random.below(request.multiple.into()) as u32;
        }
        if random.one_in(16) {
            let low = random.below(5000) as u32;
            request.range = Some((AgBlock(low), AgBlock(low + 60_000)));
        }
        if random.one_in(16) {
            request.pool = Pool::Metadata;
        }
        request.min_left = random.magnitude(3) as u32;
        request
    }

    /// Checks that an extent is as requested.
    fn judge(&self, request: &Request, mode: Option<Mode>, found: &Allocation) {
        let context = format!("{request:?} {mode:?} -> {found:?}");
        assert!(found.len >= request.min_len && found.len <= request.max_len, "{context}");
        assert!(found.start.0.is_multiple_of(request.alignment), "{context}");
        let geometry = self.volume.geometry();
        assert!(found.start > geometry.ag_header_last(), "{context}");
        assert!(found.start.0 + found.len <= geometry.ag_length(found.ag), "{context}");
        if let Some(Mode::Exact(target)) = mode {
            assert_eq!(found.start, target, "{context}");
        }
        if let (Some(Mode::Near(_)), Some((low, high))) = (mode, request.range) {
            assert!(found.start >= low && found.start <= high, "{context}");
        }
        let end = (found.ag.0, found.start.0 + found.len);
        let before = self.held.range(..end).next_back();
        let free = before.is_none_or(|((ag, start), (len, _))| {
            (*ag, start + len) <= (found.ag.0, found.start.0)
        });
        assert!(free, "given out already: {context}, {before:?}");
    }

    /// Checks that no group has a block to give.
    fn expect_full(&self, request: &Request) {
        for ag in self.groups() {
            let figures = self.figures(ag);
            // What the list must hold counts as taken: at most six levels of three trees.
            let spare = (figures.free + figures.list).saturating_sub(figures.reserved);
            let taken = figures.list.max(24) + u64::from(request.min_left.max(request.total));
            assert!(spare <= taken, "group {ag} has {spare} blocks for {request:?}");
        }
    }

    fn hold(&mut self, ag: u32, start: u32, len: u32) {
        self.held.insert((ag, start), (len, self.order.len()));
        self.order.push((ag, start));
        self.held_blocks += u64::from(len);
    }

    fn forget(&mut self, key: (u32, u32)) -> u32 {
        let (len, at) = self.held.remove(&key).unwrap();
        self.order.swap_remove(at);
        if let Some(moved) = self.order.get(at) {
            self.held.get_mut(moved).unwrap().1 = at;
        }
        self.held_blocks -= u64::from(len);
        len
    }

    /// Frees a random extent, or a part of one.
    fn free(&mut self) {
        let key = self.order[self.random.below(self.order.len() as u64) as usize];
        let len = self.forget(key);
        let (ag, start) = key;
        let (mut from, mut to) = (0, len);
        if self.random.one_in(3) {
            from = self.random.below(len.into()) as u32;
            to = from + 1 + self.random.below((len - from).into()) as u32;
        }
        if from > 0 {
            self.hold(ag, start, from);
        }
        if to < len {
            self.hold(ag, start + to, len - to);
        }
        self.give_back(ag, start + from, to - from);
    }

    fn give_back(&self, ag: u32, start: u32, len: u32) {
        let mut trans = self.volume.begin().unwrap();
        let freed = trans.with_group(AgNumber(ag), true, |trans, group| {
            alloc::free_in_group(trans, group, AgBlock(start), len, Some(OWNER))
        });
        freed.unwrap().unwrap();
        trans.commit(&mut []).unwrap();
    }

    /// Fills the volume with short extents and frees every other one.
    pub fn scatter(&mut self) {
        for number in 0.. {
            let len = 2 + number % 5;
            let request = Request::metadata(FsBlock(0), len, OWNER);
            let mut trans = self.volume.begin().unwrap();
            let found = alloc::allocate(&mut trans, &request).unwrap();
            trans.commit(&mut []).unwrap();
            let Some(found) = found else { break };
            self.hold(found.ag.0, found.start.0, found.len);
        }
        let keys: Vec<(u32, u32)> = self.held.keys().copied().step_by(2).collect();
        for key in keys {
            let len = self.forget(key);
            self.give_back(key.0, key.1, len);
        }
        self.compare();
    }

    /// Takes single blocks until there are none.
    pub fn take_all(&mut self) {
        let largest = std::mem::replace(&mut self.largest, 0);
        for len in [4096, 64, 1] {
            loop {
                let target = FsBlock(0);
                let request = Request { min_len: 1, ..Request::metadata(target, len, OWNER) };
                let mut trans = self.volume.begin().unwrap();
                let found = alloc::allocate(&mut trans, &request).unwrap();
                trans.commit(&mut []).unwrap();
                let Some(found) = found else {
                    self.expect_full(&request);
                    break;
                };
                self.judge(&request, None, &found);
                self.hold(found.ag.0, found.start.0, found.len);
            }
        }
        self.largest = largest;
    }

    /// Frees everything, in random order.
    pub fn free_all(&mut self) {
        self.free_until(0);
    }

    /// Frees extents in random order until `left` of them are left.
    pub fn free_until(&mut self, left: usize) {
        while self.order.len() > left {
            let key = self.order[self.random.below(self.order.len() as u64) as usize];
            let len = self.forget(key);
            self.give_back(key.0, key.1, len);
        }
    }

    /// Extents given out now.
    pub fn held_extents(&self) -> usize {
        self.order.len()
    }

    /// Blocks given out now.
    pub fn held_blocks(&self) -> u64 {
        self.held_blocks
    }

    /// Compares the trees and headers of all groups with the model.
    pub fn compare(&self) {
        for ag in self.groups() {
            let (mut by_block, mut by_size) = (Vec::new(), Vec::new());
            group_tree::free_extents::<Bnobt>(&self.volume, ag, |extent| by_block.push(extent))
                .unwrap();
            group_tree::free_extents::<Cntbt>(&self.volume, ag, |extent| by_size.push(extent))
                .unwrap();
            by_size.sort_by_key(|extent: &AllocRecord| extent.start);
            assert_eq!(by_block, by_size, "group {ag}");
            let free: u64 = by_block.iter().map(|extent| u64::from(extent.len)).sum();
            assert_eq!(free, self.figures(ag).free, "group {ag}");
            let mut held = 0;
            for ((_, start), (len, _)) in self.held.range((ag.0, 0)..(ag.0 + 1, 0)) {
                held += u64::from(*len);
                let at = by_block.partition_point(|free| free.start.0 < start + len);
                let clear = at == 0 || {
                    let before = by_block[at - 1];
                    before.start.0 + before.len <= *start
                };
                assert!(clear, "group {ag}: {len} blocks from {start} are free and in use");
            }
            assert_eq!(self.unheld(ag) + held, self.capacity[ag.0 as usize], "group {ag}");
        }
    }

    /// Makes a file of the extents held, and a file system of the volume.
    pub fn finish(self) {
        let volume = &self.volume;
        let mut trans = volume.begin().unwrap();
        let mut root = volume.lock_inode(volume.geometry().root_inode).unwrap();
        let file = ops::create(&mut trans, &mut root, b"held", &new_inode(FileType::Regular));
        let mut file = file.unwrap();
        trans.commit(&mut [&mut root, &mut file]).unwrap();
        let mut offset = 0;
        for ((group, start), (len, _)) in &self.held {
            let (ag, start) = (AgNumber(*group), AgBlock(*start));
            let mut trans = volume.begin().unwrap();
            let changed = trans.with_group(ag, true, |trans, group| {
                alloc::fill_free_list(trans, group)?;
                group_tree::rmap::remove_owner(trans, group, start, *len, OWNER)
            });
            changed.unwrap().unwrap();
            let extent = Extent {
                offset: FileBlock(offset),
                start: volume.geometry().fs_block(ag, start),
                len: *len,
                unwritten: true,
            };
            bmap::add(&mut trans, &mut file, ForkKind::Data, &[extent]).unwrap();
            offset += u64::from(*len);
            trans.commit(&mut [&mut file]).unwrap();
        }
        let trans = volume.begin().unwrap();
        file.core.size = offset << volume.geometry().block_log;
        file.touch();
        trans.commit(&mut [&mut file]).unwrap();
        mkfs::finish(volume, false).unwrap();
    }
}
