//! Disks in object stores: of moto, behind HTTP, in directories.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use undercroft_judges::objects::{Fault, Moto, Way};
use undercroft_judges::{Xfsprogs, rounds};

use crate::run::{Sample, program, sample, succeeds, tree};

/// A server with a bucket, and a way to it.
struct Bucket {
    moto: Moto,
    way: Way,
}

impl Bucket {
    fn new() -> Self {
        let moto = Moto::start().unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", moto.port())).unwrap();
        let head = "PUT /bucket HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n";
        server.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        server.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(" 200 "), "{answer}");
        let way = Way::to_server(moto.port()).unwrap();
        Self { moto, way }
    }

    /// The command with what it needs to know of the server.
    fn program(&self) -> Command {
        let mut command = program();
        let endpoint = format!("http://127.0.0.1:{}", self.way.port());
        command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.program().args(arguments).output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        good(self.run(arguments))
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str]) -> String {
        bad(&self.run(arguments), 1)
    }
}

#[track_caller]
fn good(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn bad(output: &Output, status: i32) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{message}");
    message
}

/// What a program said that was to fail, with failures tried again for a second only.
#[track_caller]
fn fails(arguments: &[&str]) -> String {
    let mut command = program();
    command.args(arguments).stdin(Stdio::null()).env("UNDERCROFT_STORE_PATIENCE", "1");
    bad(&command.output().unwrap(), 1)
}

