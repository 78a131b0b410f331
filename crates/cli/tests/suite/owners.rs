//! Owners and modes as people write them.

use std::fs;

use serde_json::Value;

use crate::run::{Sample, fails, sample, succeeds};

/// A volume that knows a user and a group.
fn volume() -> Sample {
    let sample = sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"]);
    let local = sample.path("local");
    for (path, lines) in [
        ("/etc/passwd", "root:x:0:0::/:\nalice:x:1000:100:A:/home:/bin/sh\n"),
        ("/etc/group", "root:x:0:\nstaff:x:50:alice\n"),
    ] {
        fs::write(&local, lines).unwrap();
        succeeds(["put", &sample.image, &local, path]);
    }
    sample
}

/// What `stat` says of a file.
fn stat(sample: &Sample, path: &str) -> Value {
    serde_json::from_str(&succeeds(["stat", "--json", &sample.image, path])).unwrap()
}

/// Its owner and group.
fn owner(sample: &Sample, path: &str) -> [u64; 2] {
    let stat = stat(sample, path);
    ["uid", "gid"].map(|field| stat[field].as_u64().unwrap())
}

#[test]
fn new_files_get_owners_by_name() {
    let sample = volume();
    let local = sample.path("local");
    for (number, (given, uid, gid)) in [
        ("alice:staff", 1000, 50),
        ("alice", 1000, 0),
        (":staff", 0, 50),
        ("alice:", 1000, 100),
        ("7:4294967294", 7, 4294967294),
    ]
    .into_iter()
    .enumerate()
    {
        let path = |verb: &str| format!("/{verb}-{number}");
        let [put, mkdir, ln, mknod] = ["put", "mkdir", "ln", "mknod"].map(path);
        for args in [
            &["put", &sample.image, &local, &put][..],
            &["mkdir", "-p", &sample.image, &format!("{mkdir}/below")],
            &["ln", "-s", &sample.image, "target", &ln],
            &["mknod", &sample.image, &mknod, "p"],
        ] {
            let (verb, rest) = args.split_first().unwrap();
            succeeds([verb, "--owner", given].iter().chain(rest));
        }
        for path in [&put, &mkdir, &format!("{mkdir}/below"), &ln, &mknod] {
            assert_eq!(owner(&sample, path), [uid, gid], "{given}, {path}");
        }
    }
    // Without a word about them, and where a source has its own.
    succeeds(["mkdir", &sample.image, "/plain"]);
    assert_eq!(owner(&sample, "/plain"), [0, 0]);
    std::os::unix::fs::chown(&local, Some(12), Some(34)).unwrap();
    succeeds(["put", "--preserve", "--owner", ":staff", &sample.image, &local, "/preserved"]);
    assert_eq!(owner(&sample, "/preserved"), [12, 50]);
    let unknown = fails(1, ["mkdir", "--owner", "bob", &sample.image, "/x"]);
    assert!(unknown.contains("/etc/passwd of the volume has no bob"), "{unknown}");
    fails(2, ["mknod", "--owner", "a:b:c", &sample.image, "/x", "p"]);
    fails(1, ["stat", &sample.image, "/x"]);
}

/// Whether permissions that go look like options or not.
#[test]
fn modes_may_begin_with_a_minus_sign() {
    let sample = volume();
    let image = &sample.image[..];
    for (mode, left) in [
        ("-w", "-r-xr-xr-x"),
        ("-x", "-rw-rw-rw-"),
        ("-r", "--wx-wx-wx"),
        ("-rwx", "----------"),
        ("-rw,u+r", "-r-x--x--x"),
        ("-X", "-rw-rw-rw-"),
        ("-s", "-rwxrwxrwx"),
    ] {
        for args in
            [&["chmod", image, mode, "/etc/hosts"][..], &["chmod", image, "--", mode, "/etc/hosts"]]
        {
            succeeds(["chmod", image, "777", "/etc/hosts"]);
            succeeds(args);
            assert_eq!(stat(&sample, "/etc/hosts")["mode"], left, "{args:?}");
        }
    }
    // Options are options where they stand.
    succeeds(["chmod", "-R", image, "-w", "/etc"]);
    assert_eq!(stat(&sample, "/etc")["mode"], "dr-xr-xr-x");
    succeeds(["chmod", image, "-R", "u+w", "/etc"]);
    succeeds(["chmod", image, "-R", "-r", "/etc"]);
    assert_eq!(stat(&sample, "/etc/deep")["mode"], "d-wx--x--x");
    let script = sample.path("script");
    fs::write(&script, "chmod -rwx /etc/hosts\nchmod -R u+rw /etc\nchmod -- -w /etc/hosts\n")
        .unwrap();
    let shell = crate::run::program()
        .args(["shell", image])
        .stdin(fs::File::open(&script).unwrap())
        .output()
        .unwrap();
    assert!(shell.status.success(), "{}", String::from_utf8_lossy(&shell.stderr));
    assert_eq!(stat(&sample, "/etc/hosts")["mode"], "-r--------");
    fails(2, ["chmod", image, "-q", "/etc/hosts"]);
    fails(2, ["chmod", image, "--bogus", "/etc/hosts"]);
}
