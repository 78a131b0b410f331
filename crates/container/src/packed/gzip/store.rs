//! Indexes that are kept in the user's cache.
//!
//! A file of them is a gzip stream, so that its checksum says whether it is whole: a mark, the length of the
//! disk, the number of points, and the points. What does not fit the file that it is of is made again.

use super::super::cache;
use super::index::Index;
use super::point::{Point, WINDOW};
use crate::disk::Stored;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MARK: [u8; 8] = *b"ucgzidx1";
/// How long an unused index is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Where the index of a file is or would be. A file that was changed has another one.
pub(super) fn place(stored: &Stored) -> Option<PathBuf> {
    let data = stored.metadata().ok()?;
    let directory = cache::directory()?.join("gzip");
    fs::create_dir_all(&directory).ok()?;
    let mut digest = Sha256::new();
    let times = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    for number in [data.dev(), data.ino(), data.len()] {
        digest.update(number.to_le_bytes());
    }
    times.iter().for_each(|time| digest.update(time.to_le_bytes()));
    let name: String = digest.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    Some(directory.join(name))
}

pub(super) fn keep(place: &Path, index: &Index) -> io::Result<()> {
    let directory = place.parent().unwrap_or(Path::new("."));
    let new = tempfile::NamedTempFile::new_in(directory)?;
    let mut writer = GzEncoder::new(BufWriter::new(new.as_file()), Compression::fast());
    writer.write_all(&MARK)?;
    writer.write_all(&index.bytes.to_le_bytes())?;
    writer.write_all(&(index.points.len() as u64).to_le_bytes())?;
    for Point { start, at, bits, bit_buffer, window } in &index.points {
        writer.write_all(&start.to_le_bytes())?;
        writer.write_all(&at.to_le_bytes())?;
        writer.write_all(&[*bits, *bit_buffer, u8::from(window.is_some())])?;
        if let Some(window) = window {
            writer.write_all(&window[..])?;
        }
    }
    writer.finish()?.flush()?;
    new.persist(place).map_err(|error| error.error)?;
    remove_old(directory)
}

/// Removes indexes that were not used for long.
fn remove_old(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > KEPT {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The index that is kept of a file of so many bytes, if one is.
pub(super) fn load(place: &Path, length: u64) -> Option<Index> {
    let file = File::open(place).ok()?;
    // The time of its last use.
    let _ = file.set_modified(SystemTime::now());
    let mut reader = GzDecoder::new(BufReader::new(file));
    let index = read(&mut reader)?;
    // The checksum is looked at when there is nothing more.
    let is_whole = reader.read(&mut [0]).ok()? == 0;
    let begins = index.points.first().is_some_and(|point| point.start == 0);
    let is_ordered = index.points.windows(2).all(|pair| pair[0].start < pair[1].start);
    let last = index.points.last()?;
    let fits = last.start < index.bytes && index.points.iter().all(|point| point.at <= length);
    (is_whole && begins && is_ordered && fits).then_some(index)
}

fn read(reader: &mut impl Read) -> Option<Index> {
    if array(reader)? != MARK {
        return None;
    }
    let bytes = u64::from_le_bytes(array(reader)?);
    let count = u64::from_le_bytes(array(reader)?);
    let mut points = Vec::new();
    for _ in 0..count {
        let (start, at) = (u64::from_le_bytes(array(reader)?), u64::from_le_bytes(array(reader)?));
        let [bits, bit_buffer, has_window] = array(reader)?;
        let window = match has_window {
            0 => None,
            _ => Some(Box::new(array::<WINDOW>(reader)?)),
        };
        if bits > 7 {
            return None;
        }
        points.push(Point { start, at, bits, bit_buffer, window });
    }
    Some(Index { points, bytes })
}

fn array<const LENGTH: usize>(reader: &mut impl Read) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    reader.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
