//! The content of files, and their space.

use crate::mounted::{Volume, pattern, succeeds, wait_for};
use rustix::fs::{FallocateFlags, SeekFrom, copy_file_range, fallocate, seek, statvfs};
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn new_file(path: &Path) -> File {
    File::options().create_new(true).read(true).write(true).open(path).unwrap()
}

#[test]
fn content_is_what_was_written() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let bytes = pattern(9_000_001, 7);
    fs::write(mounted.path("file"), &bytes).unwrap();
    let file = File::options().read(true).write(true).open(mounted.path("file")).unwrap();
    file.write_all_at(b"in the middle", 4_000_000).unwrap();
    file.set_len(8_500_000).unwrap();
    let mut expected = bytes[..8_500_000].to_vec();
    expected[4_000_000..4_000_013].copy_from_slice(b"in the middle");
    assert!(fs::read(mounted.path("file")).unwrap() == expected);
    drop(file);
    mounted.unmount();
    let mounted = volume.mount(&["-o", "ro"]);
    assert!(fs::read(mounted.path("file")).unwrap() == expected);
    let refused = fs::write(mounted.path("file"), "").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    mounted.unmount();
}

#[test]
fn space_is_given_and_taken() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let file = new_file(&mounted.path("file"));
    let bytes = pattern(1 << 20, 3);
    file.write_all_at(&bytes, 0).unwrap();
    let change = |flags, from, len| fallocate(&file, flags, from, len);
    change(FallocateFlags::KEEP_SIZE, 1 << 20, 1 << 20).unwrap();
    file.sync_all().unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(metadata.len(), 1 << 20);
    assert!(metadata.blocks() * 512 >= 2 << 20, "{} blocks", metadata.blocks());
    change(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 65_536, 65_536).unwrap();
    change(FallocateFlags::ZERO_RANGE, 262_144, 100_000).unwrap();
    change(FallocateFlags::empty(), 0, 3 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3 << 20);
    let mut expected = bytes;
    expected[65_536..131_072].fill(0);
    expected[262_144..362_144].fill(0);
    expected.resize(3 << 20, 0);
    assert!(fs::read(mounted.path("file")).unwrap() == expected);
    // The kernel does not hand these on.
    for flags in [FallocateFlags::COLLAPSE_RANGE, FallocateFlags::INSERT_RANGE] {
        assert_eq!(change(flags, 0, 65_536), Err(Errno::OPNOTSUPP));
    }
    drop(file);
    mounted.unmount();
}

/// Also data that only the kernel has yet is found.
#[test]
fn data_and_holes_are_found() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let file = new_file(&mounted.path("file"));
    let find = |place| seek(&file, place);
    file.write_all_at(&[1; 8192], 1 << 20).unwrap();
    assert_eq!(find(SeekFrom::Data(0)), Ok(1 << 20));
    file.write_all_at(&[1; 4096], 4 << 20).unwrap();
    assert_eq!(find(SeekFrom::Hole(1 << 20)), Ok((1 << 20) + 8192));
    assert_eq!(find(SeekFrom::Data(2 << 20)), Ok(4 << 20));
    assert_eq!(find(SeekFrom::Hole(4 << 20)), Ok((4 << 20) + 4096));
    assert_eq!(find(SeekFrom::Data(5 << 20)), Err(Errno::NXIO));
    // So that a copy that leaves holes out has all of it, at once.
    succeeds(
        Command::new("cp")
            .arg("--sparse=always")
            .arg("--reflink=never")
            .args([mounted.path("file"), mounted.path("copy")]),
    );
    drop(file);
    let [file, copy] = ["file", "copy"].map(|name| fs::read(mounted.path(name)).unwrap());
    assert!(file == copy && file.len() == (4 << 20) + 4096);
    mounted.unmount();
}

