//! Requests that the submitting thread serves itself, since nothing has to be waited for.

use std::fs::File;
use std::io::IoSliceMut;
use std::sync::Arc;

use rustix::io::{Errno, ReadWriteFlags, preadv2};
use smallvec::SmallVec;

use super::open::{MAX_SEGMENTS, OpenFile};
use super::{page_cache, transfer};
use crate::bio::Operation;
use crate::request::{Failure, Request};
use crate::units::{SECTOR_SIZE, Sector};

/// Does what `request` asks, if that takes no more than a copy; `None` if it may take more.
///
/// Writes to files on disks may have to wait for room in the page cache or for the journal of their
/// file system, and few file systems can be asked not to (ext4 cannot, Linux 6.18). They seldom do.
pub(super) fn execute(device: &OpenFile, request: &mut Request) -> Option<Result<(), Failure>> {
    match request.operation() {
        Operation::Read | Operation::Write | Operation::Flush if device.is_in_memory() => {
            Some(transfer::execute(device, request))
        }
        Operation::Read if device.gives_up() => read(device, request),
        Operation::Write if request.is_seldom_waiting() && device.takes_copies() => {
            (!request.is_force_unit_access()).then(|| transfer::execute(device, request))
        }
        _ => None,
    }
}

/// The file, if the page cache has all of the range of `request`.
pub(super) fn place<'d>(device: &'d OpenFile, request: &Request) -> Option<&'d Arc<File>> {
    let offset = request.sector().0 * SECTOR_SIZE;
    let is_there =
        device.uses_page_cache() && page_cache::has_all(device.file(), offset, request.length());
    is_there.then(|| device.file())
}

/// The file, if whole pages of it may be spliced there: it is in memory, or the page cache has them.
/// What the page cache does not have may better go around it, and parts of pages would be read first.
pub(super) fn splice_target(device: &OpenFile, sector: Sector, length: u64) -> Option<&File> {
    let (offset, page) = (sector.0 * SECTOR_SIZE, rustix::param::page_size() as u64);
    let is_there = (offset | length).is_multiple_of(page)
        && device.takes_copies()
        && (device.is_in_memory() || page_cache::has_all(device.file(), offset, length));
    is_there.then(|| &**device.file())
}

