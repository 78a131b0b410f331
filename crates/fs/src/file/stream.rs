//! A file as a stream of the standard library.

use super::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(self.position, bytes)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(self.position, bytes)?;
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    /// Does nothing: what was written is part of the file. [`File::fsync`] makes it durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "a place before the file");
        self.position = moved.ok_or_else(outside)?;
        Ok(self.position)
    }
}
