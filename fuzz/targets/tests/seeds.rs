//! What fuzzing begins with: sound archives that have everything an archive can have.

use std::io::Cursor;
use undercroft_fuzz_targets::{TARGETS, run, seeds};
use undercroft_source::tar::TarReader;
use undercroft_source::{Entry, Kind, Options};

/// Bytes in which each seed is changed, one at a time.
const CHANGES: usize = 300;

fn made(target: &str) -> Vec<(String, Vec<u8>)> {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("there is room");
    seeds(target, scratch.path()).expect("the programs are installed")
}

/// The entries of an archive whose headers have no checksums.
fn entries(archive: &[u8]) -> Result<Vec<Entry>, String> {
    let archive = undercroft_fuzz_targets::with_checksums(archive);
    let mut reader = TarReader::new("seed", Cursor::new(archive), &Options::default());
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().map_err(|error| error.to_string())? {
        while reader.next_data().map_err(|error| error.to_string())?.is_some() {}
        entries.push(entry);
    }
    Ok(entries)
}

#[test]
fn archives_have_everything() {
    let mut all = Vec::new();
    for (name, archive) in made("tar") {
        let entries = entries(&archive).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(entries.len() > 1, "{name}: {entries:?}");
        // The fuzzer does not cut it.
        assert!(archive.len() <= 32 << 10, "{name}: {} bytes", archive.len());
        all.extend(entries.into_iter().map(|entry| (name.clone(), entry)));
    }
    type Wanted = fn(&Entry) -> bool;
    let wanted: [(&str, usize, Wanted); 8] = [
        ("links", 9, |entry| matches!(entry.kind, Kind::HardLink(_))),
        ("symbolic links", 12, |entry| matches!(entry.kind, Kind::Symlink(_))),
        ("pipes", 9, |entry| entry.kind == Kind::Fifo),
        ("long names", 5, |entry| entry.path.as_bytes().len() > 256),
        (
            "holes",
            6,
            |entry| matches!(&entry.kind, Kind::Regular { size, data } if data.iter().map(|range| range.length).sum::<u64>() < *size),
        ),
        (
            "many pieces",
            2,
            |entry| matches!(&entry.kind, Kind::Regular { data, .. } if data.len() == 40),
        ),
        ("attributes", 3, |entry| entry.xattrs.len() == 2),
        ("large owners", 2, |entry| entry.metadata.uid == 4_000_000_000),
    ];
    for (what, least, is_wanted) in wanted {
        let found = all.iter().filter(|(_, entry)| is_wanted(entry)).count();
        assert!(found >= least, "{found} {what}");
    }
}

#[test]
fn changed_seeds_are_answered() {
    for target in TARGETS {
        for (_, seed) in made(target.name) {
            run(target.name, &seed);
            for change in 0..CHANGES {
                let mut changed = seed.clone();
                let place = change * 7919 % seed.len();
                changed[place] = changed[place].wrapping_add([1, 0x80, 0xff, b'0'][change % 4]);
                run(target.name, &changed);
                run(target.name, &changed[..place]);
            }
        }
    }
}
