//! From a description to a device.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{CWD, AtFlags, statat};

use super::{Description, FileLeaf};
use crate::device::BlockDevice;
use crate::drivers::FileDevice;
use crate::stack::{Linear, Mirror, StackError, Stripe};

impl Description {
    /// Opens the files, which exist, and stacks the devices on them.
    ///
    /// # Errors
    /// A file cannot be opened, has not the length that the description says, or is there twice;
    /// or the files are too short for the device.
    pub fn open(&self, read_only: bool) -> Result<Arc<dyn BlockDevice>, StackError> {
        let mut seen = Vec::new();
        self.assemble(&mut |file| {
            let device = FileDevice::open_with(&file.path, &file.file_options(read_only))?;
            if let Ok(identity) = identity(file) {
                if seen.contains(&identity) {
                    return Err(StackError::Twice { path: file.path.clone() });
                }
                seen.push(identity);
            }
            Ok(Arc::new(device))
        })
    }

    /// Stacks devices on those that `open` returns for the files, called in the order of
    /// [`files`](Self::files).
    ///
    /// # Errors
    /// Those of `open`, and devices that cannot be stacked.
    pub fn assemble<E: From<StackError>>(
        &self,
        open: &mut dyn FnMut(&FileLeaf) -> Result<Arc<dyn BlockDevice>, E>,
    ) -> Result<Arc<dyn BlockDevice>, E> {
        if let Self::File(file) = self {
            return open(file);
        }
        let legs: Vec<_> =
            self.legs().iter().map(|leg| leg.assemble(open)).collect::<Result<_, E>>()?;
        Ok(match self {
            Self::Stripe { chunk, .. } => Arc::new(Stripe::new(*chunk, legs)?),
            Self::Mirror(_) => Arc::new(Mirror::new(legs)?),
            Self::Linear(_) | Self::File(_) => Arc::new(Linear::new(legs)?),
        })
    }
}
