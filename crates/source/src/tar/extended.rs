//! The headers before a header: pax records and GNU long names, collected for the next entry.

use super::error::Problem;
use super::pax::Extensions;

/// Most bytes of extended headers for one entry. A sparse map of version 0.1 takes some 20 bytes for
/// each range, and an extended attribute up to 64 KiB.
pub(super) const LIMIT: u64 = 16 * 1024 * 1024;
/// Most bytes of global headers in an archive: they are copied for every entry.
const GLOBAL_LIMIT: u64 = 64 * 1024;

/// What extended headers said so far.
#[derive(Default)]
pub(super) struct Extended {
    /// Records for all entries that follow.
    global: Extensions,
    global_size: u64,
    /// Records for the next entry, on top of the global ones.
    next: Option<Extensions>,
    next_size: u64,
}

impl Extended {
    /// Whether a header of this type extends the headers after it.
    pub(super) fn takes(entry_type: u8) -> bool {
        matches!(entry_type, b'x' | b'X' | b'g' | b'L' | b'K')
    }

    /// Admits `size` bytes of extended headers, as the size of a buffer for them.
    pub(super) fn reserve(&mut self, size: u64) -> Result<usize, Problem> {
        self.next_size = self.next_size.saturating_add(size);
        let fits = self.next_size <= LIMIT;
        usize::try_from(size)
            .ok()
            .filter(|_| fits)
            .ok_or(Problem::ExtendedHeaderSize { size, limit: LIMIT })
    }

    /// Takes in the content of a header of a type that [`takes`](Self::takes) names.
    pub(super) fn apply(&mut self, entry_type: u8, content: Vec<u8>) -> Result<(), Problem> {
        if entry_type == b'g' {
            let size = content.len() as u64;
            self.global_size += size;
            if self.global_size > GLOBAL_LIMIT {
                return Err(Problem::ExtendedHeaderSize { size, limit: GLOBAL_LIMIT });
            }
            return self.global.apply(&content);
        }
        let next = self.next.get_or_insert_with(|| self.global.clone());
        match entry_type {
            b'L' => next.long_name = Some(until_nul(content)),
            b'K' => next.long_link_name = Some(until_nul(content)),
            _ => {
                // Of several the last counts alone, as for GNU tar and bsdtar.
                if next.is_pax {
                    let long_names = (next.long_name.take(), next.long_link_name.take());
                    *next = self.global.clone();
                    (next.long_name, next.long_link_name) = long_names;
                }
                next.is_pax = true;
                next.apply(&content)?;
            }
        }
        Ok(())
    }

    /// What applies to the entry at hand.
    pub(super) fn take(&mut self) -> Extensions {
        self.next_size = 0;
        self.next.take().unwrap_or_else(|| self.global.clone())
    }

    /// Called at the end of the archive.
    pub(super) fn check_unused(&self) -> Result<(), Problem> {
        if self.next.is_some() { Err(Problem::DanglingExtendedHeader) } else { Ok(()) }
    }
}

/// GNU long names end with a NUL that is part of their size.
fn until_nul(mut content: Vec<u8>) -> Vec<u8> {
    if let Some(end) = content.iter().position(|&byte| byte == 0) {
        content.truncate(end);
    }
    content
}
