//! Bytes of one file that become those of another.

use super::File;
use std::ops::Range;
use undercroft_xfs::Error;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::CloneRange;

/// Bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

impl File {
    /// Copies `len` bytes of `source` from `from` on to this file at `to`; returns how many: fewer
    /// at the end of the source. Whole blocks are shared where volume and offsets allow it, the rest
    /// goes through memory; holes are holes here, too.
    ///
    /// # Errors
    /// Both ranges are of one file and meet; the files are of two volumes; as for
    /// [`write_at`](Self::write_at).
    pub fn copy_range(&self, to: u64, source: &Self, from: u64, len: u64) -> Result<u64, Error> {
        let now = self.file_system().data_time();
        self.file_system().expect_own(source)?;
        self.expect_changeable()?;
        let len = len.min(source.size().saturating_sub(from));
        let is_same = self.number() == source.number();
        if is_same && from.abs_diff(to) < len {
            return Err(Error::Invalid(format!(
                "inode {}: {len} bytes from {from} and from {to} overlap",
                self.number()
            )));
        }
        let end = to.checked_add(len).ok_or_else(|| {
            Error::TooLarge(format!("inode {}: {len} bytes at {to}", self.number()))
        })?;
        let geometry = self.file_system().volume().geometry();
        let unit = geometry.block_size() as u64;
        if !geometry.features.reflink() || from % unit != to % unit {
            return self.copy_bytes(to, source, from, len, now);
        }
        let head = ((unit - from % unit) % unit).min(len);
        if self.copy_bytes(to, source, from, head, now)? < head {
            return Ok(0);
        }
        // The last block can be shared where both files end in it.
        let is_end = from + len == source.size() && end >= self.size();
        let shared = if is_end { len - head } else { (len - head) / unit * unit };
        if shared > 0 {
            let range = CloneRange { source: from + head, target: to + head, len: shared };
            self.open_file().clone_range(source.open_file(), &range, now)?;
            self.file_system().note_read(source.open_file().inode());
        }
        let done = head + shared;
        Ok(done + self.copy_bytes(to + done, source, from + done, len - done, now)?)
    }

    fn copy_bytes(
        &self,
        to: u64,
        source: &Self,
        from: u64,
        len: u64,
        now: Option<Timestamp>,
    ) -> Result<u64, Error> {
        let mut piece = Vec::new();
        let mut done = 0;
        while done < len {
            let data = source.seek_data(from + done)?.unwrap_or(u64::MAX);
            let skipped = done..data.saturating_sub(from).clamp(done, len);
            self.empty(to + skipped.start..to + skipped.end, now)?;
            done = skipped.end;
            if done == len {
                break;
            }
            let hole = source.seek_hole(from + done)?.unwrap_or(u64::MAX);
            let end = hole.saturating_sub(from).clamp(done, len);
            // At least a byte: the source may have become a hole here meanwhile.
            piece.resize((end - done).clamp(1, PIECE) as usize, 0);
            let read = source.read_at(from + done, &mut piece)?;
            if read == 0 {
                // It was cut meanwhile.
                return Ok(done);
            }
            self.open_file().write(to + done, &piece[..read], now)?;
            done += read as u64;
        }
        if len > 0 && self.size() < to + len {
            self.open_file().truncate(to + len, now)?;
        }
        Ok(len)
    }

    /// Makes a range a hole as far as something is stored there.
    fn empty(&self, range: Range<u64>, now: Option<Timestamp>) -> Result<(), Error> {
        let stored = self.seek_data(range.start)?.filter(|data| *data < range.end);
        match stored {
            Some(data) => self.open_file().punch(data..range.end, now),
            None => Ok(()),
        }
    }
}
