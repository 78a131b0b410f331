//! Everything a source delivers, in memory.

use std::fmt;
use std::io::{self, Read};
use undercroft_source::tar::TarReader;
use undercroft_source::{
    DataRange, Entry, Kind, Options, Source, SourceError, SourceOptions, SourceSpec,
};

/// An entry with the contents of its data ranges, one after the other.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) entry: Entry,
    pub(crate) data: Vec<u8>,
}

impl fmt::Debug for Delivered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} with {} bytes", self.entry, self.data.len())
    }
}

impl Delivered {
    pub(crate) fn path(&self) -> String {
        String::from_utf8_lossy(self.entry.path.as_bytes()).into_owned()
    }

    /// The whole file with zeros in its holes.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let Kind::Regular { size, data } = &self.entry.kind else { panic!("no file") };
        let mut contents = vec![0; usize::try_from(*size).unwrap()];
        let mut rest = &self.data[..];
        for range in data {
            let (piece, after) = rest.split_at(range.length as usize);
            contents[range.offset as usize..range.end() as usize].copy_from_slice(piece);
            rest = after;
        }
        contents
    }
}

/// Reads a source to its end and checks that data comes in the ranges of the entries.
pub(crate) fn drain(source: &mut dyn Source) -> Result<Vec<Delivered>, SourceError> {
    let mut all = Vec::new();
    while let Some(entry) = source.next_entry()? {
        let mut data = Vec::new();
        let mut place = Vec::new();
        while let Some(piece) = source.next_data()? {
            assert!(!piece.chunk.is_empty());
            place.push(DataRange { offset: piece.offset, length: piece.chunk.len() as u64 });
            data.extend_from_slice(piece.chunk.as_slice());
        }
        check_ranges(&entry, place);
        all.push(Delivered { entry, data });
    }
    assert!(source.next_entry()?.is_none(), "the end stays the end");
    Ok(all)
}

fn check_ranges(entry: &Entry, pieces: Vec<DataRange>) {
    let mut joined: Vec<DataRange> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.end() == piece.offset => last.length += piece.length,
            _ => joined.push(piece),
        }
    }
    match &entry.kind {
        Kind::Regular { size, data } => {
            assert_eq!(*data, joined, "{}", entry.path);
            assert!(data.last().is_none_or(|last| last.end() <= *size));
        }
        _ => assert!(joined.is_empty(), "{}", entry.path),
    }
}

/// Opens a source.
pub(crate) fn open(
    spec: &SourceSpec,
    options: &(impl Clone + Into<SourceOptions>),
) -> Result<Box<dyn Source>, SourceError> {
    Ok(undercroft_source::open(spec, &options.clone().into())?.source)
}

pub(crate) fn read_path(
    path: &std::path::Path,
    options: &Options,
) -> Result<Vec<Delivered>, SourceError> {
    drain(open(&SourceSpec::Path(path.into()), options)?.as_mut())
}

/// Gives out its bytes in pieces of odd sizes, as pipes do.
pub(crate) struct Dribble(pub(crate) io::Cursor<Vec<u8>>);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(700);
        self.0.read(&mut buffer[..length])
    }
}

/// Reads an archive in memory to its end; the message of the error that ends it.
pub(crate) fn read_bytes(bytes: &[u8], options: &Options) -> Result<Vec<Delivered>, String> {
    let stream = Dribble(io::Cursor::new(bytes.to_vec()));
    let mut reader = TarReader::new("test.tar", stream, options);
    let mut all = Vec::new();
    let failed = |error: Box<undercroft_source::tar::TarError>| error.to_string();
    while let Some(entry) = reader.next_entry().map_err(failed)? {
        let mut data = Vec::new();
        while let Some(piece) = reader.next_data().map_err(failed)? {
            data.extend_from_slice(piece.chunk.as_slice());
        }
        all.push(Delivered { entry, data });
    }
    Ok(all)
}