/// The objects below a directory, as a store has them.
fn objects(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut work = vec![directory.to_owned()];
    while let Some(next) = work.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { work.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A volume of a tree with a large file, which becomes several chunks.
fn volume(home: &Path) -> (String, String) {
    let image = home.join("image").display().to_string();
    let tree = tree(home);
    let noise: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
    fs::write(home.join("tree/noise"), noise).unwrap();
    succeeds(["build", "--size", "300M", &tree, &image]);
    (tree, image)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

#[test]
fn an_image_lives_in_a_directory() {
    let home = tempfile::tempdir().unwrap();
    let (tree, image) = volume(home.path());
    let store = home.path().join("a@b/store").display().to_string();
    let published = json(&succeeds(["publish", "--json", &image, &format!("{store}@v1")]));
    assert_eq!(published["chunks"], published["new_chunks"]);
    let uri = format!("file://{}@v1", store.replace('@', "%40"));

    // All that reads.
    assert!(succeeds(["ls", &uri, "/etc"]).contains("199"));
    succeeds(["check", &uri]);
    succeeds(["info", &uri]);
    succeeds(["diff", &uri, &tree]);
    let served =
        succeeds(["serve", &uri, "--read-only", "--exec", "sh", "-c", "nbdinfo --size $NBD_URI"]);
    assert_eq!(served.trim(), (300_u64 << 20).to_string());
    assert!(succeeds(["mount", &uri, "--exec", "ls", "etc"]).contains("199"));
    let pinned =
        format!("{}sha256:{}", uri.trim_end_matches("v1"), published["digest"].as_str().unwrap());
    assert!(succeeds(["ls", &pinned, "/"]).contains("large"));

    // A file again.
    let fetched = home.path().join("fetched");
    succeeds(["fetch", &format!("{store}@v1"), fetched.to_str().unwrap()]);
    Xfsprogs::newest().unwrap().repair_check(&fetched).unwrap();
    assert!(succeeds(["diff", fetched.to_str().unwrap(), &image]).contains("the same"));

    // What changes is refused, with the way on.
    let refused = fails(&["mkdir", &uri, "/new"]);
    assert!(refused.contains("only read") && refused.contains("undercroft fetch"), "{refused}");
    assert!(fails(&["build", "--force", &tree, &uri]).contains("only read"));

    // Once more there is nothing new, and after a small change there is little.
    let again = json(&succeeds(["publish", "--json", &image, &format!("{store}@again")]));
    assert_eq!((&again["digest"], &again["new_chunks"]), (&published["digest"], &0.into()));
    let file = home.path().join("file");
    fs::write(&file, "changed").unwrap();
    succeeds(["put", &image, file.to_str().unwrap(), "/etc/changed"]);
    let changed = json(&succeeds(["publish", "--json", &image, &format!("{store}@v1")]));
    let few = changed["new_chunks"].as_u64().unwrap();
    assert!((1..4).contains(&few), "{few} of {}", changed["chunks"]);
    assert!(succeeds(["cat", &uri, "/etc/changed"]).contains("changed"));
    assert!(!succeeds(["ls", &pinned, "/etc"]).contains("changed"));

    // The first goes when it has no name any more.
    let prune = |options: &[&str]| {
        let all = [&["prune", "--json", "--grace", "0", store.as_str()], options].concat();
        json(&succeeds(all))
    };
    assert_eq!(prune(&[])["removed_chunks"], 0);
    let dry = prune(&["--forget", "again", "--unnamed", "--dry-run"]);
    let done = prune(&["--forget", "again", "--unnamed"]);
    assert_eq!((&dry, &done["removed_images"], &done["images"]), (&done, &1.into(), &1.into()));
    assert!(done["removed_chunks"].as_u64().unwrap() > 0);
    assert!(fails(&["ls", &pinned, "/"]).contains("no such object"));
    succeeds(["verify", &store]);
    succeeds(["check", &uri]);
    let left = objects(&home.path().join("a@b/store"));
    let markers = left.iter().filter(|path| path.to_string_lossy().contains("ing/")).count();
    assert_eq!(markers, 0, "{left:?}");
}

#[test]
fn what_was_free_is_not_published() {
    let home = tempfile::tempdir().unwrap();
    let (_, image) = volume(home.path());
    let store = home.path().join("store").display().to_string();
    let secret = "a secret that nobody publishes";
    let file = home.path().join("file");
    fs::write(&file, secret.repeat(1000)).unwrap();
    succeeds(["put", &image, file.to_str().unwrap(), "/secret"]);
    succeeds(["rm", &image, "/secret"]);
    let holds = |path: &Path| fs::read(path).unwrap().windows(30).any(|at| at == secret.as_bytes());
    assert!(holds(Path::new(&image)));
    for (option, is_there) in [(None, false), (Some("--keep-free"), true)] {
        let fetched = home.path().join("fetched");
        let target = format!("{store}@v1");
        succeeds(["publish", &image, &target].into_iter().chain(option));
        succeeds(["fetch", "--force", &target, fetched.to_str().unwrap()]);
        assert_eq!(holds(&fetched), is_there);
        fs::remove_file(&fetched).unwrap();
    }
}

#[test]
fn damage_in_a_store_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (_, image) = volume(home.path());
    let store = home.path().join("store");
    let target = format!("{}@v1", store.display());
    succeeds(["publish", &image, &target]);
    let uri = format!("file://{target}");
    let chunks = objects(&store.join("chunks"));
    let [missing, altered, ..] = &chunks[..] else { panic!("{chunks:?}") };
    let kept = [missing, altered].map(|path| fs::read(path).unwrap());
    fs::remove_file(missing).unwrap();
    let file = fs::OpenOptions::new().write(true).open(altered).unwrap();
    file.write_all_at(b"X", kept[1].len() as u64 / 2).unwrap();
    let verified = program().args(["verify", &target]).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stdout);
    assert_eq!(verified.status.code(), Some(1), "{said}");
    for (path, what) in [(missing, "is missing"), (altered, "was altered")] {
        let name = path.file_name().unwrap().to_str().unwrap();
        let line = said.lines().find(|line| line.contains(what)).unwrap();
        assert!(line.contains(name), "{said}");
    }
    let fetched = home.path().join("fetched");
    let error = fails(&["fetch", &target, fetched.to_str().unwrap()]);
    assert!(error.contains("is missing") || error.contains("was altered"), "{error}");
    assert!(!fetched.exists());
    // What is missing is published again.
    fs::remove_file(altered).unwrap();
    assert_eq!(json(&succeeds(["publish", "--json", &image, &target]))["new_chunks"], 2);
    succeeds(["verify", &target]);

    let name = store.join("names/v1");
    let line = fs::read_to_string(&name).unwrap();
    let manifest = store.join("manifests").join(line.trim().trim_start_matches("sha256:"));
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"version\":1", "\"version\":9")).unwrap();
    assert!(fails(&["info", &uri]).contains("it was altered"));
    fs::write(&name, "v1").unwrap();
    assert!(fails(&["info", &uri]).contains("no line with a digest"));
    fs::remove_file(&name).unwrap();
    assert!(fails(&["info", &uri]).contains("names/v1: there is no such object"));
}

