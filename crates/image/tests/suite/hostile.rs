//! Damaged and hostile volumes end in errors: no panic, no endless walk. Each mutation leaves the
//! checksum of its block right, so that only checks of the content stand in its way.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, MemoryDevice, Sector, write_all_at};
use undercroft_image::pack::{self, PackOptions, SizeChoice};
use undercroft_image::unpack::{self, UnpackError};
use undercroft_judges::random::Random;
use undercroft_judges::{odd, rounds};
use undercroft_source::SourceSpec;
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};

/// A block with a checksum.
#[derive(Clone, Copy)]
struct Target {
    at: usize,
    len: usize,
    crc: usize,
}

/// Length and place of the checksum by the magic number at the start
/// (docs/format/checksums.md#places).
fn target(bytes: &[u8], at: usize) -> Option<Target> {
    let (len, crc) = match bytes.get(at..at + 4)? {
        b"XFSB" => (512, 224),
        b"XAGF" => (512, 216),
        b"XAGI" => (512, 312),
        b"XAFL" => (512, 32),
        b"AB3B" | b"AB3C" | b"IAB3" | b"FIB3" | b"RMB3" | b"R3FC" => (4096, 52),
        b"BMA3" => (4096, 64),
        b"XDB3" | b"XDD3" | b"XDF3" => (4096, 4),
        b"XARM" | b"XSLM" => (4096, 12),
        [b'I', b'N', ..] => (512, 100),
        _ => match bytes.get(at + 8..at + 10)? {
            [0x3d, 0xf1 | 0xff] | [0x3e, 0xbe] | [0x3b, 0xee] => (4096, 12),
            _ => return None,
        },
    };
    let target = Target { at, len, crc };
    (at + len <= bytes.len() && bytes[at + crc..at + crc + 4] == checksum(bytes, target))
        .then_some(target)
}

fn checksum(bytes: &[u8], Target { at, len, crc }: Target) -> [u8; 4] {
    let before = crc32c::crc32c(&bytes[at..at + crc]);
    let gap = crc32c::crc32c_append(before, &[0; 4]);
    crc32c::crc32c_append(gap, &bytes[at + crc + 4..at + len]).to_le_bytes()
}

fn image(directory: &Path) -> Vec<u8> {
    image_of(directory, |tree| drop(odd::odd_tree(tree).unwrap()))
}

/// The volume of the tree that `fill` makes.
fn image_of(directory: &Path, fill: impl Fn(&Path)) -> Vec<u8> {
    let tree = directory.join("tree");
    fs::create_dir(&tree).unwrap();
    fill(&tree);
    let image = directory.join("image");
    let options = PackOptions {
        size: SizeChoice::Minimum,
        ..PackOptions::new(SourceSpec::Path(tree), image.clone())
    };
    pack::build(&options, &mut |_| {}).unwrap();
    fs::read(image).unwrap()
}

/// Reads everything in both ways there are; only returning counts.
fn read_all(device: &Arc<dyn BlockDevice>) {
    if let Ok(volume) = Volume::open(Arc::clone(device)) {
        let _ = unpack::to_tar(&Arc::new(volume), &mut std::io::sink(), &mut |_| {});
    }
    let _ = check(Arc::clone(device), &CheckOptions::default(), &mut |_| {});
}

#[test]
fn mutated_metadata_with_right_checksums_never_panics() {
    let scratch = tempfile::tempdir().unwrap();
    let bytes = image(scratch.path());
    let targets: Vec<_> =
        (0..bytes.len()).step_by(512).filter_map(|at| target(&bytes, at)).collect();
    assert!(targets.len() > 1_000, "{} blocks with checksums found", targets.len());
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes.len() as u64));
    write_all_at(device.as_ref(), Sector(0), &bytes).unwrap();
    let mut random = Random::new(7);
    for _ in 0..rounds(100, 300) {
        let target = targets[random.below(targets.len() as u64) as usize];
        let mut block = bytes[target.at..target.at + target.len].to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(target.len as u64) as usize;
            block[at] = random.below(256) as u8;
        }
        let own = checksum(&block, Target { at: 0, ..target });
        block[target.crc..target.crc + 4].copy_from_slice(&own);
        let sector = Sector(target.at as u64 / 512);
        write_all_at(device.as_ref(), sector, &block).unwrap();
        read_all(&device);
        let original = &bytes[target.at..target.at + target.len];
        write_all_at(device.as_ref(), sector, original).unwrap();
    }
}

