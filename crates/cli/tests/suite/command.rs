//! The command as people run it: exit statuses, output, messages.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use undercroft_judges::Xfsprogs;

use crate::run::{fails, program, sample, succeeds};

#[test]
fn a_built_volume_reads_back() {
    let sample =
        sample(&["--label", "twelve bytes", "--owner", "7:4000000000", "--mtime", "@5.25"]);
    assert_eq!(succeeds(["cat", &sample.image, "/etc/hosts"]), "127.0.0.1 localhost\n");
    assert_eq!(succeeds(["ls", &sample.image, "etc"]), "deep\nhosts\nlink\n");
    let all = succeeds(["ls", "-R", &sample.image]);
    assert_eq!(all, "/:\netc\n\n/etc:\ndeep\nhosts\nlink\n\n/etc/deep:\nodd\nname\n");
    let long = succeeds(["ls", "-l", &sample.image, "/etc/link"]);
    let expected = "lrwxrwxrwx   1     7 4000000000            5 1970-01-01T00:00:05.250000000Z \
                    /etc/link -> hosts\n";
    assert_eq!(long, expected);
    let info = succeeds(["info", &sample.image]);
    assert!(info.contains("twelve bytes") && info.contains("clean"), "{info}");
    assert!(info.contains(" parent=1 metadir=0"), "{info}");
    let report = succeeds(["check", &sample.image]);
    assert!(report.starts_with("clean: "), "{report}");
}

#[test]
fn json_has_the_documented_fields() {
    let sample = sample(&[]);
    let tree = sample.path("tree");
    let other = sample.path("other");
    let summary = succeeds(["build", "--json", "--size", "min", &tree, &other]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    for key in ["files", "directories", "bytes", "seconds", "bios", "requests", "peak_rss_bytes"] {
        assert!(summary[key].is_number(), "{key} in {summary}");
    }
    assert_eq!((&summary["files"], &summary["directories"]), (&2.into(), &3.into()));
    let info: Value = serde_json::from_str(&succeeds(["info", "--json", &sample.image])).unwrap();
    assert_eq!((&info["version"], &info["log"]), (&5.into(), &"clean".into()));
    let stat = succeeds(["stat", "--json", &sample.image, "etc/hosts"]);
    let stat: Value = serde_json::from_str(&stat).unwrap();
    assert_eq!((&stat["size"], &stat["extents"]), (&20.into(), &1.into()));
    assert_eq!(stat["parents"][0]["name"], "hosts");
    assert!(stat["birth"].is_string());
    let lines = succeeds(["ls", "-lR", "--json", &sample.image]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["/etc", "/etc/deep", "/etc/hosts", "/etc/link", "/etc/deep/odd\nname"]);
    let check = succeeds(["check", "--json", &sample.image]);
    let check: Value = serde_json::from_str(check.lines().last().unwrap()).unwrap();
    assert_eq!(check["clean"], true);
}

#[test]
fn the_layout_of_a_volume_is_shown_and_drawn() {
    let sample = sample(&[]);
    let text = succeeds(["frag", &sample.image]);
    assert!(text.contains("actual 1, ideal 1, fragmentation factor 0.00%"), "{text}");
    let map = sample.path("map.svg");
    let json = succeeds(["frag", "--all", "--json", "--map", &map, &sample.image]);
    let layout: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&layout["extents"], &layout["extents_ideal"]), (&1.into(), &1.into()));
    assert_eq!(layout["free_by_block"], layout["free_by_size"]);
    let svg = fs::read_to_string(map).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let options = ["--mtime", "@0", "--owner", "0:0"];
    let (first, second) = (sample(&options), sample(&options));
    assert!(fs::read(first.image).unwrap() == fs::read(second.image).unwrap());
}

#[test]
fn exit_statuses_and_remedies() {
    let sample = sample(&[]);
    fails(2, ["build"]);
    fails(2, ["no-such-command"]);
    let message = fails(2, ["build", "--size", "3X", "a", "b"]);
    assert!(message.contains("K, M, G, T, P or E"), "{message}");
    let message = fails(2, ["build", "--feature", "magic=1", "a", "b"]);
    assert!(message.contains("nrext64"), "{message}");
    let message = fails(2, ["build", "--preset", "lts-3.10", "a", "b"]);
    assert!(message.contains("lts-4.19"), "{message}");
    let message = fails(1, ["cat", &sample.image, "/etc/nothing"]);
    assert_eq!(message, "error: /etc/nothing: no such file or directory\n");
    let message = fails(1, ["build", &sample.path("tree"), &sample.image]);
    assert!(message.contains("exists; use --force"), "{message}");
    let message = fails(2, ["mkfs", &sample.path("new")]);
    assert!(message.contains("--size"), "{message}");
    let message = fails(1, ["extract", &sample.image, &sample.path("tree")]);
    assert!(message.contains("not empty"), "{message}");
    let message = fails(1, ["info", "--offset", "1G", &sample.image]);
    assert!(message.contains("behind the end"), "{message}");
}

