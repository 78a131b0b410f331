//! Images across several files.

use std::fs;
use std::path::Path;

use undercroft_judges::Xfsprogs;

use crate::run::{fails, succeeds, tree, undercroft};

const SIZE: &str = "--size=64M";
const UUID: &str = "--uuid=00000000-0000-0000-0000-000000000007";

/// Replaces `$` by the directory.
fn stack(home: &Path, text: &str) -> String {
    text.replace('$', &format!("{}/", home.display()))
}

/// The chunks of `legs` in turn.
fn interleaved(legs: &[Vec<u8>], chunk: usize) -> Vec<u8> {
    let rows = legs.iter().map(|leg| leg.len() / chunk).min().unwrap();
    let mut whole = Vec::new();
    for row in 0..rows {
        for leg in legs {
            whole.extend_from_slice(&leg[row * chunk..][..chunk]);
        }
    }
    whole
}

fn read(home: &Path, names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| fs::read(home.join(name)).unwrap()).collect()
}

#[test]
fn the_volume_is_the_same_on_any_stack() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tree = tree(home);
    let plain = stack(home, "$plain");
    succeeds(["build", SIZE, UUID, &tree, &plain]);
    let plain = fs::read(plain).unwrap();

    let stripe = stack(home, "stripe:64k($s0,$s1,$s2,$s3)");
    succeeds(["build", SIZE, UUID, &tree, &stripe]);
    let whole = interleaved(&read(home, &["s0", "s1", "s2", "s3"]), 64 << 10);
    assert!(whole == plain);
    let joined = home.join("joined");
    fs::write(&joined, whole).unwrap();
    Xfsprogs::newest().unwrap().repair_check(&joined).unwrap();

    succeeds(["build", SIZE, UUID, &tree, &stack(home, "linear($l0,file:size=20M($l1),$l2)")]);
    let legs = read(home, &["l0", "l1", "l2"]);
    assert_eq!(legs[1].len(), 20 << 20);
    assert!(legs.concat() == plain);

    let nested = stack(home, "stripe:64k(mirror($m0,$m1),mirror($m2,$m3))");
    succeeds(["build", SIZE, UUID, &tree, &nested]);
    let legs = read(home, &["m0", "m1", "m2", "m3"]);
    assert!(legs[0] == legs[1] && legs[2] == legs[3]);
    assert!(interleaved(&[legs[0].clone(), legs[3].clone()], 64 << 10) == plain);
    // A leg of a mirror stands for the mirror.
    succeeds(["check", &stack(home, "stripe:64k($m1,$m2)")]);
}

#[test]
fn the_volume_is_the_same_past_the_page_cache() {
    // Not in memory, where there is nothing to go past.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home.path();
    let tree = tree(home);
    let plain = stack(home, "$plain");
    succeeds(["build", SIZE, UUID, &tree, &plain]);
    for (name, device) in [("u", "file:direct($u)"), ("t", "file:direct,engine=threads($t)")] {
        let device = stack(home, device);
        succeeds(["build", SIZE, UUID, &tree, &device]);
        assert!(fs::read(home.join(name)).unwrap() == fs::read(&plain).unwrap(), "{device}");
        let listed = succeeds(["ls", "-lR", &device]);
        assert_eq!(listed, succeeds(["ls", "-lR", &plain]));
        assert!(listed.contains("large"));
        succeeds(["check", &device]);
    }
}

#[test]
fn every_command_reads_a_stack() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tree = tree(home);
    let stripe = stack(home, "stripe:4k($a,mirror($b,$c),\"$d, odd\")");
    succeeds(["build", SIZE, &tree, &stripe]);
    let toml = home.join("stack.toml");
    let text = "chunk = 4096\nstripe = [\"a\", { mirror = [\"b\", \"c\"] }, \"d, odd\"]\n";
    fs::write(&toml, text).unwrap();
    for image in [stripe.clone(), format!("@{}", toml.display())] {
        assert!(succeeds(["info", &image]).contains("64.0 MiB"));
        assert_eq!(succeeds(["ls", &image]), "etc\nlarge\n");
        assert!(succeeds(["stat", &image, "/large"]).contains("5000000"));
        assert!(succeeds(["cat", &image, "/large"]) == "\u{3}".repeat(5_000_000));
        assert!(succeeds(["check", &image]).starts_with("clean"));
    }
    let out = home.join("out").display().to_string();
    succeeds(["extract", &stripe, &out]);
    assert_eq!(fs::read(home.join("out/etc/199")).unwrap(), [199; 199 * 50]);

    let empty = stack(home, "linear($x,$y)");
    succeeds(["mkfs", SIZE, &empty]);
    assert!(succeeds(["check", &empty]).starts_with("clean"));
}