#[test]
fn truncated_images_and_noise_are_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let bytes = image(scratch.path());
    let mut random = Random::new(8);
    for len in [0, 1, 100, 512, 4096, 65_536, bytes.len() / 2, bytes.len() - 4096] {
        let device: Arc<dyn BlockDevice> =
            Arc::new(MemoryDevice::new((len as u64).next_multiple_of(512)));
        let whole = &bytes[..len / 512 * 512];
        if !whole.is_empty() {
            write_all_at(device.as_ref(), Sector(0), whole).unwrap();
        }
        read_all(&device);
        assert!(Volume::open(device).is_err(), "{len} bytes");
    }
    for _ in 0..50 {
        let noise: Vec<u8> = (0..65_536).map(|_| random.below(256) as u8).collect();
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(65_536));
        write_all_at(device.as_ref(), Sector(0), &noise).unwrap();
        read_all(&device);
        assert!(Volume::open(device).is_err());
    }
}

/// Replaces `from` by `to`, of the same length, in all metadata; checksums are right afterwards.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let places: Vec<_> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    let mut replaced = 0;
    for place in places {
        let mut blocks =
            (0..8).filter_map(|back| target(bytes, (place / 512 * 512).checked_sub(back * 512)?));
        // File data has no checksum.
        let Some(block) = blocks.find(|block| block.at + block.len > place) else { continue };
        bytes[place..place + to.len()].copy_from_slice(to);
        let own = checksum(bytes, block);
        bytes[block.at + block.crc..][..4].copy_from_slice(&own);
        replaced += 1;
    }
    assert!(replaced > 0, "{} is nowhere", from.escape_ascii());
}

/// Unpacks in every way there is; the errors.
fn refusals(bytes: &[u8], directory: &Path) -> Vec<UnpackError> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes.len() as u64));
    write_all_at(device.as_ref(), Sector(0), bytes).unwrap();
    let volume = Arc::new(Volume::open(device).unwrap());
    let to_directory = |force| {
        let destination = directory.join(format!("destination-{force}"));
        unpack::to_directory(&volume, &destination, force, &mut |_| {}).unwrap_err()
    };
    let archive = unpack::to_tar(&volume, &mut std::io::sink(), &mut |_| {}).unwrap_err();
    vec![archive, to_directory(false), to_directory(true)]
}

#[test]
fn a_name_that_a_directory_has_twice_is_refused_in_every_way_out() {
    // The same hash, so that the index of the directory fits both.
    let (first, second) = (b"one-of-two-names", b"one-of-two-namd\xf3");
    // Entries inside the inode, in one block, and in many.
    for others in [0, 40, 1000] {
        let scratch = tempfile::tempdir().unwrap();
        let outside = scratch.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let mut bytes = image_of(scratch.path(), |tree| {
            for other in 0..others {
                fs::write(tree.join(format!("another-name-{other}")), "").unwrap();
            }
            std::os::unix::fs::symlink(&outside, tree.join(OsStr::from_bytes(first))).unwrap();
            let directory = tree.join(OsStr::from_bytes(second));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), "let out").unwrap();
        });
        replace(&mut bytes, second, first);
        for error in refusals(&bytes, scratch.path()) {
            let duplicate = matches!(&error, UnpackError::Duplicate { directory, name }
                if directory == "/" && name == "one-of-two-names");
            assert!(duplicate, "{others} other names: {error:?}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}

#[test]
fn names_of_directories_themselves_are_refused_where_they_lead_elsewhere() {
    for (name, others) in [("QQ", 0), ("QQ", 100), (".", 100), ("..", 100)] {
        let scratch = tempfile::tempdir().unwrap();
        let mut bytes = image_of(scratch.path(), |tree| {
            fs::create_dir(tree.join("directory")).unwrap();
            for other in 0..others {
                fs::write(tree.join(format!("directory/another-name-{other}")), "").unwrap();
            }
            fs::write(tree.join("directory/QQ"), "hidden").unwrap();
        });
        if name == "QQ" {
            // A second ".." beside the directory's own.
            replace(&mut bytes, b"QQ", b"..");
        } else {
            // The directory's own name leads to another inode: 8 bytes, then length and name.
            let entry = [&[name.len() as u8], name.as_bytes(), &[2]].concat();
            let mut block = (0..bytes.len()).step_by(4096).filter(|at| {
                bytes[*at..].starts_with(b"XDB3") || bytes[*at..].starts_with(b"XDD3")
            });
            let block = block.next_back().unwrap();
            let at = (block..block + 4096).find(|at| bytes[*at..].starts_with(&entry)).unwrap();
            let block = target(&bytes, block).unwrap();
            bytes[at - 1] ^= 1;
            let own = checksum(&bytes, block);
            bytes[block.at + block.crc..][..4].copy_from_slice(&own);
        }
        for error in refusals(&bytes, scratch.path()) {
            let refused = matches!(&error, UnpackError::Name { directory, name }
                if directory == "/directory" && matches!(name.as_str(), "." | ".."));
            assert!(refused, "{name} among {others}: {error}");
        }
    }
}
