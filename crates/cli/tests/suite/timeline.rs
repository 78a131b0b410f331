//! What happened on volumes of the kernel's XFS, in order.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use undercroft_judges::mount::Access;
use undercroft_judges::program::find;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

use crate::run::{fails, succeeds};

/// A history in steps. Each is its own in the journal: the volume is unmounted behind it.
fn volume(home: &Path, options: &[&str]) -> String {
    let image = home.join(format!("image{}", options.len()));
    Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, options).unwrap();
    let steps: [fn(&LoopMount); 6] = [
        |mount| {
            fs::create_dir(mount.join("letters")).unwrap();
            fs::write(mount.join("letters/draft"), "dear Bob\n").unwrap();
            fs::write(mount.join("stays"), "here").unwrap();
        },
        |mount| {
            let mut file =
                fs::OpenOptions::new().append(true).open(mount.join("letters/draft")).unwrap();
            file.write_all(&[b'x'; 5000]).unwrap();
        },
        |mount| {
            fs::create_dir(mount.join("sent")).unwrap();
            fs::rename(mount.join("letters/draft"), mount.join("sent/letter|1")).unwrap();
        },
        |mount| {
            fs::set_permissions(mount.join("sent/letter|1"), fs::Permissions::from_mode(0o400))
                .unwrap();
            chown(mount.join("sent/letter|1"), Some(1000), Some(1000)).unwrap();
        },
        |mount| fs::hard_link(mount.join("stays"), mount.join("sent/stays too")).unwrap(),
        |mount| fs::remove_file(mount.join("sent/letter|1")).unwrap(),
    ];
    for step in steps {
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        step(&mount);
        mount.unmount().unwrap();
    }
    image.display().to_string()
}

#[test]
fn events_are_told_in_order() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for options in [&[][..], &["-n", "parent=0"]] {
        let image = volume(home.path(), options);
        let before = fs::read(&image).unwrap();
        let list = succeeds(["timeline", &image]);
        let expected = [
            "created   /letters/draft",
            "grown     /letters/draft  9 -> 5009 bytes",
            "created   /sent",
            "renamed   /sent/letter|1  from /letters/draft",
            "rights    /sent/letter|1  0644 0:0 -> 0400 1000:1000",
            "linked    /sent/stays too",
            "removed   /sent/letter|1",
        ];
        let places = expected.map(|event| {
            let place = list.lines().position(|line| line.ends_with(event));
            place.unwrap_or_else(|| panic!("{options:?}: {event} is not in\n{list}"))
        });
        assert!(places.is_sorted(), "{options:?}\n{list}");
        assert_eq!(fs::read(&image).unwrap(), before, "the volume was written to");

        let list = succeeds(["timeline", &image, "--name", "draft"]);
        assert_eq!(list.lines().count(), 3, "{options:?}\n{list}");
        assert_eq!(succeeds(["timeline", &image, "--since", "2100-01-01T00:00:00Z"]), "");
        let json: Value = serde_json::from_str(&succeeds(["timeline", &image, "--json"])).unwrap();
        let events = json["events"].as_array().unwrap();
        let renamed = events.iter().find(|event| event["event"] == "renamed").unwrap();
        assert_eq!(renamed["name"], "/sent/letter|1");
        assert_eq!(renamed["renamed_from"]["name"], "/letters/draft");
        assert_eq!((&renamed["size"], &renamed["uid"]), (&5009.into(), &0.into()));
    }
}

/// The old name of a file that the journal knows nothing of is in the block of the directory that lost it.
#[test]
fn a_rename_is_told_of_after_the_journal_went_round() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for (number, options) in [&[][..], &["-n", "parent=0"]].into_iter().enumerate() {
        let image = home.path().join(number.to_string());
        let tools = Xfsprogs::newest().unwrap();
        tools.mkfs(&image, 320 << 20, options).unwrap();
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        for name in 0..100 {
            fs::write(mount.join(format!("a file with the name {name}")), "here").unwrap();
        }
        mount.unmount().unwrap();
        let mut repair = Command::new(tools.tool("xfs_repair").unwrap());
        assert!(repair.arg("-L").arg(&image).output().unwrap().status.success());
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        fs::rename(mount.join("a file with the name 50"), mount.join("renamed")).unwrap();
        mount.unmount().unwrap();
        let list = succeeds(["timeline", &image.display().to_string(), "--name", "*50"]);
        let renamed = "renamed   /renamed  from /a file with the name 50\n";
        assert!(list.ends_with(renamed) && list.lines().count() == 2, "{options:?}\n{list}");
    }
}

#[test]
fn the_sleuth_kit_reads_the_body_file() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let image = volume(home.path(), &[]);
    let body = home.path().join("body");
    fs::write(&body, succeeds(["timeline", &image, "--bodyfile"])).unwrap();
    let mactime = find("mactime".as_ref()).expect("the package sleuthkit has mactime");
    let mut mactime = Command::new(mactime);
    mactime.arg("-b").arg(&body).args(["-d", "-z", "UTC"]).stdin(Stdio::null());
    let output = mactime.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(!list.contains("Xxx"), "a line without a time\n{list}");
    let has = |flags: &str, name: &str| {
        let line = list.lines().find(|line| line.contains(&format!("\"{name}\"")));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{list}"));
        assert_eq!(line.split(',').nth(2), Some(flags), "{line}");
    };
    has("...b", "/letters/draft");
    has("m...", "/letters/draft (grown 9 -> 5009 bytes)");
    has("..c.", "/sent/letter\\x7c1 (renamed from /letters/draft)");
    has("..c.", "/sent/letter\\x7c1 (removed)");
    assert!(fails(2, ["timeline", &image, "--bodyfile", "--json"]).contains("cannot be used with"));
}
