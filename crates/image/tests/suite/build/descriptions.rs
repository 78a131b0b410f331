//! Descriptions, judged by the programs whose languages they are: bsdtar, mtree, mkfs.xfs and
//! mkcomposefs; and the same bytes from a tree and from its description.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use undercroft_image::pack::PackOptions;
use undercroft_judges::mount::Access;
use undercroft_judges::random::{Options as Random, random_tree};
use undercroft_judges::tree::{Field, Holes, Options as Compared, compare};
use undercroft_judges::{LoopMount, Scratch, Xfsprogs, composefs, kernel};
use undercroft_source::describe::Listing;
use undercroft_source::description::Algorithm;
use undercroft_source::{DescriptionFormat, DescriptionSpec, SourceOptions, SourceSpec, open};

use crate::build::odd::odd_tree;
use undercroft_testkit::image::judged::build;

/// Runs a program, which has to succeed.
#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.env("LC_ALL", "C").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {said}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    output
}

/// A tree with many kinds of entries, without extended attributes.
fn tree(seed: u64) -> Scratch {
    let scratch = Scratch::new(512 << 20).unwrap();
    let options = Random { entries: 400, ..Random::default() };
    random_tree(scratch.path(), seed, &options).unwrap();
    strip_attributes(scratch.path());
    scratch
}

/// Takes all extended attributes away.
fn strip_attributes(root: &Path) {
    use rustix::fs::{llistxattr, lremovexattr};
    let entry = |path: &Path| {
        let mut names = vec![0; 64 << 10];
        let len = llistxattr(path, &mut names[..]).unwrap();
        for name in names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            // One may have gone with another.
            let removed = lremovexattr(path, name);
            assert!(matches!(removed, Ok(()) | Err(rustix::io::Errno::NODATA)), "{removed:?}");
        }
    };
    entry(root);
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for found in fs::read_dir(directory).unwrap() {
            let path = found.unwrap().path();
            entry(&path);
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            }
        }
    }
}

/// The description of a tree in a file.
fn describe(tree: &Path, format: DescriptionFormat, at: &Path) -> u64 {
    let spec = SourceSpec::Directory(tree.into());
    let mut source = open(&spec, &SourceOptions::default()).unwrap().source;
    let (algorithm, is_mtree) = match format {
        DescriptionFormat::Mtree => (Algorithm::Sha256, true),
        _ => (Algorithm::Verity, false),
    };
    let listing = Listing::of(source.as_mut(), algorithm, &mut |_, _| ()).unwrap();
    let mut text = Vec::new();
    let left_out = if is_mtree {
        listing.mtree(&mut text).unwrap()
    } else {
        listing.composefs(&mut text).unwrap();
        0
    };
    fs::write(at, text).unwrap();
    left_out
}

fn image(spec: SourceSpec, contents: Option<&Path>, at: &Path) -> Vec<u8> {
    let mut options = PackOptions::new(spec, at.to_owned());
    options.force = true;
    options.source_options.description.contents = contents.map(Path::to_owned);
    build(&options).unwrap();
    fs::read(at).unwrap()
}

fn described(format: DescriptionFormat, path: &Path) -> SourceSpec {
    SourceSpec::Description(DescriptionSpec { format, path: path.into() })
}

#[test]
fn a_tree_and_its_composefs_description_give_the_same_bytes() {
    if !kernel::available_or_report() {
        return;
    }
    let odd = odd_tree();
    let home = tempfile::tempdir().unwrap();
    let (out, dump) = (home.path().join("image"), home.path().join("dump"));
    describe(odd.path(), DescriptionFormat::Composefs, &dump);
    let spec = described(DescriptionFormat::Composefs, &dump);
    let again = image(spec, Some(odd.path()), &out);
    assert!(image(SourceSpec::Directory(odd.path().into()), None, &out) == again);
}