/// Fills the memory of `request` from the page cache, if all of it is there.
fn read(device: &OpenFile, request: &mut Request) -> Option<Result<(), Failure>> {
    let length = request.length();
    let offset = request.sector().0 * SECTOR_SIZE;
    let mut pieces: SmallVec<[IoSliceMut<'_>; 16]> =
        request.scatter().map(IoSliceMut::new).collect();
    if pieces.len() > MAX_SEGMENTS {
        return None;
    }
    match preadv2(device.file(), &mut pieces, offset, ReadWriteFlags::NOWAIT) {
        // Less is there: the rest comes from the disk, or the file ends.
        Ok(bytes) => (bytes as u64 == length).then_some(Ok(())),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            device.never_gives_up();
            None
        }
        // It has to wait, or fails: the usual way says how.
        Err(_) => None,
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::mpsc;
    use std::thread;

    use rustix::fs::{Advice, MemfdFlags, fadvise, memfd_create};

    use super::*;
    use crate::{
        Bio, BlockDevice, Buffer, Completion, FileDevice, FileOptions, Plug, write_all_at,
    };

    fn device(file: File) -> Arc<dyn BlockDevice> {
        let options = FileOptions::default();
        Arc::new(FileDevice::from_file(file, "image", &options).unwrap())
    }

    /// A file of 1 MiB in memory.
    fn in_memory() -> Arc<dyn BlockDevice> {
        let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(1 << 20).unwrap();
        device(file)
    }

    /// Whether this thread does the work of `bio`, which succeeds.
    fn is_own(device: &Arc<dyn BlockDevice>, bio: Bio) -> bool {
        let (told, hears) = mpsc::channel();
        Plug::new(device).submit(bio.on_complete(move |completion| {
            completion.result.unwrap();
            told.send(thread::current().id()).unwrap();
        }));
        hears.recv().unwrap() == thread::current().id()
    }

    /// Reads without waiting if that goes; returns the bytes, and whether this thread did it.
    fn read(device: &Arc<dyn BlockDevice>, sector: u64, bytes: usize) -> (Buffer, bool) {
        let (told, hears) = mpsc::channel();
        let bio = Bio::read(Sector(sector), Buffer::zeroed(bytes)).unwaiting();
        let plug = Plug::new(device);
        plug.submit(bio.on_complete(move |completion| {
            told.send((completion.into_buffer().unwrap(), thread::current().id())).unwrap();
        }));
        drop(plug);
        let (buffer, by) = hears.recv().unwrap();
        (buffer, by == thread::current().id())
    }

    #[test]
    fn files_in_memory_are_read_and_written_by_the_submitter() {
        let device = in_memory();
        let bio = Bio::write(Sector(8), Buffer::copy_of(&[7; 4096])).unwaiting();
        assert!(is_own(&device, bio));
        let (bytes, is_own) = read(&device, 8, 4096);
        assert!(is_own && *bytes == [7; 4096]);
    }

    #[test]
    fn bios_that_do_not_ask_for_it_are_left_to_the_threads() {
        assert!(!is_own(&in_memory(), Bio::read(Sector(0), Buffer::zeroed(512))));
    }

    #[test]
    fn writes_to_a_disk_are_done_by_a_submitter_that_may_wait_now_and_then() {
        let file = tempfile::tempfile_in(std::env::current_exe().unwrap().parent().unwrap());
        let file = file.unwrap();
        file.set_len(1 << 20).unwrap();
        let device = device(file.try_clone().unwrap());
        let write = |byte| Bio::write(Sector(8), Buffer::copy_of(&[byte; 4096]));
        assert!(!is_own(&device, write(1).unwaiting()));
        assert!(is_own(&device, write(2).seldom_waiting()));
        let mut found = [0; 4096];
        file.read_exact_at(&mut found, 4096).unwrap();
        assert_eq!(found, [2; 4096]);
        // What has to be on the disk always waits.
        assert!(!is_own(&device, write(3).seldom_waiting().force_unit_access()));
        assert!(!is_own(&device, Bio::flush().seldom_waiting()));
    }

    #[test]
    fn what_is_not_in_memory_comes_from_the_disk() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..1 << 20).map(|index: u32| (index >> 9) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        file.sync_all().unwrap();
        let device = device(file.try_clone().unwrap());
        for sector in (0..2048).step_by(96) {
            if sector % 192 == 0 {
                // A hint, which the system need not follow; the bytes are the same in any case.
                fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            }
            let (found, _) = read(&device, sector, 4096);
            let start = sector as usize * 512;
            assert!(found[..] == bytes[start..start + 4096], "sector {sector}");
        }
    }

    #[test]
    fn the_end_of_a_file_reads_as_zeroes() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 700], 0).unwrap();
        let (found, _) = read(&device(file), 0, 1024);
        assert!(found[..] == [&[7; 700][..], &[0; 324]].concat());
    }

    /// Reads by place if that goes; returns the buffer and the place.
    fn locate(device: &Arc<dyn BlockDevice>, sector: u64, bytes: usize) -> Completion {
        let (told, hears) = mpsc::channel();
        let bio = Bio::read(Sector(sector), Buffer::zeroed(bytes)).by_place();
        let plug = Plug::new(device);
        plug.submit(bio.on_complete(move |completion| told.send(completion).unwrap()));
        drop(plug);
        let completion = hears.recv().unwrap();
        assert!(completion.result.is_ok());
        completion
    }

    #[test]
    fn reads_by_place_say_where_the_bytes_are_in_the_file() {
        let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC).unwrap());
        let bytes: Vec<u8> = (0..1 << 20).map(|index: u32| (index >> 9) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        file.set_len(2 << 20).unwrap();
        let is_told = page_cache::pages(&file, 0, 1).is_ok();
        let disk = device(file);
        let found = locate(&disk, 103, 8192).place;
        assert_eq!(found.is_some(), is_told);
        if let Some(place) = found {
            let mut found = [0; 8192];
            place.file.read_exact_at(&mut found, place.offset).unwrap();
            assert!(found[..] == bytes[103 * 512..][..8192]);
        }
        // Half of it is a hole.
        let found = locate(&disk, 2040, 8192);
        assert!(found.place.is_none());
        assert!(found.buffer.unwrap()[..] == [&bytes[2040 * 512..], &[0; 4096]].concat());
    }

    #[test]
    fn a_write_by_place_writes() {
        let disk = in_memory();
        // All of it is in the page cache, so a place could be had.
        write_all_at(&*disk, Sector(0), &[1; 8192]).unwrap();
        let (told, hears) = mpsc::channel();
        let bio = Bio::write(Sector(8), Buffer::copy_of(&[7; 4096])).by_place();
        Plug::new(&disk).submit(bio.on_complete(move |completion| told.send(completion).unwrap()));
        let completion = hears.recv().unwrap();
        assert!(completion.result.is_ok() && completion.place.is_none());
        assert!(read(&disk, 8, 4096).0[..] == [7; 4096]);
    }
}
