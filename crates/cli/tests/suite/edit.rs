//! Commands that change a volume, one at a time and in a shell; changes that they refuse.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Options, compare};
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};

use crate::run::{Sample, crashed, fails, program, sample, succeeds, undercroft};

/// A volume of 64 MiB with a small tree.
fn volume() -> Sample {
    sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"])
}

/// Runs a command on the volume that must succeed.
#[track_caller]
fn on(sample: &Sample, verb: &str, args: &[&str]) -> String {
    succeeds([verb, &sample.image].iter().chain(args))
}

/// Runs a command on the volume that must fail, and change nothing; returns its message.
#[track_caller]
fn refused(sample: &Sample, verb: &str, args: &[&str]) -> String {
    let before = succeeds(["ls", "-lR", &sample.image]);
    let message = fails(1, [verb, &sample.image].iter().chain(args));
    assert!(message.starts_with("error: "), "{message}");
    assert_eq!(succeeds(["ls", "-lR", &sample.image]), before, "{verb} {args:?}");
    message
}

/// Our check and the newest `xfs_repair -n` find nothing.
#[track_caller]
fn judged(sample: &Sample) {
    let report = succeeds(["check", &sample.image]);
    assert!(report.starts_with("clean: "), "{report}");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&sample.image)).unwrap();
}

fn shell(sample: &Sample, options: &[&str], script: &str) -> Output {
    let mut child = program()
        .args(["shell", &sample.image])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn names_are_made_moved_and_removed() {
    let sample = volume();
    on(&sample, "mkdir", &["-p", "/a/b/c"]);
    on(&sample, "mkdir", &["-m", "1777", "--owner", "5:6", "/tmp"]);
    on(&sample, "ln", &["/etc/hosts", "/a/hosts"]);
    on(&sample, "ln", &["-s", "../etc/hosts", "/a/link"]);
    on(&sample, "mknod", &["/a/null", "c", "1", "3"]);
    on(&sample, "mknod", &["-m", "600", "/a/pipe", "p"]);
    on(&sample, "mv", &["/a/pipe", "/a/b"]);
    on(&sample, "mv", &["--exchange", "/a/null", "/etc/deep"]);
    on(&sample, "mv", &["/a/link", "/a/symlink"]);
    assert_eq!(on(&sample, "ls", &["-R", "/a"]), ls_after_moves());
    assert!(on(&sample, "stat", &["/etc/deep"]).contains("character device"));
    let tmp = on(&sample, "ls", &["-l", "/"]);
    assert!(tmp.lines().any(|line| line.starts_with("drwxrwxrwt   2     5     6")), "{tmp}");
    judged(&sample);
    on(&sample, "rm", &["-r", "/a", "/tmp"]);
    assert_eq!(on(&sample, "ls", &["-R", "/"]), "/:\netc\n\n/etc:\ndeep\nhosts\nlink\n");
    judged(&sample);
}

fn ls_after_moves() -> &'static str {
    "/a:\nb\nhosts\nnull\nsymlink\n\n/a/b:\nc\npipe\n\n/a/b/c:\n\n/a/null:\nodd\nname\n"
}

#[test]
fn metadata_is_set() {
    let sample = volume();
    on(&sample, "chmod", &["4711", "/etc/hosts"]);
    on(&sample, "touch", &["--time", "@12.5", "/etc/hosts", "/etc/new"]);
    let long = on(&sample, "ls", &["-l", "/etc"]);
    assert!(
        long.contains("-rws--x--x   1     0     0           20 1970-01-01T00:00:12.500000000Z")
    );
    assert!(
        long.contains("-rw-r--r--   1     0     0            0 1970-01-01T00:00:12.500000000Z")
    );
    on(&sample, "chown", &["-R", "7:8", "/etc"]);
    on(&sample, "chown", &[":9", "/etc/new"]);
    let long = on(&sample, "ls", &["-l", "/etc"]);
    // The setuid bit goes with the owner.
    assert!(long.contains("-rwx--x--x   1     7     8           20"), "{long}");
    assert!(long.contains("-rw-r--r--   1     7     9            0"), "{long}");
    let message = refused(&sample, "chmod", &["--no-follow", "644", "/etc/link"]);
    assert!(message.contains("symbolic link"), "{message}");
    judged(&sample);
}

