//! Volumes on network disks: of other servers, and of our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use undercroft_judges::Xfsprogs;
use undercroft_judges::nbd::NbdServer;

use crate::run::{fails, succeeds, tree};

fn disk(home: &Path, format: &str) -> String {
    let path = home.join(format).display().to_string();
    let mut create = Command::new("qemu-img");
    create.args(["create", "-q", "-f", format, &path, "128M"]);
    assert!(create.status().unwrap().success());
    path
}

/// Builds a volume on `uri`, changes it, and takes it apart.
fn lifetime(home: &Path, uri: &str) {
    let tree = tree(home);
    succeeds(["build", &tree, uri]);
    let refused = fails(1, ["build", &tree, uri]);
    let known = refused.contains("holds an XFS file system");
    assert!(known && refused.contains("use --force to overwrite it"), "{refused}");
    succeeds(["build", "--force", &tree, uri]);
    succeeds(["check", uri]);
    let out = home.join("out").display().to_string();
    succeeds(["extract", uri, &out]);
    let mut compare = Command::new("diff");
    assert!(compare.args(["-r", &tree, &out]).status().unwrap().success());
    succeeds(["mkdir", uri, "/new"]);
    assert!(succeeds(["ls", uri, "/"]).contains("new"));
    assert!(succeeds(["info", "--json", uri]).contains("\"log\":\"clean\""));
    succeeds(["replay", uri]);
    succeeds(["check", uri]);
}

#[test]
fn a_volume_lives_on_qemu() {
    let home = tempfile::tempdir().unwrap();
    for format in ["raw", "qcow2"] {
        let path = disk(home.path(), format);
        let format = format!("--format={format}");
        let server = NbdServer::qemu(&[&format, "--discard=unmap", &path]).unwrap();
        lifetime(home.path(), &server.uri("disk", &[]));
        drop(server);
        fs::remove_dir_all(home.path().join("out")).unwrap();
    }
    Xfsprogs::newest().unwrap().repair_check(&home.path().join("raw")).unwrap();
}

/// Lives on a mirror of two servers, each of which ends as it does by SIGTERM.
fn lifetime_on_a_mirror(serve: impl Fn(&Path) -> NbdServer) {
    let home = tempfile::tempdir().unwrap();
    let disks = ["a", "b"].map(|name| {
        let path = sparse(home.path(), name);
        let server = serve(&path);
        (path, server)
    });
    let uris = disks.each_ref().map(|(_, server)| server.uri("", &[]));
    lifetime(home.path(), &format!("mirror({},{})", uris[0], uris[1]));
    let newest = Xfsprogs::newest().unwrap();
    for (path, mut server) in disks {
        server.stop().unwrap();
        newest.repair_check(&path).unwrap();
    }
}

fn sparse(home: &Path, name: &str) -> PathBuf {
    let path = home.join(name);
    fs::File::create(&path).unwrap().set_len(128 << 20).unwrap();
    path
}

fn ours(path: &Path) -> NbdServer {
    NbdServer::undercroft(Path::new(env!("CARGO_BIN_EXE_undercroft")), &[path]).unwrap()
}

#[test]
fn a_volume_lives_on_a_mirror_of_two_servers() {
    lifetime_on_a_mirror(|path| NbdServer::nbdkit(&["file", path.to_str().unwrap()]).unwrap());
    lifetime_on_a_mirror(ours);
}

#[test]
fn a_volume_lives_on_a_server_of_our_own() {
    for connections in ["x-connections=1", "x-connections=4"] {
        let home = tempfile::tempdir().unwrap();
        let path = sparse(home.path(), "disk");
        let mut server = ours(&path);
        lifetime(home.path(), &server.uri("disk", &[connections]));
        server.stop().unwrap();
        Xfsprogs::newest().unwrap().repair_check(&path).unwrap();
    }
}

#[test]
fn nothing_is_written_over_zeroes_of_a_fresh_export() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    let noted = format!("logfile={}", log.display());
    let server = NbdServer::nbdkit(&["--filter=log", "memory", "1G", &noted]).unwrap();
    succeeds(["build", "--force", &tree(home.path()), &server.uri("", &[])]);
    let log = fs::read_to_string(log).unwrap();
    assert!(log.lines().any(|line| line.contains(" Write id=")));
    let zeroes = log.lines().filter(|line| line.contains(" Zero id=")).count();
    assert_eq!(zeroes, 0, "zeroes were written");
}

#[test]
fn exports_are_listed_where_none_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = disk(home.path(), "raw");
    let server = NbdServer::qemu(&["--format=raw", "--description=a disk", &path]).unwrap();
    let listed = succeeds(["info", &server.uri("", &[])]);
    assert!(listed.contains("nbd+unix:///disk?socket=") && listed.contains("a disk"), "{listed}");
    let json = succeeds(["info", "--json", &server.uri("", &[])]);
    assert!(json.contains("\"name\":\"disk\"") && json.contains("\"bytes\":134217728"), "{json}");
}

#[test]
fn a_wrong_uri_is_a_matter_of_the_command_line() {
    for (uri, problem) in [
        ("nbd://", "no host"),
        ("nbd://host:port/x", "not a port"),
        ("mirror(a,nbd://host/x?x-timeout=0)", "such as 30s"),
        ("nbd+unix:///x", "no socket"),
    ] {
        let message = fails(2, ["check", uri]);
        assert!(message.contains(problem), "{message}");
    }
    let message = fails(1, ["info", "nbd+unix:///x?socket=/nonexistent/socket"]);
    assert!(message.contains("cannot connect to nbd+unix:///x"), "{message}");
}

/// One that answers the handshake and nothing more is asked once, whatever a command would still want to
/// know.
#[test]
fn a_silent_server_costs_its_time_limit_once() {
    let server = NbdServer::nbdkit(&["--filter=delay", "pattern", "320M", "rdelay=100"]).unwrap();
    let uri = server.uri("", &["x-timeout=4s"]);
    for command in ["ls", "check", "info"] {
        let started = Instant::now();
        let message = fails(1, [command, &uri]);
        assert!(message.contains("no answer from the server"), "{message}");
        assert!(started.elapsed() < Duration::from_secs(8), "{command}: {:?}", started.elapsed());
    }
}
