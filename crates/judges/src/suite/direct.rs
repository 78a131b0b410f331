//! One file through the page cache and around it (O_DIRECT), in turn: each read must give what was
//! written last, by either way.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags, fallocate};

use crate::random::Random;
use crate::{Error, Report};

/// The longest file, the longest piece, and the unit of O_DIRECT.
const LARGEST: u64 = 1 << 20;
const LONGEST: u64 = 128 << 10;
const UNIT: u64 = 4096;

/// A file, and what must be in it.
struct Exercise {
    cached: File,
    direct: File,
    expected: Vec<u8>,
    random: Random,
    memory: Vec<u8>,
}

/// Does `operations` on a file in `directory`, in the order of `seed`.
///
/// # Errors
/// [`Error::Complaint`] when a read gives something else; or the system refuses an operation.
pub fn run(directory: &Path, operations: u64, seed: u64) -> Result<(), Error> {
    let path = directory.join("direct");
    let open = |flags: OFlags| {
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
        options.open(&path).map_err(Error::io("cannot open", &path))
    };
    let (cached, direct) = (open(OFlags::empty())?, open(OFlags::DIRECT)?);
    cached.set_len(0).map_err(Error::io("cannot empty", &path))?;
    let memory = vec![0; usize::try_from(LONGEST + UNIT).unwrap_or(0)];
    let random = Random::new(seed);
    let mut exercise = Exercise { cached, direct, expected: Vec::new(), random, memory };
    for number in 0..operations {
        let done = exercise.step();
        if let Some(fault) = done.map_err(Error::io("cannot change or read", &path))? {
            let status = format!("operation {number} of seed {seed}");
            let command = format!("O_DIRECT and the page cache on {}", path.display());
            return Err(Error::Complaint(Report { command, status, complaints: vec![fault] }));
        }
    }
    Ok(())
}

impl Exercise {
    /// One operation; the fault, if it read something wrong.
    fn step(&mut self) -> std::io::Result<Option<String>> {
        let size = self.expected.len() as u64;
        match self.random.below(10) {
            0..=2 => self.write(false).map(|()| None),
            3..=5 => self.write(true).map(|()| None),
            6 => {
                let length = self.random.below(LARGEST);
                self.cached.set_len(length)?;
                self.expected.resize(usize::try_from(length).unwrap_or(0), 0);
                Ok(None)
            }
            7 if size > 0 => {
                let start = self.random.below(size);
                let length = (1 + self.random.below(LONGEST)).min(size - start);
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&self.cached, flags, start, length)?;
                self.range(start, length).fill(0);
                Ok(None)
            }
            8 => self.read(false),
            _ => self.read(true),
        }
    }

    fn range(&mut self, start: u64, length: u64) -> &mut [u8] {
        let end = usize::try_from(start + length).unwrap_or(0);
        &mut self.expected[usize::try_from(start).unwrap_or(0)..end]
    }

    /// A place and a length, by the unit when it goes around the cache.
    fn piece(&mut self, direct: bool) -> (u64, usize) {
        let (mut start, mut length) =
            (self.random.below(LARGEST - LONGEST), 1 + self.random.below(LONGEST));
        if direct {
            start -= start % UNIT;
            length = length.next_multiple_of(UNIT);
        }
        (start, usize::try_from(length).unwrap_or(0))
    }

    /// Memory of this length at an address that O_DIRECT takes.
    fn aligned(memory: &mut [u8], length: usize) -> &mut [u8] {
        let unit = usize::try_from(UNIT).unwrap_or(1);
        let start = memory.as_ptr().align_offset(unit).min(unit);
        &mut memory[start..start + length]
    }

    fn write(&mut self, direct: bool) -> std::io::Result<()> {
        let (start, length) = self.piece(direct);
        let byte = self.random.bits().to_le_bytes()[0];
        let bytes = Self::aligned(&mut self.memory, length);
        for (number, place) in bytes.iter_mut().enumerate() {
            *place = byte.wrapping_add(u8::try_from(number / 512 % 251).unwrap_or(0));
        }
        let file = if direct { &self.direct } else { &self.cached };
        file.write_all_at(bytes, start)?;
        let first = usize::try_from(start).unwrap_or(0);
        if self.expected.len() < first + length {
            self.expected.resize(first + length, 0);
        }
        self.expected[first..first + length].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, direct: bool) -> std::io::Result<Option<String>> {
        let (start, length) = self.piece(direct);
        let bytes = Self::aligned(&mut self.memory, length);
        let file = if direct { &self.direct } else { &self.cached };
        let mut count = 0;
        // A read around the cache may end at the end of the file, not at a unit.
        while count < length && (!direct || count % 512 == 0) {
            match file.read_at(&mut bytes[count..], start + count as u64)? {
                0 => break,
                more => count += more,
            }
        }
        let first = usize::try_from(start).unwrap_or(0).min(self.expected.len());
        let expected = &self.expected[first..(first + length).min(self.expected.len())];
        let way = if direct { "around the cache" } else { "by the cache" };
        if count != expected.len() {
            let wanted = expected.len();
            return Ok(Some(format!("read of {length} at {start} {way}: {count}, not {wanted}")));
        }
        let wrong = bytes.iter().zip(expected).position(|(left, right)| left != right);
        Ok(wrong.map(|at| {
            let (found, wanted) = (bytes[at], expected[at]);
            format!("read of {length} at {start} {way}: byte {at} is {found}, not {wanted}")
        }))
    }
}