#[test]
fn owners_have_names_and_modes_letters() {
    let sample = volume();
    let fields = |path: &str| {
        let line = on(&sample, "ls", &["-l", path]);
        let fields: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        [fields[0].clone(), fields[2].clone(), fields[3].clone()]
    };
    // Without the files there are only numbers.
    assert!(refused(&sample, "chown", &["alice", "/etc/hosts"]).contains("/etc/passwd"));
    on(&sample, "chown", &["5:6", "/etc/hosts"]);
    let local = sample.path("local");
    for (path, lines) in [
        ("/etc/passwd", "root:x:0:0::/:\nalice:x:1000:100:A:/home:/bin/sh\n77:x:78:79::/:\nbad\n"),
        ("/etc/group", "root:x:0:\nstaff:x:50:alice\n"),
    ] {
        fs::write(&local, lines).unwrap();
        on(&sample, "put", &[&local, path]);
    }
    for (owner, uid, gid) in [
        ("alice:staff", "1000", "50"),
        (":root", "1000", "0"),
        ("root", "0", "0"),
        ("alice:", "1000", "100"),
        // A name, although it looks like a number; a number that is no name.
        ("77:4294967294", "78", "4294967294"),
        ("76:staff", "76", "50"),
    ] {
        on(&sample, "chown", &[owner, "/etc/hosts"]);
        assert_eq!(fields("/etc/hosts")[1..], [uid, gid], "{owner}");
    }
    for (owner, part) in [
        ("bob", "/etc/passwd of the volume has no bob"),
        (":wheel", "/etc/group of the volume has no wheel"),
        ("bad:", "bad"),
        ("5:", "has no user 5"),
    ] {
        let message = refused(&sample, "chown", &[owner, "/etc/hosts"]);
        assert!(message.contains(part), "{message}");
    }
    for wrong in ["", ":", "a:b:c", "4294967296"] {
        fails(2, ["chown", &sample.image, wrong, "/etc/hosts"]);
    }
    on(&sample, "chmod", &["4640", "/etc/hosts"]);
    on(&sample, "chmod", &["u+x,g-r,o=u", "/etc/hosts"]);
    assert_eq!(fields("/etc/hosts")[0], "-rws---rwx");
    on(&sample, "chmod", &["-R", "go=rX", "/etc"]);
    assert!(on(&sample, "stat", &["/etc/deep"]).contains("(0755)"));
    assert_eq!(fields("/etc/hosts")[0], "-rwsr-xr-x");
    assert_eq!(fields("/etc/passwd")[0], "-rw-r--r--");
    fails(2, ["chmod", &sample.image, "u+q", "/etc/hosts"]);
    judged(&sample);
}

#[test]
fn what_may_be_negative_is_typed_as_it_is() {
    let sample = volume();
    on(&sample, "touch", &["--time", "@-5.5", "/etc/hosts"]);
    assert!(on(&sample, "ls", &["-l", "/etc/hosts"]).contains(" 1969-12-31T23:59:54.500000000Z "));
    let new = sample.path("new");
    succeeds(["mkfs", "--size", "64M", "--source-date-epoch", "-5", &new]);
    assert!(succeeds(["stat", &new, "/"]).contains("1969-12-31T23:59:55"));
}

