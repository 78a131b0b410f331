//! Rules over the source of a build, and the space that it leaves free, as a kernel sees them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

use crate::run::{fails, program, succeeds};

fn tree(root: &Path) {
    for directory in ["etc/ssh", "usr/bin", "usr/share/doc/a", "home/u", "var"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root").unwrap();
    fs::write(root.join("etc/ssh/host_key"), "secret").unwrap();
    fs::write(root.join("etc/motd"), "the old one, which must not be in the image").unwrap();
    fs::write(root.join("usr/bin/app"), vec![7; 300_000]).unwrap();
    fs::hard_link(root.join("usr/bin/app"), root.join("usr/bin/app2")).unwrap();
    fs::write(root.join("usr/share/doc/a/README"), "").unwrap();
    fs::write(root.join("usr/share/doc/a/copyright"), "c").unwrap();
    symlink("usr/bin", root.join("bin")).unwrap();
}

/// What `getfattr` prints of the attributes of a file itself.
fn attributes(path: &Path) -> String {
    let mut command = Command::new("getfattr");
    command
        .args(["--no-dereference", "--absolute-names", "--dump", "--match=-", "--encoding=hex"])
        .arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn hex(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

const RULES: &str = "\
# made for a test
exclude /usr/share/doc
include copyright
add new:/etc/motd
mkdir /srv/www
symlink ../usr/bin:/srv/bin
owner-map 0:0,1000:2000
owner 5:6
chown 33:34 /srv/**
chmod u=rw,go= /etc/ssh/*_key
chmod 4755 app
root-mode 700
xattr user.origin=test /etc/**
mtime @1000000000.5
selinux contexts
";

const CONTEXTS: &str = "\
/.*\tsystem_u:object_r:default_t:s0
/etc(/.*)?\tsystem_u:object_r:etc_t:s0
/usr/bin(/.*)?\tsystem_u:object_r:bin_t:s0
/usr/bin/app\t--\tsystem_u:object_r:app_exec_t:s0
/srv/www\t-d\tsystem_u:object_r:www_t:s0
/var\t<<none>>
";

#[test]
fn rules_give_the_same_image_from_a_directory_and_an_archive_and_a_kernel_sees_them() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let root = home.path().join("tree");
    tree(&root);
    fs::write(path("new"), "hello\n").unwrap();
    fs::write(path("rules"), RULES).unwrap();
    fs::write(path("contexts"), CONTEXTS).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--format=pax", "--file", &path("tar")]);
    assert!(tar.arg("--directory").arg(&root).arg(".").status().unwrap().success());
    for (source, image) in [("tree", "one"), ("tar", "other")] {
        succeeds([
            "build",
            "--size",
            "40M",
            "--rules",
            &path("rules"),
            &path(source),
            &path(image),
        ]);
    }
    // The same rules as options.
    let options: Vec<String> = RULES
        .lines()
        .skip(1)
        .flat_map(|line| {
            let line = line.replace("add new", &format!("add {}", path("new")));
            let line = line.replace("selinux contexts", &format!("selinux {}", path("contexts")));
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            [vec![format!("--{}", words[0])], words[1..].to_vec()].concat()
        })
        .collect();
    let plain = ["build", "--size", "40M", &path("tree"), &path("third")].map(str::to_owned);
    succeeds(plain.iter().chain(&options));
    let images = ["one", "other", "third"].map(|name| fs::read(path(name)).unwrap());
    assert!(images[0] == images[1], "directory and archive differ");
    assert!(images[0] == images[2], "file and options differ");
    let old = b"the old one";
    assert!(!images[0].windows(old.len()).any(|bytes| bytes == old));

    assert_rules_were_followed(Path::new(&path("one")));
}

/// What [`RULES`] and [`CONTEXTS`] make of [`tree`].
fn assert_rules_were_followed(image: &Path) {
    Xfsprogs::newest().unwrap().repair_check(image).unwrap();
    let mount = LoopMount::new(image, Access::ReadOnly, &[]).unwrap();
    let at = |name: &str| mount.join(name);
    let of = |name: &str| {
        let metadata = at(name).symlink_metadata().unwrap();
        (metadata.permissions().mode() & 0o7777, metadata.uid(), metadata.gid())
    };
    assert_eq!(of(""), (0o700, 5, 6));
    assert_eq!(of("etc/ssh/host_key"), (0o600, 5, 6));
    assert_eq!(of("usr/bin/app2").0, 0o4755);
    assert_eq!(of("srv"), (0o755, 5, 6));
    assert_eq!(of("srv/www"), (0o755, 33, 34));
    assert_eq!(fs::read_to_string(at("etc/motd")).unwrap(), "hello\n");
    assert_eq!(fs::read_link(at("srv/bin")).unwrap(), Path::new("../usr/bin"));
    assert!(at("usr/share/doc/a/copyright").exists() && !at("usr/share/doc/a/README").exists());
    let metadata = at("usr/bin/app").metadata().unwrap();
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 500_000_000));
    for (name, label) in [
        ("", "default_t"),
        ("etc", "etc_t"),
        ("etc/ssh/host_key", "etc_t"),
        ("usr/bin/app", "app_exec_t"),
        ("usr", "default_t"),
        ("srv/www", "www_t"),
        ("srv/bin", "default_t"),
        ("bin", "default_t"),
    ] {
        let shown = attributes(&at(name));
        // A zero byte ends it, as setfiles writes it.
        let line = format!("security.selinux={}", hex(&format!("system_u:object_r:{label}:s0\0")));
        assert!(shown.contains(&line), "{name}: {shown}");
    }
    assert!(!attributes(&at("var")).contains("selinux"));
    assert!(attributes(&at("etc/ssh/host_key")).contains(&format!("user.origin={}", hex("test"))));
    assert!(!attributes(&at("usr/bin/app")).contains("user.origin"));
}

#[test]
fn wrong_rules_are_refused_and_leave_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    tree(&home.path().join("tree"));
    fs::write(path("image"), "an older image").unwrap();
    fs::write(path("contexts"), "/ok u:r:t\n/bad[ u:r:t\n").unwrap();
    fs::write(path("rules"), "chmod 600 /etc/passwd\n\nchmod 600\n").unwrap();
    let before = fs::read_dir(home.path()).unwrap().count();
    let contexts = path("contexts");
    let rules = path("rules");
    for (status, options, message) in [
        (2, vec!["--chmod", "600", "/etc/["], "--chmod 600 /etc/[: the pattern"),
        (2, vec!["--rules", &rules], "rules, line 3 (chmod 600): write chmod MODE GLOB"),
        (2, vec!["--rules", "/nonexistent"], "cannot read the rules in /nonexistent"),
        (2, vec!["--add", "/nonexistent:/x"], "cannot find /nonexistent"),
        (2, vec!["--symlink", "b:/a", "--symlink", "a:/b"], "leads back to itself"),
        (2, vec!["--mkdir", "/a", "--symlink", "x:/a"], "is made by --mkdir /a, too"),
        (2, vec!["--selinux", &contexts], "line 2: expression /bad[: a class"),
        (1, vec!["--mkdir", "/etc/passwd/x"], "--mkdir /etc/passwd/x: etc/passwd is a file"),
        (1, vec!["--strict", "--chmod", "600", "/absent"], "--chmod 600 /absent: matches nothing"),
        (
            1,
            vec!["--strict", "--exclude", "passwd", "--exclude", "*.absent"],
            "*.absent matches nothing",
        ),
    ] {
        let image = path("image");
        let tree = path("tree");
        let arguments = ["build", "--force", &tree, &image].into_iter().chain(options.clone());
        let arguments: Vec<_> = arguments.collect();
        let said = fails(status, arguments);
        assert!(said.contains(message), "{options:?}: {said}");
        assert_eq!(fs::read(&image).unwrap(), b"an older image");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), before);
    }
    let image = path("image");
    let arguments =
        ["build", "--force", "--json", &path("tree"), &image, "--chown", "1:1", "/absent"];
    let output = program().args(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains("warning: --chown 1:1 /absent: matches nothing")
    );
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"rule_warnings\":[\"--chown"));
}

#[test]
fn as_much_stays_free_as_was_asked_for() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let root = home.path().join("tree");
    tree(&root);
    for number in 0..3000 {
        fs::write(root.join(format!("home/u/{number}")), vec![1; number * 7]).unwrap();
    }
    let mib = 1 << 20;
    for (free, bytes, percent) in
        [("0", 0, 0), ("100M", 100 * mib, 0), ("20%", 0, 20), ("75%", 0, 75)]
    {
        let (tree, image) = (path("tree"), path("image"));
        succeeds(["build", "--force", "--free", free, &tree, &image]);
        let mount = LoopMount::new(Path::new(&path("image")), Access::ReadWrite, &[]).unwrap();
        let space = rustix::fs::statvfs(mount.path()).unwrap();
        let (left, all) = (space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize);
        assert!(left >= bytes && left * 100 >= all * percent, "{free}: {left} of {all}");
        // Not much more, either: the least volume and its groups take some.
        let most = bytes + all * percent / 100 + all / 10 + 24 * mib;
        assert!(left <= most, "{free}: {left} of {all}");
    }
    for wrong in ["100%", "-1%", "x", "2E"] {
        fails(2, ["build", "--free", wrong, &path("tree"), &path("none")]);
    }
    fails(2, ["build", "--free", "1M", "--size", "min", &path("tree"), &path("none")]);
    // A file whose length is given cannot grow.
    let fixed = format!("file:size=64M({})", path("part"));
    let said = fails(1, ["build", "--free", "99%", &path("tree"), &fixed]);
    assert!(said.contains("the device would have"), "{said}");
}

#[test]
fn a_volume_that_will_grow_has_the_journal_of_the_larger_one() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    tree(&home.path().join("tree"));
    let log = |image: &str| {
        let newest = Xfsprogs::newest().unwrap();
        let said = newest.db(Path::new(image), &["sb 0", "print logblocks"]).unwrap();
        said.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    succeeds(["mkfs", "--size", "1T", &path("large")]);
    let large = log(&path("large"));
    for (name, option) in [("grow", "--grow-on-boot=1T"), ("log", "--log-size=auto:1T")] {
        succeeds(["build", option, &path("tree"), &path(name)]);
        assert_eq!(log(&path(name)), large);
        Xfsprogs::newest().unwrap().repair_check(Path::new(&path(name))).unwrap();
    }
    succeeds(["mkfs", "--size", "700M", "--log-size", "auto:300G", &path("empty")]);
    let mount = LoopMount::new(Path::new(&path("empty")), Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("file"), "data").unwrap();
    mount.unmount().unwrap();
    succeeds(["grow", "--size", "20G", &path("empty")]);
    Xfsprogs::newest().unwrap().repair_check(Path::new(&path("empty"))).unwrap();
    fails(2, ["build", "--grow-on-boot", "1T", "--log-size", "64M", &path("tree"), &path("none")]);
    fails(2, ["build", "--log-size", "auto:", &path("tree"), &path("none")]);
}
