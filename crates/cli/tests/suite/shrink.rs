//! `undercroft shrink`: its report, what it cuts, and everything that it refuses.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs, image, kernel};

use crate::run::{fails, says, succeeds, undercroft};

const MIB: u64 = 1 << 20;

/// An image in a directory of its own.
struct Image {
    directory: tempfile::TempDir,
    path: String,
}

impl Image {
    /// A volume by `mkfs.xfs`.
    fn made(size: u64, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        Xfsprogs::newest().unwrap().mkfs(&path, size, arguments).unwrap();
        let path = path.display().to_string();
        Self { directory, path }
    }

    /// One of 160 MiB in which the kernel put directories and files into all eight groups.
    fn spread() -> Self {
        let image = Self::made(160 * MIB, &["-d", "agcount=8"]);
        let mount = LoopMount::new(Path::new(&image.path), Access::ReadWrite, &[]).unwrap();
        for number in 0..16 {
            let directory = mount.join(format!("directory-{number}"));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), contents(number)).unwrap();
        }
        mount.unmount().unwrap();
        image
    }

    fn beside(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.path).unwrap().len()
    }

    /// The judges find nothing, and all files of [`Image::spread`] are there.
    #[track_caller]
    fn judged(&self) {
        let report = succeeds(["check", &self.path]);
        assert!(report.starts_with("clean: "), "{report}");
        Xfsprogs::newest().unwrap().repair_check(Path::new(&self.path)).unwrap();
        for number in 0..16 {
            let path = format!("/directory-{number}/file");
            assert_eq!(succeeds(["cat", &self.path, &path]), contents(number), "{path}");
        }
    }

    /// Runs a shrink that must fail with status 1 and change nothing; returns its message.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let before = fs::read(&self.path).unwrap();
        let arguments = [&["shrink"], arguments, &[&self.path]].concat();
        let message = fails(1, &arguments);
        assert!(message.starts_with("error: "), "{message}");
        assert!(fs::read(&self.path).unwrap() == before, "{arguments:?}: {message}");
        message
    }
}

