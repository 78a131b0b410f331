//! `undercroft diff`, and `build --verify`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Stdio;

use crate::run::{Sample, fails, program, sample, succeeds, undercroft};

/// A volume, its tree, and a tree with some changes.
fn changed() -> (Sample, String, String) {
    let sample = sample(&[]);
    let (tree, other) = (sample.path("tree"), sample.path("other"));
    let copied = std::process::Command::new("cp").args(["-a", &tree, &other]).status().unwrap();
    assert!(copied.success());
    let hosts = File::options().write(true).open(format!("{other}/etc/hosts")).unwrap();
    let times = fs::metadata(format!("{other}/etc/hosts")).unwrap().modified().unwrap();
    hosts.write_all_at(b"X", 4).unwrap();
    hosts.set_modified(times).unwrap();
    hosts.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    let directory = File::open(format!("{other}/etc")).unwrap();
    let times = directory.metadata().unwrap().modified().unwrap();
    fs::remove_file(format!("{other}/etc/link")).unwrap();
    fs::create_dir_all(format!("{other}/etc/new/below")).unwrap();
    directory.set_modified(times).unwrap();
    (sample, tree, other)
}

/// Runs a comparison that finds differences; its output.
#[track_caller]
fn differs(args: &[&str]) -> String {
    let output = undercroft([&["diff"], args].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn differences_are_lines_sorted_by_path() {
    let (sample, tree, other) = changed();
    let image = &sample.image;
    let same = succeeds(["diff", image, &tree]);
    assert!(same.starts_with("the same: 6 names, "), "{same}");
    let text = differs(&[image, &other]);
    let mode = fs::metadata(format!("{tree}/etc/hosts")).unwrap().permissions().mode() & 0o777;
    let expected = format!(
        "/etc/hosts: mode {mode:o} -> 600\n/etc/hosts: content from byte 4\n\
         /etc/link: only in {image} (symbolic link)\n/etc/new: only in {other} (directory)\n\
         different: 1 of 5 names changed, 1 only in {image}, 2 only in {other}; "
    );
    assert!(text.starts_with(&expected), "{text}");
    let brief = differs(&["--brief", "--ignore", "mode", image, &other]);
    assert!(brief.starts_with("/etc/hosts: content\n/etc/link: only in "), "{brief}");
    assert_eq!(differs(&["-q", image, &other]), "");
    let rest = ["--ignore", "mode,content", "--exclude", "link", "--exclude", "/etc/new"];
    succeeds([&["diff", image, &other], &rest[..]].concat());
}

#[test]
fn json_has_a_line_for_each_difference_and_a_summary() {
    let (sample, _, other) = changed();
    let text = differs(&["--json", &sample.image, &other]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |change: &str| lines.iter().find(|line| line["change"] == change).unwrap();
    assert_eq!(of("mode")["right"], 0o600);
    assert_eq!(
        (&of("content")["path"]["name"], &of("content")["at"]),
        (&"/etc/hosts".into(), &4.into())
    );
    assert_eq!(of("only")["left"], "symbolic link");
    let summary = lines.last().unwrap();
    assert_eq!((&summary["same"], &summary["only_right"]), (&false.into(), &2.into()));
}

#[test]
fn every_kind_of_tree_can_be_compared() {
    let (sample, tree, other) = changed();
    let archive = sample.path("tree.tar");
    let tar = |arguments: &[&str]| {
        let status = std::process::Command::new("tar").args(arguments).status().unwrap();
        assert!(status.success());
    };
    tar(&["-cf", &archive, "--format=posix", "-C", &tree, "."]);
    succeeds(["diff", &archive, &tree]);
    succeeds(["diff", &sample.image, &format!("tar:{archive}")]);
    succeeds(["diff", &format!("dir:{other}"), &other]);
    // A disk, and its partition in a stack of files.
    let disk = sample.path("disk.img");
    succeeds(["build", "--disk", "gpt", "--partition", "root:xfs", &tree, &disk]);
    succeeds(["diff", "--partition", "1", &disk, &tree]);
    succeeds(["diff", "--partition", "1,1", &disk, &disk]);
    // The only one with a volume is taken by itself.
    succeeds(["diff", &disk, &tree]);
    let stack = format!("stripe:64k({},{})", sample.path("a"), sample.path("b"));
    succeeds(["build", &tree, &stack]);
    succeeds(["diff", &stack, &sample.image]);
    let mut child = program()
        .args(["diff", "-", &sample.image])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(&archive).unwrap()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn trouble_is_status_2() {
    let (sample, tree, _) = changed();
    let missing = sample.path("missing");
    assert!(fails(2, ["diff", &missing, &tree]).contains("missing"));
    assert!(fails(2, ["diff", "-", "-"]).contains("standard input"));
    assert!(fails(2, ["diff", &tree]).contains("<B>"));
    let garbage = sample.path("garbage");
    fs::write(&garbage, [7; 5000]).unwrap();
    assert!(fails(2, ["diff", &garbage, &tree]).contains("garbage"));
    // Damage on the way is trouble, too.
    let image = File::options().write(true).open(&sample.image).unwrap();
    image.write_all_at(&[0xff; 4096], 0).unwrap();
    image.write_all_at(b"XFSB", 0).unwrap();
    assert!(fails(2, ["diff", &sample.image, &tree]).contains("cannot open"));
}

#[test]
fn builds_are_verified_on_request() {
    let (sample, tree, _) = changed();
    let image = sample.path("verified");
    succeeds(["build", "--verify", "--size", "32M", "--uuid", &uuid(), &tree, &image]);
    succeeds(["diff", &image, &tree]);
    let message = fails(2, ["build", "--verify", "-", &sample.path("stream")]);
    assert!(message.contains("save it in a file"), "{message}");
    assert!(!std::path::Path::new(&sample.path("stream")).exists());
}

fn uuid() -> String {
    "6f5a2c1e-0000-4000-8000-000000000001".to_owned()
}
