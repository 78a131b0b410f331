//! Sources of a build: streams on standard input, and sources that cannot be packed.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use undercroft_judges::first_read::at_first_read;
use undercroft_judges::tree::{Holes, Options, compare};
use undercroft_judges::{Xfsprogs, kernel};

use crate::run::{as_nobody, fails, program, says, succeeds};

/// A tree with one of each that any user can make.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("inner/deeper")).unwrap();
    fs::write(root.join("inner/file"), vec![3; 1_500_000]).unwrap();
    fs::hard_link(root.join("inner/file"), root.join("inner/deeper/name")).unwrap();
    symlink("../file", root.join("inner/deeper/link")).unwrap();
    fs::write(root.join("n".repeat(200)), "a long name").unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.set_len(10 << 20).unwrap();
    sparse.write_all_at(&[7; 65_536], 1 << 20).unwrap();
}

/// A kernel has to mount what is made of its tree.
#[test]
fn the_preset_is_one_for_the_kernel_in_the_tree() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    let (root, image) = (at("root"), at("image"));
    let release = |release: &str, below: &str| {
        fs::create_dir_all(Path::new(&root).join(below).join(release)).unwrap();
    };
    let said =
        |options: &[&str]| says([&["build", "--force", "--json", &root, &image], options].concat());
    release("not-a-kernel", "lib/modules");
    assert_eq!(said(&[]), "");
    assert_eq!(said(&["--preset=auto"]), "", "no kernel, no choice");
    release("4.19.0-27-amd64", "usr/lib/modules");
    release("6.1.0-44-amd64", "lib/modules");
    let warned = said(&[]);
    let expected = "kernel in lib/modules is 6.1.0-44-amd64, and a volume with these features is \
                    mounted by Linux 6.10 and later: --preset lts-6.1 makes";
    assert!(warned.contains(expected), "{warned}");
    assert_eq!(said(&["--preset=lts-6.1"]), "");
    let by_name = fs::read(&image).unwrap();
    assert_eq!(said(&["--preset=auto"]), "");
    assert!(fs::read(&image).unwrap() == by_name);
    assert_eq!(said(&["--feature=parent=0", "--feature=exchange=0"]), "", "6.1 knows all others");
    // A stream cannot be read twice.
    let archive = tar(Path::new(&root), &[]);
    let (from, to) = (at("from.tar"), at("streamed"));
    fs::write(&from, &archive).unwrap();
    succeeds(["build", "--preset=lts-6.1", &from, &at("file")]);
    let (built, message) = build_from_pipe(&archive, Path::new(&to), &["--preset=auto"]);
    assert!(built && message.is_empty(), "{message}");
    assert!(fs::read(&to).unwrap() == fs::read(at("file")).unwrap());
    release("6.12.9+bpo-amd64", "usr/lib/modules");
    assert_eq!(said(&[]), "", "the newest counts");
    let message = fails(2, ["mkfs", "--preset=auto", "--size=40M", &at("empty")]);
    assert!(message.contains("looks at a tree"), "{message}");
}

/// An archive of `root` by GNU tar.
fn tar(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("tar");
    command.args(["--create", "--sort=name", "--format=pax", "--sparse"]).args(arguments);
    let output = command.arg("--directory").arg(root).arg(".").output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Builds from a pipe that delivers `bytes` in pieces.
fn build_from_pipe(bytes: &[u8], image: &Path, options: &[&str]) -> (bool, String) {
    let mut child = program()
        .args(["build", "-"])
        .arg(image)
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut pieces = bytes.chunks(100_000);
    // A build that fails does not read to the end.
    let _ = pieces.try_for_each(|piece| pipe.write_all(piece));
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn archives_as_people_have_them_are_taken_with_a_warning_or_refused() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "data").unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let with = |arguments: &[&str]| tar(&root, &[&["--format=gnu"], arguments].concat());
    let cut = with(&[]);
    let end = cut.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(path("cut.tar"), &cut[..end.next_multiple_of(512)]).unwrap();
    fs::write(path("foreign.tar"), tar(&root, &["--pax-option=SCHILY.xattr.foo=bar"])).unwrap();
    for (archive, warning, refusal) in [
        ("cut.tar", "no blocks of zeros", "truncated"),
        (
            "foreign.tar",
            "2 extended attributes in no namespace of Linux were left out, the first is .: foo",
            "\"foo\" is in none of the namespaces",
        ),
    ] {
        let arguments = ["build", "--force", &path(archive), &path("image")];
        let output = program().args(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{message}");
        assert!(message.starts_with("warning: ") && message.contains(warning), "{message}");
        assert_eq!(succeeds(["cat", &path("image"), "file"]), "data");
        let message = fails(1, arguments.iter().chain(&["--strict"]));
        assert!(message.contains(refusal), "{message}");
    }
}

#[test]
fn streams_on_standard_input() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    fs::create_dir(&root).unwrap();
    tree(&root);
    let file = home.path().join("archive.tar");
    fs::write(&file, tar(&root, &[])).unwrap();
    let uuid = "--uuid=2f5e0c3a-0000-4000-8000-000000000001";
    // With a size and an identity there is one pass, otherwise two.
    for options in [&[][..], &["--size=64M", uuid]] {
        let from_file = home.path().join("from-file");
        let mut arguments = vec!["build", "--force"];
        arguments.extend(options);
        let paths = [&file, &from_file].map(|path| path.display().to_string());
        succeeds(arguments.iter().copied().chain(paths.iter().map(String::as_str)));
        for compression in ["--no-auto-compress", "--gzip", "--zstd", "--xz"] {
            let image = home.path().join("image");
            let (built, message) = build_from_pipe(&tar(&root, &[compression]), &image, options);
            assert!(built, "{compression}: {message}");
            // Where the archive comes from, and how it was compressed, makes no difference.
            assert!(fs::read(&image).unwrap() == fs::read(&from_file).unwrap(), "{compression}");
            fs::remove_file(&image).unwrap();
        }
        Xfsprogs::newest().unwrap().repair_check(&from_file).unwrap();
        let destination = home.path().join("extracted");
        succeeds(["extract", &paths[1], &destination.display().to_string()]);
        let options = Options { holes: Holes::Map { unit: 4096 }, ..Options::default() };
        compare(&root, &destination, &options).unwrap().assert_same();
        fs::remove_dir_all(&destination).unwrap();
    }
}

