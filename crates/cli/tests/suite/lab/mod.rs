//! `undercroft lab` as people run it: records, tables and pictures of the same run.

mod age;
mod extremes;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::run::undercroft;

fn lab(args: &[&str]) -> Output {
    undercroft([&["lab"], args].concat())
}

#[track_caller]
fn succeeds(args: &[&str]) -> String {
    crate::run::succeeds([&["lab"], args].concat())
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
    assert!(picture.contains(">tags: the herd; ") && picture.contains(">tags: one hardware queue"));
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

/// A report of all experiments in their smoke size, which takes long: it is made once for all tests
/// that look at one.
pub(crate) fn report() -> &'static str {
    static REPORT: LazyLock<String> = LazyLock::new(|| {
        let directory = tempfile::tempdir().unwrap();
        let page = directory.path().join("report.html");
        succeeds(&["report", "--smoke", "--output", page.to_str().unwrap()]);
        fs::read_to_string(&page).unwrap()
    });
    &REPORT
}

#[test]
fn a_report_is_one_sound_page_with_its_records() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    let text = report();
    fs::write(&page, text).unwrap();
    for outside in ["src=", "href=\"http", "url(", "@import"] {
        assert!(!text.contains(outside), "{outside}");
    }
    for chapter in ["tags-depth", "unplug", "affinity-cached", "alloc-random", "fsync", "iops"] {
        assert!(text.contains(&format!("<section id=\"{chapter}\">")), "{chapter}");
    }
    let tidy = Command::new("tidy").args(["-q", "-e"]).arg(&page).output().unwrap();
    assert!(tidy.status.success(), "{}", String::from_utf8_lossy(&tidy.stderr));

    // Records alone make the same page, and are found in it.
    let records = succeeds(&["report", "--records", page.to_str().unwrap()]);
    let (file, again) = (directory.path().join("records"), directory.path().join("again.html"));
    fs::write(&file, &records).unwrap();
    let from = ["report", "--from", file.to_str().unwrap(), "--output", again.to_str().unwrap()];
    succeeds(&from);
    assert!(fs::read_to_string(&again).unwrap() == text);
    let output = lab(&from);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--force"), "{output:?}");
    assert!(succeeds(&["table", page.to_str().unwrap()]).contains("the herd"));
}

#[test]
fn an_interrupted_report_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    let partial = directory.path().join("report.html.partial");
    let report = ["report", "--smoke", "--output", page.to_str().unwrap()];
    fs::write(&page, self::report()).unwrap();
    let records = succeeds(&["report", "--records", page.to_str().unwrap()]);
    let step_ends = records.find("\"experiment\":\"calibration\"").unwrap();
    let first_step = &records[..=step_ends + records[step_ends..].find('\n').unwrap()];
    fs::remove_file(&page).unwrap();

    fs::write(&partial, first_step).unwrap();
    let output = lab(&report);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--resume"), "{output:?}");
    succeeds(&[&report[..], &["--resume"]].concat());
    let resumed = succeeds(&["report", "--records", page.to_str().unwrap()]);
    assert!(resumed.starts_with(first_step), "the first step has run again");
    assert_eq!(resumed.lines().count(), records.lines().count());
    assert!(!partial.exists());
}

#[test]
fn a_signal_leaves_no_scratch() {
    let home = tempfile::tempdir().unwrap();
    let (page, scratch) = (home.path().join("page"), home.path().join("scratch"));
    fs::create_dir(&scratch).unwrap();
    let mut report = Command::new(env!("CARGO_BIN_EXE_undercroft"));
    report.args(["lab", "report", "--smoke", "--output"]).arg(&page);
    let mut report = report.arg("--scratch").arg(&scratch).spawn().unwrap();
    // A file of a volume, somewhere below.
    let filled = || {
        let inside = |directory: &Path| fs::read_dir(directory).unwrap().flatten().next();
        inside(&scratch).is_some_and(|made| inside(&made.path()).is_some())
    };
    let until = Instant::now() + Duration::from_secs(120);
    while !filled() {
        assert!(report.try_wait().unwrap().is_none() && Instant::now() < until, "no file was made");
        thread::sleep(Duration::from_millis(5));
    }
    let pid = Pid::from_child(&report);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(report.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn records_are_compared_case_by_case() {
    let directory = tempfile::tempdir().unwrap();
    let (file, picture) = (directory.path().join("records"), directory.path().join("ratios.svg"));
    let path = file.to_str().unwrap();
    succeeds(&["iops", "--driver", "null", "--smoke", "--repeat", "3", "--record", path]);
    let plot = ["--plot", picture.to_str().unwrap(), "--fail-slower", "5%"];
    let table = succeeds(&[&["compare", path, path][..], &plot].concat());
    assert!(table.contains("iops, null read of 4096, 1 thread, batch 1"), "{table}");
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
    // A hundredth as fast in each run: found, and the status says so.
    let slower: String = fs::read_to_string(&file).unwrap().lines().map(slowed).collect();
    let other = directory.path().join("slower");
    fs::write(&other, slower).unwrap();
    let output = lab(&["compare", path, other.to_str().unwrap(), "--fail-slower", "5%"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("slower"));
}

/// A record whose runs were a hundredth as fast.
fn slowed(line: &str) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap();
    for rate in record["iops_of_runs"].as_array_mut().unwrap() {
        *rate = (rate.as_f64().unwrap() / 100.0).into();
    }
    format!("{record}\n")
}
