//! Every reading command on volumes that are damaged or dirty: an answer or an error, never a panic.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use undercroft_judges::damage::{CORPUS, Damage, volume};
use undercroft_judges::{Xfsprogs, image, kernel, rounds};

use crate::run::{crashed, program, sample, succeeds};

/// All ways to read, as arguments after the name of the image.
const READERS: [(&str, &[&str]); 6] = [
    ("info", &[]),
    ("ls", &["-lR"]),
    ("stat", &["files/btree"]),
    ("cat", &["files/punched"]),
    ("extract", &["-"]),
    ("check", &["--json"]),
];

/// Runs a reader; returns the fault of its end.
fn fault(command: &str, image: &Path, args: &[&str]) -> Option<String> {
    let output =
        program().arg(command).arg(image).args(args).stdout(Stdio::null()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let orderly = match output.status.code() {
        Some(0) => true,
        // A check prints its findings on standard output.
        Some(1) => {
            command == "check" || message.starts_with("error: ") || message.contains("\nerror: ")
        }
        _ => false,
    };
    (!orderly || message.contains("panicked")).then(|| format!("{command}: {message}"))
}

#[test]
fn damaged_volumes_never_make_a_reader_panic() {
    if !kernel::available_or_report() {
        return;
    }
    let (directory, original) = volume().unwrap();
    let copy = directory.path().join("copy.img");
    let mut faults = Vec::new();
    for (number, damage) in CORPUS.iter().enumerate() {
        image::copy(&original, &copy).unwrap();
        damage.apply(&copy).unwrap();
        // Two of the readers in turn, and all of them in a soak.
        let readers = READERS.iter().skip(number % rounds(3, 1)).step_by(rounds(3, 1));
        for (command, args) in readers {
            faults
                .extend(fault(command, &copy, args).map(|what| format!("{}: {what}", damage.name)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn reading_changes_nothing_and_a_dirty_volume_is_read_with_a_note() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (mounted, dirty) = (directory.path().join("mounted"), directory.path().join("dirty"));
    Xfsprogs::newest().unwrap().mkfs(&mounted, 64 << 20, &[]).unwrap();
    crashed(&mounted, &dirty);

    let before = fs::read(&dirty).unwrap();
    let output = program().args(["info", &dirty.display().to_string()]).output().unwrap();
    assert!(output.status.success());
    let (text, note) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("dirty"), "{text}");
    assert!(note.contains("journal was replayed in memory"), "{note}");
    let output = program().args(["info", "--no-replay"]).arg(&dirty).output().unwrap();
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(note.contains("journal was not replayed"), "{note}");
    for (command, args) in [("ls", &["-lR"][..]), ("extract", &["-"]), ("check", &[])] {
        assert_eq!(fault(command, &dirty, args), None);
    }
    assert!(before == fs::read(&dirty).unwrap());
    // The same volume after it was unmounted.
    let output = program().args(["cat", &mounted.display().to_string(), "early"]).output().unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"early"[..], &b""[..]));
}

#[test]
fn a_warning_is_called_so_and_leaves_the_volume_clean() {
    let sample = sample(&[]);
    let shorten = Damage { name: "size", script: &["path /etc/hosts", "write -d core.size 0"] };
    shorten.apply(Path::new(&sample.image)).unwrap();
    let text = succeeds(["check", &sample.image]);
    assert!(text.starts_with("warning: ") && text.contains("\nclean, 1 warnings: "), "{text}");
    let json = succeeds(["check", "--json", &sample.image]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["severity"], "warning", "{json}");
    assert_eq!((&lines[1]["warnings"], &lines[1]["clean"]), (&1.into(), &true.into()), "{json}");
}
