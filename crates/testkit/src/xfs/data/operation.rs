//! One random operation on the data of files, and its effect on files that are vectors of bytes.

use undercroft_judges::random::Random;

/// An operation; `file` is a number. Ranges are offset and length in bytes.
#[derive(Clone, Debug)]
pub enum Operation {
    Write { file: usize, offset: u64, len: u64, seed: u64 },
    Truncate { file: usize, size: u64 },
    Preallocate { file: usize, range: (u64, u64), keep: bool },
    Punch { file: usize, range: (u64, u64) },
    Zero { file: usize, range: (u64, u64), keep: bool },
    Collapse { file: usize, range: (u64, u64) },
    Insert { file: usize, range: (u64, u64) },
    Clone { from: usize, to: usize, source: u64, target: u64, len: u64 },
    Dedupe { from: usize, to: usize, source: u64, target: u64, len: u64 },
}

/// What bounds random operations.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub block_size: u64,
    pub size_max: u64,
    pub reflink: bool,
}

/// The bytes that a write with this seed writes.
pub fn pattern(seed: u64, len: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        // Never zero, so that lost bytes show.
        bytes.extend_from_slice(&(random.bits() | 0x0101_0101_0101_0101).to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

impl Operation {
    /// A random operation that these files allow.
    pub fn random(random: &mut Random, files: &[Vec<u8>], bounds: &Bounds) -> Self {
        let Bounds { block_size, size_max, reflink } = *bounds;
        let file = random.below(files.len() as u64) as usize;
        let size = files[file].len() as u64;
        let reach = if random.one_in(4) { size_max } else { size + 1 };
        let offset = random.below(reach);
        let longest = if random.one_in(6) { size_max / 4 } else { 5 * block_size };
        let len = 1 + random.below(longest).min(size_max.saturating_sub(offset).max(1));
        let keep = random.one_in(2);
        // In whole blocks, inside the file.
        let blocks = size / block_size;
        let start = random.below(blocks + 1);
        let count = 1 + random.below(8).min(blocks);
        match random.below(if reflink { 20 } else { 14 }) {
            0..=4 => Self::Write { file, offset, len, seed: random.bits() },
            5 => Self::Truncate { file, size: random.below(size_max) },
            6 | 7 => Self::Preallocate { file, range: (offset, len), keep },
            8 | 9 => Self::Punch { file, range: (offset, len) },
            10 => Self::Zero { file, range: (offset, len), keep },
            11 | 12 if (start + count) * block_size < size => {
                Self::Collapse { file, range: (start * block_size, count * block_size) }
            }
            11..=13 if start * block_size < size && size + count * block_size < size_max => {
                Self::Insert { file, range: (start * block_size, count * block_size) }
            }
            11..=13 => Self::Write { file, offset, len, seed: random.bits() },
            number => Self::sharing(random, files, bounds, number == 19),
        }
    }

    /// A clone or a dedupe of some whole blocks, at times up to the end of the source.
    fn sharing(random: &mut Random, files: &[Vec<u8>], bounds: &Bounds, dedupe: bool) -> Self {
        let Bounds { block_size, size_max, .. } = *bounds;
        let (from, to) = (random.below(files.len() as u64), random.below(files.len() as u64));
        let (from, to) = (from as usize, to as usize);
        let (size, other) = (files[from].len() as u64, files[to].len() as u64);
        let source = random.below(size / block_size + 1) * block_size;
        let mut target = random.below(other.max(size) / block_size + 1) * block_size;
        let most = if random.one_in(3) { size } else { 10 * block_size };
        let mut len = (random.below(most + 1) / block_size * block_size).min(size - source);
        if random.one_in(4) && target + (size - source) >= other {
            len = size - source;
        } else {
            len = len / block_size * block_size;
        }
        if from == to {
            // Behind each other.
            target = (source + len).next_multiple_of(block_size);
            if !len.is_multiple_of(block_size) && target + len < other {
                len = len / block_size * block_size;
            }
        }
        if dedupe {
            let target = target.min(other / block_size * block_size);
            let len = len.min(other - target) / block_size * block_size;
            return Self::Dedupe { from, to, source, target, len };
        }
        // Copies of copies would double files again and again.
        let room = size_max.max(other).saturating_sub(target);
        if len > room {
            len = room / block_size * block_size;
        }
        Self::Clone { from, to, source, target, len }
    }

    /// The file that it changes.
    pub fn file(&self) -> usize {
        match self {
            Self::Write { file, .. }
            | Self::Truncate { file, .. }
            | Self::Preallocate { file, .. }
            | Self::Punch { file, .. }
            | Self::Zero { file, .. }
            | Self::Collapse { file, .. }
            | Self::Insert { file, .. } => *file,
            Self::Clone { to, .. } | Self::Dedupe { to, .. } => *to,
        }
    }

    /// Does it to files in memory.
    pub fn apply(&self, files: &mut [Vec<u8>]) {
        match *self {
            Self::Write { file, offset, len, seed } => {
                overwrite(&mut files[file], offset, &pattern(seed, len));
            }
            Self::Truncate { file, size } => files[file].resize(size as usize, 0),
            Self::Preallocate { file, range: (offset, len), keep } => {
                grow(&mut files[file], offset + len, keep);
            }
            Self::Punch { file, range } => clear(&mut files[file], range),
            Self::Zero { file, range: (offset, len), keep } => {
                grow(&mut files[file], offset + len, keep);
                clear(&mut files[file], (offset, len));
            }
            Self::Collapse { file, range: (offset, len) } => {
                files[file].drain(offset as usize..(offset + len) as usize);
            }
            Self::Insert { file, range: (offset, len) } => {
                let at = offset as usize;
                files[file].splice(at..at, std::iter::repeat_n(0, len as usize));
            }
            Self::Clone { from, to, source, target, len } => {
                if len > 0 {
                    let bytes = files[from][source as usize..(source + len) as usize].to_vec();
                    overwrite(&mut files[to], target, &bytes);
                }
            }
            Self::Dedupe { .. } => {}
        }
    }
}

fn overwrite(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}

fn grow(file: &mut Vec<u8>, end: u64, keep: bool) {
    if !keep && (file.len() as u64) < end {
        file.resize(end as usize, 0);
    }
}

fn clear(file: &mut [u8], (offset, len): (u64, u64)) {
    let size = file.len() as u64;
    file[offset.min(size) as usize..(offset + len).min(size) as usize].fill(0);
}
