//! Damaged volumes of the kernel's XFS, listed and copied out.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

use crate::ann;
use crate::run::{fails, program, succeeds};

/// Attributes, with the lengths of their values.
const ATTRIBUTES: [(&str, usize); 3] =
    [("user.color", 3), ("user.many", 3_000), ("user.more", 60_000)];

/// A volume with some files of all kinds.
fn volume(home: &Path) -> String {
    let image = ann::volume(home, |ann, _| {
        std::os::unix::fs::symlink("far/".repeat(200), ann.join("long-link")).unwrap();
        for (name, len) in ATTRIBUTES {
            ann::set_attribute(&ann.join("picture.jpg"), name, &vec![b'x'; len]);
        }
    });
    image.display().to_string()
}

fn zero(image: &str, at: u64, len: usize) {
    let file = OpenOptions::new().write(true).open(image).unwrap();
    file.write_all_at(&vec![0; len], at).unwrap();
}

/// Checks what was put into the volume.
fn expect_all(at: &Path) {
    let ann = at.join("home/ann");
    assert_eq!(fs::read(ann.join("letter.txt")).unwrap(), b"dear Bob\n");
    let inode = |name| fs::metadata(ann.join(name)).unwrap().ino();
    assert_eq!(inode("letter.txt"), inode("deep/copy.txt"));
    assert_eq!(fs::read(ann.join("picture.jpg")).unwrap(), vec![7; 100_000]);
    let about = fs::metadata(ann.join("picture.jpg")).unwrap();
    assert_eq!((about.uid(), about.gid()), (1000, 1001));
    assert_eq!(fs::read_link(ann.join("link")).unwrap(), Path::new("letter.txt"));
    assert_eq!(fs::read_link(ann.join("long-link")).unwrap(), Path::new(&"far/".repeat(200)));
    for (name, len) in ATTRIBUTES {
        let mut value = vec![0; 1 << 16];
        let found = rustix::fs::getxattr(ann.join("picture.jpg"), name, &mut value[..]).unwrap();
        assert!(found == len && value[..len].iter().all(|byte| *byte == b'x'), "{name}");
    }
}

#[test]
fn a_volume_without_its_start_is_copied_out() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    // Other file systems do not take attributes of that length.
    let elsewhere = home.path().join("elsewhere");
    Xfsprogs::newest().unwrap().mkfs(&elsewhere, 320 << 20, &[]).unwrap();
    let elsewhere = LoopMount::new(&elsewhere, Access::ReadWrite, &[]).unwrap();
    let to = |name: &str| elsewhere.join(name);
    let told = succeeds(["salvage", &image, &to("sound").display().to_string()]);
    assert!(told.contains("4 whole files, 3 directories"), "{told}");
    expect_all(&to("sound"));

    zero(&image, 0, 64 << 10);
    let before = fs::read(&image).unwrap();
    // Headers are missing, which the exit status says.
    let output = |arguments: &[&str]| {
        let output = program().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stdout).unwrap()
    };
    let list = output(&["salvage", "--list", &image]);
    assert!(list.contains("/home/ann/deep/copy.txt /home/ann/letter.txt"), "{list}");
    let told = output(&["salvage", &image, &to("rescued").display().to_string()]);
    assert!(told.contains("4 whole files, 3 directories"), "{told}");
    assert!(told.contains("4 headers of groups are damaged"), "{told}");
    expect_all(&to("rescued"));
    fs::create_dir(to("untarred")).unwrap();
    let archive = program().args(["salvage", &image, "-"]).stdout(Stdio::piped()).output().unwrap();
    fs::write(to("archive.tar"), archive.stdout).unwrap();
    let status = Command::new("tar")
        .args(["xf", "archive.tar", "--xattrs", "--xattrs-include=*", "-C", "untarred"])
        .current_dir(elsewhere.path())
        .status();
    assert!(status.unwrap().success());
    expect_all(&to("untarred"));
    elsewhere.unmount().unwrap();
    assert_eq!(fs::read(&image).unwrap(), before, "it was written to");
}

