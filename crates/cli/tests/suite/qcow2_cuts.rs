//! Power cuts under changes of a volume in a qcow2.
//!
//! strace records what the commands do to the file. A cut leaves what was done up to a point: all of it in order
//! if only the program was killed, else what was not synced is there or not, as chance has it. QEMU judges the
//! container, our check the volume.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::run::succeeds;

/// What was done to a file.
enum Change {
    Write(u64, Vec<u8>),
    Zero(u64, u64),
    Length(u64),
    Sync,
}

/// Runs a command of ours under strace; returns what it did to the image.
fn record(home: &Path, image: &str, arguments: &[&str]) -> Vec<Change> {
    let log = home.join("log");
    let calls = "trace=write,pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync";
    let status = Command::new("strace")
        .args(["-f", "-qq", "-xx", "-s", "100000000", "-P", image, "-e", calls, "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_undercroft"))
        .args(arguments)
        .status();
    assert!(status.expect("strace is there").success(), "{arguments:?}");
    let text = fs::read_to_string(log).unwrap();
    let mut begun: Vec<(&str, &str)> = Vec::new();
    let mut changes = Vec::new();
    for line in text.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(front) = call.strip_suffix(" <unfinished ...>") {
            begun.push((thread, front));
        } else if call.starts_with("<... ") {
            // It counts as done where it ended.
            let index = begun.iter().position(|(other, _)| *other == thread).unwrap();
            changes.push(change(begun.remove(index).1));
        } else {
            changes.push(change(call));
        }
    }
    changes
}

/// A call in the words of strace, perhaps without its result.
fn change(call: &str) -> Change {
    let (name, arguments) = call.split_once('(').unwrap();
    let numbers = |text: &str| -> Vec<u64> {
        let text = text.split(')').next().unwrap();
        text.split(", ").filter_map(|word| word.trim().parse().ok()).collect()
    };
    match name {
        "fsync" | "fdatasync" => Change::Sync,
        "ftruncate" => Change::Length(numbers(arguments)[1]),
        "fallocate" => {
            let [.., at, length] = numbers(arguments)[..] else { panic!("{call}") };
            assert!(arguments.contains("PUNCH_HOLE") || arguments.contains("ZERO_RANGE"), "{call}");
            Change::Zero(at, length)
        }
        "pwrite64" | "pwritev" => {
            let pieces: Vec<&str> = arguments.split('"').collect();
            let bytes = pieces.iter().filter(|piece| piece.starts_with("\\x"));
            let bytes = bytes.flat_map(|piece| {
                let digits = piece.split("\\x").skip(1);
                digits.map(|digits| u8::from_str_radix(digits, 16).unwrap())
            });
            let place = numbers(pieces.last().unwrap());
            Change::Write(*place.last().unwrap(), bytes.collect())
        }
        _ => panic!("{name} is not known here"),
    }
}

fn apply(file: &File, change: &Change) {
    match change {
        Change::Write(at, bytes) => file.write_all_at(bytes, *at).unwrap(),
        Change::Zero(at, length) => {
            let end = file.metadata().unwrap().len().min(at + length);
            file.write_all_at(&vec![0; (end - at) as usize], *at).unwrap();
        }
        Change::Length(bytes) => file.set_len(*bytes).unwrap(),
        Change::Sync => {}
    }
}

/// What `qemu-img check` ends with: 0 if all is well, 2 for errors, 3 for leaks alone.
fn check(image: &str, repair: &[&str]) -> Option<i32> {
    let mut program = Command::new("qemu-img");
    let check = program.args(["check", "-q", "-f", "qcow2"]).args(repair);
    check.arg(image).status().unwrap().code()
}

/// Makes an image sound again, as the recipe says. Tables may be there that point behind the end of the file, as
/// what made it longer is not: `qemu-img` can count that only if there is a file.
fn mend(image: &str) {
    if check(image, &["-r", "all"]) != Some(0) {
        let file = File::options().write(true).open(image).unwrap();
        let bytes = file.metadata().unwrap().len();
        file.set_len(bytes + (64 << 20)).unwrap();
        check(image, &["-r", "all"]);
    }
}

/// What must be there after a number of commands.
fn look(image: &str, done: usize) {
    let list = succeeds(["ls", image]);
    let has = |name: &str| list.lines().any(|line| line == name);
    assert!(done < 1 || has("big"), "{done}: {list}");
    assert!(done < 2 || has("made"), "{done}: {list}");
    if done >= 1 {
        assert_eq!(succeeds(["cat", image, "/big"]).len(), 2_000_000);
    }
    if done >= 3 {
        assert_eq!(succeeds(["ls", image, "/etc"]), "");
    }
    if done == 4 {
        assert_eq!(succeeds(["cat", image, "/made/small"]), "small\n");
    }
    succeeds(["check", image]);
}

#[test]
fn what_was_synced_is_there_after_a_cut() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir_all(home.path().join("tree/etc")).unwrap();
    fs::write(home.path().join("tree/etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    fs::write(path("big"), "b".repeat(2_000_000)).unwrap();
    fs::write(path("small"), "small\n").unwrap();
    let (image, cut) = (path("image.qcow2"), path("cut.qcow2"));
    succeeds(["build", "--size=64M", &path("tree"), &image]);
    fs::copy(&image, path("synced")).unwrap();
    let commands: [&[&str]; 4] = [
        &["put", &image, &path("big"), "/big"],
        &["mkdir", &image, "/made"],
        &["rm", &image, "/etc/hosts"],
        &["put", &image, &path("small"), "/made/small"],
    ];
    let synced = File::options().read(true).write(true).open(path("synced")).unwrap();
    let mut random = fastrand::Rng::with_seed(71);
    let (mut changes, mut kills, mut errors) = (0, 0, 0);
    for (done, command) in commands.into_iter().enumerate() {
        let mut since: Vec<Change> = Vec::new();
        for change in record(home.path(), &image, command) {
            let is_sync = matches!(change, Change::Sync);
            since.push(change);
            changes += 1;
            // The program is killed: all is there, in order.
            fs::copy(path("synced"), &cut).unwrap();
            let file = File::options().write(true).open(&cut).unwrap();
            since.iter().for_each(|change| apply(&file, change));
            drop(file);
            let verdict = check(&cut, &[]);
            assert!(matches!(verdict, Some(0 | 3)), "killed: {verdict:?}");
            kills += usize::from(verdict == Some(3));
            look(&cut, done);
            // The power is cut.
            for _ in 0..2 {
                fs::copy(path("synced"), &cut).unwrap();
                let file = File::options().write(true).open(&cut).unwrap();
                since.iter().filter(|_| random.bool()).for_each(|change| apply(&file, change));
                drop(file);
                let is_sound = matches!(check(&cut, &[]), Some(0 | 3));
                errors += usize::from(!is_sound);
                mend(&cut);
                assert_eq!(check(&cut, &[]), Some(0), "the counts are made anew");
                look(&cut, done);
            }
            if is_sync {
                since.drain(..).for_each(|change| apply(&synced, &change));
            }
        }
        since.iter().for_each(|change| apply(&synced, change));
    }
    drop(synced);
    assert!(fs::read(path("synced")).unwrap() == fs::read(&image).unwrap(), "all was recorded");
    look(&image, commands.len());
    assert!(changes > 20, "{changes} changes, {kills} with leaks, {errors} with errors");
    eprintln!("{changes} changes; {kills} leaks when killed, {errors} errors after cuts");
}
