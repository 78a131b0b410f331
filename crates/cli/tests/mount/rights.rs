//! Locks and permissions.

use crate::mounted::{Volume, fails, succeeds, undercroft};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// Takes a lock of the kind of fcntl(2), without waiting for it.
const LOCK: &str = r#"
use Fcntl;
open(F, "+<", $ARGV[0]) or die;
my $lock = pack("s s x4 q q l", F_WRLCK, 0, 0, 0, 0);
exit(fcntl(F, F_SETLK, $lock) ? 0 : 1);
"#;

#[test]
fn locks_are_seen_by_other_processes() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = mounted.path("file");
    fs::write(&path, "x").unwrap();
    let other_gets_it = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&path);
        if program == "flock" {
            command.arg("true");
        }
        command.output().unwrap().status.success()
    };
    let file = File::options().read(true).write(true).open(&path).unwrap();
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    assert!(!other_gets_it("perl", &["-e", LOCK]));
    fcntl_lock(&file, FlockOperation::Unlock).unwrap();
    assert!(other_gets_it("perl", &["-e", LOCK]));
    flock(&file, FlockOperation::LockExclusive).unwrap();
    assert!(!other_gets_it("flock", &["-n"]));
    flock(&file, FlockOperation::Unlock).unwrap();
    assert!(other_gets_it("flock", &["-n"]));
    drop(file);
    mounted.unmount();
}

#[test]
fn directories_hand_down_their_group_and_keep_names_of_others() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    for (name, mode) in [("group", 0o2777), ("sticky", 0o1777)] {
        fs::create_dir(mounted.path(name)).unwrap();
        fs::set_permissions(mounted.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    std::os::unix::fs::chown(mounted.path("group"), None, Some(4321)).unwrap();
    let as_user = |id: &str, script: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", id, "--regid", id, "--clear-groups", "sh", "-c", script]);
        // The directory of the test belongs to root alone.
        command.current_dir(volume.at()).output().unwrap().status.success()
    };
    assert!(as_user("1234", "mkdir group/d && touch group/d/file sticky/file"));
    let metadata = fs::metadata(mounted.path("group/d/file")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    assert_eq!(fs::metadata(mounted.path("group/d")).unwrap().mode() & 0o2000, 0o2000);
    assert!(!as_user("1235", "rm -f sticky/file"));
    assert!(as_user("1234", "rm -f sticky/file"));
    mounted.unmount();
}

#[test]
fn owners_are_shown_as_asked_for() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "").unwrap();
    mounted.unmount();
    let mounted = volume.mount(&["-o", "ro,uid=1234,gid=4321"]);
    let metadata = fs::metadata(mounted.path("file")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    mounted.unmount();
}

/// A user who mounts with `-o fakeroot` sets owners and modes as root does, and the kernel's XFS agrees.
#[test]
fn a_fake_root_may_do_what_root_may() {
    let volume = Volume::new();
    let image = volume.image();
    for path in [volume.at(), image.parent().unwrap().to_owned()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    std::os::unix::fs::chown(&image, Some(65534), Some(65534)).unwrap();
    // Where that user may go, which a directory of builds need not be.
    let home = image.parent().unwrap();
    let own = home.join("undercroft");
    // Not by this process, of which a child of another test could hold the file open for writing.
    succeeds(Command::new("cp").arg(undercroft().get_program()).arg(&own));
    let script = "mkdir -p srv/closed && echo x >srv/closed/file && chown 5:6 srv/closed/file && \
        chmod 4750 srv/closed/file && chmod 0 srv/closed && cat srv/closed/file && stat -c %u:%g srv";
    let as_user = |options: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.env("TMPDIR", home).arg(&own).args(["mount", "-o", options]).arg(&image);
        command.args(["--exec", "sh", "-c", script]);
        command
    };
    assert!(!as_user("rw").output().unwrap().status.success());
    assert_eq!(succeeds(&mut as_user("fakeroot")), "x\n0:0\n");
    volume.is_clean();
    let listed = succeeds(undercroft().args(["ls", "-l"]).arg(&image).arg("/srv/closed"));
    assert!(listed.starts_with("-rwsr-x---   1     5     6            2 "), "{listed}");
    let message = fails(
        2,
        undercroft().args(["mount", "-o", "fakeroot,allow_other"]).arg(&image).arg("/mnt"),
    );
    assert!(message.contains("does not go with allow_other"), "{message}");
}
