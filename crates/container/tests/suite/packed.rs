//! Compressed raw images.

use crate::qemu::{SIZE, bytes, content, open, raw};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use undercroft_block::stack::DiskFormat;
use undercroft_block::{Sector, read_buffer};

/// Runs a command in a shell, which must succeed.
fn shell(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A way to compress `$1` to `$2`.
const WAYS: [&str; 12] = [
    "gzip -c $1 > $2",
    "gzip -nc --fast $1 > $2",
    // Members, an empty one among them, and zeroes behind.
    "(head -c 3000000 $1 | gzip; gzip < /dev/null; tail -c +3000001 $1 | gzip; head -c 700 /dev/zero) > $2",
    "xz -c --block-size=1MiB $1 > $2",
    "xz -c -T1 $1 > $2",
    "xz -c --check=sha256 --block-size=300KiB $1 > $2",
    // Streams, one of them empty, and padding between them.
    "(head -c 3000000 $1 | xz --block-size=1MiB; head -c 8 /dev/zero; xz < /dev/null; tail -c +3000001 $1 | xz) > $2",
    "zstd -qc $1 > $2",
    "zstd -qc --check < $1 > $2",
    "zstd -qc --no-check $1 > $2",
    // Frames with and without their lengths.
    "(head -c 3000000 $1 > $2.a; zstd -qc $2.a; tail -c +3000001 $1 | zstd -qc --stream-size=5388608) > $2",
    "(head -c 3000000 $1 | zstd -qc; printf '\\120\\052\\115\\030\\003\\0\\0\\0abc'; tail -c +3000001 $1 | zstd -qc) > $2",
];

fn pack(way: &str, raw: &str, to: &str) {
    shell(&format!("set -- {raw} {to}; {way}"));
}

#[test]
fn compressed_disks_are_read() {
    let home = tempfile::tempdir().unwrap();
    let expected = content(41);
    let raw = raw(home.path(), "raw", &expected);
    let image = home.path().join("packed").display().to_string();
    for way in WAYS {
        pack(way, &raw, &image);
        let device = open(&image, true, DiskFormat::Auto).unwrap_or_else(|e| panic!("{way}: {e}"));
        assert_eq!(device.capacity().to_bytes(), Some(SIZE as u64), "{way}");
        // The last bytes first, so that none were read before them.
        let end = read_buffer(&*device, Sector(SIZE as u64 / 512 - 9), 9 * 512).unwrap();
        assert!(end[..] == expected[SIZE - 9 * 512..], "{way}");
        let mut random = fastrand::Rng::with_seed(42);
        for _ in 0..40 {
            let at = random.usize(..SIZE / 512 - 64);
            let read = read_buffer(&*device, Sector(at as u64), 64 * 512).unwrap();
            assert!(read[..] == expected[at * 512..(at + 64) * 512], "{way}");
        }
        assert!(bytes(&*device).unwrap() == expected, "{way}");
        let error = open(&image, false, DiskFormat::Auto).unwrap_err();
        assert!(error.contains("only read"), "{error}");
    }
}

/// A table of frames, as the Zstandard Seekable Format has it.
fn with_table(frames: &[Vec<u8>], lengths: &[usize], has_sums: bool) -> Vec<u8> {
    let mut packed = frames.concat();
    let entry = if has_sums { 12 } else { 8 };
    packed.extend(0x184d_2a5e_u32.to_le_bytes());
    packed.extend((frames.len() as u32 * entry + 9).to_le_bytes());
    for (frame, length) in frames.iter().zip(lengths) {
        packed.extend((frame.len() as u32).to_le_bytes());
        packed.extend((*length as u32).to_le_bytes());
        packed.extend(has_sums.then_some([0; 4]).into_iter().flatten());
    }
    packed.extend((frames.len() as u32).to_le_bytes());
    packed.push(if has_sums { 0x80 } else { 0 });
    packed.extend(0x8f92_eab1_u32.to_le_bytes());
    packed
}

#[test]
fn a_table_of_frames_is_used() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let expected = content(43);
    let lengths = [1 << 20, 5 << 20, 1 << 20, 1 << 20];
    let (mut frames, mut at) = (Vec::new(), 0);
    for length in lengths {
        let piece = raw(home.path(), "piece", &expected[at..at + length]);
        shell(&format!("zstd -qfc {piece} > {}", path("frame")));
        frames.push(fs::read(path("frame")).unwrap());
        at += length;
    }
    for has_sums in [false, true] {
        let mut packed = with_table(&frames, &lengths, has_sums);
        // What is not needed is not read: the second frame is damaged.
        let second = frames[0].len()..frames[0].len() + frames[1].len();
        packed[second].fill(0xaa);
        fs::write(path("packed"), &packed).unwrap();
        let device = open(&path("packed"), true, DiskFormat::Auto).unwrap();
        let read = |at: usize| read_buffer(&*device, Sector(at as u64 / 512), 4096);
        for at in [0, (1 << 20) - 4096, 6 << 20, (8 << 20) - 4096] {
            assert!(read(at).unwrap()[..] == expected[at..at + 4096]);
        }
        read((1 << 20) - 512).unwrap_err();
        read(3 << 20).unwrap_err();
    }
    let mut cut = with_table(&frames, &lengths, false);
    cut.drain(100..110);
    fs::write(path("packed"), &cut).unwrap();
    let error = open(&path("packed"), true, DiskFormat::Auto).unwrap_err();
    assert!(error.contains("is it cut?"), "{error}");
}

