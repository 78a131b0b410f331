//! Same input and options, same bytes.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use undercroft_image::pack::{PackOptions, SizeChoice};
use undercroft_judges::mount::Access;
use undercroft_judges::random::{Options, random_tree};
use undercroft_judges::{LoopMount, Scratch, Xfsprogs, kernel};
use undercroft_source::RuleList;
use uuid::Uuid;

use crate::build::child;
use undercroft_testkit::image::judged::{build, image_of, options};

/// A tree of a few hundred entries of all kinds.
fn tree(home: &Path) -> PathBuf {
    let tree = home.join("tree");
    fs::create_dir(&tree).unwrap();
    random_tree(&tree, 4711, &Options { entries: 400, ..Options::default() }).unwrap();
    tree
}

fn assert_same(left: &Path, right: &Path, what: &str) {
    let [mut left, mut right] = [left, right].map(|path| File::open(path).unwrap());
    let (mut one, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    assert_eq!(left.metadata().unwrap().len(), right.metadata().unwrap().len(), "{what}: length");
    let mut at = 0;
    loop {
        let count = left.read(&mut one).unwrap();
        if count == 0 {
            return;
        }
        right.read_exact(&mut other[..count]).unwrap();
        let differs =
            one[..count].iter().zip(&other[..count]).position(|(one, other)| one != other);
        assert_eq!(differs.map(|place| at + place), None, "{what}: first different byte");
        at += count;
    }
}

#[test]
fn runs_and_threads_do_not_matter() {
    let home = tempfile::tempdir().unwrap();
    let tree = tree(home.path());
    let first = home.path().join("first");
    build(&options(&tree, &first)).unwrap();
    let again = |what: &str, change: &dyn Fn(&mut PackOptions)| {
        let mut options = options(&tree, &home.path().join("again"));
        options.force = true;
        change(&mut options);
        build(&options).unwrap();
        assert_same(&first, image_of(&options), what);
    };
    again("run", &|_| ());
    for threads in 1..=4 {
        let what = format!("{threads} threads");
        again(&what, &|options| options.source_options.reading.threads = threads.try_into().ok());
    }
    again("durable", &|options| options.durable = true);
}

#[test]
fn orders_of_directories_do_not_matter() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| home.path().join(name));
    build(&options(&tree(home.path()), &first)).unwrap();
    // Each kind of file system lists names in an order of its own.
    let volume = Scratch::new(512 << 20).unwrap();
    build(&options(&tree(volume.path()), &second)).unwrap();
    assert_same(&first, &second, "another file system");
}

#[test]
fn hosts_do_not_matter() {
    let home = tempfile::tempdir().unwrap();
    let tree = tree(home.path());
    let [first, second] = ["first", "second"].map(|name| home.path().join(name));
    build(&options(&tree, &first)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut host = Command::new("sh");
    host.args(["-c", "umask 0077; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    child::arguments(&mut host, &tree, &second);
    host.current_dir(elsewhere.path()).env("TMPDIR", elsewhere.path()).env("TZ", "Asia/Tokyo");
    assert!(host.env("LC_ALL", "tr_TR.UTF-8").status().unwrap().success());
    assert_same(&first, &second, "another host");
}

/// Builds with a change and mounts the outcome.
fn mounted(change: impl FnOnce(&mut PackOptions)) -> (TempDir, LoopMount) {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("source");
    fs::create_dir_all(tree.join("inner")).unwrap();
    fs::write(tree.join("inner/file.o"), "object").unwrap();
    fs::write(tree.join("inner/file.c"), "source").unwrap();
    let mut options = options(&tree, &home.path().join("image"));
    change(&mut options);
    build(&options).unwrap();
    let mount = LoopMount::new(image_of(&options), Access::ReadOnly, &[]).unwrap();
    (home, mount)
}

/// Rules, as a file has them.
fn set_rules(options: &mut PackOptions, text: &str) {
    let mut list = RuleList::default();
    list.add_text(text.as_bytes(), "rules", Path::new("")).unwrap();
    let (exclude, rules) = list.finish().unwrap();
    options.source_options.reading.exclude = exclude;
    options.source_options.rules = Arc::new(rules);
}

#[test]
fn overrides_are_what_a_reader_sees() {
    if !kernel::available_or_report() {
        return;
    }
    let (_home, mount) = mounted(|options| {
        let rules =
            "owner 70000:4000000000\nmtime @1500000000.000000005\nroot-mode 1777\nexclude *.o";
        set_rules(options, rules);
    });
    for name in ["", "inner", "inner/file.c"] {
        let metadata = mount.join(name).metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (70_000, 4_000_000_000), "{name}");
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_500_000_000, 5), "{name}");
        assert_eq!((metadata.ctime(), metadata.ctime_nsec()), (1_500_000_000, 5), "{name}");
    }
    assert_eq!(mount.path().metadata().unwrap().permissions().mode() & 0o7777, 0o1777);
    assert!(!mount.join("inner/file.o").exists());
    let (_home, mount) = mounted(|options| options.epoch = Some(1_000_000_000));
    for name in ["", "inner", "inner/file.c"] {
        let metadata = mount.join(name).metadata().unwrap();
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 0), "{name}");
        assert_eq!((metadata.ctime(), metadata.ctime_nsec()), (1_000_000_000, 0), "{name}");
    }
}

#[test]
fn label_and_identity_are_in_the_superblock() {
    let home = tempfile::tempdir().unwrap();
    let tree = tree(home.path());
    let image = home.path().join("image");
    let mut options = options(&tree, &image);
    let uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    (options.uuid, options.volume.label) = (Some(uuid), "twelve bytes".into());
    options.size = SizeChoice::Exact(300 << 20);
    build(&options).unwrap();
    let newest = Xfsprogs::newest().unwrap();
    let said = newest.db(&image, &["sb 0", "print fname", "print uuid"]).unwrap();
    assert!(said.contains("twelve bytes") && said.contains(&uuid.to_string()), "{said}");
    // Without a given one the identity follows the content and the options.
    (options.force, options.uuid) = (true, None);
    let mut identity = || {
        build(&options).unwrap();
        let said = newest.db(&image, &["sb 0", "print uuid"]).unwrap();
        set_rules(&mut options, "owner 1:1");
        said
    };
    let (one, other) = (identity(), identity());
    assert_ne!(one, other);
}