#[test]
fn attributes_and_access_lists() {
    let sample = volume();
    on(&sample, "setxattr", &["/etc/hosts", "user.comment", "hello"]);
    on(&sample, "setxattr", &["/etc/hosts", "security.x", "--hex", "00ff"]);
    on(&sample, "setxattr", &["/etc", "trusted.large", &"v".repeat(10_000)]);
    assert_eq!(on(&sample, "getxattr", &["/etc/hosts", "user.comment"]), "hello");
    let all = "security.x=\"\\x00\\xff\"\nuser.comment=\"hello\"\n";
    assert_eq!(on(&sample, "getxattr", &["/etc/hosts"]), all);
    let json = on(&sample, "getxattr", &["--json", "/etc/hosts"]);
    assert!(json.contains(r#"{"name":"security.x","bytes":2,"hex":"00ff"}"#), "{json}");
    let set = ["/etc/hosts", "user.comment", "other"];
    let message = refused(&sample, "setxattr", &[&["--create"], &set[..]].concat());
    assert!(message.contains("user.comment: exists already"), "{message}");
    let message = refused(&sample, "setxattr", &["--replace", "/etc", "user.comment", "x"]);
    assert!(message.contains("user.comment: no such"), "{message}");
    let message = refused(&sample, "setxattr", &["--no-follow", "/etc/link", "user.comment", "x"]);
    assert!(message.contains("/etc/link: only files and directories"), "{message}");
    let message = refused(&sample, "setxattr", &["/etc", "comment", "x"]);
    assert!(message.contains("user., trusted. and security."), "{message}");
    on(&sample, "rmxattr", &["/etc/hosts", "user.comment", "security.x"]);
    let message = refused(&sample, "rmxattr", &["/etc/hosts", "user.comment"]);
    assert!(message.contains("/etc/hosts: has no attribute user.comment"), "{message}");

    on(&sample, "setacl", &["/etc/hosts", "u::rw-,u:1000:rwx,g::r--,o::---"]);
    let list = "user::rw-\nuser:1000:rwx\ngroup::r--\nmask::rwx\nother::---\n";
    assert_eq!(on(&sample, "getacl", &["/etc/hosts"]), list);
    on(&sample, "setacl", &["-d", "/etc", "u::rwx,g:5:rx,g::rx,o::---"]);
    on(&sample, "mkdir", &["/etc/sub"]);
    let lists = on(&sample, "getacl", &["/etc/sub"]);
    assert!(lists.contains("group:5:r-x\n") && lists.contains("default:mask::r-x\n"), "{lists}");
    on(&sample, "chmod", &["600", "/etc/hosts"]);
    assert!(on(&sample, "getacl", &["/etc/hosts"]).contains("mask::---"));
    on(&sample, "setacl", &["--remove", "/etc/hosts"]);
    assert_eq!(on(&sample, "getacl", &["/etc/hosts"]), "user::rw-\ngroup::---\nother::---\n");
    let message = refused(&sample, "setacl", &["-d", "/etc/hosts", "u::r,g::r,o::r"]);
    assert!(message.contains("only a directory"), "{message}");
    fails(2, ["setacl", &sample.image, "/etc", "u:root:r"]);
    judged(&sample);
}

#[test]
fn contents_come_and_go() {
    let sample = volume();
    let (local, back) = (sample.path("local"), sample.path("back"));
    let mut bytes = vec![7; 300_000];
    bytes[5000..200_000].fill(0);
    fs::write(&local, &bytes).unwrap();
    on(&sample, "put", &[&local, "/etc"]);
    assert!(on(&sample, "ls", &["/etc"]).contains("local"));
    let message = refused(&sample, "put", &[&local, "/etc/local"]);
    assert!(message.contains("--force"), "{message}");
    fs::write(&local, b"short").unwrap();
    on(&sample, "put", &["--force", &local, "/etc/local"]);
    assert_eq!(on(&sample, "cat", &["/etc/local"]), "short");
    fs::write(&local, &bytes).unwrap();
    on(&sample, "put", &["-m", "600", &local, "/etc/large"]);
    on(&sample, "clone", &["/etc/large", "/etc/clone"]);
    on(&sample, "truncate", &["/etc/clone", "100000"]);
    on(&sample, "fallocate", &["--punch-hole", "-s", "0", "-l", "8192", "/etc/clone"]);
    on(&sample, "fallocate", &["-l", "1M", "--keep-size", "/etc/hosts"]);
    on(&sample, "get", &["/etc/large", &back]);
    assert!(fs::read(&back).unwrap() == bytes, "what comes out is what went in");
    let message = refused(&sample, "get", &["/etc/large", &back]);
    assert!(message.contains("--force"), "{message}");
    let differ = undercroft(["dedupe", &sample.image, "/etc/large", "/etc/local"]);
    assert_eq!(differ.status.code(), Some(1));
    on(&sample, "put", &[&local, "/etc/same"]);
    on(&sample, "dedupe", &["/etc/large", "/etc/same"]);
    assert_eq!(on(&sample, "cat", &["/etc/hosts"]), "127.0.0.1 localhost\n");
    judged(&sample);
}

/// What `xfs_io` says that the hint is, in bytes.
fn kernels_hint(mount: &LoopMount, command: &str, path: &str) -> u64 {
    let run = Command::new("xfs_io").args(["-r", "-c", command]).arg(mount.join(path)).output();
    let text = String::from_utf8(run.unwrap().stdout).unwrap();
    let number = text.trim_start_matches('[').split(']').next();
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{command}: {text}"))
}

#[test]
fn hints_are_those_that_a_kernel_reads_and_hands_down() {
    let sample = volume();
    let (local, block) = (sample.path("local"), [7; 4096]);
    fs::write(&local, block).unwrap();
    on(&sample, "mkdir", &["/hinted"]);
    on(&sample, "extsize", &["--extent", "256K", "--copy", "64K", "/hinted"]);
    on(&sample, "put", &[&local, "/hinted/file"]);
    on(&sample, "touch", &["/empty", "/copied"]);
    on(&sample, "extsize", &["--extent", "1M", "/empty", "/copied"]);
    on(&sample, "extsize", &["--extent", "0", "--copy", "8K", "/copied"]);
    let stat = on(&sample, "stat", &["/hinted/file"]);
    assert!(stat.contains("extents of 262144 bytes") && stat.contains("copies of 65536"), "{stat}");
    let stat = on(&sample, "stat", &["--json", "/copied"]);
    assert!(stat.contains("\"copy_hint\":8192") && !stat.contains("extent_hint"), "{stat}");
    let has_space = refused(&sample, "extsize", &["--extent", "8K", "/hinted/file"]);
    assert!(has_space.contains("it has space already"), "{has_space}");
    judged(&sample);
    if !kernel::available_or_report() {
        return;
    }
    let mount = LoopMount::new(Path::new(&sample.image), Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("hinted/kernels"), block).unwrap();
    let cases = [
        ("hinted", 262_144, 65_536),
        ("hinted/file", 262_144, 65_536),
        ("hinted/kernels", 262_144, 65_536),
        ("empty", 1 << 20, 0),
        ("copied", 0, 8192),
    ];
    for (path, extent, copy) in cases {
        assert_eq!(kernels_hint(&mount, "extsize", path), extent, "{path}");
        assert_eq!(kernels_hint(&mount, "cowextsize", path), copy, "{path}");
    }
    rustix::fs::syncfs(fs::File::open(mount.path()).unwrap()).unwrap();
    let sectors = |path| mount.join(path).metadata().unwrap().blocks();
    assert_eq!(sectors("hinted/file"), sectors("hinted/kernels"));
    mount.unmount().unwrap();
    judged(&sample);
}

#[test]
fn bad_input_is_refused_with_its_path() {
    let sample = volume();
    let cases: &[(&str, &[&str], &str)] = &[
        ("mkdir", &["/no/such"], "/no: no such file"),
        ("mkdir", &["/etc"], "/etc: exists already"),
        ("mkdir", &["/etc/hosts/x"], "not a directory"),
        ("mkdir", &["-p", "/etc/hosts/x"], "/etc/hosts: not a directory"),
        ("mkdir", &["/"], "/: it ends in no name"),
        ("rm", &["/no"], "/no: no such file"),
        ("rm", &["/etc"], "use -r"),
        ("rm", &["-d", "/etc"], "/etc: the directory is not empty"),
        ("rm", &["-r", "/"], "root directory cannot be removed"),
        ("mv", &["/no", "/x"], "/no: no such file"),
        ("mv", &["/etc", "/etc/deep"], "below itself"),
        ("mv", &["-T", "/etc/hosts", "/etc/deep"], "/etc/deep: is a directory"),
        ("mv", &["--no-replace", "/etc/hosts", "/etc/link"], "/etc/link: exists already"),
        ("mv", &["--exchange", "/etc/hosts", "/etc/no"], "/etc/no: no such file"),
        ("ln", &["/etc", "/x"], "/etc: is a directory"),
        ("ln", &["/etc/hosts", "/etc/link"], "/etc/link: exists already"),
        ("extsize", &["--extent", "5000", "/etc"], "a hint is a multiple of 4096"),
        ("truncate", &["/etc", "0"], "/etc: not a regular file"),
        ("clone", &["/etc", "/x"], "/etc: not a regular file"),
        ("touch", &["/etc/hosts/"], "/etc/hosts: not a directory"),
        ("mknod", &["/new/", "p"], "/new/: not a directory"),
        ("ln", &["-s", "hosts", "/etc/new/"], "/etc/new/: not a directory"),
        ("touch", &["/no/such"], "no such file"),
        ("put", &["/no/such", "/x"], "cannot read /no/such"),
    ];
    for (verb, args, part) in cases {
        let message = refused(&sample, verb, args);
        assert!(message.contains(part), "{verb} {args:?}: {message}");
    }
    fails(2, ["mknod", &sample.image, "/x", "q"]);
    judged(&sample);
}

/// A tree whose top has links, as merged-/usr systems have it.
#[test]
fn links_are_followed_inside_the_volume() {
    let sample = volume();
    let (local, back) = (sample.path("local"), sample.path("back"));
    fs::write(&local, "new\n").unwrap();
    on(&sample, "mkdir", &["-p", "/usr/lib"]);
    on(&sample, "ln", &["-s", "usr/bin", "/bin"]);
    on(&sample, "ln", &["-s", "../usr/lib/os-release", "/etc/os-release"]);
    for (verb, args) in [("cat", &["/bin/sh"][..]), ("get", &["/bin/sh", &back])] {
        let message = refused(&sample, verb, args);
        let text = "/bin/sh: /usr/bin: no such file or directory; the link /bin leads there";
        assert_eq!(message, format!("error: {text}\n"));
    }
    // The file goes where the link leads, and the link stays.
    on(&sample, "put", &[&local, "/etc/os-release"]);
    assert_eq!(on(&sample, "cat", &["/etc/os-release"]), "new\n");
    assert_eq!(on(&sample, "ls", &["/usr/lib"]), "os-release\n");
    assert!(refused(&sample, "put", &[&local, "/etc/os-release"]).contains("--force"));
    on(&sample, "get", &["/etc/os-release", &back]);
    assert_eq!(fs::read_to_string(&back).unwrap(), "new\n");
    let message = refused(&sample, "cat", &["--no-follow", "/etc/os-release"]);
    assert_eq!(message, "error: /etc/os-release: not a regular file\n");
    let message = refused(&sample, "get", &["--no-follow", "-f", "/etc/os-release", &back]);
    assert_eq!(message, "error: /etc/os-release: not a regular file\n");
    let kind = |options: &[&str]| {
        let stat = on(&sample, "stat", &[options, &["/etc/os-release"]].concat());
        stat.lines().find(|line| line.starts_with("kind")).unwrap().to_owned()
    };
    assert!(kind(&[]).ends_with("symbolic link") && kind(&["-L"]).ends_with("regular file"));
    // A directory by its link: made, listed, moved into, copied out.
    on(&sample, "mkdir", &["-p", "/bin/sub"]);
    assert_eq!(on(&sample, "ls", &["/usr"]), "bin\nlib\n");
    on(&sample, "mv", &["/etc/hosts", "/bin"]);
    assert_eq!(on(&sample, "ls", &["/bin"]), "hosts\nsub\n");
    assert_eq!(on(&sample, "ls", &["-l", "/bin/"]).lines().count(), 2);
    assert!(on(&sample, "ls", &["-l", "/bin"]).ends_with("/bin -> usr/bin\n"));
    on(&sample, "get", &["-r", "/bin", &sample.path("bin")]);
    assert!(Path::new(&sample.path("bin/sub")).is_dir());
    // What has the name is meant, not what it leads to.
    on(&sample, "ln", &["/etc/os-release", "/second"]);
    on(&sample, "mv", &["/etc/os-release", "/moved"]);
    on(&sample, "rm", &["/moved", "/bin"]);
    assert_eq!(on(&sample, "ls", &["/usr/lib"]), "os-release\n");
    assert_eq!(on(&sample, "ls", &["-R", "/usr/bin"]), "/usr/bin:\nhosts\nsub\n\n/usr/bin/sub:\n");
    // Metadata of what it leads to, or of the link.
    on(&sample, "ln", &["-s", "usr/lib/os-release", "/name"]);
    on(&sample, "chmod", &["600", "/name"]);
    on(&sample, "chown", &["7:8", "/name"]);
    on(&sample, "chown", &["--no-follow", "9:10", "/name"]);
    on(&sample, "setxattr", &["/name", "user.x", "y"]);
    assert_eq!(on(&sample, "getxattr", &["/usr/lib/os-release"]), "user.x=\"y\"\n");
    assert_eq!(on(&sample, "getxattr", &["--no-follow", "/name"]), "");
    let owner = |path: &str| {
        let stat = on(&sample, "stat", &[path]);
        stat.lines().find(|line| line.starts_with("owner")).unwrap().to_owned()
    };
    assert!(owner("/usr/lib/os-release").contains("7:8,") && owner("/name").contains("9:10,"));
    on(&sample, "put", &["-f", "--no-follow", &local, "/name"]);
    assert!(on(&sample, "stat", &["/name"]).contains("regular file"));
    judged(&sample);
}

#[test]
fn a_script_runs_to_its_first_error() {
    let sample = volume();
    let script =
        "# a comment\nmkdir '/with space'\nls /\n\nsync\nln -s target \"/with space/link\"\n";
    for (round, options) in [&[][..], &["--batch"]].iter().enumerate() {
        let output = shell(&sample, options, &script.replace("with", &format!("with{round}")));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected: String = (0..=round).map(|round| format!("with{round} space\n")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("etc\n{expected}"));
    }
    let output = shell(&sample, &[], "mkdir /one\nmkdir /etc\nmkdir /two\n");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        message.contains("line 2 of the script") && message.contains("/etc: exists"),
        "{message}"
    );
    let names = on(&sample, "ls", &["/"]);
    assert!(names.contains("one") && !names.contains("two"), "{names}");
    for (script, part) in
        [("mkdir '/x\n", "quotation"), ("nonsense\n", "nonsense"), ("mkdir\n", "PATH")]
    {
        let output = shell(&sample, &[], script);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("line 1") && message.contains(part), "{message}");
    }
    let output = shell(&sample, &["--read-only"], "ls /etc\nmkdir /three\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("read-only"));
    let output = shell(&sample, &[], "help\nrm --help\nexit\nmkdir /four\n");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("Remove files"));
    assert!(!on(&sample, "ls", &["/"]).contains("four"));
    judged(&sample);
}