#[test]
fn faults_of_a_stack_are_named_with_their_place() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tree = tree(home);
    let message = fails(2, ["info", "stripe:64k(a.img,,b.img)"]);
    assert!(message.contains("character 18: expected a path or a device"), "{message}");
    let message = fails(2, ["info", "@missing.toml"]);
    assert!(message.contains("cannot read the description missing.toml: No such"), "{message}");
    let message = fails(1, ["info", &stack(home, "linear($a,$b)")]);
    assert!(message.contains(&stack(home, "cannot open $a")), "{message}");

    let stripe = stack(home, "stripe:64k($a,$b)");
    succeeds(["build", SIZE, &tree, &stripe]);
    let before = read(home, &["a", "b"]);
    let message = fails(1, ["build", SIZE, &tree, &stack(home, "linear($new,$b)")]);
    assert!(message.contains(&stack(home, "$b exists; use --force")), "{message}");
    assert!(!home.join("new").exists());
    let message = fails(1, ["info", &stack(home, "linear($a,$a)")]);
    assert!(message.contains("more than once"), "{message}");
    let message = fails(1, ["info", &stack(home, "linear(file:size=1G($a),$b)")]);
    assert!(message.contains("the description says 1073741824"), "{message}");
    let small = stack(home, "linear(file:size=10M($x),file:size=10M($y))");
    let message = fails(1, ["build", SIZE, &tree, &small]);
    assert!(message.contains("has 20971520 bytes, the volume needs 67108864"), "{message}");
    assert!(!home.join("x").exists() && !home.join("y").exists());

    // Nothing half: the volume is too small, the old one stays.
    let message = fails(1, ["build", "--force", "--size=17M", UUID, "/usr/bin", &stripe]);
    assert!(message.contains("full") || message.contains("too small"), "{message}");
    assert!(read(home, &["a", "b"]) == before);
    succeeds(["build", "--force", SIZE, &tree, &stripe]);
    assert!(read(home, &["a", "b"]) == before);
}

#[test]
fn statistics_are_a_table_or_json() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tree = tree(home);
    let stripe = stack(home, "stripe:64k($a,$b)");
    let built = undercroft(["build", "--stats", SIZE, &tree, &stripe]);
    assert!(built.status.success());
    let table = String::from_utf8(built.stderr).unwrap();
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["device", "bios", "requests", "mean"]);
    let count = |row: usize, column: usize| rows[row][column].parse::<u64>().unwrap();
    assert!(rows[1][0] == stripe && count(1, 1) > count(1, 2));
    assert_eq!(count(2, 1) + count(3, 1), count(1, 1));
    assert!(table.contains("p99.9"), "{table}");
    let heads: Vec<&str> = rows.iter().find(|row| row[0] == "hardware").unwrap()[2..].to_vec();
    assert_eq!(heads, ["bios", "Q-local", "Q-remote", "C-local", "C-remote"]);
    // Every bio of a leg was started on this CPU or on another one.
    let from = rows.iter().position(|row| row[0] == "hardware").unwrap();
    for leg in [2, 3] {
        let queues = rows[from + 1..].iter().filter(|row| row[0] == rows[leg][0]);
        let sums = queues.fold([0; 2], |[bios, started], row| {
            let number = |back: usize| row[row.len() - back].parse::<u64>().unwrap();
            [bios + number(5), started + number(4) + number(3)]
        });
        assert_eq!(sums, [count(leg, 1); 2], "{table}");
    }

    let checked = succeeds(["check", "--json", "--stats", &stripe]);
    let line = checked.lines().last().unwrap();
    assert!(line.starts_with("{\"statistics\":[{\"device\":\""), "{line}");
    for key in
        ["\"mean_request_bytes\":", "\"merges\":", "\"waits\":", "\"p999\":", "\"queued_remote\":"]
    {
        assert!(line.contains(key), "{line}");
    }
    for command in ["info", "ls"] {
        assert!(!succeeds([command, "--stats", &stripe]).contains("mean size"));
    }
}