#[test]
fn copies_share_blocks() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let bytes = pattern(16 << 20, 5);
    fs::write(mounted.path("file"), &bytes).unwrap();
    File::open(mounted.path("file")).unwrap().sync_all().unwrap();
    let free = || {
        let usage = statvfs(volume.at()).unwrap();
        usage.f_bavail * usage.f_frsize
    };
    let before = free();
    succeeds(
        Command::new("cp").arg("--reflink=auto").args([mounted.path("file"), mounted.path("copy")]),
    );
    let taken = before.saturating_sub(free());
    assert!(taken < 1 << 20, "{taken} bytes taken");
    assert!(fs::read(mounted.path("copy")).unwrap() == bytes);
    // What changes in one does not in the other.
    let copy = File::options().read(true).write(true).open(mounted.path("copy")).unwrap();
    copy.write_all_at(b"changed", 5000).unwrap();
    drop(copy);
    assert!(fs::read(mounted.path("file")).unwrap() == bytes);
    // A part, at once after it was written.
    let source = File::open(mounted.path("file")).unwrap();
    let target = File::create(mounted.path("part")).unwrap();
    let (mut from, mut to) = (4096, 0);
    let copied = copy_file_range(&source, Some(&mut from), &target, Some(&mut to), 8192).unwrap();
    assert_eq!(copied, 8192);
    assert!(fs::read(mounted.path("part")).unwrap() == bytes[4096..12_288]);
    drop((source, target));
    mounted.unmount();
}

#[test]
fn mapped_and_direct_access_see_the_same_bytes() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = mounted.path("file");
    let mapped = ["mmap -rw 0 65536", "mwrite -S 0x61 5000 100", "msync -s 0 65536"];
    let mut command = Command::new("xfs_io");
    command.args(["-f", "-c", "truncate 65536"]);
    for step in mapped {
        command.args(["-c", step]);
    }
    succeeds(command.arg(&path));
    let bytes = fs::read(&path).unwrap();
    assert!(bytes[5000..5100].iter().all(|byte| *byte == b'a') && bytes[5100] == 0);
    succeeds(Command::new("xfs_io").args(["-d", "-c", "pwrite -S 0x62 8192 8192"]).arg(&path));
    assert_eq!(fs::read(&path).unwrap()[8192..16_384], [b'b'; 8192]);
    let direct = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed())
        .open(&path)
        .unwrap();
    assert_eq!(direct.metadata().unwrap().len(), 65_536);
    drop(direct);
    mounted.unmount();
}

/// Readers in the middle of asynchronous direct writes do not bring old bytes back.
#[test]
fn direct_writes_stay_beside_readers() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = mounted.path("file");
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    let _ = fs::read(&path);
                }
            });
        }
        for round in 0..8 {
            let seed = format!("--randseed={round}");
            let name = format!("--filename={}", path.display());
            let write =
                ["--name=x", "--ioengine=libaio", "--direct=1", "--rw=randwrite", "--bs=64k"];
            let much =
                ["--size=640k", "--iodepth=10", "--loops=20", "--fallocate=none", &seed, &name];
            succeeds(Command::new("fio").args(write).args(much));
            let seen = fs::read(&path).unwrap();
            let stored = Command::new("dd")
                .args(["iflag=direct", "bs=64k", "status=none"])
                .arg(format!("if={}", path.display()))
                .output()
                .unwrap()
                .stdout;
            if seen != stored {
                has_ended.store(true, Ordering::Relaxed);
                panic!("round {round}: what is read is not what was written");
            }
        }
        has_ended.store(true, Ordering::Relaxed);
    });
    mounted.unmount();
}

