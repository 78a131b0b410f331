//! Directories copied out of a volume.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use undercroft_judges::random;
use undercroft_judges::tree::{Options, compare};

use crate::run::{fails, program, sample, succeeds};

/// Fails for every difference.
#[track_caller]
fn assert_same(left: &Path, right: &Path) {
    let options = Options { limit: 10_000, ..Options::default() };
    let found = compare(left, right, &options).unwrap();
    assert!(found.differences.is_empty(), "{:#?}", found.differences);
}

/// Also over a device that answers late, where reads are begun ahead of their use.
#[test]
fn a_directory_comes_out_as_it_went_in() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir_all(path("tree/a/part")).unwrap();
    let options = random::Options { entries: 400, privileged: false, ..Default::default() };
    let part = home.path().join("tree/a/part");
    random::random_tree(&part, 23, &options).unwrap();
    fs::write(path("tree/outside"), "of no interest").unwrap();
    let image = path("image");
    succeeds(["build", &path("tree"), &image]);
    let late = format!("delay:1ms({image})");
    for (image, name) in [(&image, "copy"), (&late, "late")] {
        // The name is new: it becomes the directory.
        succeeds(["get", "-r", image, "/a/part", &path(name)]);
        assert_same(&part, &home.path().join(name));
        // It is there: the directory is made in it.
        fs::create_dir(path("within")).unwrap();
        succeeds(["get", "--recursive", image, "/a/part/", &path("within")]);
        assert_same(&part, &home.path().join("within/part"));
        fs::remove_dir_all(path("within")).unwrap();
        let archive = path("archive");
        let to = fs::File::create(&archive).unwrap();
        let status = program().args(["get", "-r", image, "/a/part", "-"]).stdout(to).status();
        assert!(status.unwrap().success());
        fs::create_dir(path("unpacked")).unwrap();
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--preserve-permissions", "--xattrs", "--xattrs-include=*"]);
        tar.args(["--file", &archive, "--directory", &path("unpacked")]);
        assert!(tar.stdin(Stdio::null()).status().unwrap().success());
        let odd = |name: &str| fs::read_dir(path(name)).unwrap().count();
        assert_eq!(odd("unpacked"), odd("copy"));
        fs::remove_dir_all(path("unpacked")).unwrap();
    }
}

#[test]
fn what_is_there_stays_unless_it_may_go() {
    let sample = sample(&["--size", "64M"]);
    let image = &sample.image[..];
    let out = sample.path("out");
    fs::create_dir(&out).unwrap();
    let message = fails(1, ["get", image, "/etc", &out]);
    assert!(message.contains("/etc is a directory; use -r"), "{message}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    let summary = succeeds(["get", "-r", "--json", image, "/etc", &out]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let counts = ["files", "directories", "symlinks"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 1]);
    let hosts = Path::new(&out).join("etc/hosts");
    fs::write(&hosts, "changed").unwrap();
    fs::write(Path::new(&out).join("etc/other"), "").unwrap();
    let message = fails(1, ["get", "-r", image, "/etc", &out]);
    assert!(message.contains("is not empty") && message.contains("--force"), "{message}");
    assert_eq!(fs::read_to_string(&hosts).unwrap(), "changed");
    succeeds(["get", "-rf", image, "/etc", &out]);
    assert_eq!(fs::read_to_string(&hosts).unwrap(), "127.0.0.1 localhost\n");
    assert!(Path::new(&out).join("etc/other").exists(), "others stay");
    // A file is copied with -r, too, and the root directory has no name.
    succeeds(["get", "-r", image, "/etc/hosts", &sample.path("hosts")]);
    assert_eq!(fs::read_to_string(sample.path("hosts")).unwrap(), "127.0.0.1 localhost\n");
    succeeds(["get", "-r", image, "/", &sample.path("all")]);
    assert!(Path::new(&sample.path("all")).join("etc/deep").is_dir());
    let message = fails(1, ["get", "-r", image, "/", &out]);
    assert!(message.contains("is not empty"), "{message}");
    fails(2, ["get", "-r", "--json", image, "/etc", "-"]);
}

/// In a shell it sees what is not on the disk yet.
#[test]
fn a_shell_copies_what_it_changed() {
    use std::io::Write;
    let sample = sample(&["--size", "64M"]);
    let (local, out) = (sample.path("local"), sample.path("out"));
    fs::write(&local, vec![7; 1 << 20]).unwrap();
    let text = format!("mkdir /etc/new\nput {local} /etc/new/file\nget -r /etc {out}\n");
    let mut shell = program().args(["shell", &sample.image]).stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
    assert!(fs::read(Path::new(&out).join("new/file")).unwrap() == vec![7; 1 << 20]);
    assert!(Path::new(&out).join("deep").is_dir());
}

/// Messages name the path in the volume.
#[test]
fn damage_is_named_by_its_path_from_the_root() {
    use undercroft_judges::damage::Damage;
    let sample = sample(&["--size", "64M"]);
    let stat = succeeds(["stat", "--json", &sample.image, "/etc/hosts"]);
    let inode = serde_json::from_str::<Value>(&stat).unwrap()["inode"].as_u64().unwrap();
    let select = Box::leak(format!("inode {inode}").into_boxed_str());
    let script = vec![&*select, "write -d core.format 7"].leak();
    Damage { name: "format", script }.apply(Path::new(&sample.image)).unwrap();
    let message = fails(1, ["get", "-r", &sample.image, "etc", &sample.path("out")]);
    assert!(message.contains("/etc/hosts"), "{message}");
}

/// Many files are looked for together; each error comes in its turn.
#[test]
fn many_files_are_printed_in_their_order() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir(path("tree")).unwrap();
    let mut expected = String::new();
    let mut names = Vec::new();
    for number in (0..300).rev() {
        let text = format!("file {number}\n").repeat(number + 1);
        fs::write(home.path().join(format!("tree/{number}")), &text).unwrap();
        expected.push_str(&text);
        names.push(format!("/{number}"));
    }
    let image = path("image");
    succeeds(["build", &path("tree"), &image]);
    for image in [image.clone(), format!("delay:1ms({image})")] {
        let mut words = vec!["cat".to_owned(), image];
        words.extend(names.iter().cloned());
        assert!(succeeds(&words) == expected);
        words.insert(4, "/none".to_owned());
        let output = program().args(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().contains("/none: no such file"));
        let before = expected.find("file 297").unwrap();
        assert!(output.stdout == expected.as_bytes()[..before]);
    }
}
