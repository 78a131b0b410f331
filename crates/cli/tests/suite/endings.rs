//! How runs end: exit statuses, standard output that fails, and the causes that messages name.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::run::{Sample, fails, program, sample, succeeds, undercroft};

fn volume() -> Sample {
    sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"])
}

/// Runs a program with standard output redirected as the shell says, which gets the image as `$1`.
fn redirected(sample: &Sample, script: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_undercroft");
    let mut shell = Command::new("sh");
    shell.args(["-c", script, program, &sample.image]).stdin(Stdio::null());
    shell.output().unwrap()
}

/// Overwrites the magic of an inode.
pub(crate) fn damage_inode(sample: &Sample, path: &str) {
    let stat = succeeds(["stat", "--json", &sample.image, path]);
    let stat: Value = serde_json::from_str(&stat).unwrap();
    // In group 0 of a volume with eight inodes a block, the number is the place.
    let number = stat["inode"].as_u64().unwrap();
    let image = File::options().write(true).open(&sample.image).unwrap();
    image.write_all_at(b"XX", number * 512).unwrap();
}

#[test]
fn values_that_no_volume_could_take_are_wrong_usage() {
    let sample = volume();
    let image = &sample.image[..];
    let new = sample.path("new");
    let long = format!("/{}", "n".repeat(256));
    for args in [
        &["mkfs", &new][..],
        &["mkfs", "--size", "1M", &new],
        &["mkfs", "--size", "64M", "--agcount", "0", &new],
        &["mkfs", "--size", "64M", "--block-size", "3000", &new],
        &["mkfs", "--size", "64M", "--label", "thirteen byte", &new],
        &["mkfs", "--size", "64M", "--log-size", "1K", &new],
        &["build", "--size", "64M", "--sector-size", "1K", &sample.path("tree"), &new],
        &["label", image, "thirteen byte"],
        &["set", "--label", "thirteen byte", image],
        &["mkdir", image, &long],
        &["ln", image, "-s", "", "/x"],
        &["mknod", image, "/x", "c"],
        &["mknod", image, "/x", "p", "1", "1"],
        &["mknod", image, "/x", "c", "16384", "0"],
        &["mknod", image, "/x", "c", "0", "262144"],
        &["fallocate", image, "--length", "0", "/etc/hosts"],
        &["truncate", image, "/etc/hosts", "15E"],
        &["setxattr", image, "/etc", &format!("user.{}", "n".repeat(300)), "x"],
        &["setacl", image, "/etc", "u:root:r"],
        &["resync", image, image],
    ] {
        let message = fails(2, args);
        assert!(message.starts_with("error: ") && !message.contains("panicked"), "{message}");
    }
    // What depends on the volume is a failure.
    for args in [
        &["mkdir", image, "/etc"][..],
        &["mv", image, "/etc", "/etc/deep"],
        &["grow", "--size", "32M", image],
        &["mkfs", "--size", "64M", image],
    ] {
        fails(1, args);
    }
    let mut dated = program();
    dated.env("SOURCE_DATE_EPOCH", "soon").args(["mkdir", image, "/x"]);
    assert_eq!(dated.output().unwrap().status.code(), Some(2));
    assert!(succeeds(["check", image]).starts_with("clean"));
}

/// Who reads the first lines alone is no failure of who writes them, whatever they are.
#[test]
fn output_that_is_not_read_to_its_end_is_no_failure() {
    let sample = volume();
    let local = sample.path("local");
    fs::write(&local, vec![b'x'; 8 << 20]).unwrap();
    succeeds(["put", &sample.image, &local, "/large"]);
    for command in ["extract \"$1\" -", "cat \"$1\" /large", "get -r \"$1\" / -", "ls -R \"$1\""] {
        let script = format!("{{ \"$0\" {command}; echo $? >&2; }} | head -c 10 >/dev/null");
        let output = redirected(&sample, &script);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n", "{command}");
    }
}

/// A reader of the first lines only is told, too, that there are faults.
#[test]
fn a_check_that_is_cut_off_keeps_its_verdict() {
    let sample = volume();
    for (faults, expected) in [(false, 0), (true, 1)] {
        if faults {
            damage_inode(&sample, "/etc");
        }
        let mut check = program();
        check.args(["check", &sample.image]).stdout(Stdio::piped());
        let mut check = check.stderr(Stdio::null()).spawn().unwrap();
        drop(check.stdout.take());
        let faulty = undercroft(["check", &sample.image]).status.code();
        assert_eq!(faulty, Some(expected));
        assert_eq!(check.wait().unwrap().code(), Some(expected));
    }
}