#[test]
fn a_volume_without_space_says_so_and_can_be_emptied() {
    let sample = sample(&["--size", "20M"]);
    let local = sample.path("local");
    fs::write(&local, vec![1; 30_000_000]).unwrap();
    let message = refused(&sample, "put", &[&local, "/large"]);
    assert!(message.contains("no space left"), "{message}");
    judged(&sample);
    fs::write(&local, vec![1; 1_000_000]).unwrap();
    let mut count = 0;
    while undercroft(["put", &sample.image, &local, &format!("/{count}")]).status.success() {
        count += 1;
    }
    assert!(count > 3, "{count}");
    judged(&sample);
    for number in 0..count {
        on(&sample, "rm", &[&format!("/{number}")]);
    }
    on(&sample, "put", &[&local, "/again"]);
    judged(&sample);
}

/// Damage that makes a tree endless: the tree stays, and both ends are named.
#[test]
fn a_circle_of_directories_is_not_removed() {
    let sample = volume();
    on(&sample, "mkdir", &["-p", "/a/b/c", "/z"]);
    on(&sample, "touch", &["/z/kept"]);
    let number = |path: &str| {
        let stat = on(&sample, "stat", &["--json", path]);
        let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
        stat["inode"].as_u64().unwrap()
    };
    let image = Path::new(&sample.image);
    for to in ["/a", "/a/b", "/z", "/"] {
        let [above, to] = ["/a/b", to].map(number);
        let select = format!("inode {above}");
        let write = format!("write -d u3.sfdir3.list[0].inumber.i4 {to}");
        Xfsprogs::newest().unwrap().db_expert(image, &[&select, &write]).unwrap();
        let message = fails(1, ["rm", "-r", &sample.image, "/a"]);
        assert!(message.starts_with("error: /a: damaged inode"), "{message}");
        for end in [above, to] {
            assert!(message.contains(&end.to_string()), "{end}: {message}");
        }
        assert_eq!(on(&sample, "ls", &["/z"]), "kept\n");
    }
}

