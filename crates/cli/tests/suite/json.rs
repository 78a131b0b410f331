//! What programs are told: answers of the shell, contents, and where damage is.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use undercroft_judges::damage::Damage;

use crate::run::{Sample, fails, program, sample, succeeds, undercroft};

fn volume() -> Sample {
    sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"])
}

#[track_caller]
fn objects(lines: &[u8]) -> Vec<Value> {
    let lines = str::from_utf8(lines).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn script(sample: &Sample, options: &[&str], text: &str) -> Output {
    let mut shell = program();
    shell.args(["shell", "--json", &sample.image]).args(options);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    // One that ended with an error reads no further.
    let _ = shell.stdin.take().unwrap().write_all(text.as_bytes());
    shell.wait_with_output().unwrap()
}

fn name(path: &str) -> Value {
    json!({ "name": path })
}

#[test]
fn dedupe_says_whether_ranges_are_the_same() {
    let sample = volume();
    let (image, local) = (&sample.image[..], sample.path("local"));
    for (path, byte) in [("/a", 1), ("/b", 1), ("/c", 2)] {
        fs::write(&local, [byte; 8192]).unwrap();
        succeeds(["put", image, &local, path]);
    }
    for (path, same, status) in [("/b", true, 0), ("/c", false, 1)] {
        let output = undercroft(["dedupe", "--json", image, "/a", path]);
        assert_eq!(output.status.code(), Some(status));
        let expected = json!({ "source": name("/a"), "path": name(path), "same": same });
        assert_eq!(objects(&output.stdout), [expected]);
        assert_eq!(output.stderr, b"");
    }
    let missing = fails(1, ["dedupe", "--json", image, "/a", "/none"]);
    assert_eq!(objects(missing.as_bytes())[0]["kind"], "not-found");
}

#[test]
fn contents_are_text_or_digits_and_holes_are_left_out() {
    let sample = volume();
    let (image, local) = (&sample.image[..], sample.path("local"));
    // The middle of a character is at the end of the bytes read at a time.
    let text = format!("{}\u{fc}{}", "a".repeat((1 << 20) - 1), "b".repeat(5));
    let file = File::create(&local).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
    file.write_all_at(b"\xff\x00\x01", 4 << 20).unwrap();
    file.set_len(1 << 40).unwrap();
    succeeds(["put", image, &local, "/sparse"]);
    // A file, which could get a hole.
    let answer = sample.path("answer");
    let output = program()
        .args(["cat", "--json", image, "/etc/hosts", "/sparse"])
        .stdout(File::create(&answer).unwrap())
        .status()
        .unwrap();
    assert!(output.success());
    let found = objects(&fs::read(&answer).unwrap());
    let hosts = json!({ "path": name("/etc/hosts"), "offset": 0, "text": "127.0.0.1 localhost\n" });
    assert_eq!(found[0], hosts);
    assert_eq!(found[1], json!({ "path": name("/etc/hosts"), "bytes": 20 }));
    assert_eq!(found.last().unwrap(), &json!({ "path": name("/sparse"), "bytes": 1_u64 << 40 }));
    let pieces = &found[2..found.len() - 1];
    let mut bytes = Vec::new();
    for piece in pieces {
        let offset = piece["offset"].as_u64().unwrap() as usize;
        let content = match (&piece["text"], &piece["hex"]) {
            (Value::String(text), Value::Null) => text.clone().into_bytes(),
            (Value::Null, Value::String(hex)) => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect(),
            _ => panic!("{piece}"),
        };
        assert!(offset >= bytes.len());
        bytes.resize(offset, 0);
        bytes.extend(content);
    }
    assert!(bytes[..text.len()] == *text.as_bytes());
    assert_eq!(bytes[4 << 20..][..3], *b"\xff\x00\x01");
    assert!(
        pieces
            .iter()
            .any(|piece| piece["text"].as_str().is_some_and(|text| text.starts_with('\u{fc}')))
    );
    assert!(bytes.len() < 8 << 20, "holes are left out");
}

#[test]
fn every_command_of_a_shell_answers_with_objects() {
    let sample = volume();
    let text = "mkdir /new # comment\n\n  ls /etc\nstat /etc/hosts\ncat -- /etc/hosts\nget /etc/hosts -\n\
                setxattr /etc user.a \\\n  b\ngetxattr --json /etc\n\
                clone /etc/hosts /copy\ndedupe /etc/hosts /copy\nlabel x\nls --help\n";
    let output = script(&sample, &[], text);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let found = objects(&output.stdout);
    assert!(found.iter().all(Value::is_object));
    let ends: Vec<_> = found
        .iter()
        .filter_map(|object| Some((object["line"].as_u64()?, object["command"].as_str()?)))
        .collect();
    let expected = [
        (1, "mkdir"),
        (3, "ls"),
        (4, "stat"),
        (5, "cat"),
        (6, "get"),
        (7, "setxattr"),
        (9, "getxattr"),
        (10, "clone"),
        (11, "dedupe"),
        (12, "label"),
        (13, "ls"),
    ];
    assert_eq!(ends, expected);
    assert_eq!(found[0], json!({ "line": 1, "command": "mkdir", "outcome": "done" }));
    assert!(found.iter().any(|object| object["text"] == "127.0.0.1 localhost\n"));
    assert!(found.iter().any(|object| object["label"] == name("x")));
    assert!(found.iter().any(|o| o["text"].as_str().is_some_and(|text| text.contains("Usage: "))));
    let names = found.iter().filter(|object| object["path"] == name("/etc/hosts")).count();
    assert!(names >= 4, "{found:?}");
}

#[test]
fn errors_of_a_script_name_their_line() {
    let sample = volume();
    for (text, line, kind, status) in [
        ("mkdir /a\n\nrm /none\nmkdir /b\n", 3, "not-found", 1),
        ("ls /\nbogus\n", 2, "usage", 2),
        ("ls --bogus /\n", 1, "usage", 2),
        ("# a comment\nls 'open\n", 2, "usage", 2),
    ] {
        for options in [&[][..], &["--batch"]] {
            let output = script(&sample, options, text);
            assert_eq!(output.status.code(), Some(status), "{text}");
            let [error] = &objects(&output.stderr)[..] else { panic!("{text}") };
            assert_eq!((&error["line"], &error["kind"]), (&line.into(), &kind.into()), "{error}");
            succeeds(["rm", "-rf", &sample.image, "/a"]);
        }
    }
    // Ranges that differ are no error.
    succeeds(["touch", &sample.image, "/z"]);
    succeeds(["truncate", &sample.image, "/z", "20"]);
    let output = script(&sample, &[], "dedupe /etc/hosts /z\nls /\n");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(1), &b""[..]));
    let found = objects(&output.stdout);
    assert_eq!(found[0]["same"], false);
    assert_eq!(found[1]["outcome"], "findings");
}

