//! The way to what the kernel keeps of files.

use super::attributes::node;
use super::forgetting::Forgetting;
use crate::server::KernelCache;
use fuser::Notifier;
use std::ops::Range;
use undercroft_fs::InodeNumber;

/// In the place of an offset: no data, metadata alone. Nothing is waited for then.
const NO_DATA: i64 = -1;

/// The kernel, as it is told of changes.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) notifier: Notifier,
    pub(super) root: InodeNumber,
    /// `None` without a cache of writes: the times of all files are the server's then.
    pub(super) forgetting: Option<Forgetting>,
}

impl Kernel {
    fn invalidate(&self, number: InodeNumber, offset: i64, len: i64) {
        // It has nothing if it does not know the file.
        let _ = self.notifier.inval_inode(node(number, self.root), offset, len);
    }
}

impl KernelCache for Kernel {
    fn forget_attributes(&self, number: InodeNumber) {
        self.invalidate(number, NO_DATA, 0);
    }

    fn forget_file(&self, number: InodeNumber) {
        if let Some(forgetting) = &self.forgetting {
            forgetting.forget(number);
        }
    }

    fn collect_data(&self, number: InodeNumber, range: Range<u64>) {
        let len = i64::try_from(range.end - range.start).unwrap_or(0);
        self.invalidate(number, range.start.min(i64::MAX as u64).cast_signed(), len);
    }
}
