//! Blocks in use that a crash would bring back to another owner, or to another place in their file,
//! are not overwritten.

use std::sync::Arc;
use undercroft_block::testing::recorder::{Event, Recorder, Unflushed};
use undercroft_testkit::xfs::fsync::work::{contents, create, memory, open, read, write};
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::{self, CloneRange, Size};
use undercroft_xfs::{OpenFile, Volume};

/// An operation on a file.
type Change<'c> = &'c dyn Fn(&OpenFile);

/// An operation on a file behind a cut, here and in a model.
type Continuation<'c> = &'c dyn Fn(&OpenFile, &mut Vec<u8>);

/// Cuts the recording behind every event from the mark on, and opens the disk in each of the states
/// that `states` names; `seen` gets the content of the file, if it is there, and the place of the
/// cut. Returns the number of cuts.
fn cut_everywhere<S: IntoIterator<Item = Unflushed>>(
    recorder: &Recorder,
    states: impl Fn() -> S,
    mut seen: impl FnMut(Option<Vec<u8>>, &str),
) -> usize {
    let mut recording = recorder.recording().unwrap();
    let (mut is_durable, mut cuts) = (false, 0);
    while let Some(event) = recording.step() {
        is_durable |= matches!(event, Event::Mark(_));
        let is_seen = is_durable && recording.has_changed();
        for unflushed in states().into_iter().filter(|_| is_seen) {
            cuts += 1;
            let volume = Arc::new(Volume::open(recording.disk(unflushed)).unwrap());
            let root = volume.inode(volume.geometry().root_inode).unwrap();
            let found = ops::lookup(&volume, &root.read(), b"file").unwrap();
            let bytes = found.map(|found| read(&OpenFile::open(&volume, found).unwrap()));
            seen(bytes, &format!("cut behind event {}, {unflushed:?}", recording.position()));
        }
    }
    cuts
}

/// A cut that tears writes in four ways, and one that keeps them.
fn torn_or_kept() -> impl Iterator<Item = Unflushed> {
    (0..4).map(|seed| Unflushed::Torn { seed }).chain([Unflushed::Kept])
}