/// A lack of space is an error of the write where data does not wait in the kernel, and of the close
/// or fsync where it does; never silence.
#[test]
fn a_full_volume_says_so() {
    for options in [&["-o", "writethrough"][..], &[]] {
        let volume = Volume::sized("64M");
        let mounted = volume.mount(options);
        let file = File::create(mounted.path("file")).unwrap();
        let piece = vec![1; 1 << 20];
        let mut offset = 0;
        let written = loop {
            match file.write_all_at(&piece, offset) {
                Ok(()) if offset < 100 << 20 => offset += 1 << 20,
                other => break other,
            }
        };
        let synced = file.sync_all();
        let error = if options.is_empty() { written.and(synced) } else { written };
        let error = error.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        drop(file);
        fs::remove_file(mounted.path("file")).unwrap();
        // The kernel says that it has dropped the file behind the answer to its removal.
        let begun = Instant::now();
        let written = loop {
            match fs::write(mounted.path("after"), "there is room again") {
                Err(error)
                    if error.raw_os_error() == Some(Errno::NOSPC.raw_os_error())
                        && begun.elapsed() < Duration::from_secs(60) =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                other => break other,
            }
        };
        written.unwrap();
        mounted.unmount();
    }
}

#[test]
fn synchronous_writes_survive_a_crash() {
    let volume = Volume::new();
    let mut mounted = volume.serve(&[]);
    let flags = rustix::fs::OFlags::DSYNC.bits().cast_signed();
    let open = |name: &str, flags: i32| {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).custom_flags(flags);
        options.open(mounted.path(name)).unwrap()
    };
    open("sync", flags).write_all_at(b"synchronous", 0).unwrap();
    let file = open("fsync", 0);
    file.write_all_at(b"fsynced", 0).unwrap();
    file.sync_data().unwrap();
    mounted.server().kill().unwrap();
    mounted.server().wait().unwrap();
    drop((file, mounted));
    succeeds(Command::new("umount").arg("-l").arg(volume.at()));
    let mounted = volume.mount(&[]);
    assert_eq!(fs::read(mounted.path("sync")).unwrap(), b"synchronous");
    assert_eq!(fs::read(mounted.path("fsync")).unwrap(), b"fsynced");
    mounted.unmount();
}

/// Bytes that the file of an image takes.
fn taken(volume: &Volume) -> u64 {
    fs::metadata(volume.image()).unwrap().blocks() * 512
}

/// Free space is given back while files are written, whose contents stay.
#[test]
fn free_space_is_given_back_under_a_load() {
    for options in [&["-o", "discard,commit=1"][..], &[]] {
        let volume = Volume::sized("256M");
        let mounted = volume.mount(options);
        let is_discarding = !options.is_empty();
        let trim = || {
            if !is_discarding {
                mounted.run("fstrim", &[], "");
            }
        };
        fs::write(mounted.path("large"), pattern(100 << 20, 1)).unwrap();
        fs::write(mounted.path("stays"), pattern(9 << 20, 2)).unwrap();
        File::open(mounted.path("stays")).unwrap().sync_all().unwrap();
        let full = taken(&volume);
        assert!(full > 100 << 20, "{full}");
        fs::remove_file(mounted.path("large")).unwrap();
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let mounted = &mounted;
                scope.spawn(move || {
                    for round in 0..40_u64 {
                        let path = mounted.path(format!("file-{thread}-{}", round % 3));
                        let bytes = pattern(1 << 20, thread * 100 + round);
                        fs::write(&path, &bytes).unwrap();
                        File::open(&path).unwrap().sync_all().unwrap();
                        assert!(fs::read(&path).unwrap() == bytes);
                    }
                });
            }
            (0..5).for_each(|_| {
                trim();
                thread::sleep(Duration::from_millis(200));
            });
        });
        wait_for("space given back", || {
            trim();
            taken(&volume) < 64 << 20
        });
        mounted.unmount();
        let mounted = volume.mount(&[]);
        for thread in 0..4_u64 {
            for round in 37..40_u64 {
                let path = mounted.path(format!("file-{thread}-{}", round % 3));
                assert!(fs::read(&path).unwrap() == pattern(1 << 20, thread * 100 + round));
            }
        }
        assert!(fs::read(mounted.path("stays")).unwrap() == pattern(9 << 20, 2));
        mounted.unmount();
    }
}
