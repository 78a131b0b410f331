//! The contents of a file of this machine, or of standard input, copied into one of the volume.

use crate::session::Session;
use anyhow::anyhow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use undercroft_fs::Error;
use undercroft_xfs::OpenFile;
use undercroft_xfs::format::Timestamp;

/// Bytes of one write.
const CHUNK: usize = 4 << 20;

/// Which side a copy failed at.
pub(super) enum Fault {
    Source(anyhow::Error),
    Volume(Error),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Source(error.into())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Volume(error)
    }
}

/// Copies the contents of a file, or of standard input.
pub(super) fn fill(
    session: &Session<'_>,
    file: &OpenFile,
    source: Option<&File>,
) -> Result<(), Fault> {
    let now = session.now();
    match source {
        Some(source) if source.metadata()?.is_file() => fill_from_file(file, source, now),
        Some(mut source) => fill_from_stream(file, &mut source, now),
        None => fill_from_stream(file, &mut std::io::stdin().lock(), now),
    }?;
    Ok(file.trim()?)
}

fn fill_from_stream(target: &OpenFile, source: &mut dyn Read, now: Timestamp) -> Result<(), Fault> {
    let mut offset = 0;
    loop {
        let mut bytes = Vec::with_capacity(CHUNK);
        source.take(CHUNK as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let len = bytes.len();
        target.write_direct(offset, &Arc::new(bytes), 0..len, now)?;
        offset += len as u64;
    }
}

/// Copies the stored parts of a file, and leaves its holes out.
fn fill_from_file(target: &OpenFile, mut source: &File, now: Timestamp) -> Result<(), Fault> {
    let size = source.metadata()?.len();
    let mut at = 0;
    while at < size {
        let Some(start) = seek(source, rustix::fs::SeekFrom::Data(at))? else { break };
        let end = seek(source, rustix::fs::SeekFrom::Hole(start))?.unwrap_or(size).min(size);
        source.seek(SeekFrom::Start(start))?;
        at = start;
        while at < end {
            let len = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let mut bytes = Vec::with_capacity(len);
            source.take(len as u64).read_to_end(&mut bytes)?;
            let len = bytes.len();
            if len == 0 {
                return Err(Fault::Source(anyhow!("the file became shorter while it was read")));
            }
            target.write_direct(at, &Arc::new(bytes), 0..len, now)?;
            at += len as u64;
        }
    }
    // A hole at the end.
    Ok(target.truncate(size, now)?)
}

/// Where the next data or hole starts; `None` behind the last.
fn seek(file: &File, to: rustix::fs::SeekFrom) -> std::io::Result<Option<u64>> {
    match rustix::fs::seek(file, to) {
        Ok(at) => Ok(Some(at)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