#[test]
fn an_image_lives_in_a_store_of_amazon() {
    let home = tempfile::tempdir().unwrap();
    let (tree, image) = volume(home.path());
    let bucket = Bucket::new();
    let uri = "s3://bucket/images@v1";
    bucket.succeeds(&["publish", &image, uri]);
    let listed = bucket.run(&["ls", "-lR", "--stats", "--json", uri]);
    let stores = json(&String::from_utf8_lossy(&listed.stdout));
    let gets = stores["stores"][0]["gets"].as_u64().unwrap();
    assert!((3..20).contains(&gets), "{stores}");
    bucket.succeeds(&["diff", uri, &tree]);

    // With a cache the second reader asks for the name alone, and by its digest for nothing.
    let cache = home.path().join("cache").display().to_string();
    let check = |uri: &str| {
        let check = ["check", "--stats", "--json", "--cache", &cache, uri];
        json(&bucket.succeeds(&check))["stores"][0]["gets"].as_u64().unwrap()
    };
    assert!(check(uri) > 2);
    assert_eq!(check(uri), 1);
    let digest = json(&bucket.succeeds(&["publish", "--json", &image, "s3://bucket/images@v1"]));
    let pinned = format!("s3://bucket/images@sha256:{}", digest["digest"].as_str().unwrap());
    assert_eq!(check(&pinned), 0);
    // What was damaged in it is fetched again.
    let pieces = fs::OpenOptions::new().write(true).open(home.path().join("cache/pieces")).unwrap();
    let length = pieces.metadata().unwrap().len();
    for at in (1 << 20..length).step_by(1 << 20) {
        pieces.write_all_at(&[0xff; 64], at + 100).unwrap();
    }
    assert!(check(&pinned) > 0);
    bucket.succeeds(&["diff", &pinned, &tree]);

    // Two publish one name: the other one is first, between the look at the name and its writing.
    let second = sample(&[]);
    let has_run = Mutex::new(false);
    let mut other = bucket.program();
    // Not by the way that waits for it.
    other.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", bucket.moto.port()));
    other.args(["publish", &second.image, uri]);
    bucket.way.after(move |asked| {
        let is_look = asked.method == "HEAD" && asked.target.contains("/names/v1");
        if is_look && !std::mem::replace(&mut *has_run.lock().unwrap(), true) {
            assert!(other.output().unwrap().status.success());
        }
    });
    let lost = bucket.fails(&["publish", &image, uri]);
    assert!(lost.contains("published by another one"), "{lost}");
    bucket.succeeds(&["cat", uri, "/etc/hosts"]);

    // Whole objects, and what is not there or not allowed.
    let missing = bucket.fails(&["info", "s3://bucket/none.img"]);
    assert!(missing.contains("there is no such object"), "{missing}");
    bucket.way.before(|_| Fault::Status(403));
    let refused = bucket.fails(&["info", uri]);
    assert!(refused.contains("refuses it") && refused.contains("AWS_ACCESS_KEY_ID"), "{refused}");
}

#[test]
fn a_disk_behind_http_is_read_in_parts() {
    let home = tempfile::tempdir().unwrap();
    let (tree, image) = volume(home.path());
    let way = Way::to_file(Path::new(&image)).unwrap();
    let uri = format!("http://127.0.0.1:{}/disk.img", way.port());
    succeeds(["diff", &uri, &tree]);
    succeeds(["check", &uri]);
    assert!(succeeds(["info", "--json", &uri]).contains("clean"));

    // One that is away for a moment, and bodies that are cut, are tried again.
    for fault in [Fault::Status(503), Fault::Cut] {
        way.before(move |asked| if asked.number.is_multiple_of(3) { fault } else { Fault::None });
        succeeds(["diff", &uri, &tree]);
    }
    way.before(|_| Fault::Status(503));
    assert!(fails(&["info", &uri]).contains("503"));

    // Another object in its place is an error, whenever that happens.
    for first in [1, 3] {
        let seen = AtomicU64::new(0);
        way.before(move |_| match seen.fetch_add(1, Ordering::Relaxed) >= first {
            true => Fault::OtherTag,
            false => Fault::None,
        });
        let out = home.path().join("out");
        let changed = fails(&["extract", &uri, out.to_str().unwrap()]);
        assert!(changed.contains("was changed while it is read"), "{changed}");
        let _ = fs::remove_dir_all(out);
    }
    let seen = AtomicU64::new(0);
    let path = PathBuf::from(&image);
    way.before(move |_| {
        if seen.fetch_add(1, Ordering::Relaxed) == 1 {
            fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(&[0; 512]).unwrap();
        }
        Fault::None
    });
    let out = home.path().join("out");
    let changed = fails(&["extract", &uri, out.to_str().unwrap()]);
    assert!(changed.contains("was changed while it is read"), "{changed}");
    // Other lengths than were said are, too.
    way.before(|_| Fault::Shorter);
    let short = fails(&["info", &uri]);
    assert!(short.contains("bytes were asked for"), "{short}");
}

