//! `undercroft lab age`: free space by seed, on images and stacks, judged by `xfs_repair -n`.

use serde_json::Value;
use std::path::Path;
use undercroft_judges::Xfsprogs;

use crate::run::{fails, succeeds};

#[track_caller]
fn refused(args: &[&str], why: &str) {
    let message = fails(1, args);
    assert!(message.contains(why), "{args:?}: {message}");
}

#[track_caller]
fn sound(image: &Path) {
    Xfsprogs::newest().unwrap().repair_check(image).unwrap();
}

#[test]
fn random_free_space_is_that_of_the_seed() {
    let directory = tempfile::tempdir().unwrap();
    let image = |name: &str| directory.path().join(name).display().to_string();
    let age = |name: &str, seed: &str| {
        let args = ["--size", "1G", "--agcount", "8", "--hole", "56", "--kept", "17", "--json"];
        let record = succeeds([&["lab", "age", &image(name), "--seed", seed], &args[..]].concat());
        sound(&directory.path().join(name));
        serde_json::from_str::<Value>(&record).unwrap()
    };
    let (first, again, other) = (age("a.img", "7"), age("b.img", "7"), age("c.img", "8"));
    assert_eq!(first["free"], again["free"]);
    assert_ne!(first["free"], other["free"]);
    assert_eq!((&first["experiment"], &first["map"]), (&"age".into(), &"random".into()));
    // 32,768 blocks a group and 37.5 for a hole and the blocks kept behind it.
    let extents = first["free_extents"].as_u64().unwrap();
    assert!((6200..7400).contains(&extents), "{extents}");
    let same = std::fs::read(image("a.img")).unwrap() == std::fs::read(image("b.img")).unwrap();
    assert!(same, "the same seed makes the same bytes");

    // The free space reported by ageing is the one that other tools see.
    let layout: Value =
        serde_json::from_str(&succeeds(["frag", "--json", &image("a.img")])).unwrap();
    assert_eq!(layout["free_by_size"], first["free"]);
    assert_eq!(layout["inodes_with_extents"], 8);
    let below = succeeds(["frag", "--json", "--below", "filler/group-3", &image("a.img")]);
    assert_eq!(serde_json::from_str::<Value>(&below).unwrap()["inodes"], 1);
    refused(&["lab", "age", &image("a.img")], "filler");
}

#[test]
fn an_existing_stack_gets_a_tail_of_short_extents() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let stack = format!("stripe:64k({},{})", path("a.img"), path("b.img"));
    succeeds(["mkfs", &stack, "--size", "1G", "--agcount", "4"]);
    let args = ["--map", "pathological", "--request", "8", "--short", "3000", "--long", "50"];
    let record = succeeds([&["lab", "age", &stack, "--json"], &args[..]].concat());
    let record: Value = serde_json::from_str(&record).unwrap();
    let lines = record["free"].as_array().unwrap();
    let short = lines.iter().find(|line| line["from"] == 4).unwrap();
    // A few were taken for the mapping of the filler.
    assert!((11_900..=12_000).contains(&short["count"].as_u64().unwrap()), "{record}");
    assert!(succeeds(["check", &stack]).starts_with("clean"));
    refused(&["lab", "age", &path("none.img")], "none.img");
    let wide = ["--size", "64M", "--agcount", "2", "--map", "pathological"];
    refused(&[&["lab", "age", &path("small.img")], &wide[..]].concat(), "needs");
}
