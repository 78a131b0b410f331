//! Times, extended attributes, access lists, flags.

use crate::mounted::{Mounted, Volume, fails, wait_for};
use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn times_are_kept_to_the_nanosecond() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let file = File::create(mounted.path("file")).unwrap();
    let early = UNIX_EPOCH - Duration::from_nanos(1_250_000_001);
    let late = UNIX_EPOCH + Duration::from_nanos(4_000_000_000_123_456_789);
    file.set_times(FileTimes::new().set_modified(early).set_accessed(late)).unwrap();
    drop(file);
    mounted.unmount();
    let mounted = volume.mount(&["-o", "ro"]);
    let metadata = fs::metadata(mounted.path("file")).unwrap();
    assert_eq!(metadata.modified().unwrap(), early);
    assert_eq!(metadata.accessed().unwrap(), late);
    mounted.unmount();
}

/// The kernel counts the times of files whose data it holds back; the volume has the same.
#[test]
fn times_are_the_same_after_a_mount_as_before() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "some").unwrap();
    fs::set_permissions(mounted.path("file"), fs::Permissions::from_mode(0o640)).unwrap();
    let times = |metadata: fs::Metadata| {
        (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec())
    };
    let before = times(fs::metadata(mounted.path("file")).unwrap());
    mounted.unmount();
    let mounted = volume.mount(&[]);
    assert_eq!(times(fs::metadata(mounted.path("file")).unwrap()), before);
    mounted.unmount();
}

#[test]
fn extended_attributes_are_kept() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "").unwrap();
    for (name, value) in [("user.one", "1"), ("trusted.two", "2"), ("security.three", "3")] {
        mounted.run("setfattr", &["-n", name, "-v", value], "file");
    }
    let long = "x".repeat(60_000);
    mounted.run("setfattr", &["-n", "user.long", "-v", &long], "file");
    mounted.run("setfattr", &["-x", "user.one"], "file");
    let list = mounted.run("getfattr", &["-d", "-m", "-", "--absolute-names"], "file");
    assert!(!list.contains("user.one") && list.contains(&format!("user.long=\"{long}\"")));
    assert!(list.contains("trusted.two=\"2\"") && list.contains("security.three=\"3\""));
    let path = mounted.path("file");
    fails(1, Command::new("getfattr").args(["-n", "user.one"]).arg(path));
    mounted.unmount();
}

#[test]
fn access_lists_are_checked_and_handed_down() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::create_dir(mounted.path("d")).unwrap();
    fs::write(mounted.path("d/file"), "secret").unwrap();
    fs::set_permissions(mounted.path("d/file"), fs::Permissions::from_mode(0o600)).unwrap();
    let as_user = |id: u32, name: &str| {
        let id = id.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "cat"]);
        // The directory of the test belongs to root alone.
        command.arg(name).current_dir(mounted.path("d")).output().unwrap().status.success()
    };
    assert!(!as_user(1234, "file"));
    mounted.run("setfacl", &["-m", "u:1234:r"], "d/file");
    assert!(as_user(1234, "file") && !as_user(1235, "file"));
    mounted.run("setfacl", &["-d", "-m", "u:1235:rwx,o::-"], "d");
    // The umask does not count where a list is handed down.
    let path = mounted.path("d/new");
    let made = Command::new("sh").args(["-c", "umask 077; echo x >\"$0\""]).arg(&path).status();
    assert!(made.unwrap().success());
    assert!(as_user(1235, "new") && !as_user(1236, "new"));
    let list = mounted.run("getfacl", &["-c", "-n", "--absolute-names"], "d/new");
    assert!(list.contains("user:1235:rwx\t#effective:rw-"), "{list}");
    mounted.unmount();
    let mounted = volume.mount(&["-o", "ro"]);
    let again = mounted.run("getfacl", &["-c", "-n", "--absolute-names"], "d/new");
    assert_eq!(again, list);
    mounted.unmount();
}