#[test]
fn an_image_in_use_is_refused() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let mount = LoopMount::new(Path::new(&sample.image), Access::ReadOnly, &[]).unwrap();
    let message = fails(1, ["mkdir", &sample.image, "/x"]);
    assert!(message.contains("is mounted at"), "{message}");
    mount.unmount().unwrap();
    let lock = fs::File::open(&sample.image).unwrap();
    lock.try_lock().unwrap();
    let message = fails(1, ["mkdir", &sample.image, "/x"]);
    assert!(message.contains("in use by another program"), "{message}");
    drop(lock);
    let mut permissions = fs::metadata(&sample.image).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&sample.image, permissions).unwrap();
    on(&sample, "mkdir", &["/x"]);
}

#[test]
fn a_volume_that_was_not_unmounted_is_replayed_first() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let mounted = sample.path("mounted");
    image::copy(Path::new(&sample.image), Path::new(&mounted)).unwrap();
    crashed(Path::new(&mounted), Path::new(&sample.image));
    let message = fails(1, ["mkdir", "--no-replay", &sample.image, "/late"]);
    assert!(message.contains("not unmounted cleanly"), "{message}");
    let output = undercroft(["mkdir", &sample.image, "/late"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("was replayed"));
    assert_eq!(on(&sample, "ls", &["/"]), "early\netc\nlate\n");
    judged(&sample);
}

