//! Differences of trees, as other programs see them in a kernel's mounts.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_image::diff::{
    Aspect, Change, DiffError, DiffOptions, Difference, Event, Found, Summary, diff,
};
use undercroft_image::pack::{self, PackOptions};
use undercroft_image::unpack::VolumeSource;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Scratch, kernel, odd, populate};
use undercroft_source::{Exclude, Options, Source, SourceOptions, SourceSpec, open};
use undercroft_xfs::Volume;

const MIB: u64 = 1 << 20;

fn volume(image: &Path) -> Box<dyn Source> {
    let device = Arc::new(FileDevice::open(image, true).unwrap());
    Box::new(VolumeSource::new(&Arc::new(Volume::open(device).unwrap())))
}

fn sorted(path: &Path) -> Box<dyn Source> {
    let options = Options { sorted: true, ..Options::default() };
    open(&SourceSpec::Path(path.to_owned()), &options.into()).unwrap().source
}

fn compare(
    mut left: Box<dyn Source>,
    mut right: Box<dyn Source>,
    options: &DiffOptions,
) -> (Summary, Vec<Difference>) {
    let mut found = Vec::new();
    let summary = diff(left.as_mut(), right.as_mut(), options, &mut |event| {
        if let Event::Difference(difference) = event {
            found.push(difference.clone());
        }
        ControlFlow::Continue(())
    });
    (summary.unwrap(), found)
}

#[track_caller]
fn assert_same(left: Box<dyn Source>, right: Box<dyn Source>, names: u64) {
    let (summary, found) = compare(left, right, &DiffOptions::default());
    assert!(found.is_empty(), "{found:#?}");
    assert!(summary.is_same() && summary.common >= names, "{summary:?}");
}

