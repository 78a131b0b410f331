//! Which compression an archive has, and its decoder.

use super::gzip::GzipReader;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use std::io::{self, BufReader, Read};

/// Bytes at the start of a stream that tell its compression.
pub(crate) const MAGIC_LENGTH: usize = 6;
/// Most memory of an xz decoder. Level 9 takes 65 MiB.
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
        let buffered = |reader| BufReader::with_capacity(READ_SIZE, reader);
        Ok(match self {
            Self::None => Box::new(reader),
            Self::Gzip => Box::new(GzipReader::new(buffered(reader))),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(buffered(reader))?),
            Self::Xz => {
                let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
                Box::new(XzDecoder::new_stream(buffered(reader), stream))
            }
        })
    }
}