#[test]
fn many_processes_fetch_a_piece_once() {
    let home = tempfile::tempdir().unwrap();
    let (_, image) = volume(home.path());
    let way = Way::to_file(Path::new(&image)).unwrap();
    way.slow(std::time::Duration::from_millis(20), 0);
    let counts = Arc::new(Mutex::new(std::collections::HashMap::new()));
    let counting = Arc::clone(&counts);
    way.before(move |asked| {
        let range = asked.header("range").unwrap_or_default().to_owned();
        *counting.lock().unwrap().entry(range).or_insert(0) += 1;
        Fault::None
    });
    let uri = format!("http://127.0.0.1:{}/disk.img", way.port());
    let cache = home.path().join("cache").display().to_string();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let mut command = program();
            command.args(["ls", "-lR", "--cache", &cache, &uri]).stdout(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut reader in readers {
        assert!(reader.wait().unwrap().success());
    }
    let counts = counts.lock().unwrap();
    // Each reader looks at the first byte.
    assert_eq!(counts.get("bytes=0-0"), Some(&8), "{counts:?}");
    let twice: Vec<_> =
        counts.iter().filter(|(range, count)| *range != "bytes=0-0" && **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// Kills the command at a request, before or behind the server's answer; whether it came that far.
fn killed_at(bucket: &Bucket, arguments: &[&str], request: u64, behind: bool) -> bool {
    let process = Arc::new(AtomicU32::new(0));
    let seen = AtomicU64::new(0);
    let victim = Arc::clone(&process);
    let kill = move || {
        // The process has its number before it has asked for anything, or soon after.
        while victim.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let pid = victim.load(Ordering::SeqCst).to_string();
        Command::new("kill").args(["-9", &pid]).status().unwrap();
    };
    if behind {
        bucket.way.after(move |_| {
            if seen.fetch_add(1, Ordering::SeqCst) == request {
                kill();
            }
        });
    } else {
        bucket.way.before(move |_| {
            if seen.fetch_add(1, Ordering::SeqCst) == request {
                kill();
            }
            Fault::None
        });
    }
    let mut command = bucket.program();
    let mut child = command.args(arguments).stdout(Stdio::null()).spawn().unwrap();
    process.store(child.id(), Ordering::SeqCst);
    let status = child.wait().unwrap();
    bucket.way.before(|_| Fault::None);
    bucket.way.after(|_| ());
    assert!(status.success() || status.code().is_none(), "{status}");
    !status.success()
}

#[test]
fn no_kill_leaves_a_manifest_without_a_chunk() {
    let home = tempfile::tempdir().unwrap();
    let Sample { image, .. } = &sample(&["--size", "64M"]);
    let bucket = Bucket::new();
    let store = "s3://bucket/killed";
    let name = format!("{store}@v1");
    let file = home.path().join("file");
    let step = rounds(2, 1);
    let (mut kills, mut request) = (0, 0);
    let publish = ["publish", image, &name];
    let prune = ["prune", "--grace", "0", "--unnamed", store];
    for (arguments, behind) in [(&publish[..], true), (&prune[..], true), (&prune[..], false)] {
        request = 0;
        loop {
            // Something to send, and with that something that has lost its name.
            fs::write(&file, format!("{kills} {behind}").repeat(1000)).unwrap();
            succeeds(["put", "--force", image, file.to_str().unwrap(), "/file"]);
            if arguments[0] == "prune" {
                bucket.succeeds(&publish);
            }
            if !killed_at(&bucket, arguments, request, behind) {
                break;
            }
            kills += 1;
            bucket.succeeds(&["verify", store]);
            forget_markers(&bucket);
            request += step;
        }
    }
    bucket.succeeds(&["check", &name]);
    assert!(kills > 10, "{kills} kills, the last at {request}");
}

/// Removes the markers of those who were killed, as an hour does.
fn forget_markers(bucket: &Bucket) {
    for work in ["publishing", "pruning"] {
        let listed = asks(bucket, "GET", &format!("/bucket?list-type=2&prefix=killed/{work}/"));
        for key in listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
            let answer = asks(bucket, "DELETE", &format!("/bucket/{key}"));
            assert!(answer.contains(" 204 "), "{answer}");
        }
    }
}

/// The answer to a request that anybody may have signed: moto looks whether there is a signature, not whether
/// it is right.
fn asks(bucket: &Bucket, method: &str, target: &str) -> String {
    let mut server = TcpStream::connect(("127.0.0.1", bucket.way.port())).unwrap();
    let credential = "Credential=key/20260101/us-east-1/s3/aws4_request";
    let signature = format!(
        "Authorization: AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0\r\n"
    );
    let head = format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{signature}\r\n");
    server.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    server.read_to_string(&mut answer).unwrap();
    answer
}