#[test]
fn the_kernel_sees_what_was_done() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let copy = sample.path("copy");
    image::copy(Path::new(&sample.image), Path::new(&copy)).unwrap();
    let script = "mkdir -p /a/b\nmv /etc/hosts /a/b/hosts\nln /a/b/hosts /a/h\n\
                  setxattr /a user.x y\nrm -r /etc/deep\nchmod 700 /a\ntouch --time @7 /a /a/b /etc /\n";
    assert!(shell(&sample, &["--batch"], script).status.success());
    let mount = LoopMount::new(Path::new(&copy), Access::ReadWrite, &[]).unwrap();
    let at = |path: &str| mount.join(path.trim_start_matches('/'));
    fs::create_dir_all(at("/a/b")).unwrap();
    fs::rename(at("/etc/hosts"), at("/a/b/hosts")).unwrap();
    fs::hard_link(at("/a/b/hosts"), at("/a/h")).unwrap();
    rustix::fs::setxattr(at("/a"), "user.x", b"y", rustix::fs::XattrFlags::empty()).unwrap();
    fs::remove_dir_all(at("/etc/deep")).unwrap();
    rustix::fs::chmod(at("/a"), rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
    let seven = rustix::fs::Timespec { tv_sec: 7, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: seven, last_modification: seven };
    for path in ["/a", "/a/b", "/etc", "/"] {
        let flags = rustix::fs::AtFlags::empty();
        rustix::fs::utimensat(rustix::fs::CWD, at(path), &times, flags).unwrap();
    }
    let ours = LoopMount::new(Path::new(&sample.image), Access::ReadOnly, &[]).unwrap();
    compare(ours.path(), mount.path(), &Options::default()).unwrap().assert_same();
    ours.unmount().unwrap();
    mount.unmount().unwrap();
    judged(&sample);
}