/// Blocks that two files have, one of which lets go of them: until that is durable a crash brings it
/// back, so the other must not write to them.
#[test]
fn a_file_that_comes_back_has_its_blocks_as_they_were() {
    let (now, new) = (Timestamp::default(), Arc::new(contents(2, 3000)));
    let write_direct = |other: &OpenFile| other.write_direct(5000, &new, 0..3000, now).unwrap();
    let write_back = |other: &OpenFile| {
        write(other, 5000, &new).unwrap();
        other.truncate(16000, now).unwrap();
    };
    let punch = |other: &OpenFile| other.punch(5000..8000, now).unwrap();
    let zero = |other: &OpenFile| {
        other.zero(4096..12288, Size::Keep, now).unwrap();
        write_direct(other);
    };
    let ways: [(&str, Change<'_>); 4] = [
        ("direct", &write_direct),
        ("written back", &write_back),
        ("punched", &punch),
        ("unwritten", &zero),
    ];
    for (way, change) in ways {
        for removes in [false, true] {
            let cuts = cut_behind_a_clone(way, change, removes);
            assert!(cuts > 10, "{way}: {cuts} cuts");
        }
    }
}

/// Takes blocks from one of two files that share them, changes the other, and cuts that everywhere.
fn cut_behind_a_clone(way: &str, change: Change<'_>, removes: bool) -> usize {
    let recorder = Arc::new(Recorder::with_contents(memory(128 << 20)).unwrap());
    let volume = open(Arc::clone(&recorder) as _, 1 << 20);
    let (now, old) = (Timestamp::default(), contents(1, 16384));
    let (file, other) = (create(&volume, "file"), create(&volume, "other"));
    write(&file, 0, &old).unwrap();
    other.clone_range(&file, &CloneRange { source: 0, target: 0, len: 16384 }, now).unwrap();
    volume.sync_all().wait().unwrap();
    recorder.mark("durable");
    if removes {
        ops::unlink(&volume, volume.geometry().root_inode, b"file", now).unwrap();
    } else {
        file.truncate(4096, now).unwrap();
    }
    file.close().unwrap();
    change(&other);
    drop((volume, other));
    cut_everywhere(&recorder, torn_or_kept, |bytes, cut| {
        let Some(bytes) = bytes else { return };
        assert!(bytes.len() == 4096 || bytes.len() == 16384, "{way}, {cut}: {}", bytes.len());
        assert!(bytes == old[..bytes.len()], "{way}, {cut}: bytes of another file");
    })
}

/// Blocks that moved in their file are not overwritten either before a crash finds them there.
#[test]
fn a_file_that_was_shifted_is_there_as_it_was_or_as_it_became() {
    let recorder = Arc::new(Recorder::with_contents(memory(128 << 20)).unwrap());
    let volume = open(Arc::clone(&recorder) as _, 1 << 20);
    let now = Timestamp::default();
    let (file, mut bytes) = (create(&volume, "file"), contents(1, 32768));
    write(&file, 0, &bytes).unwrap();
    volume.sync_all().wait().unwrap();
    let mut allowed = vec![bytes.clone()];
    recorder.mark("durable");
    for step in 0..4 {
        if step % 2 == 0 {
            file.collapse(0..4096, now).unwrap();
            bytes.drain(..4096);
        } else {
            file.insert(8192..12288, now).unwrap();
            bytes.splice(8192..8192, [0; 4096]);
        }
        allowed.push(bytes.clone());
        // One sector of a block that moved: it is there, or not.
        let (new, at) = (contents(2 + step, 512), if step % 2 == 0 { 512 } else { 12800 });
        file.write_direct(at as u64, &Arc::new(new.clone()), 0..512, now).unwrap();
        bytes[at..at + 512].copy_from_slice(&new);
        allowed.push(bytes.clone());
    }
    drop((volume, file));
    cut_everywhere(
        &recorder,
        || [Unflushed::Dropped, Unflushed::Kept],
        |bytes, cut| {
            assert!(allowed.contains(&bytes.unwrap()), "{cut}: bytes at the wrong place");
        },
    );
}

/// The bytes cut off a file are still there if a crash takes the cut back, whatever was written
/// since.
#[test]
fn a_file_that_was_cut_is_there_as_it_was_or_as_it_became() {
    let (now, old, new) = (Timestamp::default(), contents(1, 9000), contents(2, 700));
    let nothing = |_: &OpenFile, _: &mut Vec<u8>| {};
    let grown = |file: &OpenFile, bytes: &mut Vec<u8>| {
        file.truncate(8000, now).unwrap();
        bytes.resize(8000, 0);
    };
    let behind = |file: &OpenFile, bytes: &mut Vec<u8>| {
        file.write_direct(7000, &Arc::new(new.clone()), 0..700, now).unwrap();
        bytes.resize(7000, 0);
        bytes.extend_from_slice(&new);
    };
    let back = |file: &OpenFile, bytes: &mut Vec<u8>| {
        write(file, bytes.len() as u64, &new).unwrap();
        file.fsync().wait().unwrap();
        bytes.extend_from_slice(&new);
    };
    let ways: [Continuation<'_>; 4] = [&nothing, &grown, &behind, &back];
    for (way, change) in ways.iter().enumerate() {
        let recorder = Arc::new(Recorder::with_contents(memory(128 << 20)).unwrap());
        let volume = open(Arc::clone(&recorder) as _, 1 << 20);
        let (file, mut bytes) = (create(&volume, "file"), old.clone());
        write(&file, 0, &old).unwrap();
        volume.sync_all().wait().unwrap();
        recorder.mark("durable");
        let mut allowed = vec![bytes.clone()];
        bytes.truncate(5000);
        file.truncate(5000, now).unwrap();
        allowed.push(bytes.clone());
        change(&file, &mut bytes);
        assert_eq!(read(&file), bytes, "{way}");
        allowed.push(bytes);
        volume.sync_all().wait().unwrap();
        drop((volume, file));
        let cuts = cut_everywhere(&recorder, torn_or_kept, |bytes, cut| {
            let found = bytes.unwrap();
            assert!(allowed.contains(&found), "way {way}, {cut}: {} bytes", found.len());
        });
        assert!(cuts > 5, "way {way}: {cuts} cuts");
    }
}
