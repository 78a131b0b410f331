//! What comes out of a volume is what a kernel sees in it.

use rustix::fs::{SeekFrom, seek};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use undercroft_block::FileDevice;
use undercroft_image::pack::{self, PackOptions, SizeChoice};
use undercroft_image::unpack::{self, UnpackError};
use undercroft_judges::matrix::{FORMATS, Format};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Comparison, Difference, Holes, Options, compare};
use undercroft_judges::{LoopMount, Scratch, Xfsprogs, kernel, odd, populate, rounds};
use undercroft_source::SourceSpec;
use undercroft_xfs::Volume;

const MIB: u64 = 1 << 20;

fn open(image: &Path) -> Arc<Volume> {
    Arc::new(Volume::open(Arc::new(FileDevice::open(image, true).unwrap())).unwrap())
}

fn extract(image: &Path, destination: &Path) -> unpack::Summary {
    unpack::to_directory(&open(image), destination, false, &mut |_| {}).unwrap()
}

/// Blocks of volumes differ, so allocation is compared in the largest unit there is.
fn compare_trees(left: &Path, right: &Path) -> Comparison {
    let options =
        Options { holes: Holes::Map { unit: 65_536 }, limit: 10_000, ..Options::default() };
    compare(left, right, &options).unwrap()
}

/// Fails for every difference but the absence of sockets, which archives cannot hold.
#[track_caller]
fn assert_same_but_sockets(left: &Path, right: &Path) {
    let found = compare_trees(left, right);
    let is_socket = |difference: &&Difference| {
        let metadata = fs::symlink_metadata(left.join(&difference.path));
        metadata.is_ok_and(|metadata| metadata.file_type().is_socket())
    };
    let other: Vec<_> = found.differences.iter().filter(|found| !is_socket(found)).collect();
    assert!(other.is_empty(), "{other:#?}");
}

fn format_extracts(format: &Format) -> Result<(), Box<dyn std::error::Error>> {
    let scratch = tempfile::tempdir()?;
    let image = scratch.path().join("image");
    // What the kernel may not mount is made from a tree, which is then what to compare with.
    let tree = Scratch::new(format.size)?;
    if format.mounts {
        format.make_filled(&image)?;
    } else {
        populate::populate(tree.path())?;
        format.make(&image, &["-p", &tree.path().display().to_string()])?;
    }
    let destination = Scratch::new(1536 * MIB)?;
    let extracted = destination.path().join("extracted");
    let volume = Arc::new(Volume::open(Arc::new(FileDevice::open(&image, true)?))?);
    let summary = unpack::to_directory(&volume, &extracted, false, &mut |_| {})?;
    if !summary.warnings.is_empty() {
        return Err(format!("{:?}", summary.warnings).into());
    }
    let found = if format.mounts {
        let mount = LoopMount::new(&image, Access::ReadOnly, &[])?;
        compare_trees(mount.path(), &extracted)
    } else {
        // The tool does not keep holes, nor the metadata of the root.
        let options = Options { holes: Holes::Ignore, root: false, ..Options::default() };
        compare(tree.path(), &extracted, &options)?
    };
    if found.same() { Ok(()) } else { Err(found.to_string().into()) }
}

