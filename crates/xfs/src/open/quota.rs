//! Quotas, which are not counted on a volume that we change.

use crate::error::Error;
use crate::ops;
use crate::volume::Volume;

/// Offset of the quota flags in the superblock (docs/format/superblock.md#fields).
const QUOTA_FLAGS_OFFSET: usize = 176;

/// Records in the superblock that usage is not counted: from here on the counts would be wrong. A
/// kernel does the same when it mounts without quotas, and counts anew when it mounts with them.
///
/// # Errors
/// The journal or the device failed.
pub(super) fn switch_quotas_off(volume: &Volume) -> Result<(), Error> {
    let mut trans = volume.begin()?;
    ops::change_superblock(&mut trans, |edit| edit.put_be16(QUOTA_FLAGS_OFFSET, 0))?;
    trans.commit(&mut [])
}
