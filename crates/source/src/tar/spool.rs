//! Copies of streams that must be read twice.

use super::error::TarError;
use crate::SourceError;
use crate::pool::BUFFER_SIZE;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Copies a stream into a file that has no name and is gone with its last descriptor. `see` gets
/// all bytes on the way. `archive` names the stream in errors.
pub(crate) fn spool(
    mut stream: impl Read,
    archive: &str,
    directory: &Path,
    see: &mut dyn FnMut(&[u8]),
) -> Result<File, SourceError> {
    let failed = |source| SourceError::Spool {
        archive: archive.to_owned(),
        directory: directory.to_owned(),
        source,
    };
    let mut file = tempfile::tempfile_in(directory).map_err(failed)?;
    let mut buffer = vec![0; BUFFER_SIZE];
    let mut position = 0;
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(TarError::of_stream(archive, position, error).into()),
        };
        see(&buffer[..count]);
        file.write_all(&buffer[..count]).map_err(failed)?;
        position += count as u64;
    }
    Ok(file)
}