#[test]
fn a_leg_of_a_mirror_is_filled_again() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tree = tree(home);
    let device = stack(home, "stripe:64k(mirror($a,$b),mirror($c,$d))");
    let leg = stack(home, "$d");
    succeeds(["build", SIZE, UUID, &tree, &device]);
    let good = read(home, &["a", "b", "c", "d"]);

    // A disk that was replaced.
    fs::remove_file(&leg).unwrap();
    let message = fails(1, ["resync", &device, &leg]);
    assert!(message.contains("does not exist; make it first"), "{message}");
    let file = fs::File::create(&leg).unwrap();
    file.set_len(1 << 20).unwrap();
    let message = fails(1, ["resync", &device, &leg]);
    let expected = format!("{leg} has 1048576 bytes, the other legs of the mirror 33554432; make");
    assert!(message.contains(&expected), "{message}");
    file.set_len(good[3].len() as u64).unwrap();
    let said = succeeds(["resync", &device, &leg]);
    let mirror = stack(home, "mirror($c,$d)");
    assert_eq!(said, format!("{leg} is up to date in {mirror}: 32.0 MiB copied\n"));
    assert!(read(home, &["a", "b", "c", "d"]) == good);
    succeeds(["check", &stack(home, "stripe:64k($b,$d)")]);

    // A leg that missed the writes.
    let without = stack(home, "stripe:64k($a,mirror($c,$d))");
    succeeds(["mkdir", &without, "/new"]);
    let (a, c) = (stack(home, "$a"), stack(home, "$c"));
    assert!(fs::read(&a).unwrap() != good[1]);
    let said = succeeds(["resync", "--json", "--stats", &device, &stack(home, "$b")]);
    assert!(said.contains("\"bytes\":33554432"), "{said}");
    assert!(said.contains("\"bytes_written\":33554432"), "{said}");
    let now = read(home, &["a", "b", "c", "d"]);
    assert!(now[0] == now[1] && now[2] == now[3]);
    assert!(succeeds(["ls", &stack(home, "stripe:64k($b,$d)")]).contains("new"));

    // What cannot be meant.
    let message = fails(2, ["resync", &stack(home, "stripe:64k($a,$c)"), &c]);
    assert!(message.contains("there is no mirror in"), "{message}");
    let message = fails(2, ["resync", &device, &stack(home, "$x")]);
    assert!(message.contains(&format!("choose one of {a}, ")), "{message}");
    let message = fails(1, ["resync", &stack(home, "mirror($a,$a)"), &a]);
    assert!(message.contains("more than once"), "{message}");
    let twice = stack(home, "mirror($a,$a)");
    for args in [&["mkdir", &twice, "/x"][..], &["info", &twice]] {
        let message = fails(1, args);
        assert!(message.contains(&format!("{a} is in the device more than once")), "{message}");
    }
    let message = fails(1, ["resync", &stack(home, "mirror($a)"), &a]);
    assert!(message.contains("one must hold the contents"), "{message}");
    // Legs that are empty, or lost their end, are no copies of a whole one.
    for (name, length, expected) in [
        ("empty", 0, "have no bytes"),
        ("short", 1 << 20, "it has 33554432 bytes, the other legs of the mirror 1048576"),
    ] {
        fs::File::create(home.join(name)).unwrap().set_len(length).unwrap();
        let from = stack(home, &format!("mirror(${name},$b)"));
        let message = fails(1, ["resync", &from, &stack(home, "$b")]);
        assert!(message.contains(expected), "{message}");
    }
    assert!(read(home, &["a", "b", "c", "d"]) == now, "nothing was touched");
}
