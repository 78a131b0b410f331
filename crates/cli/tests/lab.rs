//! `undercroft lab` as people run it: records, tables and pictures of the same run.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn lab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_undercroft")).arg("lab").args(args).output().unwrap()
}

#[track_caller]
fn succeeds(args: &[&str]) -> String {
    let output = lab(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_variant_is_one_record() {
    let args = ["iops", "--driver", "null", "--threads", "1", "--batch", "32", "--json", "--smoke"];
    let lines = succeeds(&args);
    let [line] = lines.lines().collect::<Vec<_>>()[..] else { panic!("not one record: {lines}") };
    let record: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&record["experiment"], &record["driver"]), (&"iops".into(), &"null".into()));
    assert_eq!((&record["threads"], &record["batch"]), (&1.into(), &32.into()));
    assert!(record["iops"].is_number() && record["cpu_ns_per_io"].is_number());
    assert_eq!(record["command"], format!("undercroft lab {}", args.join(" ")));
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_table_made_later_is_the_one_printed_then() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tags.jsonl").display().to_string();
    let run = |case, file: &str| {
        succeeds(&["tags", "--smoke", "--case", case, "--policy", "wake-one", "--record", file])
    };
    let printed = run("herd", &file);
    assert!(printed.contains("the herd") && printed.contains("wake-one"), "{printed}");
    assert_eq!(succeeds(&["table", &file]), printed);

    // Records are added to existing ones.
    let second = run("depth", &file);
    let both = succeeds(&["table", &file]);
    assert_eq!(both, format!("{printed}{second}"));
    let picture = succeeds(&["plot", &file]);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    assert_eq!(picture.matches("font-weight=\"bold\"").count(), 2);
}

#[test]
fn wrong_use_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records");
    fs::write(&file, "no record\n").unwrap();
    let output = lab(&["table", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("line 1 is not a record"), "{message}");
    for wrong in [
        &["tags", "--repeat", "0"][..],
        &["tags", "--seconds", "0"],
        &["tags", "--policy", "wake-two"],
        &["unplug", "--leaves", "0"],
    ] {
        assert_eq!(lab(wrong).status.code(), Some(2), "{wrong:?}");
    }
    assert_eq!(lab(&["iops", "--block", "100"]).status.code(), Some(1));
}
