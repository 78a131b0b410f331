//! A volume compared with the source that it was made from.

use super::populate::time_encoding;
use super::{PackError, PackOptions, Progress};
use crate::diff::{DiffError, DiffOptions, Event, Found, Join, Side};
use crate::own_image::WithoutImage;
use crate::unpack::VolumeSource;
use std::ops::ControlFlow;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_source::{Entry, Timestamp};
use undercroft_xfs::{Volume, format};

/// Refuses a source that cannot be read a second time.
pub(super) fn check_source(options: &PackOptions) -> Result<(), PackError> {
    let metadata = options.source.path().map(std::fs::metadata);
    let is_stream = match metadata {
        None => true,
        Some(Ok(metadata)) => {
            let kind = metadata.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_socket()
        }
        // That is for the open to say.
        Some(Err(_)) => false,
    };
    if is_stream { Err(PackError::VerifyStream) } else { Ok(()) }
}

/// Reads the volume on `device` and the source, and fails where they differ. `names` are those of the
/// image, which is no part of its own contents.
pub(super) fn verify(
    options: &PackOptions,
    names: Vec<PathBuf>,
    device: &Arc<dyn BlockDevice>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<(), PackError> {
    let volume = Arc::new(Volume::open(Arc::clone(device)).map_err(PackError::volume)?);
    let mut sorted = options.source_options.clone();
    sorted.reading.sorted = true;
    let source = undercroft_source::open(&options.source, &sorted)?;
    let mut source = WithoutImage::new(source, &options.source, names);
    let mut stored = VolumeSource::new(&volume);
    let encoding = time_encoding(&volume);
    let as_stored = |entry: &mut Entry| {
        entry.metadata = options.limited(&entry.metadata);
        let Timestamp { seconds, nanoseconds } = entry.metadata.mtime;
        let time = format::Timestamp { seconds, nanoseconds }.clamped(encoding);
        let format::Timestamp { seconds, nanoseconds } = time;
        entry.metadata.mtime = Timestamp { seconds, nanoseconds };
    };
    let left = Side::new(&mut source, DiffError::Left, &as_stored);
    let right = Side::new(&mut stored, DiffError::Right, &|_| ());
    let mut first = None;
    let compared = Join::new(left, right, &DiffOptions::default()).run(&mut |event| {
        match event {
            Event::Difference(difference) => {
                first.get_or_insert_with(|| difference.clone());
            }
            Event::Progress(done) => {
                let (entries, bytes) = (done.common, done.bytes);
                progress(&Progress { entries, bytes, ..Progress::default() });
            }
        }
        ControlFlow::Continue(())
    });
    let summary = compared.map_err(|error| match error {
        DiffError::Left(error) => PackError::Source(error),
        other => PackError::VerifyRead(other),
    })?;
    let Some(first) = first else { return Ok(()) };
    let what = match &first.found {
        Found::OnlyLeft(_) => "only the source has it",
        Found::OnlyRight(_) => "only the volume has it",
        Found::Changed(changes) => changes.first().map_or("it differs", |change| change.sentence()),
    };
    Err(PackError::Verify {
        path: first.path.to_string(),
        what,
        count: summary.changed + summary.only_left + summary.only_right,
    })
}