#[test]
fn streams_that_break_off_or_are_none() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    fs::create_dir(&root).unwrap();
    tree(&root);
    let image = home.path().join("image");
    let uuid = "--uuid=2f5e0c3a-0000-4000-8000-000000000001";
    for options in [&[][..], &["--size=64M", uuid]] {
        for compression in ["--no-auto-compress", "--gzip", "--zstd", "--xz"] {
            let bytes = tar(&root, &[compression]);
            let (built, message) = build_from_pipe(&bytes[..bytes.len() / 2], &image, options);
            assert!(!built && message.contains("standard input: at byte"), "{message}");
            assert!(message.contains("truncated"), "{compression}: {message}");
        }
        let (built, message) = build_from_pipe(b"", &image, options);
        assert!(!built && message.contains("standard input: at byte 0"), "{message}");
        let (built, message) = build_from_pipe(&[b'x'; 5000], &image, options);
        assert!(!built && message.contains("is this a tar archive?"), "{message}");
        assert!(!image.exists());
    }
}

/// Builds from a directory whose file changes with `change` after it was opened.
fn build_while(change: impl FnOnce(&File) + Send) -> String {
    let home = tempfile::tempdir().unwrap();
    let (root, image) = (home.path().join("tree"), home.path().join("image"));
    fs::create_dir(&root).unwrap();
    let victim = root.join("victim");
    fs::write(&victim, vec![1; 100_000]).unwrap();
    fs::write(root.join("before"), "before").unwrap();
    let file = File::options().write(true).open(&victim).unwrap();
    let paths = [&root, &image].map(|path| path.display().to_string());
    let message =
        at_first_read(&victim, || change(&file), || fails(1, ["build", &paths[0], &paths[1]]));
    assert!(!image.exists());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing but the tree is left");
    message.unwrap().expect("the file is read")
}

#[test]
fn a_file_that_shrinks_while_it_is_read() {
    if !kernel::available_or_report() {
        return;
    }
    let message = build_while(|file| file.set_len(40_000).unwrap());
    let expected = "victim shrank while it was read: it had 100000 bytes when opened and ended \
                    after 40000; stop what writes to it and build again";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_file_that_grows_while_it_is_read() {
    if !kernel::available_or_report() {
        return;
    }
    let message = build_while(|file| file.write_all_at(&[2; 50_000], 100_000).unwrap());
    let expected = "victim grew while it was read: it had 100000 bytes when opened and now has";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn sources_that_are_missing_or_may_not_be_read() {
    let home = tempfile::tempdir().unwrap();
    let nowhere = home.path().join("nowhere").display().to_string();
    let image = home.path().join("image").display().to_string();
    let message = fails(1, ["build", &nowhere, &image]);
    assert!(message.contains(&nowhere) && message.contains("check"), "{message}");
    if !kernel::available_or_report() {
        return;
    }
    let root = home.path().join("tree");
    fs::create_dir_all(root.join("closed")).unwrap();
    let output = home.path().join("output");
    fs::create_dir(&output).unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(root.join("secret"), "secret").unwrap();
    fs::write(home.path().join("archive.tar"), tar(&root, &[])).unwrap();
    for (path, source, word) in [
        ("tree/secret", "tree", "open secret"),
        ("tree/closed", "tree", "closed"),
        ("archive.tar", "archive.tar", "archive.tar"),
    ] {
        let path = home.path().join(path);
        let mode = path.metadata().unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let answer = as_nobody(home.path()).args(["build", source, "output/image"]).output();
        let answer = answer.unwrap();
        let message = String::from_utf8_lossy(&answer.stderr);
        assert_eq!(answer.status.code(), Some(1), "{message}");
        assert!(message.contains(word) && message.contains("Permission denied"), "{message}");
        assert_eq!(fs::read_dir(&output).unwrap().count(), 0);
        fs::set_permissions(&path, mode).unwrap();
    }
    let answer = as_nobody(home.path()).args(["build", "tree", "output/image"]).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
}
