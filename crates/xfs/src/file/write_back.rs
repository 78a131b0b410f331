//! Dirty data on its way to the device.

use super::edit::FileEdit;
use super::write_back_end::{fail, next_number, release};
use crate::error::Error;
use crate::inode::{DataLock, FileKey, Inode, SyncScope, file_key, file_locks};
use crate::units::InodeNumber;
use crate::volume::Volume;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use undercroft_block::{Batch, Plug};

/// Files whose data was not written, and why.
pub(super) type Failures = FxHashMap<FileKey, Failure>;

/// Why data of a file was not written.
pub(super) struct Failure {
    pub(super) number: InodeNumber,
    /// The message for waiters of tickets.
    pub(super) what: Arc<str>,
    pub(super) error: Error,
}

/// Files that are locked at a time.
const LOCKED_MAX: usize = 128;

/// Sends the dirty data of these files to the device, under one plug, and commits its mappings. It
/// is durable with the checkpoint that is open afterwards, or one before. Failures are told file by
/// file: [`fail`].
pub(super) fn write_back(volume: &Volume, files: &[(Arc<Inode>, SyncScope)]) -> Failures {
    let mut failures = Failures::default();
    for files in in_order(files, |inode| inode.read().number).chunks(LOCKED_MAX) {
        write_back_some(volume, files, &mut failures);
    }
    failures
}

/// Each file once, with the largest scope asked for, in the order of locks.
fn in_order<I>(
    files: &[(Arc<I>, SyncScope)],
    number: impl Fn(&I) -> InodeNumber,
) -> Vec<(&Arc<I>, SyncScope)> {
    let mut sorted: Vec<_> = files.iter().map(|(inode, wanted)| (inode, *wanted)).collect();
    // A file that was removed may be there, and the one that has its number now: the number alone
    // would leave one of them between two entries of the other.
    sorted.sort_by_cached_key(|(inode, wanted)| (number(inode), Arc::as_ptr(inode), *wanted));
    sorted.dedup_by(|one, other| Arc::ptr_eq(one.0, other.0));
    sorted
}

fn write_back_some(volume: &Volume, files: &[(&Arc<Inode>, SyncScope)], failures: &mut Failures) {
    let number = next_number();
    let plug = Plug::new(volume.cache().device());
    let writes = Batch::new();
    // Held until the plug is flushed: another write to the same blocks must not overtake.
    let (mut locks, mut errors) = (Vec::with_capacity(files.len()), Vec::new());
    for (inode, wanted) in files {
        if inode.read().memory.dirty.is_none() {
            continue;
        }
        let mut lock = None;
        if let Err(error) = write_one(volume, inode, &mut lock, *wanted, &writes, number) {
            errors.push((inode, error));
        }
        locks.extend(lock);
    }
    // From here on readers find it on the device.
    drop(plug);
    for (inode, _) in files {
        release(inode, number);
    }
    drop(locks);
    for (inode, error) in errors {
        let what = fail(volume, inode, &error);
        let state = inode.read();
        failures.insert(file_key(&state), Failure { number: state.number, what, error });
    }
}

/// Sends the dirty data of a file. It stays locked by what is left in `lock`, unless there is none:
/// another thread has written it back, or the file was removed, and then another may have its number,
/// whose lock is not to be beside this one.
fn write_one(
    volume: &Volume,
    inode: &Arc<Inode>,
    lock: &mut Option<DataLock>,
    wanted: SyncScope,
    writes: &Batch,
    number: u64,
) -> Result<(), Error> {
    let held = file_locks(inode).lock_data();
    if inode.read().memory.dirty.is_none() {
        return Ok(());
    }
    let mut edit = FileEdit::plugged(volume, Arc::clone(inode), held, writes.clone())?;
    let done = edit.write_back(number, wanted == SyncScope::All);
    *lock = Some(edit.into_lock());
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_once_also_beside_one_that_had_its_number() {
        let [old, new, other] = [7, 7, 3].map(|number| Arc::new(InodeNumber(number)));
        let wish = |file: &Arc<_>, wanted| (Arc::clone(file), wanted);
        for first in [&old, &new] {
            let second = if Arc::ptr_eq(first, &old) { &new } else { &old };
            let files = [
                wish(first, SyncScope::Data),
                wish(second, SyncScope::All),
                wish(&other, SyncScope::Data),
                wish(first, SyncScope::All),
            ];
            let sorted = in_order(&files, |number| *number);
            assert_eq!(sorted.len(), 3);
            assert!(Arc::ptr_eq(sorted[0].0, &other));
            let wanted = |file| sorted.iter().find(|(one, _)| Arc::ptr_eq(one, file)).unwrap().1;
            assert_eq!((wanted(first), wanted(second)), (SyncScope::All, SyncScope::All));
        }
    }
}
