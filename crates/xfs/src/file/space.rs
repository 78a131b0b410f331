//! Waiting for space: until its freeing is durable, and until files have given back what they do
//! not need.

use crate::error::Error;
use crate::volume::Volume;

/// Does a step of a change; again and again while all space that would do waits for the journal, as
/// then it is there after the next checkpoint, unless others have taken it. Threads whose space
/// waits go on in turn, so that they take it from none of themselves. Where there is no space, the
/// step is done once more behind a checkpoint: what was freed meanwhile is not there before.
///
/// The caller has no transaction open, and holds no lock but those of the data of files.
///
/// # Errors
/// Those of `step`, but never [`Error::Busy`]; the journal could not be written.
pub(crate) fn when_free<T>(
    volume: &Volume,
    mut step: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut had_no_space = false;
    let mut is_final = |result: &Result<T, Error>| match result {
        Err(Error::Busy(_)) => false,
        Err(Error::NoSpace { .. }) => std::mem::replace(&mut had_no_space, true),
        _ => true,
    };
    let result = step();
    if !volume.is_live() || is_final(&result) {
        return result;
    }
    // The thread whose turn it is may wait for bios that this one holds back.
    undercroft_block::flush_plugs();
    let _turn = volume.take_turn();
    loop {
        volume.sync()?;
        let result = step();
        if is_final(&result) {
            return result;
        }
    }
}

/// Does a change; once more when there was no space, and files have given back space that they do
/// not need.
///
/// The caller has no transaction open, and holds no lock.
///
/// # Errors
/// Those of `change`; data of a file could not be written, or the journal.
pub(crate) fn with_gathered<T>(
    volume: &Volume,
    mut change: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    match change() {
        Err(Error::NoSpace { .. }) if volume.is_live() => {
            volume.gather_space()?;
            change()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::{self, MkfsOptions};
    use crate::ops::NewInode;
    use crate::volume::LiveOptions;
    use std::sync::Arc;
    use undercroft_block::{BlockDevice, MemoryDevice};
    use uuid::Uuid;

    fn live() -> Volume {
        let size = 64 << 20;
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
        let plan = mkfs::plan(&MkfsOptions::new(size, Uuid::from_u128(5))).unwrap();
        let root = NewInode::new(crate::format::FileType::Directory, 0o755);
        mkfs::finish(&mkfs::begin(&device, plan, &root).unwrap(), true).unwrap();
        Volume::open_live(device, &LiveOptions::default()).unwrap()
    }

    /// Others may take it as often as they like.
    #[test]
    fn space_that_waits_for_the_journal_is_waited_for() {
        let (volume, mut tries) = (live(), 0);
        let done = when_free(&volume, || {
            tries += 1;
            if tries < 40 { Err(Error::Busy("the space waits".into())) } else { Ok(tries) }
        });
        assert_eq!(done.unwrap(), 40);
        volume.close().unwrap();
    }

    #[test]
    fn space_that_waits_behind_a_lack_of_it_is_waited_for() {
        let (volume, mut tries) = (live(), 0);
        let done = when_free(&volume, || {
            tries += 1;
            match tries {
                1 => Err(Error::NoSpace { needed: 1, block_size: 4096 }),
                2..9 => Err(Error::Busy("the space waits".into())),
                _ => Ok(tries),
            }
        });
        assert_eq!(done.unwrap(), 9);
        volume.close().unwrap();
    }

    /// What was freed meanwhile is there behind a checkpoint, or nothing is.
    #[test]
    fn no_space_is_no_space_behind_a_checkpoint() {
        let no_space = || Error::NoSpace { needed: 1, block_size: 4096 };
        for (errors, expected) in [(0, Some(1)), (1, Some(2)), (2, None)] {
            let (volume, mut tries) = (live(), 0);
            let done = when_free(&volume, || {
                tries += 1;
                if tries <= errors { Err(no_space()) } else { Ok(tries) }
            });
            assert_eq!(done.ok(), expected);
            volume.close().unwrap();
        }
    }
}