/// Lines of a program, whose exit status is one of `expected`.
fn lines(command: &mut Command, expected: &[i32]) -> Vec<String> {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.code().is_some_and(|code| expected.contains(&code)), "{status}: {errors}");
    String::from_utf8(stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs a line of shell in a directory.
#[track_caller]
fn shell(directory: &Path, line: &str) {
    let output = Command::new("bash").args(["-ec", line]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Changes that a second volume gets, of every sort.
const CHANGES: &str = r"
cd changes
printf x | dd of=content bs=1 seek=70000 conv=notrunc status=none; touch -r mode content
echo more >> longer
chmod 600 mode
chown 12:34 owner
touch -d '2001-02-03 04:05:06.123456789' time
setfattr -n user.a -v new attribute; setfattr -x user.b attribute
setfacl -m u:77:r-- list
ln -sfn elsewhere link
rm device; mknod device c 1 5
rm kind; mkdir kind; echo in > kind/in
rm -r tree; echo file > tree
rm gone; echo new > added
rm -r directory-gone; mkdir -p directory-added/below; touch directory-added/below/file
rm linked-2; cp -a linked-1 linked-2
chmod 700 inner
echo b > names-b; touch -r mode names-b
setfattr -n security.selinux -v a:b:c:s0 label
";

const BEFORE: &str = r"
mkdir changes; cd changes
head -c 100000 /dev/zero > content; echo short > longer
touch mode owner time attribute list kind gone label
setfattr -n user.a -v old attribute; setfattr -n user.b -v b attribute
ln -s target link; mknod device c 1 3; mkdir inner
mkdir -p tree/below directory-gone/below; touch tree/below/file directory-gone/below/file
echo linked > linked-1; ln linked-1 linked-2; ln linked-1 linked-3
echo a > names-a; ln names-a names-b; ln names-a names-c
find . -exec touch -h -d @1000000000 {} +
";

/// What rsync would do, by path; without what lies in directories that only one has.
fn by_rsync(left: &Path, right: &Path) -> BTreeSet<String> {
    let mut command = Command::new("rsync");
    command.args([
        "-naicAX",
        "--devices",
        "--specials",
        "--delete",
        "--numeric-ids",
        "--filter=-x trusted.SGI_ACL_*",
    ]);
    command.arg(format!("{}/", left.display())).arg(format!("{}/", right.display()));
    let mut paths = BTreeSet::new();
    for line in lines(&mut command, &[0]) {
        let (flags, name) = line.split_at(12);
        assert!(flags.ends_with(' '), "{line}");
        let name = name.split(" -> ").next().unwrap().trim_end_matches('/');
        paths.insert(name.trim_start_matches("./").to_owned());
    }
    paths
}

/// What diff(1) finds, which looks at kinds and contents.
fn by_diff(left: &Path, right: &Path) -> BTreeSet<String> {
    let mut command = Command::new("diff");
    command.args(["-rq", "--no-dereference"]).arg(left).arg(right).env("LC_ALL", "C");
    let path = |line: String| -> String {
        let (left, right) = (left.display().to_string(), right.display().to_string());
        let path = if let Some(rest) = line.strip_prefix("Only in ") {
            rest.replacen(": ", "/", 1)
        } else {
            let words: Vec<_> = line.split(' ').collect();
            words.iter().find(|word| word.starts_with(&left)).unwrap().to_string()
        };
        let inside = path.strip_prefix(&left).or(path.strip_prefix(&right)).unwrap();
        inside.trim_start_matches('/').to_owned()
    };
    lines(&mut command, &[0, 1]).into_iter().map(path).collect()
}

fn is_below(path: &str, directories: &BTreeSet<String>) -> bool {
    let above =
        |directory: &String| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    directories.iter().any(above)
}

#[test]
fn two_volumes_differ_where_other_programs_say_so() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 * MIB).unwrap();
    populate::populate(scratch.path()).unwrap();
    shell(scratch.path(), BEFORE);
    let (directory, first) = scratch.into_image().unwrap();
    let second = directory.path().join("second");
    undercroft_judges::image::copy(&first, &second).unwrap();
    let mount = LoopMount::new(&second, Access::ReadWrite, &[]).unwrap();
    shell(mount.path(), CHANGES);
    mount.unmount().unwrap();

    let (left, right) = (
        LoopMount::new(&first, Access::ReadOnly, &[]).unwrap(),
        LoopMount::new(&second, Access::ReadOnly, &[]).unwrap(),
    );
    let (summary, found) = compare(volume(&first), volume(&second), &DiffOptions::default());
    let told: BTreeSet<String> = found.iter().map(|one| one.path.to_string()).collect();
    assert_eq!(told.len(), found.len(), "each path once");
    // Names of one file are not compared by rsync without -H, whose output is another then.
    let links = BTreeSet::from(["changes/linked-2".to_owned()]);
    let only_links = |one: &&Difference| matches!(&one.found, Found::Changed(changes) if matches!(changes[..], [Change::Links(..)]));
    let by_links: BTreeSet<_> =
        found.iter().filter(only_links).map(|one| one.path.to_string()).collect();
    assert_eq!(by_links, links);
    // What is below a directory that only one has is not told.
    let is_cut = |one: &&Difference| match &one.found {
        Found::Changed(changes) => changes.iter().any(|change| matches!(change, Change::Kind(..))),
        _ => true,
    };
    let cut = found.iter().filter(is_cut).map(|one| one.path.to_string()).collect();
    let judged: BTreeSet<String> = by_rsync(left.path(), right.path())
        .into_iter()
        .filter(|path| !is_below(path, &cut))
        .map(|path| if path.is_empty() { ".".to_owned() } else { path })
        .collect();
    let without_links: BTreeSet<_> = told.difference(&by_links).cloned().collect();
    assert_eq!(without_links, judged);
    let by_content = |one: &&Difference| match &one.found {
        Found::Changed(changes) => changes.iter().any(|change| {
            matches!(
                change,
                Change::Kind(..) | Change::Content(_) | Change::Target(..) | Change::Device(..)
            )
        }),
        _ => true,
    };
    let contents: BTreeSet<_> =
        found.iter().filter(by_content).map(|one| one.path.to_string()).collect();
    assert_eq!(contents, by_diff(left.path(), right.path()));
    let bytes = found.iter().find(|one| one.path.as_bytes() == b"changes/content").unwrap();
    assert_eq!(bytes.found, Found::Changed(vec![Change::Content(Some(70_000))]));
    assert_eq!((summary.only_left, summary.only_right), (6, 5), "{summary:?}");
    // The mounts as directories say the same as the volumes.
    let directories = compare(sorted(left.path()), sorted(right.path()), &DiffOptions::default());
    assert_eq!(directories.1, found);
    assert_same(volume(&first), sorted(left.path()), 3000);
    assert_same(sorted(right.path()), volume(&second), 3000);
}

#[test]
fn a_tree_is_the_same_in_every_form() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 * MIB).unwrap();
    let left_out = odd::odd_tree(scratch.path()).unwrap();
    assert!(left_out.is_empty(), "{left_out:#?}");
    // Archives of tar hold no sockets, and names of one FIFO as several.
    shell(scratch.path(), "find . -type s -delete; find . -type p -links +1 -delete");
    let (directory, image) = scratch.into_image().unwrap();
    let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
    let (archive, built) =
        (directory.path().join("archive.tar.gz"), directory.path().join("built"));
    let line = format!(
        "tar -cf - --format=posix --sparse --xattrs --xattrs-include='*' --numeric-owner . | gzip -1 > {}",
        archive.display()
    );
    shell(mount.path(), &line);
    pack::build(&PackOptions::new(SourceSpec::Path(archive.clone()), built.clone()), &mut |_| {})
        .unwrap();
    assert_same(volume(&image), sorted(&archive), 100);
    assert_same(sorted(&archive), sorted(mount.path()), 100);
    assert_same(volume(&built), sorted(mount.path()), 100);
    assert_same(volume(&built), volume(&image), 100);
}

