//! What a thread does: random operations on its files.

use crate::xfs::serve_crash::files::{File, Files};
use crate::xfs::serve_crash::model::Way;
use std::sync::Arc;
use undercroft_judges::random::Random;
use undercroft_xfs::ops::{CloneRange, RenameMode, Size};
use undercroft_xfs::{Error, OpenFile};

/// Files are at most this long.
const LONGEST: usize = 24 * 4096;
/// Blocks of files are shared in pieces of this many bytes.
const PIECE: usize = 4096;

impl Files {
    /// Does one operation, or asks for a ticket.
    ///
    /// # Errors
    /// Those of the operation: there is space for all.
    pub fn step(&mut self) -> Result<(), Error> {
        let Some((place, entry)) = self.pick() else { return self.create() };
        match self.below(100) {
            0..=29 => self.write(place),
            30..=39 => self.wait(place),
            40..=47 => self.draw(place),
            48..=53 => self.truncate(place),
            54..=58 => self.preallocate(place),
            59..=63 => self.punch(place),
            64..=66 => self.clone_range(place),
            67 => self.shift(place),
            68..=74 => self.create(),
            75..=79 => self.unlink(),
            80..=84 => self.rename(RenameMode::Replace),
            85..=87 => self.rename(RenameMode::Exchange),
            88..=91 => self.link(entry),
            92..=95 => self.change_mode(entry),
            96 => self.reopen(place),
            _ => self.orphan(),
        }
    }

    /// Bytes that no other operation writes.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut random = Random::new(self.random.bits());
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend((random.bits() | 0x0101_0101_0101_0101).to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    fn write(&mut self, place: usize) -> Result<(), Error> {
        let at = match self.below(3) {
            0 => self.open[place].bytes.len().min(LONGEST - 1),
            _ => self.below(LONGEST),
        };
        let most = if self.random.one_in(3) { LONGEST } else { 6000 };
        let len = (1 + self.below(most)).min(LONGEST - at);
        let new = Arc::new(self.bytes(len));
        let way = [Way::Device, Way::Memory, Way::Memory][self.below(3)];
        let shares = self.random.one_in(2);
        self.run(|files| {
            let now = files.now();
            let open = &files.open[place].open;
            match way {
                Way::Memory if shares => open.write_shared(at as u64, &new, 0..len, now)?,
                Way::Memory => open.write(at as u64, &new, now)?,
                _ => open.write_direct(at as u64, &new, 0..len, now)?,
            }
            let mut bytes = files.open[place].bytes.to_vec();
            bytes.resize(bytes.len().max(at + len), 0);
            bytes[at..at + len].copy_from_slice(&new);
            files.changed(place, way, at..at + len, bytes);
            Ok(())
        })
    }

    fn truncate(&mut self, place: usize) -> Result<(), Error> {
        let size = self.below(LONGEST);
        self.run(|files| {
            files.open[place].open.truncate(size as u64, files.now())?;
            let mut bytes = files.open[place].bytes.to_vec();
            let from = bytes.len().min(size);
            bytes.resize(size, 0);
            files.changed(place, Way::Size, from..usize::MAX, bytes);
            Ok(())
        })
    }

    fn preallocate(&mut self, place: usize) -> Result<(), Error> {
        let at = self.below(LONGEST - 1);
        let end = at + 1 + self.below(LONGEST - at - 1);
        let grows = self.random.one_in(2);
        let size = if grows { Size::Grow } else { Size::Keep };
        self.run(|files| {
            files.open[place].open.preallocate(at as u64..end as u64, size, files.now())?;
            let old = files.open[place].bytes.len();
            if grows && end > old {
                let mut bytes = files.open[place].bytes.to_vec();
                bytes.resize(end, 0);
                files.changed(place, Way::Size, old..usize::MAX, bytes);
            }
            Ok(())
        })
    }

    fn punch(&mut self, place: usize) -> Result<(), Error> {
        let len = self.open[place].bytes.len();
        if len < 2 {
            return Ok(());
        }
        let at = self.below(len - 1);
        let end = at + 1 + self.below(len - at);
        let frees = self.random.one_in(2);
        self.run(|files| {
            let (open, range) = (&files.open[place].open, at as u64..end as u64);
            match frees {
                true => open.punch(range, files.now())?,
                false => open.zero(range, Size::Keep, files.now())?,
            }
            let mut bytes = files.open[place].bytes.to_vec();
            bytes[at..end].fill(0);
            files.changed(place, Way::Device, at..end, bytes);
            Ok(())
        })
    }

    /// Shares blocks with another file.
    fn clone_range(&mut self, place: usize) -> Result<(), Error> {
        let Some((from, _)) = self.pick() else { return Ok(()) };
        let pieces = self.open[from].bytes.len() / PIECE;
        let target = PIECE * self.below(LONGEST / PIECE / 2);
        if from == place || pieces == 0 || !self.volume.geometry().features.reflink() {
            return Ok(());
        }
        let first = self.below(pieces);
        let len = PIECE * (1 + self.below((pieces - first).min(LONGEST / PIECE / 2)));
        let source = first * PIECE;
        self.run(|files| {
            let range =
                CloneRange { source: source as u64, target: target as u64, len: len as u64 };
            let (file, other) = (&files.open[place], &files.open[from]);
            file.open.clone_range(&other.open, &range, files.now())?;
            let mut bytes = file.bytes.to_vec();
            bytes.resize(bytes.len().max(target + len), 0);
            bytes[target..target + len].copy_from_slice(&other.bytes[source..source + len]);
            files.changed(place, Way::Device, target..target + len, bytes);
            Ok(())
        })
    }

    /// Takes a block out of a file, or puts one into it.
    fn shift(&mut self, place: usize) -> Result<(), Error> {
        let len = self.open[place].bytes.len();
        if !(PIECE + 1..LONGEST).contains(&len) {
            return Ok(());
        }
        let at = PIECE * self.below((len - 1) / PIECE);
        let takes = self.random.one_in(2);
        self.run(|files| {
            let (open, range) = (&files.open[place].open, at as u64..(at + PIECE) as u64);
            let mut bytes = files.open[place].bytes.to_vec();
            if takes {
                open.collapse(range, files.now())?;
                bytes.drain(at..at + PIECE);
            } else {
                open.insert(range, files.now())?;
                bytes.splice(at..at, [0; PIECE]);
            }
            files.changed(place, Way::Size, at..usize::MAX, bytes);
            Ok(())
        })
    }

    /// Lets go of a file, which may be dirty, and opens it again.
    fn reopen(&mut self, place: usize) -> Result<(), Error> {
        let File { index, open, bytes } = self.open.swap_remove(place);
        let number = open.number();
        open.close()?;
        let open = OpenFile::open(&self.volume, number)?;
        self.open.push(File { index, open, bytes });
        Ok(())
    }

    /// Writes to a file without a name, or lets go of it.
    fn orphan(&mut self) -> Result<(), Error> {
        let has_name = |file: &File| self.names.values().any(|entry| entry.file == file.index);
        let Some(place) = self.open.iter().position(|file| !has_name(file)) else { return Ok(()) };
        if self.random.one_in(2) {
            self.write(place)?;
            return self.wait(place);
        }
        self.open.swap_remove(place).open.close()
    }
}
