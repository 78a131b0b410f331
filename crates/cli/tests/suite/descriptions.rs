//! Descriptions of trees on the command line: built from, and written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::run::{fails, succeeds, undercroft};

/// A directory with a tree in it, and paths beside the tree.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.at("tree/dir")).unwrap();
        fs::write(home.at("tree/dir/file"), vec![5; 200_000]).unwrap();
        fs::write(home.at("tree/odd name\n"), "odd").unwrap();
        fs::hard_link(home.at("tree/dir/file"), home.at("tree/name")).unwrap();
        symlink("dir/file", home.at("tree/link")).unwrap();
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }
}

#[test]
fn a_tree_and_its_descriptions_give_the_same_bytes() {
    let home = Home::new();
    let (tree, image, again) = (home.path("tree"), home.path("image"), home.path("again"));
    succeeds(["build", &tree, &image]);
    for format in ["mtree", "composefs"] {
        let text = home.path(format);
        // Of the directory, the archive and the volume alike.
        let said = succeeds(["describe", "--format", format, &tree]);
        succeeds(["describe", "--format", format, &image, "--output", &text]);
        assert_eq!(said, fs::read_to_string(&text).unwrap());
        let archive = home.path("archive");
        let tar = undercroft(["extract", &image, "-"]).stdout;
        fs::write(&archive, tar).unwrap();
        assert_eq!(succeeds(["describe", "--format", format, &archive]), said);
        let source = format!("{format}:{text}");
        succeeds(["build", "--force", "--contents", &tree, &source, &again]);
        assert!(fs::read(&image).unwrap() == fs::read(&again).unwrap(), "{format}");
        // A description of a description is itself.
        let once_more = home.path("once-more");
        succeeds(["build", "--force", "--contents", &tree, &source, &once_more]);
        assert_eq!(succeeds(["describe", "--format", format, &once_more]), said);
    }
}

#[test]
fn json_has_an_object_a_line() {
    let home = Home::new();
    let text = succeeds(["describe", "--format", "json", &home.path("tree")]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["/", "/dir", "/dir/file", "/link", "/name", "/odd name\n"]);
    assert_eq!(lines[2]["size"], 200_000);
    assert_eq!(lines[2]["links"], 2);
    assert_eq!(lines[4]["link_to"]["name"], "/dir/file");
    assert_eq!(lines[3]["target"]["name"], "dir/file");
    let digest = "990cb8ebd0afb7150da453a213036a92f2c05e091df0d803e62d257ea7796c27";
    assert_eq!(lines[5]["sha256"], digest);
}

#[test]
fn rules_work_over_descriptions() {
    let home = Home::new();
    fs::write(home.at("text"), ". type=dir mode=755\n./x type=fifo mode=600\n").unwrap();
    let source = format!("mtree:{}", home.path("text"));
    let image = home.path("image");
    succeeds(["build", "--chown", "7:8", "/x", "--mkdir", "/new", &source, &image]);
    let listed = succeeds(["ls", "-l", &image]);
    assert!(listed.contains(" 7     8 ") && listed.contains("new"), "{listed}");
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_leaves_nothing() {
    let home = Home::new();
    let (tree, image) = (home.path("tree"), home.path("image"));
    let digest = "0".repeat(64);
    fs::write(
        home.at("text"),
        format!(". type=dir mode=755\n./name type=file mode=644 sha256digest={digest}\n"),
    )
    .unwrap();
    let source = format!("mtree:{}", home.path("text"));
    let said = fails(1, ["build", "--contents", &tree, &source, &image]);
    assert!(said.contains("line 2: \"name\" has the SHA-256 digest"), "{said}");
    let said = fails(1, ["build", &source, &image]);
    assert!(said.contains("line 2") && said.contains("--contents DIR"), "{said}");
    let said = fails(1, ["build", "--contents", &tree, &tree, &image]);
    assert!(said.contains("contents elsewhere are for descriptions"), "{said}");
    let said = fails(1, ["build", "--contents", &home.path("absent"), &source, &image]);
    assert!(said.contains("absent"), "{said}");
    fails(1, ["build", "mtree:/nonexistent", &image]);
    fs::write(home.at("text"), "./a type=fifo mode=644 flags=schg\n").unwrap();
    let warned = undercroft(["build", &source, &image]);
    let said = String::from_utf8(warned.stderr).unwrap();
    assert!(warned.status.success() && said.contains("flags is not followed"), "{said}");
    fs::remove_file(&image).unwrap();
    let said = fails(1, ["build", "--strict", &source, &image]);
    assert!(said.contains("line 1: the keyword flags"), "{said}");
    assert!(!Path::new(&image).exists());
}

#[test]
fn output_is_a_new_file_and_bad_sources_make_none() {
    let home = Home::new();
    let (tree, text) = (home.path("tree"), home.path("text"));
    succeeds(["describe", "--format", "mtree", &tree, "--output", &text]);
    let before = fs::read(&text).unwrap();
    let again = ["describe", "--format", "json", &tree, "--output", &text];
    assert!(fails(1, again).contains("--force"));
    assert_eq!(fs::read(&text).unwrap(), before);
    succeeds(again.iter().chain(&["--force"]));
    let other = home.path("other");
    fails(1, ["describe", "--format", "json", &home.path("absent"), "--output", &other]);
    assert!(!Path::new(&other).exists());
    fails(2, ["describe", &tree]);
    fails(2, ["describe", "--format", "tar", &tree]);
}