#[test]
fn standard_output_is_to_blame_for_its_own_failures() {
    let sample = volume();
    let full = "error: cannot write to standard output: No space left on device (os error 28)\n";
    let closed = "error: cannot write to standard output: Bad file descriptor (os error 9)\n";
    for command in [
        "ls -lR \"$1\"",
        "cat \"$1\" /etc/hosts",
        "info \"$1\"",
        "check \"$1\"",
        "extract \"$1\" -",
    ] {
        for (to, expected) in [("/dev/full", full), ("&-", closed)] {
            let output = redirected(&sample, &format!("\"$0\" {command} >{to}"));
            assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{command} >{to}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
    // A command without output needs none; /dev/null is a place to print to, however it was opened.
    for command in ["mkdir \"$1\" /new >&-", "ls \"$1\" >/dev/null", "ls \"$1\" 1<>/dev/null"] {
        let output = redirected(&sample, &format!("\"$0\" {command}"));
        assert!(output.status.success(), "{command}");
    }
}

#[test]
fn the_side_that_failed_is_named() {
    let sample = volume();
    let message = fails(1, ["put", &sample.image, "/dev/zero", "/x"]);
    assert!(
        message.starts_with("error: cannot write /x: no space left on the volume"),
        "{message}"
    );
    let message = fails(1, ["fallocate", &sample.image, "--length", "100T", "/etc/hosts"]);
    let needed = (100_u64 << 40) / 4096;
    assert!(message.contains("/etc/hosts: 100.0 TiB asked for, "), "{message}");
    assert!(message.contains(&format!(": {needed} more blocks of 4096 bytes needed")), "{message}");
    let free = message.split("asked for, ").nth(1).unwrap().split(" MiB free").next().unwrap();
    assert!((20.0..64.0).contains(&free.parse::<f64>().unwrap()), "{message}");
    assert_eq!(succeeds(["cat", &sample.image, "/etc/hosts"]).len(), 20);
    assert!(succeeds(["check", &sample.image]).starts_with("clean"));
}

#[test]
fn long_paths_and_lines_lose_their_middles() {
    let sample = volume();
    let path = format!("/{}", "deep".repeat(60));
    let message = fails(1, ["cat", &sample.image, &path]);
    assert!(message.len() < 300 && message.starts_with("error: /deepdeep"), "{message}");
    assert!(message.contains("...") && message.contains("deep: no such file"), "{message}");
    let message = fails(2, ["ls", &sample.image, &format!("--{}", "x".repeat(100_000))]);
    assert!(message.len() < 2000 && message.contains("xx...xx"), "{message}");
    // A script that is one line of ten megabytes, as a command and as a path.
    for begin in ["", "rm /"] {
        let mut shell = program();
        shell.args(["shell", &sample.image]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut script = shell.stdin.take().unwrap();
        script
            .write_all(format!("ls /etc\n{begin}{}\n", "y".repeat(10_000_000)).as_bytes())
            .unwrap();
        drop(script);
        let output = shell.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.starts_with("error: line 2 of the script: "), "{}", message.len());
        assert!(message.len() < 2000 && message.contains("yy...yy"), "{}", message.len());
    }
}

/// The image is sparse: it takes room where it lies when it is changed, also when something goes.
#[test]
fn a_full_host_is_told_from_a_full_volume() {
    let sample = volume();
    let place = sample.path("place");
    fs::create_dir(&place).unwrap();
    let script = r#"
        mount -t tmpfs -o size=12M test "$1" && cd "$1" || exit 9
        "$0" mkfs --size 64M i.img >/dev/null || exit 9
        head -c 1M /dev/zero >file && "$0" put i.img file /a || exit 9
        cat /dev/zero >fill 2>/dev/null
        "$0" put i.img file /b; echo $? >&2
        "$0" rm i.img /a; echo $? >&2
        rm fill file
        # What failed may be done nevertheless: it had reached the journal.
        "$0" rm -f i.img /a 2>/dev/null && "$0" check i.img"#;
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_undercroft"), &place]);
    let output = shell.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with("note: ")).collect();
    let [put, "1", rm, "1"] = lines[..] else { panic!("{message}") };
    for error in [put, rm] {
        assert!(error.contains("no space left on the file system that holds "), "{error}");
        assert!(error.contains("make room there") && !error.contains("sector"), "{error}");
    }
    assert!(!put.contains("cannot read") && rm.contains("holds i.img: "), "{message}");
    let check = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && check.contains("clean: "), "{check}{message}");
}

