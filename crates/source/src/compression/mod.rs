//! Which compression an archive has, and its decoder.

mod gzip;

use gzip::GzipReader;
use std::io::{self, BufReader, Read};

/// Bytes at the start of a stream that tell its compression.
pub(crate) const MAGIC_LENGTH: usize = 6;
/// Most memory of an xz decoder. Level 9 takes 65 MiB.
#[cfg(feature = "xz")]
const XZ_MEMORY: u64 = 256 * 1024 * 1024;
/// Compressed bytes that are read at a time.
const READ_SIZE: usize = 256 * 1024;

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    /// Tells by the first bytes of a stream.
    pub(crate) fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or a skippable frame, which some writers put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0] => Self::Xz,
            _ => Self::None,
        }
    }

    /// The uncompressed stream. Several members or frames one after the other are one stream.
    pub(crate) fn decode<'a>(
        self,
        reader: impl Read + Send + 'a,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        match self {
            Self::None => Ok(Box::new(reader)),
            Self::Gzip => Ok(Box::new(GzipReader::new(buffered(reader)))),
            Self::Zstd => zstd(reader),
            Self::Xz => xz(reader),
        }
    }
}

fn buffered<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(READ_SIZE, reader)
}

#[cfg(feature = "zstd")]
fn zstd<'a>(reader: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(Box::new(zstd::Decoder::with_buffer(buffered(reader))?))
}

#[cfg(not(feature = "zstd"))]
fn zstd<'a>(_: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    Err(left_out("zstd"))
}

#[cfg(feature = "xz")]
fn xz<'a>(reader: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    use liblzma::stream::{CONCATENATED, Stream};
    let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
    Ok(Box::new(liblzma::read::XzDecoder::new_stream(buffered(reader), stream)))
}

#[cfg(not(feature = "xz"))]
fn xz<'a>(_: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    Err(left_out("xz"))
}

/// The error of a stream whose decoder is not part of this program.
#[cfg(not(all(feature = "xz", feature = "zstd")))]
fn left_out(name: &str) -> io::Error {
    let what = format!(
        "compressed with {name}, which this program was built without (feature `{name}`); \
         decompress it before, or build with that feature"
    );
    io::Error::new(io::ErrorKind::Unsupported, what)
}