/// Writes a field of a structure, with the right checksum; the error of a command that meets it.
fn met(command: &str, damage: &'static [&'static str]) -> Value {
    let sample = volume();
    Damage { name: "field", script: damage }.apply(Path::new(&sample.image)).unwrap();
    let output = script(&sample, &[], command);
    assert_eq!(output.status.code(), Some(1), "{damage:?}");
    let [error] = &objects(&output.stderr)[..] else { panic!("{output:?}") };
    error.clone()
}

#[test]
fn damage_has_a_structure_a_place_and_a_field() {
    let superblock = met("stat /", &["sb 0", "write -d inopblog 9"]);
    assert_eq!(superblock["structure"], "superblock", "{superblock}");
    assert_eq!(
        (&superblock["address"], &superblock["field"]),
        (&json!({"sector": 0}), &"inopblog".into())
    );
    for (script, structure, sector, field) in [
        (&["agf 0", "write -d flfirst 999"][..], "AGF", 1, "flfirst"),
        (&["agi 0", "write -d level 77"], "AGI", 2, "level"),
    ] {
        let error = met("touch /x", script);
        assert_eq!(
            (&error["structure"], &error["kind"]),
            (&structure.into(), &"damaged".into()),
            "{error}"
        );
        assert_eq!(
            (&error["address"]["sector"], &error["field"]),
            (&sector.into(), &field.into()),
            "{error}"
        );
    }
    let inode = met("stat /etc/hosts", &["path /etc/hosts", "write -d core.forkoff 250"]);
    assert_eq!(
        (&inode["structure"], &inode["kind"]),
        (&"inode".into(), &"damaged".into()),
        "{inode}"
    );
    assert!(inode["address"]["inode"].is_u64() && inode["path"] == "/etc/hosts", "{inode}");
    let directory = met("ls /etc", &["path /etc", "write -d u3.sfdir3.list[0].namelen 0"]);
    assert!(directory["structure"].is_string(), "{directory}");
    assert!(directory["address"]["inode"].is_u64(), "{directory}");
    let message = fails(1, ["cat", "--json", &volume().image, "/etc/none"]);
    assert_eq!(objects(message.as_bytes())[0]["path"], "/etc/none");
}