#[test]
fn an_empty_volume_is_accepted_by_the_judges() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let name = image.display().to_string();
    succeeds(["mkfs", "--size", "64M", "--label", "empty", "--root-mode", "1777", &name]);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
    let root = succeeds(["stat", &name, "/"]);
    assert!(root.contains("drwxrwxrwt (1777)"), "{root}");
    assert_eq!(succeeds(["ls", &name]), "");
    assert!(succeeds(["check", &name]).starts_with("clean"));
    let again = fails(1, ["mkfs", "--size", "64M", &name]);
    assert!(again.contains("--force"), "{again}");
}

#[test]
fn a_stream_goes_out_and_in_again() {
    let sample = sample(&[]);
    let mut out =
        program().args(["extract", &sample.image, "-"]).stdout(Stdio::piped()).spawn().unwrap();
    let copy = sample.path("copy");
    let back =
        program().args(["build", "-", &copy]).stdin(out.stdout.take().unwrap()).output().unwrap();
    assert!(out.wait().unwrap().success() && back.status.success());
    assert_eq!(succeeds(["ls", "-lR", &copy]), succeeds(["ls", "-lR", &sample.image]));
    assert_eq!(succeeds(["cat", &copy, "etc/hosts"]).len(), 20);
}

#[test]
fn a_reader_that_goes_away_gets_no_message() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("large"), vec![b'x'; 8 << 20]).unwrap();
    let image = directory.path().join("image").display().to_string();
    succeeds(["build", &tree.display().to_string(), &image]);
    for args in [["cat", &image, "large"], ["extract", &image, "-"]] {
        let mut child =
            program().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn help_completions_and_manual_pages() {
    let help = succeeds(["--help"]);
    assert!(help.contains("Examples:") && help.contains("Exit status:"), "{help}");
    let commands = "build mkfs info ls stat cat extract check frag put get mkdir rm mv ln mknod chmod \
                    chown touch truncate fallocate clone dedupe extsize setxattr getxattr rmxattr setacl \
                    getacl sync shell";
    for command in commands.split_whitespace() {
        assert!(help.contains(command), "{command}");
        succeeds([command, "--help"]);
    }
    for shell in ["bash", "elvish", "fish", "nushell", "powershell", "zsh"] {
        assert!(succeeds(["completions", shell]).contains("undercroft"));
    }
    assert!(succeeds(["man"]).starts_with(".ie"));
    let pages = tempfile::tempdir().unwrap();
    succeeds(["man", "--all", &pages.path().display().to_string()]);
    assert!(pages.path().join("undercroft-build.1").exists());
}

/// An existing file stays, unless `--force` is given; a volume stays even then.
#[test]
fn pictures_and_experiments_overwrite_nothing() {
    let sample = sample(&[]);
    let image = fs::read(&sample.image).unwrap();
    let there = sample.path("there");
    fs::write(&there, "kept").unwrap();
    for force in [&[][..], &["--force"]] {
        let args = [&["frag", "--map", &sample.image], force, &[&sample.image]].concat();
        assert!(fails(1, args).contains("holds an XFS file system"));
    }
    assert!(fails(1, ["frag", "--map", &there, &sample.image]).contains("--force"));
    assert!(fails(1, ["lab", "alloc", "--smoke", "--keep", &there]).contains("--force"));
    let iops = ["lab", "iops", "--smoke", "--driver", "file-threads", "--file", &there];
    assert!(fails(1, iops).contains("--force"));
    assert_eq!(fs::read(&there).unwrap(), b"kept");
    fs::write(&there, vec![7; 4 << 20]).unwrap();
    let size = ["--file-size", "4M", "--cache", "buffered"];
    let write = [&iops[..], &size, &["--access", "write"]].concat();
    assert!(fails(1, write).contains("--force"));
    succeeds([&iops[..], &size].concat());
    assert!(fs::read(&there).unwrap().iter().all(|byte| *byte == 7));
    let record = ["lab", "tags", "--smoke", "--case", "depth", "--record", &sample.image];
    assert!(fails(1, record).contains("holds an XFS file system"));
    assert!(fs::read(&sample.image).unwrap() == image);

    succeeds(["frag", "--force", "--map", &there, &sample.image]);
    assert!(fs::read_to_string(&there).unwrap().starts_with("<svg"));
}

/// A pipe is told from an image before the command waits for its other end.
#[test]
fn a_pipe_is_no_image() {
    let sample = sample(&[]);
    let pipe = sample.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for args in [&["ls", &pipe][..], &["mkdir", &pipe, "/a"], &["check", &pipe]] {
        assert!(fails(1, args).contains("neither a regular file nor a block device"), "{args:?}");
    }
}