/// The JSON of an error, which is all of standard error.
#[track_caller]
fn error(status: i32, args: &[&str]) -> Value {
    let message = fails(status, args);
    assert_eq!(message.lines().count(), 1, "{message}");
    serde_json::from_str(&message).unwrap_or_else(|error| panic!("{error}: {message}"))
}

#[test]
fn errors_are_json_where_answers_are() {
    let sample = volume();
    let image = &sample.image[..];
    let missing = error(1, &["stat", "--json", image, "/etc/none"]);
    assert_eq!((&missing["kind"], &missing["path"]), (&"not-found".into(), &"/etc/none".into()));
    assert_eq!(missing["error"], "/etc/none: no such file or directory");
    let no_image = error(1, &["info", "--json", &sample.path("none")]);
    assert_eq!(no_image["kind"], "not-found");
    let usage = error(2, &["ls", "--json", "--bogus", image]);
    assert_eq!(usage["kind"], "usage");
    assert!(usage["error"].as_str().unwrap().contains("--bogus"), "{usage}");
    // Behind `--` it is a path.
    assert!(fails(1, ["cat", image, "--", "--json"]).starts_with("error: "));

    damage_inode(&sample, "/etc");
    let damaged = error(1, &["ls", "--json", image, "/etc"]);
    assert_eq!(damaged["kind"], "damaged", "{damaged}");
    assert!(damaged["structure"].is_string() && damaged["address"].is_object(), "{damaged}");
}

/// Of what prints JSON, everything is one object a line; nothing is something, too.
#[test]
fn answers_are_one_object_a_line() {
    let sample = volume();
    let image = &sample.image[..];
    for args in [
        &["info"][..],
        &["stat", "/etc"],
        &["getacl", "/etc"],
        &["getxattr", "/etc"],
        &["label"],
        &["frag"],
        &["replay"],
        &["set", "--label", "new"],
        &["grow", "--size", "100M"],
    ] {
        let (verb, rest) = args.split_first().unwrap();
        let answer = succeeds([verb, "--json", image].iter().chain(rest));
        assert_eq!(answer.lines().count(), 1, "{args:?}: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer.is_object(), "{args:?}");
    }
    succeeds(["setacl", image, "/etc", "u::rwx,u:7:r,g::r,o::-"]);
    succeeds(["setacl", "-d", image, "/etc", "u::rwx,g::r,o::-"]);
    let lists: Value =
        serde_json::from_str(&succeeds(["getacl", "--json", image, "/etc"])).unwrap();
    assert_eq!(lists["access"][1], "user:7:r--");
    assert_eq!(lists["default"].as_array().unwrap().len(), 3);
    let none = succeeds(["getxattr", "--json", image, "/etc/hosts"]);
    assert_eq!(none, "{\"path\":{\"name\":\"/etc/hosts\"},\"attributes\":[]}\n");
}

/// What an error says that is needed is what the least volume takes.
#[test]
fn the_size_that_is_needed_is_that_of_the_least_volume() {
    let sample = volume();
    let (tree, image) = (sample.path("tree"), sample.path("least"));
    fs::write(format!("{tree}/large"), vec![7; 30 << 20]).unwrap();
    let message = fails(1, ["build", "--size", "20M", &tree, &image]);
    let needed = message.split("the source needs ").nth(1).unwrap().split(' ').next().unwrap();
    succeeds(["build", "--size", "min", &tree, &image]);
    assert_eq!(fs::metadata(&image).unwrap().len().to_string(), needed, "{message}");
    let message = fails(2, ["mkfs", "--size", "1M", &sample.path("new")]);
    let least = message.split("the range is ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(message.contains("use a size within it"), "{message}");
    succeeds(["mkfs", "--size", least, &sample.path("new")]);
}