/// Every second one in the check, all in a soak.
#[test]
fn formats_extract_as_the_kernel_sees_them() {
    if !kernel::available_or_report() {
        return;
    }
    let extract_part = |part: &[&Format]| -> Vec<String> {
        let result = |format: &&Format| Some((format.name, format_extracts(format).err()?));
        let failed = part.iter().filter_map(result);
        failed.map(|(name, error)| format!("{name}: {error}")).collect()
    };
    let formats: Vec<&Format> = FORMATS.iter().step_by(rounds(2, 1)).collect();
    let failed: Vec<String> = thread::scope(|scope| {
        let parts = formats.chunks(formats.len().div_ceil(4));
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || extract_part(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn odd_things_survive_every_way_out() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 * MIB).unwrap();
    let left_out = odd::odd_tree(scratch.path()).unwrap();
    assert!(left_out.is_empty(), "{left_out:#?}");
    let (directory, image) = scratch.into_image().unwrap();
    let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();

    let destination = Scratch::new(1024 * MIB).unwrap();
    let summary = extract(&image, &destination.path().join("extracted"));
    assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    compare_trees(mount.path(), &destination.path().join("extracted")).assert_same();
    drop(destination);

    let archive = directory.path().join("archive.tar");
    let mut file = File::create(&archive).unwrap();
    let in_archive = unpack::to_tar(&open(&image), &mut file, &mut |_| {}).unwrap();
    assert_eq!(in_archive.files, summary.files);
    assert_eq!(in_archive.bytes, summary.bytes);

    let destination = Scratch::new(1024 * MIB).unwrap();
    let tar = Command::new("tar")
        .args(["-x", "-p", "--xattrs", "--xattrs-include=*", "--numeric-owner", "-f"])
        .arg(&archive)
        .arg("-C")
        .arg(destination.path())
        .output()
        .unwrap();
    assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
    assert_same_but_sockets(mount.path(), destination.path());
    drop(destination);

    let rebuilt = directory.path().join("rebuilt.img");
    let source = SourceSpec::Path(archive);
    pack::build(&PackOptions::new(source, rebuilt.clone()), &mut |_| {}).unwrap();
    let again = LoopMount::new(&rebuilt, Access::ReadOnly, &[]).unwrap();
    assert_same_but_sockets(mount.path(), again.path());
}

/// A volume made here from the tree that `fill` makes; needs no rights.
fn volume_of(directory: &Path, fill: impl Fn(&Path)) -> std::path::PathBuf {
    let tree = directory.join("tree");
    fs::create_dir(&tree).unwrap();
    fill(&tree);
    let image = directory.join("image");
    let options = PackOptions {
        size: SizeChoice::Exact(32 * MIB),
        ..PackOptions::new(SourceSpec::Path(tree), image.clone())
    };
    pack::build(&options, &mut |_| {}).unwrap();
    image
}

#[test]
fn a_destination_that_is_not_empty_is_refused_and_replaced_on_request() {
    let scratch = tempfile::tempdir().unwrap();
    let image = volume_of(scratch.path(), |tree| {
        fs::create_dir(tree.join("directory")).unwrap();
        fs::write(tree.join("directory/file"), "new").unwrap();
        fs::write(tree.join("link"), "a file").unwrap();
    });
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "mine").unwrap();
    let destination = scratch.path().join("destination");
    fs::create_dir(&destination).unwrap();
    std::os::unix::fs::symlink(&outside, destination.join("directory")).unwrap();
    std::os::unix::fs::symlink(outside.join("file"), destination.join("link")).unwrap();

    let volume = open(&image);
    let refused = unpack::to_directory(&volume, &destination, false, &mut |_| {});
    assert!(matches!(refused, Err(UnpackError::NotEmpty(_))));
    unpack::to_directory(&volume, &destination, true, &mut |_| {}).unwrap();
    compare_trees(&scratch.path().join("tree"), &destination).assert_same();
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"mine");
    // A second time over the files of the first.
    unpack::to_directory(&volume, &destination, true, &mut |_| {}).unwrap();
    compare_trees(&scratch.path().join("tree"), &destination).assert_same();
}