#[test]
fn checksums_count() {
    let home = tempfile::tempdir().unwrap();
    let expected = content(44);
    let raw = raw(home.path(), "raw", &expected);
    let image = home.path().join("packed").display().to_string();
    for way in ["gzip -c $1 > $2", "xz -c --block-size=1MiB $1 > $2", "zstd -qc --check $1 > $2"] {
        pack(way, &raw, &image);
        let mut packed = fs::read(&image).unwrap();
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        fs::write(&image, &packed).unwrap();
        let error = open(&image, true, DiskFormat::Auto).and_then(|device| bytes(&*device));
        assert!(error.is_err(), "{way}");
    }
}

#[test]
fn what_is_compressed_has_to_be_a_disk() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    shell(&format!(
        "cd {}; qemu-img create -qf qcow2 a.qcow2 1M; xz a.qcow2; echo a > a; tar czf a.tar.gz a; \
         gzip -c a.tar.gz | zstd -q > twice.zst; printf 'PK\\003\\004' | xz > a.zip.xz",
        home.path().display()
    ));
    for (name, words) in [
        ("a.qcow2.xz", "a qcow2 image compressed with xz"),
        ("a.tar.gz", "a tar archive compressed with gzip"),
        ("twice.zst", "data compressed with gzip compressed with zstd"),
        ("a.zip.xz", "a ZIP archive compressed with xz"),
    ] {
        let error = open(&path(name), true, DiskFormat::Auto).unwrap_err();
        assert!(error.contains(words) && error.contains("decompress it"), "{error}");
    }
    for name in ["empty.gz", "empty.xz", "empty.zst"] {
        let program = name.rsplit('.').next().unwrap().replace("gz", "gzip").replace("zst", "zstd");
        shell(&format!("{program} -c < /dev/null > {}", path(name)));
        let error = open(&path(name), true, DiskFormat::Auto).unwrap_err();
        assert!(error.contains("nothing in it"), "{name}: {error}");
    }
}

#[test]
fn changed_files_are_an_error_or_other_bytes() {
    let home = tempfile::tempdir().unwrap();
    let raw = raw(home.path(), "raw", &content(45)[..1 << 20]);
    let image = home.path().join("packed").display().to_string();
    let mut random = fastrand::Rng::with_seed(46);
    for way in WAYS {
        pack(way, &raw, &image);
        let sound = fs::read(&image).unwrap();
        for round in 0..40 {
            let mut changed = sound.clone();
            for _ in 0..random.usize(1..4) {
                let front = [32, 512, sound.len()][random.usize(..3)].min(sound.len());
                let at = match random.bool() {
                    true => sound.len() - 1 - random.usize(..front),
                    false => random.usize(..front),
                };
                let length = random.usize(1..5).min(sound.len() - at);
                random.fill(&mut changed[at..at + length]);
            }
            if round % 8 == 0 {
                changed.truncate(random.usize(..sound.len()));
            }
            fs::write(&image, &changed).unwrap();
            let looked = catch_unwind(AssertUnwindSafe(|| {
                if let Ok(device) = open(&image, true, DiskFormat::Auto)
                    && device.capacity() <= Sector(1 << 16)
                {
                    let _ = bytes(&*device);
                }
            }));
            assert!(looked.is_ok(), "{way}: round {round} panics");
        }
    }
}