#[test]
fn paths_are_made_and_removed_whatever_their_depth() {
    let sample = volume();
    on(&sample, "mkdir", &["-p", "-m", "700", "/etc/./a//b/../c/"]);
    let listing = on(&sample, "ls", &["-lR", "/etc"]);
    assert!(listing.contains("drwxr-xr-x") && listing.contains("drwx------"), "{listing}");
    // Quadratic work would take minutes.
    let deep = format!("mkdir -p /top{}\nrm -r /top\n", "/d".repeat(20_000));
    let output = shell(&sample, &["--batch"], &deep);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    judged(&sample);
}

#[test]
fn holes_that_are_printed_to_a_file_are_holes_there() {
    let sample = volume();
    let local = sample.path("local");
    fs::write(&local, "front").unwrap();
    on(&sample, "put", &[&local, "/file"]);
    on(&sample, "truncate", &["/file", "4T"]);
    let target = sample.path("target");
    let printed = program()
        .args(["cat", &sample.image, "/file", "/file"])
        .stdout(fs::File::create(&target).unwrap())
        .status();
    assert!(printed.unwrap().success());
    let metadata = fs::metadata(&target).unwrap();
    assert_eq!(metadata.len(), 8 << 40);
    assert!(metadata.blocks() < 1000, "{} blocks", metadata.blocks());
    let mut bytes = [1; 6];
    let file = fs::File::open(&target).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 4 << 40).unwrap();
    assert_eq!(&bytes, b"front\0");
    // Behind the data, and over it: zeros are written where a hole cannot be.
    on(&sample, "truncate", &["/file", "2M"]);
    fs::write(&target, vec![7; 3 << 20]).unwrap();
    let over = fs::File::options().write(true).open(&target).unwrap();
    let behind = fs::File::options().append(true).open(&target).unwrap();
    for output in [over, behind] {
        let printed = program().args(["cat", &sample.image, "/file"]).stdout(output).status();
        assert!(printed.unwrap().success());
    }
    let bytes = fs::read(&target).unwrap();
    assert_eq!(bytes.len(), 5 << 20);
    assert!(bytes.starts_with(b"front\0") && bytes[5..2 << 20].iter().all(|byte| *byte == 0));
    assert!(bytes[2 << 20..3 << 20].iter().all(|byte| *byte == 7));
    assert!(bytes[3 << 20..].starts_with(b"front\0"));
}
