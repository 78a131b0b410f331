//! One of the threads: random operations on random slots.

use crate::xfs::serve::slot::{Content, STRIPE, Slot};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use undercroft_judges::random::Random;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::ops::{self, MetadataChange, Name, NewInode, RenameMode, Size};
use undercroft_xfs::{Error, OpenFile, SyncTicket, Volume};

const BLOCK: usize = 4096;
const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };

/// What all threads share.
pub struct Shared {
    pub volume: Arc<Volume>,
    pub slots: Vec<Slot>,
    pub threads: usize,
    /// Contents are compared: nothing fails.
    pub compares: bool,
    /// The longest call of all, in microseconds.
    pub longest: AtomicU64,
    /// Operations that were done, and operations that found no space.
    pub done: AtomicU64,
    pub refused: AtomicU64,
}

/// A thread's own things.
pub struct Worker<'s> {
    pub shared: &'s Shared,
    pub thread: usize,
    pub random: Random,
    /// Tickets that are waited for later.
    pub tickets: Vec<SyncTicket>,
    /// Files without a name, which only this thread has, and their whole content.
    pub orphans: Vec<(OpenFile, Vec<u8>)>,
}

impl Worker<'_> {
    /// Does one operation.
    ///
    /// # Errors
    /// The volume has become read-only; a full one is no error.
    pub fn step(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let result = self.choose();
        self.note(start.elapsed());
        match result {
            Err(Error::NoSpace { .. }) => {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(Error::NotWritten { what, .. }) if what.contains("no space") => Ok(()),
            other => other,
        }
    }

    fn note(&self, elapsed: Duration) {
        self.shared.done.fetch_add(1, Ordering::Relaxed);
        self.shared.longest.fetch_max(elapsed.as_micros() as u64, Ordering::Relaxed);
    }

    fn choose(&mut self) -> Result<(), Error> {
        let slot = &self.shared.slots[self.random.below(self.shared.slots.len() as u64) as usize];
        match self.random.below(100) {
            0..=39 => self.write(slot),
            40..=64 => self.read(slot),
            65..=74 => self.durable(slot),
            75..=79 => self.change(slot),
            80..=83 => self.punch(slot),
            84..=86 => self.resize(slot),
            87..=89 => self.remove(slot),
            90..=92 => self.rename(slot),
            93..=94 => self.link(slot),
            95..=97 => self.orphan(),
            _ => self.fill(),
        }
    }

    /// Writes in the thread's stripe, through memory or past it.
    fn write(&mut self, slot: &Slot) -> Result<(), Error> {
        self.make(slot)?;
        let content = slot.content.read();
        let Some(content) = &*content else { return Ok(()) };
        let mut model = content.stripes[self.thread].lock();
        let at = self.random.below(STRIPE as u64) as usize;
        let longest = if self.random.one_in(3) { STRIPE } else { 600 };
        let len = (1 + self.random.below(longest as u64) as usize).min(STRIPE - at);
        let seed = self.random.bits();
        let bytes: Vec<u8> = (0..len).map(|index| (seed >> (index % 57)) as u8 | 1).collect();
        let offset = Content::start(self.thread) + at as u64;
        let direct = self.random.one_in(3);
        let result = if direct {
            content.file.write_direct(offset, &Arc::new(bytes.clone()), 0..len, NOW)
        } else {
            content.file.write(offset, &bytes, NOW)
        };
        if result.is_ok() {
            model[at..at + len].copy_from_slice(&bytes);
        } else if direct {
            // A part of it may be there.
            self.adopt(content, &mut model, at, &bytes);
        }
        result
    }

    /// Takes over what a write left that failed: byte for byte the old or the new.
    fn adopt(&self, content: &Content, model: &mut [u8], at: usize, bytes: &[u8]) {
        let mut found = vec![0; bytes.len()];
        let start = Content::start(self.thread) + at as u64;
        if content.file.read(start, &mut found).is_err() {
            return;
        }
        for (index, byte) in found.into_iter().enumerate() {
            let old = model[at + index];
            let is_sound = byte == old || byte == bytes[index] || !self.shared.compares;
            assert!(is_sound, "neither old nor new at {}", at + index);
            model[at + index] = byte;
        }
    }

    /// Reads the thread's stripe, whose every byte it knows, and a bit of its neighbours.
    fn read(&mut self, slot: &Slot) -> Result<(), Error> {
        let content = slot.content.read();
        let Some(content) = &*content else { return Ok(()) };
        let model = content.stripes[self.thread].lock();
        let (before, start) = (self.random.below(5000), Content::start(self.thread));
        let before = before.min(start);
        let mut found = vec![0xee; STRIPE + before as usize + 3000];
        let len = content.file.read(start - before, &mut found)?;
        if !self.shared.compares {
            return Ok(());
        }
        let own = &found[before as usize..len.min(before as usize + STRIPE)];
        assert_eq!(own.len(), STRIPE, "a short read inside of a file");
        if let Some(at) = (0..STRIPE).find(|at| own[*at] != model[*at]) {
            let (thread, byte) = (self.thread, own[at]);
            panic!("{}: byte {at} of stripe {thread}: {byte}, not {}", slot.name, model[at]);
        }
        Ok(())
    }

    fn verify(&self, content: &Content, what: &str) {
        if self.shared.compares {
            content.verify(what);
        }
    }

    fn durable(&mut self, slot: &Slot) -> Result<(), Error> {
        let content = slot.content.read();
        let Some(content) = &*content else { return Ok(()) };
        match self.random.below(6) {
            0 => content.file.fsync_and_wait(),
            1 => content.file.fsync().wait(),
            2 => content.file.fdatasync().wait(),
            3 => self.shared.volume.sync_all().wait(),
            _ => {
                self.tickets.push(content.file.fsync());
                if self.tickets.len() > 50 {
                    return self.tickets.drain(..).try_for_each(SyncTicket::wait);
                }
                Ok(())
            }
        }
    }

    fn change(&mut self, slot: &Slot) -> Result<(), Error> {
        let content = slot.content.read();
        let Some(content) = &*content else { return Ok(()) };
        let mode = Some(0o600 | self.random.below(64) as u16);
        let change = MetadataChange { mode, ..MetadataChange::default() };
        ops::change_metadata(&self.shared.volume, content.file.number(), &change, NOW)
    }

    /// Frees or zeroes a range of the stripe, or gives it space.
    fn punch(&mut self, slot: &Slot) -> Result<(), Error> {
        let content = slot.content.read();
        let Some(content) = &*content else { return Ok(()) };
        let mut model = content.stripes[self.thread].lock();
        let at = self.random.below(STRIPE as u64 - 1) as usize;
        let len = 1 + self.random.below((STRIPE - at - 1) as u64 + 1) as usize;
        let start = Content::start(self.thread) + at as u64;
        let range = start..start + len as u64;
        let zeros = vec![0; len];
        let result = match self.random.below(3) {
            0 => content.file.punch(range, NOW),
            1 => content.file.zero(range, Size::Keep, NOW),
            _ => return content.file.preallocate(range, Size::Keep, NOW),
        };
        match &result {
            Ok(()) => model[at..at + len].fill(0),
            Err(_) => self.adopt(content, &mut model, at, &zeros),
        }
        result
    }

    /// Cuts the file, and makes it as long as before: alone.
    fn resize(&mut self, slot: &Slot) -> Result<(), Error> {
        let mut content = slot.content.write();
        let Some(content) = &mut *content else { return Ok(()) };
        self.verify(content, "before a cut");
        let size = self.random.below(content.file_size());
        content.file.truncate(size, NOW)?;
        content.cut(size);
        // There is space for nothing but what a size needs.
        content.file.truncate(content.file_size(), NOW)
    }

    /// Takes the names away; now and then the file stays open without one.
    fn remove(&mut self, slot: &Slot) -> Result<(), Error> {
        let mut content = slot.content.write();
        let Some(old) = content.take() else { return Ok(()) };
        self.verify(&old, "before it is removed");
        let volume = &self.shared.volume;
        let root = volume.geometry().root_inode;
        for link in 0..old.links {
            ops::unlink(volume, root, format!("{}-hard-{link}", slot.name).as_bytes(), NOW)?;
        }
        ops::unlink(volume, root, slot.name.as_bytes(), NOW)?;
        if self.random.one_in(2) && self.orphans.len() < 8 {
            let bytes = old.bytes();
            self.orphans.push((old.file, bytes));
        }
        Ok(())
    }

    /// Moves a slot over another one, or lets the two change places.
    fn rename(&mut self, slot: &Slot) -> Result<(), Error> {
        let other = self.random.below(self.shared.slots.len() as u64) as usize;
        let other = &self.shared.slots[other];
        // In one order, in every thread.
        if slot.name >= other.name {
            return Ok(());
        }
        let (mut from, mut to) = (slot.content.write(), other.content.write());
        let has_links = [&from, &to].iter().any(|c| c.as_ref().is_some_and(|c| c.links > 0));
        let volume = &self.shared.volume;
        let at = |name: &str| name.as_bytes().to_vec();
        let (from_name, to_name) = (at(&slot.name), at(&other.name));
        let parent = volume.geometry().root_inode;
        let (source, target) = (Name { parent, name: &from_name }, Name { parent, name: &to_name });
        if from.is_none() || has_links {
            return Ok(());
        }
        if to.is_some() && self.random.one_in(2) {
            ops::rename(volume, source, target, RenameMode::Exchange, NOW)?;
            std::mem::swap(&mut *from, &mut *to);
            return Ok(());
        }
        ops::rename(volume, source, target, RenameMode::Replace, NOW)?;
        let replaced = std::mem::replace(&mut *to, from.take());
        if let Some(old) = replaced.filter(|_| self.orphans.len() < 8) {
            let bytes = old.bytes();
            self.orphans.push((old.file, bytes));
        }
        Ok(())
    }

    fn link(&mut self, slot: &Slot) -> Result<(), Error> {
        let mut content = slot.content.write();
        let Some(content) = content.as_mut().filter(|content| content.links < 3) else {
            return Ok(());
        };
        let volume = &self.shared.volume;
        let name = format!("{}-hard-{}", slot.name, content.links);
        let root = volume.geometry().root_inode;
        ops::link(volume, content.file.number(), root, name.as_bytes(), NOW)?;
        content.links += 1;
        Ok(())
    }

    /// Reads, writes and lets go of a file without a name.
    fn orphan(&mut self) -> Result<(), Error> {
        let Some((file, model)) = self.orphans.last_mut() else { return Ok(()) };
        let mut found = vec![0; model.len()];
        let len = file.read(0, &mut found)?;
        if self.shared.compares {
            assert_eq!(len, model.len(), "length of an orphan");
            assert!(found == *model, "bytes of the orphan {}", file.number());
        }
        let at = self.random.below(model.len() as u64) as usize;
        let len = (model.len() - at).min(3000);
        file.write(at as u64, &vec![9; len], NOW)?;
        model[at..at + len].fill(9);
        if self.random.one_in(2) {
            let (file, _) = self.orphans.remove(0);
            file.close()?;
        }
        Ok(())
    }

    /// Fills a small volume for a moment.
    fn fill(&mut self) -> Result<(), Error> {
        let volume = &self.shared.volume;
        let new = NewInode::new(FileType::Regular, 0o600);
        let file = ops::create_unlinked(volume, volume.geometry().root_inode, &new)?;
        let memory = Arc::new(vec![0xaa; 256 * BLOCK]);
        for piece in 0..24 {
            file.write_shared(piece * memory.len() as u64, &memory, 0..memory.len(), NOW)?;
        }
        let mut bytes = vec![0; BLOCK];
        file.read(self.random.below(20) * BLOCK as u64, &mut bytes)?;
        let is_sound = bytes.iter().all(|byte| *byte == 0xaa) || !self.shared.compares;
        assert!(is_sound, "bytes of a file that fills the volume");
        Ok(())
    }

    /// Makes the file of an empty slot.
    fn make(&mut self, slot: &Slot) -> Result<(), Error> {
        if slot.content.read().is_some() {
            return Ok(());
        }
        let mut content = slot.content.write();
        if content.is_some() {
            return Ok(());
        }
        let volume = &self.shared.volume;
        let new = NewInode::new(FileType::Regular, 0o600);
        let root = volume.geometry().root_inode;
        let file = ops::make_open(volume, root, slot.name.as_bytes(), &new)?;
        let made = Content::new(file, self.shared.threads);
        made.file.truncate(made.file_size(), NOW)?;
        *content = Some(made);
        Ok(())
    }
}
