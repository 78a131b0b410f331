//! Extracting what the destination cannot hold.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use undercroft_judges::random;

use crate::run::succeeds;

#[test]
fn files_larger_than_the_destination_allows_are_named_and_the_others_extracted() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir_all(path("tree/directory")).unwrap();
    fs::write(path("tree/before"), "before").unwrap();
    fs::write(path("tree/data"), vec![7; 3 << 20]).unwrap();
    fs::hard_link(path("tree/data"), path("tree/directory/another-name")).unwrap();
    fs::write(path("tree/directory/inside"), "inside").unwrap();
    fs::write(path("tree/later"), "later").unwrap();
    let image = path("image");
    succeeds(["build", &path("tree"), &image]);
    succeeds(["touch", &image, "/hole"]);
    succeeds(["truncate", &image, "/hole", "9223372036854775807"]);

    // Blocks of 512 bytes: a mebibyte. The signal alone would end the program.
    let limited = "ulimit -f 2048; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_undercroft")]);
    command.args(["extract", "--json", &image, &path("out")]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    let errors: Vec<Value> =
        message.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let errors: Vec<&str> = errors.iter().map(|line| line["error"].as_str().unwrap()).collect();
    for (name, size) in
        [("data", 3 << 20), ("directory/another-name", 3 << 20), ("hole", i64::MAX as u64)]
    {
        let start = format!("{name} was not extracted: it has {size} bytes, ");
        assert!(errors.iter().any(|error| error.starts_with(&start)), "{message}");
        assert!(!home.path().join("out").join(name).exists(), "{name}");
    }
    assert_eq!(errors.last(), Some(&"3 files were not extracted"));
    for (name, content) in
        [("before", "before"), ("directory/inside", "inside"), ("later", "later")]
    {
        let found = fs::read_to_string(home.path().join("out").join(name)).unwrap();
        assert_eq!(found, content);
    }
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["files"], &summary["files_not_made"]), (&3.into(), &3.into()));
    assert_eq!(&summary["hard_links"], 0);
}

/// Over a device that answers late, reads are begun ahead of their use.
#[test]
fn a_late_device_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir(path("tree")).unwrap();
    let options = random::Options { entries: 600, privileged: false, ..Default::default() };
    random::random_tree(&home.path().join("tree"), 11, &options).unwrap();
    let image = path("image");
    succeeds(["build", &path("tree"), &image]);
    let late = format!("delay:1ms({image})");
    let output = |words: &[&str], image: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undercroft"));
        let words: Vec<_> = words.iter().map(|word| word.replace("IMAGE", image)).collect();
        let output = command.args(&words).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    for words in [
        &["extract", "IMAGE", "-"][..],
        &["ls", "-lR", "IMAGE"],
        &["frag", "IMAGE"],
        &["check", "IMAGE"],
    ] {
        assert!(output(words, &image) == output(words, &late), "{words:?}");
    }
}
