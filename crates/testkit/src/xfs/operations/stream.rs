//! Random streams of operations that mostly make sense.

use super::model::{Kind, Model};
use super::operation::{Move, Operation, Set};
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// A source of operations that mostly make sense.
pub struct Stream {
    pub random: Random,
    /// Access lists among the attributes.
    pub lists: bool,
    /// The tree grows, or it shrinks.
    grows: bool,
    left: u64,
}

impl Stream {
    pub fn new(seed: u64, lists: bool) -> Self {
        Self { random: Random::new(seed), lists, grows: true, left: 300 }
    }

    /// The next operation on a tree like `model`.
    pub fn next(&mut self, model: &Model) -> Operation {
        if self.left == 0 {
            self.grows = !self.grows || model.count() < 20;
            self.left = 100 + self.random.below(500);
        }
        self.left -= 1;
        let removes = if self.grows { 12 } else { 60 };
        if self.random.below(100) < removes {
            return self.removal(model);
        }
        match self.random.below(20) {
            0..=5 => self.file(model),
            6..=8 => self.make(model),
            9 | 10 => Operation::Link { from: self.existing(model), to: self.place(model) },
            11..=13 => self.rename(model),
            14..=16 => self.attribute(model),
            17 => Operation::Mode { mode: self.mode(), path: self.not_a_link(model) },
            18 => Operation::Owner {
                path: self.existing(model),
                uid: self.random.magnitude(20) as u32,
                gid: self.random.magnitude(20) as u32,
            },
            _ => Operation::Times {
                path: self.existing(model),
                access: self.random.magnitude(33) as i64 - 1000,
                modification: self.random.magnitude(33) as i64 - 1000,
            },
        }
    }

    fn removal(&mut self, model: &Model) -> Operation {
        let path = self.existing(model);
        let is_directory = model.kind(&path) == Some(Kind::Directory);
        // Now and then the wrong one of the two.
        if is_directory != self.random.one_in(20) {
            Operation::Rmdir { path }
        } else {
            Operation::Unlink { path }
        }
    }

    fn make(&mut self, model: &Model) -> Operation {
        let (mut device, mut target) = ((0, 0), Vec::new());
        let kind = match self.random.below(8) {
            0..=3 => FileType::Directory,
            4 | 5 => {
                let length = self.random.magnitude(10).clamp(1, 1023) as usize;
                target = vec![b't'; length];
                FileType::Symlink
            }
            6 => FileType::Fifo,
            _ => {
                // Linux refuses majors from 512 on, which the format could hold.
                device = (self.random.below(512) as u32, self.random.below(1 << 18) as u32);
                FileType::Character
            }
        };
        let mut mode = self.mode();
        if kind == FileType::Directory {
            // The kernel takes no other bits when it makes one.
            mode &= 0o1777;
        }
        Operation::Make { path: self.place(model), kind, mode, device, target }
    }

    fn file(&mut self, model: &Model) -> Operation {
        let mut at = 0;
        let count =
            if self.random.one_in(30) { self.random.below(60) } else { self.random.below(2) };
        let ranges = (0..count).map(|_| {
            let start = at + self.random.magnitude(14) / 512 * 512;
            at = start + 1 + self.random.magnitude(14);
            start..at
        });
        let ranges = ranges.collect();
        let seed = self.random.bits() as u8;
        Operation::File { path: self.place(model), mode: self.mode(), ranges, seed }
    }

    fn rename(&mut self, model: &Model) -> Operation {
        let from = self.existing(model);
        let to = if self.random.one_in(3) { self.existing(model) } else { self.place(model) };
        let mode = match self.random.below(4) {
            0 => Move::NoReplace,
            1 => Move::Exchange,
            _ => Move::Replace,
        };
        // A path through what moves depends on when it is looked up.
        Operation::Rename { from, to, mode }
    }

    fn attribute(&mut self, model: &Model) -> Operation {
        let path = self.not_a_link(model);
        if self.lists && self.random.one_in(4) {
            return self.list(path);
        }
        let space = ["user", "trusted", "security"][self.random.below(3) as usize];
        let number = self.random.below(12);
        let name = format!("{space}.{number}{}", "x".repeat((number * number) as usize));
        if self.random.one_in(3) {
            return Operation::RemoveAttribute { path, name };
        }
        let bits = if self.random.one_in(8) { 14 } else { 7 };
        let length = self.random.magnitude(bits) as usize;
        let value = vec![self.random.bits() as u8; length];
        let mode = match self.random.below(6) {
            0 => Set::Create,
            1 => Set::Replace,
            _ => Set::Either,
        };
        Operation::SetAttribute { path, name, value, mode }
    }

    /// An access list with a user and a mask, of a file or handed down by a directory.
    fn list(&mut self, path: Vec<u8>) -> Operation {
        let kind = if self.random.one_in(2) { "access" } else { "default" };
        let name = format!("system.posix_acl_{kind}");
        if self.random.one_in(5) {
            return Operation::RemoveAttribute { path, name };
        }
        let mut value = vec![2, 0, 0, 0];
        let entries = [(1, u32::MAX), (2, 1000), (4, u32::MAX), (16, u32::MAX), (32, u32::MAX)];
        let named = !self.random.one_in(4);
        for (tag, id) in entries.into_iter().filter(|(tag, _)| named || ![2, 16].contains(tag)) {
            value.extend([tag, 0, self.random.below(8) as u8, 0]);
            value.extend(u32::to_le_bytes(id));
        }
        Operation::SetAttribute { path, name, value, mode: Set::Either }
    }

    fn mode(&mut self) -> u16 {
        const MODES: [u16; 6] = [0o644, 0o755, 0o4751, 0o2775, 0o1777, 0o2644];
        MODES[self.random.below(6) as usize]
    }

    /// A path that exists, mostly.
    fn existing(&mut self, model: &Model) -> Vec<u8> {
        if self.random.one_in(40) {
            return self.place(model);
        }
        model.any(&mut self.random, |_| true).unwrap_or_else(|| b"nothing".to_vec())
    }

    fn not_a_link(&mut self, model: &Model) -> Vec<u8> {
        let found = model.any(&mut self.random, |kind| kind != Kind::Symlink);
        found.unwrap_or_else(|| b"nothing".to_vec())
    }

    /// A path to put something at: seldom one that exists, very seldom one that cannot.
    fn place(&mut self, model: &Model) -> Vec<u8> {
        let directory = if self.random.one_in(3) {
            Some(Vec::new())
        } else {
            model.any(&mut self.random, |kind| kind == Kind::Directory)
        };
        let number = self.random.below(700);
        let length = match self.random.below(100) {
            0 => 256,
            1 => 255,
            _ => number as usize % 60,
        };
        let name = format!("{number}{}", "n".repeat(length));
        let length = if length > 60 { length } else { name.len() };
        join(&directory.unwrap_or_default(), &name.as_bytes()[..length])
    }
}
