//! What could be read when a volume was looked through, and cannot be any more.

use std::ops::Range;

use undercroft_xfs::ops::path_text;

/// Ranges that are told one by one; further ones are counted.
const MOST: usize = 1 << 12;

/// Reads that fail one after the other: behind that the source is taken to be gone. Parts that are as long are
/// known from the scan.
const MOST_IN_TURN: u32 = 1 << 12;

/// The source does not answer any more.
#[derive(Debug, thiserror::Error)]
#[error(
    "{MOST_IN_TURN} reads in turn failed, so the source does not answer any more; where it does again, a new run \
     knows what cannot be read"
)]
#[non_exhaustive]
pub struct SourceGone;

/// Bytes of a file that could not be read when they were copied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateLoss {
    /// The path of the file among the entries.
    pub path: Vec<u8>,
    /// The bytes.
    pub range: Range<u64>,
}

/// All such bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateLosses {
    /// How many.
    pub bytes: u64,
    /// How many files they are of.
    pub files: u64,
    /// The first of them, in the order of the entries.
    pub first: Vec<LateLoss>,
    /// How many more ranges there are.
    pub others: u64,
    /// The file of the last.
    last: Vec<u8>,
    /// Reads that failed since the last that did not.
    in_turn: u32,
}

impl LateLosses {
    /// Something could be read.
    pub(super) const fn go_on(&mut self) {
        self.in_turn = 0;
    }

    /// Adds what could not be read.
    ///
    /// # Errors
    /// Nothing could be for long.
    pub(super) fn add(&mut self, path: &[u8], range: &Range<u64>) -> Result<(), SourceGone> {
        self.in_turn += 1;
        if self.in_turn > MOST_IN_TURN {
            return Err(SourceGone);
        }
        self.bytes += range.end - range.start;
        let is_same = self.last == path;
        if !is_same {
            self.files += 1;
            self.last = path.to_vec();
        }
        let is_full = self.first.len() == MOST;
        match self.first.last_mut() {
            Some(last) if is_same && self.others == 0 && last.range.end == range.start => {
                last.range.end = range.end;
            }
            _ if is_full => self.others += 1,
            _ => self.first.push(LateLoss { path: path.to_vec(), range: range.clone() }),
        }
        Ok(())
    }

    /// A sentence for each.
    pub(super) fn sentences(&self) -> Vec<String> {
        let told = self.first.iter().map(|loss| {
            let Range { start, end } = loss.range;
            let path = path_text(&loss.path);
            format!("bytes {start} to {end} of {path} cannot be read any more, and are zeroes")
        });
        let others = (self.others > 0).then(|| format!("and {} more such ranges", self.others));
        told.chain(others).collect()
    }
}
