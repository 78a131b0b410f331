//! Archives and rules in the order of a directory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use undercroft_source::{
    EntryPath, Kind, Links, Options, RuleList, SourceError, SourceOptions, SourceSpec,
};

use crate::collect::{Delivered, drain, open};

fn shell(directory: &Path, line: &str) {
    let output = Command::new("sh").args(["-ec", line]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A tree, and an archive of it in another order, with members that come twice.
const TREE: &str = "mkdir -p tree/a/deep tree/b; cd tree
echo one > a/deep/file; echo two > a.b; ln a.b b/linked; ln -s x a/link; mkfifo b/pipe
head -c 3000000 /dev/urandom > b/large
mkdir ../old; echo old > ../old/a.b; ln ../old/a.b ../old/stays; ln ../old/stays stays
tar -cf ../all.tar --format=posix -C ../old a.b stays
tar -rf ../all.tar --format=posix --no-recursion b/pipe b a/link a/deep/file a.b b/linked b/large a a/deep .
gzip -k ../all.tar";

fn read(path: &Path, options: &SourceOptions) -> Vec<Delivered> {
    let mut source = open(&SourceSpec::Path(path.to_owned()), options).unwrap();
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
    assert!(matches!(source.scan(&mut |_| ()), Err(SourceError::ScanTooLate)));
    let first = drain(source.as_mut()).unwrap();
    source.restart().unwrap();
    let mut all = drain(source.as_mut()).unwrap();
    assert!(first == all);
    let entries: Vec<_> = all.iter().map(|one| one.entry.clone()).collect();
    assert_eq!(scanned, entries);
    let paths: Vec<_> = entries.iter().map(|entry| &entry.path).collect();
    assert!(paths.is_sorted_by(|one, other| one.components().lt(other.components())), "{paths:?}");
    for one in &mut all {
        // Names outside of the tree count in a directory, and names of archives that come in vain.
        one.entry.links = Links::Single;
    }
    all
}

fn sorted(rules: &str, home: &Path) -> SourceOptions {
    let mut list = RuleList::default();
    list.add_text(rules.as_bytes(), "rules", home).unwrap();
    let (exclude, rules) = list.finish().unwrap();
    let reading = Options { exclude, sorted: true, ..Options::default() };
    SourceOptions { rules: Arc::new(rules), ..reading.into() }
}

#[test]
fn an_archive_in_any_order_is_delivered_as_the_directory() {
    let home = tempfile::tempdir().unwrap();
    shell(home.path(), TREE);
    let options = sorted("", home.path());
    let tree = read(&home.path().join("tree"), &options);
    assert_eq!(tree.len(), 11);
    for archive in ["all.tar", "all.tar.gz"] {
        let found = read(&home.path().join(archive), &options);
        assert_eq!(found, tree, "{archive}");
    }
}

#[test]
fn what_rules_add_comes_at_its_place() {
    let home = tempfile::tempdir().unwrap();
    shell(home.path(), TREE);
    fs::write(home.path().join("new"), "new").unwrap();
    let rules = "add new:/a/a\nadd new:/stays\nadd new:/a-/x\nmkdir /z\nsymlink s:/b/new/link\n\
                 mkdir /b\nadd new:/a/deep/z\nexclude large\nchown 1:2 /a/**";
    let options = sorted(rules, home.path());
    let tree = read(&home.path().join("tree"), &options);
    let paths: Vec<_> = tree.iter().map(Delivered::path).collect();
    let expected = "|a|a/a|a/deep|a/deep/file|a/deep/z|a/link|a-|a-/x|a.b|b|b/linked|b/new|\
                    b/new/link|b/pipe|stays|z";
    assert_eq!(paths.join("|"), expected);
    assert_eq!(read(&home.path().join("all.tar"), &options), tree);
    let mut unsorted = options;
    unsorted.reading.sorted = false;
    let mut source = open(&SourceSpec::Path(home.path().join("tree")), &unsorted).unwrap();
    let mut before: Vec<_> = drain(source.as_mut()).unwrap();
    assert_ne!(before.iter().map(Delivered::path).collect::<Vec<_>>(), paths);
    before.sort_by(|one, other| one.entry.path.components().cmp(other.entry.path.components()));
    before.iter_mut().for_each(|one| one.entry.links = Links::Single);
    assert_eq!(before, tree);
    assert!(tree.iter().any(|one| matches!(one.entry.kind, Kind::Symlink(_))));
}

#[test]
fn paths_are_checked() {
    let path = |text: &str| EntryPath::new(text.into()).is_some();
    assert!(path("") && path("a") && path("a/b c/..."));
    for wrong in ["/", "/a", "a/", "a//b", ".", "a/..", "a\0b"] {
        assert!(!path(wrong), "{wrong:?}");
    }
    assert!(path(&"n".repeat(255)) && !path(&"n".repeat(256)));
    assert!(!path(&"abc/".repeat(5000)[..19_999]));
}
