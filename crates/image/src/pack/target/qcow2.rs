//! Images in the format of QEMU, qcow2.
//!
//! The volume is built into a raw file without a name, and the qcow2 is made of that in the order of
//! its addresses: a qcow2 that took the writes as they come would have its clusters in the order of
//! threads, not the same on each run. Clusters of zeros are left out, whatever holes the raw file has
//! on its file system.

use imago::file::File as ImageFile;
use imago::qcow2::Qcow2;
use imago::{DenyImplicitOpenGate, FormatAccess, FormatCreateBuilder, FormatDriverBuilder};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use undercroft_block::{Buffer, is_zero};

/// Bytes of a cluster.
const CLUSTER: usize = 64 << 10;

/// Bytes read at a time.
const PIECE: usize = 1 << 20;

/// Makes `image`, an empty file, a qcow2 of the bytes of `raw`. `progress` is told how many are done.
///
/// # Errors
/// A file cannot be read or written.
pub fn to_qcow2(raw: &File, image: &File, progress: &mut dyn FnMut(u64)) -> Result<(), io::Error> {
    let length = raw.metadata()?.len();
    let storage = ImageFile::try_from(image.try_clone()?)?;
    let new = Qcow2::<ImageFile>::create_builder(storage).cluster_size(CLUSTER).size(length);
    let qcow2 = new.create_open(DenyImplicitOpenGate::default(), |storage| {
        Ok(Qcow2::<ImageFile>::builder(storage).backing(None).write(true))
    })?;
    let qcow2 = FormatAccess::new(qcow2);
    // Aligned, since the kernel copies quickly to such memory.
    let mut buffer = Buffer::zeroed(PIECE);
    let mut done = 0;
    while let Some(start) = next_data(raw, done, length)? {
        done = start / PIECE as u64 * PIECE as u64;
        let wanted = (length - done).min(PIECE as u64) as usize;
        raw.read_exact_at(&mut buffer[..wanted], done)?;
        // Runs of clusters that are not all zeros, each in one write.
        let mut at = 0;
        while at < wanted {
            let clusters = buffer[at..wanted].chunks(CLUSTER);
            let run: usize = clusters.take_while(|one| !is_zero(one)).map(<[u8]>::len).sum();
            if run > 0 {
                qcow2.write(&buffer[at..at + run], done + at as u64)?;
            }
            at += run.max(CLUSTER);
        }
        done += wanted as u64;
        progress(done);
    }
    qcow2.flush()?;
    drop(qcow2);
    header::sort_feature_names(image)
}

fn next_data(raw: &File, at: u64, length: u64) -> Result<Option<u64>, io::Error> {
    if at >= length {
        return Ok(None);
    }
    match seek(raw, SeekFrom::Data(at)) {
        Ok(start) => Ok((start < length).then_some(start)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

/// The header, which the library writes with names of features in the order of a hash table.
mod header {
    use super::{File, FileExt, io};

    /// Where the length of the fixed part stands.
    const LENGTH_AT: usize = 100;
    /// The extension that names features; names of 48 bytes.
    const FEATURE_NAMES: u32 = 0x6803_f857;
    const NAME: usize = 48;

    /// Puts the names of features into one order.
    pub(super) fn sort_feature_names(image: &File) -> Result<(), io::Error> {
        let mut header = vec![0; super::CLUSTER];
        image.read_exact_at(&mut header, 0)?;
        let be32 = |bytes: &[u8], at: usize| {
            let field = bytes.get(at..at + 4).and_then(|field| field.try_into().ok());
            field.map(u32::from_be_bytes)
        };
        let mut at = be32(&header, LENGTH_AT).unwrap_or(0) as usize;
        while let (Some(kind), Some(length)) = (be32(&header, at), be32(&header, at + 4)) {
            let (start, length) = (at + 8, length as usize);
            let Some(body) = header.get_mut(start..start + length).filter(|_| kind != 0) else {
                break;
            };
            if kind == FEATURE_NAMES {
                let (names, _) = body.as_chunks_mut::<NAME>();
                names.sort_unstable();
                image.write_all_at(body, start as u64)?;
            }
            at = start + length.next_multiple_of(8);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_make_the_same_image_whatever_the_holes() {
        let raw = |holes: bool| {
            let file = tempfile::tempfile().unwrap();
            let length = 40 << 20;
            if holes {
                file.set_len(length).unwrap();
            } else {
                file.write_all_at(&vec![0; length as usize], 0).unwrap();
            }
            for at in [0, 3 << 20, (3 << 20) + 65_536 * 3, (20 << 20) - 4096, length - 512] {
                file.write_all_at(&[at as u8 | 1; 512], at).unwrap();
            }
            file
        };
        let made = |holes| {
            let image = tempfile::tempfile().unwrap();
            to_qcow2(&raw(holes), &image, &mut |_| ()).unwrap();
            let mut bytes = vec![0; image.metadata().unwrap().len() as usize];
            image.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let first = made(true);
        assert!(first.starts_with(b"QFI\xfb") && first.len() < 2 << 20, "{}", first.len());
        for holes in [true, false, true] {
            assert!(made(holes) == first);
        }
    }
}