#[test]
fn flags_and_projects_are_set() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "x").unwrap();
    mounted.run("chattr", &["+i"], "file");
    assert!(mounted.run("lsattr", &[], "file").contains("----i-"));
    assert!(fs::remove_file(mounted.path("file")).is_err());
    mounted.run("chattr", &["-i"], "file");
    mounted.run("chattr", &["+a"], "file");
    assert!(fs::remove_file(mounted.path("file")).is_err());
    // It grows, although the kernel sends its first page anew.
    let append = |script: &str| {
        Command::new("sh").args(["-c", script]).current_dir(volume.at()).output().unwrap().status
    };
    assert!(append("echo more >>file && sync file && echo more >>file && sync file").success());
    // What the kernel counts later is no change of a program.
    let file = File::options().append(true).open(mounted.path("file")).unwrap();
    for _ in 0..3 {
        (&file).write_all(b"once more").unwrap();
        file.sync_all().unwrap();
    }
    drop(file);
    assert!(append("touch file && sync -f file && ! touch -d 2001-01-01 file").success());
    assert!(!append("printf y | dd of=file bs=1 conv=notrunc,fsync").success());
    // The kernel drops what could not be stored, a moment later.
    wait_for("the file as it was", || fs::read(mounted.path("file")).unwrap().starts_with(b"x"));
    assert!(!append("echo y >file").success());
    mounted.run("chattr", &["-a"], "file");
    mounted.run("chattr", &["-p", "42"], "file");
    assert!(mounted.run("lsattr", &["-p"], "file").trim_start().starts_with("42 "));
    // Data and times from before the flag are kept.
    fs::write(mounted.path("file"), "before").unwrap();
    mounted.run("chattr", &["+i"], "file");
    assert!(
        append("sync file && ! touch file && sleep .03 && ! touch -m -d 2001-01-01 file").success()
    );
    mounted.run("chattr", &["-i"], "file");
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"before");
    // A flag that XFS has not.
    fails(1, Command::new("chattr").arg("+C").arg(mounted.path("file")));
    fs::remove_file(mounted.path("file")).unwrap();
    fs::create_dir(mounted.path("d")).unwrap();
    flags_are_set_as_the_kernel_sets_them(&mounted, "d");
    // One that it keeps for others, and hands down.
    mounted.run("chattr", &["+x"], "d");
    fs::write(mounted.path("d/file"), "x").unwrap();
    mounted.unmount();
    let mounted = volume.mount(&[]);
    for name in ["d", "d/file"] {
        let flags = mounted.run("lsattr", &["-d"], name);
        assert!(flags.split_whitespace().next().unwrap().contains('x'), "{flags}");
    }
    mounted.run("chattr", &["-x"], "d/file");
    mounted.unmount();
}

/// What `xfs_io` sets, and what is there then: none is lost without a word.
fn flags_are_set_as_the_kernel_sets_them(mounted: &Mounted, directory: &str) {
    let file = format!("{directory}/plain");
    fs::write(mounted.path(&file), "").unwrap();
    // Inherited project, no symbolic links, file streams, inherited real time, real time; kept by a
    // directory, by a file.
    for (letter, in_directory, in_file) in [
        ('P', true, false),
        ('n', true, false),
        ('S', true, true),
        ('t', true, false),
        ('r', false, false),
    ] {
        for (name, is_kept) in [(directory, in_directory), (&file, in_file)] {
            // The status is that of the program, not of the change.
            let change = |sign: char| {
                let command = format!("chattr {sign}{letter}");
                Command::new("xfs_io").args(["-c", &command]).arg(mounted.path(name)).output()
            };
            change('+').unwrap();
            let flags = mounted.run("xfs_io", &["-r", "-c", "lsattr"], name);
            let flags = flags.split_whitespace().next().unwrap();
            assert_eq!(flags.contains(letter), is_kept, "{name} {letter}: {flags}");
            change('-').unwrap();
        }
    }
    // `chattr` knows one of them, which means nothing to a file.
    mounted.run("chattr", &["+P"], &file);
    fs::remove_file(mounted.path(&file)).unwrap();
}

/// Setuid bits and capabilities end with the content for which they were given.
#[test]
fn privileges_end_with_a_write() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = mounted.path("program");
    let give = || {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
    };
    let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
    let as_user = |script: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=1234", "--regid=1234", "--clear-groups", "sh", "-c", script]);
        // The directory of the test belongs to root alone.
        assert!(command.current_dir(volume.at()).status().unwrap().success());
    };
    give();
    assert_eq!(mode(), 0o6777);
    as_user("echo new >>program");
    assert_eq!(mode(), 0o777);
    give();
    as_user("truncate -s 1 program");
    assert_eq!(mode(), 0o777);
    give();
    // A capability of version 2: CAP_NET_RAW, permitted.
    let value = "0x0000000200200000000000000000000000000000";
    mounted.run("setfattr", &["-n", "security.capability", "-v", value], "program");
    as_user("echo new >>program");
    let gone = ["-n", "security.capability"];
    fails(1, Command::new("getfattr").args(gone).arg(&path));
    mounted.unmount();
}

/// The kernel counts the times of regular files by itself, and shows those of the volume where they are others.
#[test]
fn times_that_the_volume_has_otherwise_are_shown() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = mounted.path("file");
    fs::write(&path, "some").unwrap();
    let before = fs::metadata(&path).unwrap();
    let before = (before.ctime(), before.ctime_nsec());
    mounted.run("chattr", &["+A"], "file");
    wait_for("the time that chattr set", || {
        let now = fs::metadata(&path).unwrap();
        (now.ctime(), now.ctime_nsec()) > before
    });
    // The volume holds times until 2486.
    mounted.run("touch", &["-d", "2600-01-01"], "file");
    wait_for("the last time of the volume", || {
        fs::metadata(&path).unwrap().mtime() == 16_299_260_424
    });
    assert_eq!(fs::read(&path).unwrap(), b"some");
    // One that is open keeps its times until it is closed.
    let open = File::open(&path).unwrap();
    mounted.run("touch", &["-d", "2601-01-01"], "file");
    std::thread::sleep(Duration::from_millis(50));
    assert!(fs::metadata(&path).unwrap().mtime() > 16_299_260_424);
    drop(open);
    wait_for("the time behind the last closing", || {
        fs::metadata(&path).unwrap().mtime() == 16_299_260_424
    });
    mounted.unmount();
}