fn contents(number: u32) -> String {
    format!("{number:02}").repeat(50_000)
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_volume_shrinks_with_its_file_and_grows_again() {
    if !kernel::available_or_report() {
        return;
    }
    let image = Image::spread();
    let before = fs::read(&image.path).unwrap();
    let plan = succeeds(["shrink", "--size", "80M", "--dry-run", "--json", &image.path]);
    let plan = json(&plan);
    assert!(plan["moved_inodes"].as_u64().unwrap() >= 10, "{plan}");
    assert!(plan["obstacles"].as_array().unwrap().is_empty(), "{plan}");
    assert_eq!(plan["done"], false);
    let text = succeeds(["shrink", "--size", "80M", "--dry-run", &image.path]);
    assert!(text.starts_with("would shrink from 160.0 MiB in 8 groups to 80.0 MiB"), "{text}");
    assert!(text.contains("smallest size: "), "{text}");
    assert!(text.contains("would take about a second on a device of 200 MB a second"), "{text}");
    assert!(fs::read(&image.path).unwrap() == before, "a dry run changed the volume");
    let message = image.refused(&["--size", "80M", "--keep-inode-numbers"]);
    assert!(message.contains(" inodes are in what would go: "), "{message}");

    let frag = json(&succeeds(["frag", "--json", &image.path]));
    let text = succeeds(["shrink", "--size", "80M", "--frag", &image.path]);
    assert!(text.starts_with("shrunk from 160.0 MiB in 8 groups to 80.0 MiB"), "{text}");
    let before = format!("regular files before: {} extents, ", frag["extents"]);
    let frag = json(&succeeds(["frag", "--json", &image.path]));
    let now = format!("regular files now:    {} extents, ", frag["extents"]);
    assert!(text.contains(&before) && text.contains(&now), "{text}");
    assert!(text.contains(" inodes new numbers"), "{text}");
    assert_eq!(image.len(), 80 * MIB);
    image.judged();
    let done = json(&succeeds(["shrink", "--size", "min", "--json", &image.path]));
    assert_eq!(done["done"], true);
    let bytes = done["blocks"].as_u64().unwrap() * done["block_size"].as_u64().unwrap();
    assert!(image.len() == bytes && bytes < 80 * MIB, "{done}");
    image.judged();
    // A plan has to allow for more than moves.
    let done = json(&succeeds(["minimise", "--frag", "--json", &image.path]));
    assert_eq!(done["spread_before"]["extents"], frag["extents"], "{done}");
    let least = done["blocks"].as_u64().unwrap() * done["block_size"].as_u64().unwrap();
    assert!(image.len() == least && least <= bytes, "{done}");
    image.judged();
    let again = json(&succeeds(["minimise", "--json", &image.path]));
    assert_eq!(again["blocks"], done["blocks"]);
    succeeds(["grow", "--size", "160M", &image.path]);
    image.judged();
}

#[test]
fn a_block_device_is_told_what_may_be_cut() {
    if !kernel::available_or_report() {
        return;
    }
    let image = Image::spread();
    let device = LoopDevice::attach(Path::new(&image.path)).unwrap();
    let name = device.path().display().to_string();
    let message = says(["shrink", "--size", "80M", &name]);
    let (needed, free) = (80 * MIB, 80 * MIB);
    let expected = format!("needs the first {needed} bytes of its device; the {free} bytes behind");
    assert!(message.contains(&expected), "{message}");
    drop(device);
    assert_eq!(image.len(), 160 * MIB);
    image.judged();
    fs::File::options().write(true).open(&image.path).unwrap().set_len(needed).unwrap();
    image.judged();
}

#[test]
fn a_volume_inside_an_image_leaves_the_rest_alone() {
    if !kernel::available_or_report() {
        return;
    }
    let image = Image::spread();
    let disk = image.beside("disk");
    let mut bytes = vec![0xee; MIB as usize];
    bytes.extend(fs::read(&image.path).unwrap());
    bytes.extend([0xdd; 4096]);
    fs::write(&disk, &bytes).unwrap();
    let message = says(["shrink", "--offset", "1M", "--size", "80M", &disk]);
    assert!(message.contains(&format!("ends at byte {} of the image", 81 * MIB)), "{message}");
    let after = fs::read(&disk).unwrap();
    assert_eq!(after.len(), bytes.len());
    assert!(after[..MIB as usize].iter().all(|byte| *byte == 0xee));
    assert!(after[after.len() - 4096..].iter().all(|byte| *byte == 0xdd));
    fs::write(&image.path, &after[MIB as usize..81 * MIB as usize]).unwrap();
    image.judged();
}

#[test]
fn the_entry_of_a_partition_follows() {
    if !kernel::available_or_report() {
        return;
    }
    let image = Image::spread();
    let disk = image.beside("disk");
    let volume = fs::read(&image.path).unwrap();
    for label in ["gpt", "dos"] {
        let file = fs::File::create(&disk).unwrap();
        file.set_len(170 * MIB).unwrap();
        let table = format!("label: {label}\nstart=2048, size={}\n", 160 * MIB / 512);
        sfdisk(&["--quiet", &disk], &table);
        file.write_all_at(&volume, MIB).unwrap();
        let arguments = ["shrink", "--partition", "1", "--partition-table", "--size", "80M", &disk];
        let message = says(arguments);
        assert!(message.contains(&format!("partition 1 has {} bytes now", 80 * MIB)), "{message}");
        let found = json(&sfdisk(&["--json", &disk], ""));
        let entry = &found["partitiontable"]["partitions"][0];
        assert_eq!((entry["start"].as_u64(), entry["size"].as_u64()), (Some(2048), Some(163_840)));
        let verdict = sfdisk(&["--verify", &disk], "");
        assert!(verdict.contains("No errors detected"), "{verdict}");
        succeeds(["check", "--partition", "1", &disk]);
        let bytes = fs::read(&disk).unwrap();
        fs::write(&image.path, &bytes[MIB as usize..81 * MIB as usize]).unwrap();
        image.judged();
    }
    fails(2, ["shrink", "--partition-table", "--size", "80M", &image.path]);
}

/// What cannot be changed at the end is refused before anything is.
#[test]
fn an_entry_that_cannot_be_changed_leaves_the_volume_alone() {
    let image = Image::spread();
    let disk = image.beside("disk");
    let volume = fs::read(&image.path).unwrap();
    let file = fs::File::create(&disk).unwrap();
    file.set_len(180 * MIB).unwrap();
    let sectors = 160 * MIB / 512;
    let table = format!(
        "label: dos\nstart=2048, size={}, type=5\nstart=8192, size={sectors}\n",
        sectors + 10_000
    );
    sfdisk(&["--quiet", &disk], &table);
    file.write_all_at(&volume, 8192 * 512).unwrap();
    let before = fs::read(&disk).unwrap();
    for command in [&["shrink", "--size", "80M"][..], &["minimise"]] {
        let options = ["--partition", "5", "--partition-table", &disk];
        let message = fails(1, command.iter().chain(&options));
        assert!(message.contains("it is a logical one"), "{message}");
    }
    assert!(fs::read(&disk).unwrap() == before, "what is refused writes nothing");
}

/// Runs `sfdisk` with a script; returns what it says.
fn sfdisk(arguments: &[&str], script: &str) -> String {
    let mut child = Command::new("sfdisk")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn volumes_that_cannot_shrink_are_left_alone() {
    let image = Image::made(160 * MIB, &["-d", "agcount=8"]);
    let message = image.refused(&["--size", "1M"]);
    assert!(message.contains("too small") && message.contains("that makes "), "{message}");
    let message = image.refused(&["--size", "500M"]);
    assert!(message.contains("that is to grow"), "{message}");
    fails(2, ["shrink", "--size", "small", &image.path]);
    fails(2, ["shrink", &image.path]);
    fails(2, ["shrink", "--abandon", "--size", "80M", &image.path]);
    let (log, realtime) = (image.beside("log"), image.beside("realtime"));
    for file in [&log, &realtime] {
        fs::write(file, vec![0; 64 << 20]).unwrap();
    }
    let (log, realtime) = (format!("logdev={log}"), format!("rtdev={realtime}"));
    let old = ["-m", "metadir=0,rmapbt=0,reflink=0", "-r", &realtime];
    let cases: [(&[&str], &str); 3] = [
        (&["-m", "crc=0"], "version 4"),
        (&["-l", &log], "journal is on another device"),
        (&old, "realtime"),
    ];
    for (arguments, expected) in cases {
        let image = Image::made(400 * MIB, arguments);
        let message = image.refused(&["--size", "200M"]);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn a_size_below_what_is_needed_names_the_smallest() {
    if !kernel::available_or_report() {
        return;
    }
    let image = Image::made(160 * MIB, &["-d", "agcount=8"]);
    let mount = LoopMount::new(Path::new(&image.path), Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("file"), vec![7; 100 * MIB as usize]).unwrap();
    mount.unmount().unwrap();
    let message = image.refused(&["--size", "50M"]);
    let smallest = message.split("the smallest size possible is ").nth(1).unwrap();
    let smallest: u64 = smallest.split(' ').next().unwrap().parse().unwrap();
    assert!((100 * MIB..160 * MIB).contains(&smallest), "{message}");
    succeeds(["shrink", "--size", &smallest.to_string(), &image.path]);
    assert!(image.len() <= smallest);
    Xfsprogs::newest().unwrap().repair_check(Path::new(&image.path)).unwrap();
}

#[test]
fn a_damaged_inode_is_found_before_anything_is_written() {
    if !kernel::available_or_report() {
        return;
    }
    use std::os::unix::fs::MetadataExt;
    let image = Image::spread();
    let mount = LoopMount::new(Path::new(&image.path), Access::ReadOnly, &[]).unwrap();
    let number = |index| fs::metadata(mount.join(format!("directory-{index}"))).unwrap().ino();
    let last = (0..16).map(number).max().unwrap();
    mount.unmount().unwrap();
    let commands = [&format!("inode {last}")[..], "write -d core.magic 0"];
    Xfsprogs::newest().unwrap().db_expert(Path::new(&image.path), &commands).unwrap();
    let message = image.refused(&["--size", "80M"]);
    let is_named = message.contains("damaged inode") && message.contains("`undercroft check`");
    assert!(is_named, "{message}");
}

#[test]
fn an_interrupted_shrink_is_given_up() {
    if !kernel::available_or_report() {
        return;
    }
    let image = Image::spread();
    let shrunk = image.beside("shrunk");
    // Nothing moves any more, so the old superblock counts what is there.
    succeeds(["shrink", "--size", "80M", &image.path]);
    succeeds(["grow", "--size", "160M", &image.path]);
    image::copy(Path::new(&image.path), Path::new(&shrunk)).unwrap();
    succeeds(["shrink", "--size", "80M", &shrunk]);
    // The first superblock in progress, and the copy that is written last an old one: one of the
    // moments in which kernels refuse the volume.
    let (mut bytes, old) = (fs::read(&shrunk).unwrap(), fs::read(&image.path).unwrap());
    let (group, end) = (20 * MIB as usize, bytes.len());
    bytes.extend(&old[end..]);
    bytes[group..group + 512].copy_from_slice(&old[..512]);
    fs::write(&image.path, &bytes).unwrap();
    let commands = ["sb 0", "write -d inprogress 1"];
    Xfsprogs::newest().unwrap().db_expert(Path::new(&image.path), &commands).unwrap();
    LoopMount::new(Path::new(&image.path), Access::ReadOnly, &[]).unwrap_err();
    // It is read as the shrink would leave it, and opened for changes it is left so.
    assert!(succeeds(["ls", &image.path]).contains("directory-3"));
    let found = undercroft(["check", &image.path]);
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(!found.status.success() && text.contains("a shrink was cut"), "{text}");
    let copy = image.beside("copy");
    image::copy(Path::new(&image.path), Path::new(&copy)).unwrap();
    succeeds(["fsck", "-p", &copy]);
    Xfsprogs::newest().unwrap().repair_check(Path::new(&copy)).unwrap();
    let text = succeeds(["shrink", "--abandon", &image.path]);
    assert!(
        text.contains("the shrink is given up: the volume has 160.0 MiB in 8 groups"),
        "{text}"
    );
    image.judged();
    let text = succeeds(["shrink", "--abandon", &image.path]);
    assert!(text.contains("nothing of a shrink was left: the volume has 160.0 MiB"), "{text}");
    image.judged();
}

#[test]
fn a_volume_that_was_never_finished_is_not_called_shrunk() {
    let image = Image::made(512 * MIB, &["-d", "agcount=4"]);
    let newest = Xfsprogs::newest().unwrap();
    for group in 0..4 {
        let commands = [format!("sb {group}"), "write -d inprogress 1".to_owned()];
        newest.db_expert(Path::new(&image.path), &commands.each_ref().map(String::as_str)).unwrap();
    }
    let before = fs::read(&image.path).unwrap();
    for command in [&["shrink", "--size", "400M"][..], &["shrink", "--abandon"], &["ls"]] {
        let message = fails(1, command.iter().chain(&[&*image.path]));
        assert!(message.contains("making this volume was never finished"), "{message}");
    }
    assert!(fs::read(&image.path).unwrap() == before);
}