#[test]
fn composefs_reads_our_dumps_and_has_the_same_digests() {
    if !kernel::available_or_report() {
        return;
    }
    let tree = tree(3);
    let home = tempfile::tempdir().unwrap();
    for length in [1, 4095, 4096, 4097, 128 * 4096, 129 * 4096 + 1, 3 << 20] {
        let bytes: Vec<u8> = (0..length as u32).map(|at| (at % 251) as u8).collect();
        fs::write(tree.path().join(format!("z{length}")), bytes).unwrap();
    }
    let dump = home.path().join("dump");
    describe(tree.path(), DescriptionFormat::Composefs, &dump);
    let tools = composefs::Composefs::newest().unwrap();
    let (made, back) = (home.path().join("cfs"), home.path().join("back"));
    run(Command::new(tools.mkcomposefs()).arg("--from-file").arg(&dump).arg(&made));
    let said = run(Command::new(tools.info()).arg("dump").arg(&made)).stdout;
    fs::write(&back, &said).unwrap();
    // Path, mode, owner, device and time of each entry; sizes of directories are its own. It prints
    // nanoseconds without leading zeros.
    let plain_time = |time: &[u8]| {
        let (seconds, nanoseconds) = std::str::from_utf8(time).unwrap().split_once('.').unwrap();
        format!("{seconds}.{}", nanoseconds.parse::<u32>().unwrap()).into_bytes()
    };
    let fields = |text: &[u8]| -> Vec<Vec<Vec<u8>>> {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut lines: Vec<Vec<Vec<u8>>> = lines
            .map(|line| {
                let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
                let mode = fields[2].strip_prefix(b"@").unwrap_or(fields[2]);
                let same = [fields[0], mode, fields[4], fields[5], fields[6]].map(<[u8]>::to_vec);
                same.into_iter().chain([plain_time(fields[7])]).collect()
            })
            .collect();
        lines.sort();
        lines
    };
    let ours = fs::read(&dump).unwrap();
    for (ours, theirs) in fields(&ours).iter().zip(fields(&said)) {
        assert_eq!(
            *ours,
            theirs,
            "{:?}",
            ours.iter().map(|field| field.escape_ascii().to_string()).collect::<Vec<_>>()
        );
    }
    assert_eq!(fields(&ours).len(), fields(&said).len());
    // The digests of all files that have contents.
    let mut compared = 0;
    for line in String::from_utf8(ours).unwrap().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields[0].contains('\\') || fields[10] == "-" || fields[2].starts_with('@') {
            continue;
        }
        let file = tree.path().join(&fields[0][1..]);
        let said = run(Command::new(tools.info()).arg("measure-file").arg(file)).stdout;
        assert_eq!(String::from_utf8(said).unwrap().trim(), fields[10], "{line}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn mtree_finds_nothing_different_in_the_tree_that_was_described() {
    if !kernel::available_or_report() {
        return;
    }
    let odd = odd_tree();
    // It takes such names for patterns, however they are written.
    run(Command::new("find").arg(odd.path()).args(["-name", "*[*?[]*", "-delete"]));
    let home = tempfile::tempdir().unwrap();
    let (out, text) = (home.path().join("image"), home.path().join("mtree"));
    // Attributes have no place in it.
    assert!(describe(odd.path(), DescriptionFormat::Mtree, &text) > 0);
    let judge = |tree: &Path| {
        let output =
            Command::new("mtree").arg("-p").arg(tree).arg("-f").arg(&text).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(judge(odd.path()), (true, String::new()));
    // And in the volume that is built of the description.
    let made = image(described(DescriptionFormat::Mtree, &text), Some(odd.path()), &out);
    let mount = LoopMount::new(&out, Access::ReadOnly, &[]).unwrap();
    assert_eq!(judge(mount.path()), (true, String::new()));
    mount.unmount().unwrap();
    strip_attributes(odd.path());
    assert_eq!(describe(odd.path(), DescriptionFormat::Mtree, &text), 0);
    assert!(image(SourceSpec::Directory(odd.path().into()), None, &out) == made);
}

#[test]
fn bsdtar_lists_what_was_described() {
    if !kernel::available_or_report() {
        return;
    }
    let odd = odd_tree();
    let home = tempfile::tempdir().unwrap();
    let text = home.path().join("mtree");
    // Sockets are what it does not know.
    run(Command::new("find").arg(odd.path()).args(["-type", "s", "-delete"]));
    describe(odd.path(), DescriptionFormat::Mtree, &text);
    let listed = run(Command::new("bsdtar").arg("-tvf").arg(&text).arg("--numeric-owner")).stdout;
    let names = run(Command::new("find").arg(odd.path()).args(["-printf", "x\\0"])).stdout;
    let count = names.iter().filter(|byte| **byte == 0).count();
    assert_eq!(listed.iter().filter(|byte| **byte == b'\n').count(), count);
    // It makes the same tree of it, but for its own limits of names.
    let rewritten = run(Command::new("bsdtar").args(["-cf", "-", "--format=mtree"]).arg({
        let mut at = std::ffi::OsString::from("@");
        at.push(&text);
        at
    }));
    fs::write(home.path().join("again"), &rewritten.stdout).unwrap();
    let again = described(DescriptionFormat::Mtree, &home.path().join("again"));
    let mut out = PathBuf::from(home.path());
    out.push("image");
    strip_attributes(odd.path());
    let direct = image(SourceSpec::Directory(odd.path().into()), None, &out);
    assert!(image(again, Some(odd.path()), &out) == direct);
}

#[test]
fn descriptions_by_bsdtar_and_mtree_give_the_same_bytes_as_the_tree() {
    if !kernel::available_or_report() {
        return;
    }
    for seed in [5, 6] {
        let tree = tree(seed);
        let home = tempfile::tempdir().unwrap();
        let (out, text) = (home.path().join("image"), home.path().join("mtree"));
        let direct = image(SourceSpec::Directory(tree.path().into()), None, &out);
        for arguments in [
            &["bsdtar", "-cf", "-", "--format=mtree", "--options=mtree:all", "."][..],
            &["bsdtar", "-cf", "-", "--format=mtree", "."],
            &["mtree", "-c", "-K", "device,sha256,sha512,md5"],
        ] {
            let mut command = Command::new(arguments[0]);
            let output = run(command.args(&arguments[1..]).current_dir(tree.path()));
            fs::write(&text, output.stdout).unwrap();
            let spec = described(DescriptionFormat::Mtree, &text);
            assert!(image(spec, Some(tree.path()), &out) == direct, "{arguments:?}");
            if arguments[0] == "mtree" {
                // With the whole paths.
                let full =
                    run(Command::new("mtree").args(["-C", "-K", "device,sha256", "-f"]).arg(&text));
                fs::write(&text, full.stdout).unwrap();
                let spec = described(DescriptionFormat::Mtree, &text);
                assert!(image(spec, Some(tree.path()), &out) == direct, "mtree -C");
            }
        }
    }
}

/// A prototype file for a tree, with all kinds that it has a letter for.
fn prototype(directory: &Path, out: &mut Vec<u8>) {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let metadata = path.symlink_metadata().unwrap();
        let (kind, mode) = (metadata.file_type(), metadata.mode());
        let letter = match () {
            () if kind.is_dir() => 'd',
            () if kind.is_symlink() => 'l',
            () if kind.is_file() => '-',
            () if kind.is_fifo() => 'p',
            () if kind.is_block_device() => 'b',
            () if kind.is_char_device() => 'c',
            () => continue,
        };
        let flag = |bit: u32, letter: char| if mode & bit == 0 { '-' } else { letter };
        out.extend_from_slice(path.file_name().unwrap().as_bytes());
        let owner = format!(
            " {letter}{}{}{:03o} {} {} ",
            flag(0o4000, 'u'),
            flag(0o2000, 'g'),
            mode & 0o777,
            metadata.uid(),
            metadata.gid()
        );
        out.extend_from_slice(owner.as_bytes());
        match letter {
            'd' => {
                out.push(b'\n');
                prototype(&path, out);
                out.extend_from_slice(b"$ : of a directory");
            }
            'l' => out.extend_from_slice(fs::read_link(&path).unwrap().as_os_str().as_bytes()),
            '-' => out.extend_from_slice(path.as_os_str().as_bytes()),
            'b' | 'c' => {
                let device = metadata.rdev();
                let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
                out.extend_from_slice(format!("{major} {minor}").as_bytes());
            }
            _ => {}
        }
        out.push(b'\n');
    }
}

/// A tree of what prototype files can tell. Its one directory with setgid is empty: `mkfs.xfs` sets the
/// bit for directories below one, whatever the file says.
const TREE: &str = "mkdir -p a/b/c d; echo one > a/one; head -c 100000 /dev/zero > a/zeros; \
     seq 1 20000 > a/b/numbers; touch d/empty; ln -s ../one a/b/link; ln -s /etc/passwd d/absolute; \
     mknod d/char c 5 1; mknod d/block b 259 200; mkfifo d/pipe; chmod 4755 a/one; chmod 2750 a/b/c; \
     chmod 6711 a/zeros; chown 1000:100 a/b/numbers; chown 3:1 d; echo odd > 'd/~a:b#\"$x=y'";

#[test]
fn prototype_files_mean_what_mkfs_makes_of_them() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    run(Command::new("sh").args(["-ec", TREE]).current_dir(&tree));
    let mut words = b"/stand/diskboot\n4872 110\nd--755 0 0 : the root\n".to_vec();
    prototype(&tree, &mut words);
    words.extend_from_slice(b"$\n");
    let file = home.path().join("proto");
    fs::write(&file, words).unwrap();
    let (ours, theirs) = (home.path().join("ours"), home.path().join("theirs"));
    image(described(DescriptionFormat::Prototype, &file), None, &ours);
    Xfsprogs::newest().unwrap().repair_check(&ours).unwrap();
    for tools in [Xfsprogs::distribution().unwrap(), Xfsprogs::newest().unwrap()] {
        tools.mkfs(&theirs, 320 << 20, &["-p", &file.display().to_string()]).unwrap();
        let one = LoopMount::new(&ours, Access::ReadOnly, &[]).unwrap();
        let other = LoopMount::new(&theirs, Access::ReadOnly, &[]).unwrap();
        let options = Compared { holes: Holes::Ignore, limit: 1000, ..Compared::default() };
        let found = compare(one.path(), other.path(), &options).unwrap();
        // Theirs have the time of the command.
        let others: Vec<_> =
            found.differences.iter().filter(|found| found.field != Field::Mtime).collect();
        assert!(others.is_empty() && found.entries == 15, "{others:?} {}", found.entries);
        one.unmount().unwrap();
        other.unmount().unwrap();
    }
}