#[test]
fn deep_trees_and_links_across_them() {
    let scratch = tempfile::tempdir().unwrap();
    let image = volume_of(scratch.path(), |tree| {
        let deep = tree.join(vec!["d"; 300].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(tree.join("first"), "linked").unwrap();
        fs::hard_link(tree.join("first"), deep.join("second")).unwrap();
        fs::create_dir(tree.join("z")).unwrap();
        fs::hard_link(deep.join("second"), tree.join("z/third")).unwrap();
    });
    let destination = scratch.path().join("destination");
    let summary = extract(&image, &destination);
    assert_eq!((summary.files, summary.hard_links), (1, 2));
    compare_trees(&scratch.path().join("tree"), &destination).assert_same();
}

#[test]
fn archives_of_one_volume_are_equal_and_tar_lists_them() {
    let scratch = tempfile::tempdir().unwrap();
    let image = volume_of(scratch.path(), |tree| {
        fs::write(tree.join("n".repeat(200)), vec![b'x'; 70_000]).unwrap();
        fs::create_dir(tree.join("directory")).unwrap();
        let sparse = File::create(tree.join("directory/sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
    });
    let archive = || {
        let mut bytes = Vec::new();
        unpack::to_tar(&open(&image), &mut bytes, &mut |_| {}).unwrap();
        bytes
    };
    let bytes = archive();
    assert!(bytes == archive());
    assert_eq!(bytes.len() % 512, 0);
    let path = scratch.path().join("archive.tar");
    fs::write(&path, bytes).unwrap();
    let list = Command::new("tar").arg("-tf").arg(&path).stderr(Stdio::null()).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let expected = format!("./\n./directory/\n./directory/sparse\n./{}\n", "n".repeat(200));
    let mut lines: Vec<_> = list.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<_> = expected.lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn a_directory_that_leads_back_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let image = volume_of(scratch.path(), |tree| {
        fs::create_dir_all(tree.join("outer/inner")).unwrap();
    });
    let tools = Xfsprogs::newest().unwrap();
    let volume = open(&image);
    let outer = undercroft_fs::FileSystem::from_volume(volume.clone()).metadata("outer");
    let outer = outer.unwrap().number;
    let script = [format!("inode {outer}"), format!("write u3.sfdir3.list[0].inumber.i4 {outer}")];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    tools.db_expert(&image, &script).unwrap();
    let volume = open(&image);
    let result = unpack::to_tar(&volume, &mut std::io::sink(), &mut |_| {});
    assert!(matches!(result, Err(UnpackError::Repeated { .. })), "{result:?}");
    let result = unpack::to_directory(&volume, &scratch.path().join("out"), false, &mut |_| {});
    assert!(matches!(result, Err(UnpackError::Repeated { .. })), "{result:?}");
}

/// Bytes far away in files that are holes otherwise.
const FAR: [(&str, u64, u64); 3] = [
    ("pebibyte", 1 << 50, 1_000_000_000_000_000),
    ("largest", i64::MAX as u64, 1 << 62),
    ("largest", i64::MAX as u64, i64::MAX as u64 - 1),
];

/// Makes the files, or checks that they are the same in `directory`.
fn far(directory: &Path, make: bool) {
    for (name, size, at) in FAR {
        let mut options = File::options();
        let file = options.read(true).write(make).create(make).open(directory.join(name)).unwrap();
        if make {
            file.set_len(size).unwrap();
            file.write_all_at(b"x", at).unwrap();
            continue;
        }
        assert_eq!(file.metadata().unwrap().len(), size);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        assert_eq!(&byte, b"x", "{name}");
        // In 64 KiB there is nothing else.
        assert_eq!(seek(&file, SeekFrom::Data(at >> 16 << 16)).unwrap() >> 16, at >> 16);
        assert!(file.metadata().unwrap().blocks() <= 64, "{name} has become larger");
    }
}

#[test]
fn holes_take_no_time_whatever_their_length() {
    if !kernel::available_or_report() {
        return;
    }
    // A few hundredths of a second; at the speed of memory a pebibyte takes a day.
    const MOST: Duration = Duration::from_secs(30);
    let scratch = Scratch::new(512 * MIB).unwrap();
    let path = |name: &str| scratch.path().join(name);
    let tree = path("tree");
    fs::create_dir(&tree).unwrap();
    far(&tree, true);
    let start = Instant::now();
    let build = |source: &Path, image: &Path| {
        let source = SourceSpec::Path(source.to_owned());
        let summary = pack::build(&PackOptions::new(source, image), &mut |_| {}).unwrap();
        assert!(summary.bytes < MIB);
    };
    build(&tree, &path("from-directory"));
    let archive = path("archive.tar");
    let volume = open(&path("from-directory"));
    unpack::to_tar(&volume, &mut File::create(&archive).unwrap(), &mut |_| {}).unwrap();
    assert!(archive.metadata().unwrap().len() < MIB);
    build(&archive, &path("from-archive"));
    for image in ["from-directory", "from-archive"] {
        let out = path(&format!("{image}-extracted"));
        extract(&path(image), &out);
        far(&out, false);
    }
    assert!(start.elapsed() < MOST, "{:?}", start.elapsed());
}