#[test]
fn what_is_left_of_a_volume_is_looked_at_in_its_place() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    let to = |name: &str| home.path().join(name).display().to_string();
    let description = |image: &str| {
        let text = succeeds(["describe", "--format", "json", image]);
        // The root directory is not among what is salvaged.
        text.lines().filter(|line| !line.contains(r#""name":"/","#)).collect::<Vec<_>>().join("\n")
    };
    let was = description(&image);
    zero(&image, 0, 64 << 10);
    let before = fs::read(&image).unwrap();
    fails(1, ["ls", &image, "/"]);
    let view = format!("salvage:{image}");
    assert!(succeeds(["ls", "-l", &view, "/home/ann"]).contains("picture.jpg"));
    assert_eq!(succeeds(["cat", &view, "/home/ann/deep/copy.txt"]), "dear Bob\n");
    succeeds(["get", &view, "/home/ann/picture.jpg", &to("picture")]);
    assert_eq!(fs::read(to("picture")).unwrap(), vec![7; 100_000]);
    assert!(description(&view) == was);
    assert!(succeeds(["check", &view]).contains("clean"));
    succeeds(["extract", &view, &to("extracted")]);
    assert_eq!(fs::read(to("extracted/home/ann/letter.txt")).unwrap(), b"dear Bob\n");
    let seen = succeeds(["mount", "-r", &view, "--exec", "cat", "home/ann/letter.txt"]);
    assert_eq!(seen, "dear Bob\n");
    for arguments in [&["mkdir", &view, "/new"][..], &["trim", &view]] {
        let message = fails(1, arguments);
        assert!(message.contains("cannot be changed"), "{message}");
    }

    // A new volume of it.
    let newest = Xfsprogs::newest().unwrap();
    let output =
        program().args(["salvage", &image, "--to-image", &to("rescued")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    newest.repair_check(Path::new(&to("rescued"))).unwrap();
    assert!(description(&to("rescued")) == was);
    succeeds([
        "build",
        "--exclude",
        "picture.jpg",
        "--chown",
        "5:6",
        "**/letter.txt",
        &view,
        &to("built"),
    ]);
    newest.repair_check(Path::new(&to("built"))).unwrap();
    let list = succeeds(["ls", "-lR", &to("built"), "/"]);
    assert!(!list.contains("picture") && list.contains("copy.txt"), "{list}");
    succeeds(["copy", &format!("{view}:/home/ann"), &format!("{}:/", to("built"))]);
    assert_eq!(succeeds(["cat", &to("built"), "/ann/letter.txt"]), "dear Bob\n");
    assert_eq!(fs::read(&image).unwrap(), before, "it was written to");
}

#[test]
fn a_volume_below_a_new_one_is_chosen_by_its_uuid() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    let uuid = |image: &str| {
        let info: Value = serde_json::from_str(&succeeds(["info", image, "--json"])).unwrap();
        info["uuid"].as_str().unwrap().to_owned()
    };
    let old = uuid(&image);
    let newest = Xfsprogs::newest().unwrap();
    let mut mkfs = Command::new(newest.tool("mkfs.xfs").unwrap());
    assert!(mkfs.args(["-q", "-f", "-K", "--unsupported", &image]).status().unwrap().success());
    let new = uuid(&image);
    // The only one with files is taken without a question.
    let output = program().args(["salvage", "--list", "--json", &image]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["report"]["uuid"], old.as_str());
    assert_eq!(list["report"]["other_volumes"][0]["uuid"], new.as_str());

    let mount = LoopMount::new(Path::new(&image), Access::ReadWrite, &[]).unwrap();
    for number in 0..10 {
        fs::write(mount.join(format!("new-{number}")), "new").unwrap();
    }
    mount.unmount().unwrap();
    let message = fails(1, ["salvage", "--list", &image]);
    assert!(message.contains("--uuid") && message.contains(&old) && message.contains(&new));
    let list = succeeds(["salvage", "--list", "--uuid", &new, &image]);
    assert!(list.contains("/new-3"), "{list}");
    let message =
        fails(1, ["salvage", "--list", "--uuid", "11111111-1111-1111-1111-111111111111", &image]);
    assert!(message.contains("no metadata of the volume"), "{message}");
}

#[test]
fn what_is_no_volume_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("empty").display().to_string();
    fs::File::create(&image).unwrap().set_len(1 << 40).unwrap();
    let message = fails(1, ["salvage", "--list", &image]);
    assert!(message.contains("no metadata"), "{message}");
    fails(2, ["salvage", &image]);
}

/// A copy with a map of ddrescue: what the map says was not read is lost, whatever is in its place.
#[test]
fn what_a_map_says_is_lost_is_not_read() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path());
    let bytes = fs::read(&image).unwrap();
    let picture = bytes.chunks(4096).position(|block| block.iter().all(|byte| *byte == 7));
    let (start, end) = (4096 * picture.unwrap() + 8192, bytes.len());
    let map = home.path().join("map");
    fs::write(
        &map,
        format!(
            "# a comment\n0x00 + 1\n0 {start} +\n{start} 512 -\n{} 4096 /\n{} {} +\n",
            start + 512,
            start + 4608,
            end - start - 4608
        ),
    )
    .unwrap();
    let map = map.display().to_string();
    let output = |arguments: &[&str]| {
        let output = program().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let list = output(&["salvage", "--map", &map, "--list", "--json", &image]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let report = &list["report"];
    assert_eq!((&report["partial"], &report["unreadable_sectors"]), (&1.into(), &9.into()));
    let files = list["files"].as_array().unwrap();
    let picture = files.iter().find(|file| file["size"] == 100_000).unwrap();
    assert_eq!(picture["state"], "partly");
    assert_eq!(picture["lost"], serde_json::json!([[8192, 16384]]));
    let to = home.path().join("rescued");
    output(&["salvage", "--map", &map, &image, &to.display().to_string()]);
    let rescued = fs::read(to.join("home/ann/picture.jpg.partial")).unwrap();
    let is_lost = |at: usize| (8192..16384).contains(&at);
    assert!(rescued.iter().enumerate().all(|(at, byte)| *byte == if is_lost(at) { 0 } else { 7 }));

    fs::write(&map, "0 +\n0 5 read\n").unwrap();
    let message = fails(1, ["salvage", "--map", &map, "--list", &image]);
    assert!(message.contains("line 2"), "{message}");
}