/// Trees made by two lines of shell in directories of their own.
fn trees(left: &str, right: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let make = |name: &str, line: &str| {
        let path = home.path().join(name);
        fs::create_dir(&path).unwrap();
        shell(&path, line);
        shell(&path, "find . -exec touch -h -d @1 {} +");
        path
    };
    let (left, right) = (make("left", left), make("right", right));
    (home, left, right)
}

fn words(found: &[Difference]) -> Vec<String> {
    let word = |one: &Difference| {
        let what = match &one.found {
            Found::OnlyLeft(kind) => format!("left {kind}"),
            Found::OnlyRight(kind) => format!("right {kind}"),
            Found::Changed(changes) => {
                changes.iter().map(Change::word).collect::<Vec<_>>().join(" ")
            }
        };
        format!("{}: {what}", one.path)
    };
    found.iter().map(word).collect()
}

#[test]
fn hard_links_are_compared_by_the_names_that_both_have() {
    let (_home, left, right) = trees(
        "echo 1 > a; ln a b; ln a c; echo 2 > x; ln x y; ln x z; echo 3 > m; ln m n",
        // `a` is missing, `y` is a copy, `z` another file, and `n` a link to `x`.
        "echo 1 > b; ln b c; echo 2 > x; cp x y; echo other > z; echo 3 > m; ln x n",
    );
    let (_, found) = compare(sorted(&left), sorted(&right), &DiffOptions::default());
    let expected = [
        "a: left regular file",
        "n: content links",
        "x: links",
        "y: links",
        "z: size content links",
    ];
    assert_eq!(words(&found), expected);
    let plain = DiffOptions::default().without(Aspect::Links);
    let (_, found) = compare(sorted(&left), sorted(&right), &plain);
    assert_eq!(words(&found), ["a: left regular file", "n: content", "z: size content"]);
    // The names of one file that differs are all told, and one that is left out changes nothing.
    fs::write(right.join("b"), "changed").unwrap();
    let plain = DiffOptions::default().without(Aspect::Mtime);
    let (_, found) = compare(sorted(&left), sorted(&right), &plain);
    assert_eq!(words(&found)[1..3], ["b: size content", "c: size content"]);
    let exclude = Exclude::new(["a", "b", "/m", "x"]).unwrap();
    let (summary, found) = compare(sorted(&left), sorted(&right), &plain.excluding(exclude));
    let expected = ["c: size content", "n: content", "z: size content links"];
    assert_eq!(words(&found), expected);
    assert_eq!(summary.common, 5, "with the root");
}

#[test]
fn holes_are_zeros_and_count_on_request() {
    let (_home, left, right) = trees(
        "truncate -s 1M a; printf end >> a; truncate -s 1T far; truncate -s 3 short",
        "head -c 1M /dev/zero > a; printf end >> a; truncate -s 1T far; printf '\\0\\0\\0' > short",
    );
    let (summary, found) = compare(sorted(&left), sorted(&right), &DiffOptions::default());
    assert!(found.is_empty() && summary.is_same(), "{found:?}");
    let holes = DiffOptions::default().with(Aspect::Holes);
    let (_, found) = compare(sorted(&left), sorted(&right), &holes);
    assert_eq!(words(&found), ["a: holes", "short: holes"]);
}

#[test]
fn of_an_archive_the_last_of_several_members_counts() {
    let (home, left, right) =
        trees("mkdir d; echo 1 > d/a; echo 2 > b", "mkdir d; echo new > d/a; echo 2 > b; ln b d/c");
    let archive = home.path().join("archive.tar");
    let text = archive.display();
    shell(&left, &format!("tar -cf {text} b d"));
    shell(&right, &format!("tar -rf {text} --no-recursion b d/c d/a d"));
    let (_, found) = compare(sorted(&archive), sorted(&right), &DiffOptions::default());
    // The archive has no root.
    assert!(found.is_empty(), "{found:?}");
    let (_, found) = compare(sorted(&left), sorted(&archive), &DiffOptions::default());
    assert_eq!(words(&found), ["d/a: size content", "d/c: right regular file"]);
}

#[test]
fn sources_that_are_not_sorted_are_refused() {
    let (home, left, _) = trees("touch b a", "true");
    let archive = home.path().join("archive.tar");
    shell(&left, &format!("tar -cf {} b a", archive.display()));
    let archive_only = SourceSpec::Path(archive.clone());
    let mut unsorted = open(&archive_only, &SourceOptions::default()).unwrap().source;
    let mut other = sorted(&left);
    let options = DiffOptions::default();
    let result =
        diff(unsorted.as_mut(), other.as_mut(), &options, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(result, Err(DiffError::Order(_))), "{result:?}");
}
