//! The examples of the help work as they stand. Each example of each help is typed, or named here
//! with the reason why not.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::run::succeeds;

/// Examples for what a test cannot give them: fio, which need not be there, and whole disks.
const ELSEWHERE: [&str; 15] = [
    // They want files that were removed; the tests of `deleted` have some.
    "undercroft undelete disk.img /home/ann rescued",
    "undercroft undelete disk.img --all --since @1764410000 rescued",
    "undercroft undelete disk.img --all - | tar tv",
    "undercroft undelete disk.img --all --to-image rescued.img",
    "undercroft undelete --in-place disk.img /home/ann",
    "undercroft undelete --in-place disk.img --all --since @1764410000",
    // It takes a repair back, which a sound volume does not get.
    "undercroft repair --undo-with disk.img.undo disk.img",
    "undercroft repair --undo /root/sdb1.undo /dev/sdb1",
    // It takes an upgrade back, of which there is no file.
    "undercroft upgrade --undo-with disk.undo disk.img",
    // They want a bucket; the tests of `objects` have one.
    "undercroft publish root.img s3://bucket/images@v1",
    "undercroft fetch s3://bucket/images@v1 root.img",
    "undercroft verify s3://bucket/images@v1",
    "undercroft prune --forget v1 --unnamed s3://bucket/images",
    "undercroft lab iops --smoke --driver file-io_uring --driver file-threads --batch 32 --fio",
    "undercroft resync 'stripe:64k(mirror(/dev/sda,/dev/sdb),mirror(/dev/sdc,/dev/sdd))' /dev/sdd",
];

/// The volumes that the examples of a command speak of; those of others need none.
const VOLUMES: [(&str, &[&str]); 25] = [
    ("", &["disk.img"]),
    ("build", &["base.img"]),
    ("convert", &["root.img"]),
    ("disks", &["root.img", "a.img", "b.img"]),
    ("diff", &["old.img", "new.img", "root.img", "disk.img", "a.img", "b.img", "app.img"]),
    ("extract", &["root.img", "old.img", "disk.img"]),
    ("describe", &["root.img", "disk.img"]),
    ("fsck", &["root.img"]),
    ("deleted", &["disk.img"]),
    ("salvage", &["disk.img"]),
    ("repair", &["disk.img"]),
    ("upgrade", &["disk.img"]),
    ("timeline", &["disk.img"]),
    ("get", &["root.img"]),
    ("copy", &["old.img", "new.img"]),
    ("mount", &["root.img", "disk.img"]),
    ("serve", &["root.img", "disk.img"]),
    ("unmount", &["root.img"]),
    ("label", &["root.img"]),
    ("extsize", &["disk.img"]),
    ("grow", &["root.img"]),
    ("shrink", &["root.img"]),
    ("minimise", &["root.img"]),
    ("set", &["copy.img"]),
    ("resync", &["'mirror(a.img,b.img)'"]),
];

/// Those of a command that is not among them: most change or look at one.
fn usual_volumes(command: &str) -> &'static [&'static str] {
    let makes_its_own = ["lab", "mkfs", "completions", "man", "undelete"];
    let first = command.split(' ').next().unwrap_or_default();
    if makes_its_own.contains(&first) { &[] } else { &["root.img"] }
}

/// Other programs, which answer as those of these names would: without a daemon, and without a
/// network.
const PROGRAMS: [(&str, &str); 2] = [
    ("docker", "[ \"$1\" = export ] && exec tar -c -C rootfs .; exec cat saved-amd64.tar"),
    (
        "skopeo",
        "PATH=${PATH#*:} exec skopeo --insecure-policy copy docker-archive:saved-amd64.tar \"$3\"",
    ),
];

/// Makes what `docker save` writes, for two platforms, and an archive for one of them.
const SAVE: &str = r#"
tar -cf layer.tar -C rootfs .
sum=$(sha256sum layer.tar | cut -c1-64)
echo '[{"Config":"config.json","RepoTags":["debian:12"],"Layers":["layer.tar"]}]' > manifest.json
for platform in amd64 arm64; do
    echo '{"os":"linux","architecture":"'$platform'","config":{},"rootfs":{"type":"layers",' \
        '"diff_ids":["sha256:'$sum'"]}}' > config.json
    tar -cf saved-$platform.tar manifest.json config.json layer.tar
done
PATH=${PATH#*:} skopeo --insecure-policy --override-arch arm64 copy \
    docker-archive:saved-arm64.tar oci-archive:all.tar
"#;

/// Where an example is typed, with the program in the path.
fn typed(directory: &Path, line: &str) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).current_dir(directory).stdin(Stdio::null());
    let path = std::env::var("PATH").unwrap();
    shell.env("PATH", format!("{}/bin:{path}", directory.display()));
    shell.env("HOME", directory).env_remove("SOURCE_DATE_EPOCH").output().unwrap()
}

#[track_caller]
fn works(directory: &Path, line: &str) {
    let output = typed(directory, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// All commands, as the words behind the name of the program: the ones that a help lists, and
/// theirs.
fn commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while let Some(command) = found.get(at) {
        let help = help(command);
        let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
        let lines = listed.lines().take_while(|line| !line.is_empty());
        // The text about a command may go on in further lines, farther to the right.
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        let below: Vec<_> = names
            .filter(|name| *name != "help")
            .map(|name| [command.clone(), vec![name.to_owned()]].concat())
            .collect();
        found.extend(below);
        at += 1;
    }
    found
}

fn help(command: &[String]) -> String {
    succeeds(command.iter().map(String::as_str).chain(["--help"]))
}

/// The lines of a help that begin with a command, without the text about them.
fn examples(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(rest) = help.split("Examples:\n").nth(1) {
        let lines = rest.lines().take_while(|line| line.starts_with("  "));
        // Text behind several spaces is about the example.
        found.extend(lines.map(|line| line.trim().split("   ").next().unwrap().to_owned()));
    }
    for rest in help.split("For example: ").skip(1) {
        let text = rest.split("\n\n").next().unwrap().replace('\n', " ");
        found.push(text.replace(", undercroft", "; undercroft"));
    }
    // No example in another form, which would not be run here.
    let lines = help.lines().map(str::trim).filter(|line| line.starts_with("undercroft "));
    for line in lines {
        assert!(found.iter().any(|example| line.starts_with(example)), "no example: {line}");
    }
    // Experiments are to work, not to measure; and this is not that machine.
    for experiment in ["tags", "unplug", "affinity", "alloc", "iops", "fsync", "meta", "mount"] {
        let (long, smoke) = (format!("lab {experiment} "), format!("lab {experiment} --smoke "));
        found.iter_mut().for_each(|line| *line = line.replace(&long, &smoke));
    }
    for (long, short) in [("lab report -o", "lab report --smoke -o"), ("/mnt/xfs", "mnt")] {
        found.iter_mut().for_each(|line| *line = line.replace(long, short));
    }
    found
}

/// Files that examples speak of, and a volume of some of them beside: made once, and copied for each
/// command.
fn prepare(home: &Path) {
    let directory = &home.join("files");
    for path in [
        "bin",
        "mnt",
        "efi/EFI/BOOT",
        "rootfs/etc",
        "site",
        "rootfs/etc/selinux/targeted/contexts/files",
        "rootfs/etc/ssh",
        "rootfs/home/user",
        "rootfs/var/lib/vm",
        "rootfs/var/log",
        ".local/share/bash-completion/completions",
    ] {
        fs::create_dir_all(directory.join(path)).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_undercroft"), directory.join("bin/undercroft")).unwrap();
    for (name, script) in PROGRAMS {
        let program = directory.join("bin").join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(directory.join("rootfs/etc/fstab"), "none\n").unwrap();
    fs::write(directory.join("rootfs/etc/ssh/host_key"), "secret\n").unwrap();
    let policy = directory.join("rootfs/etc/selinux/targeted/contexts/files/file_contexts");
    fs::write(policy, "/.* system_u:object_r:default_t:s0\n").unwrap();
    fs::write(directory.join("image.rules"), "add motd:/etc/motd\n").unwrap();
    fs::write(directory.join("motd"), "welcome\n").unwrap();
    fs::write(directory.join("script"), "mkdir /srv\nls /\n").unwrap();
    fs::write(directory.join("disk.map"), "0 + 1\n0 0x7fffffffffffffff +\n").unwrap();
    works(
        directory,
        "tar -czf layer.tar.gz -C rootfs . && tar --zstd -cf rootfs.tar.zst -C rootfs .",
    );
    works(directory, SAVE);
    works(
        directory,
        "undercroft describe --format mtree --output root.mtree rootfs; \
         undercroft describe --format composefs --output root.dump rootfs; \
         undercroft build --size 64M rootfs/ ../volume.img",
    );
}

/// Copies the files, and the volume under each name that examples call it by.
fn copy(home: &Path, directory: &Path, volumes: &[&str], examples: &[String]) {
    works(directory, &format!("cp -a {}/files/. .", home.display()));
    for name in volumes {
        if name.contains('(') {
            // A description of devices.
            works(directory, &format!("undercroft build --size 64M rootfs/ {name}"));
        } else {
            works(directory, &format!("cp --sparse=always {}/volume.img {name}", home.display()));
            partition(directory, name, examples);
        }
    }
}

/// Where examples speak of the second partition of a volume, it becomes that of a disk.
fn partition(directory: &Path, name: &str, examples: &[String]) {
    let option = format!("--partition 2 {name} ");
    if !examples.iter().any(|example| format!("{example} ").contains(&option)) {
        return;
    }
    let bytes = fs::read(directory.join(name)).unwrap();
    let (first, sectors) = (2048_u32, (bytes.len() / 512) as u32);
    let disk = File::create(directory.join(name)).unwrap();
    let mut table = [0; 512];
    for (number, first, sectors) in [(1, 1, 63), (2, first, sectors)] {
        let entry = &mut table[446 + 16 * (number - 1)..][..16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..].copy_from_slice(&sectors.to_le_bytes());
    }
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.write_all_at(&table, 0).unwrap();
    disk.write_all_at(&bytes, u64::from(first) * 512).unwrap();
}

#[test]
fn examples_of_the_help_work() {
    let mut not_met = ELSEWHERE.to_vec();
    let mut volumes_of_others = VOLUMES.to_vec();
    let home = tempfile::tempdir().unwrap();
    prepare(home.path());
    for command in commands() {
        let help = help(&command);
        let examples = examples(&help);
        let is_group = help.contains("\nCommands:\n");
        assert!(is_group || !examples.is_empty(), "no example in the help of {command:?}");
        if examples.is_empty() {
            continue;
        }
        let command = command.join(" ");
        let volumes: &[&str] = VOLUMES
            .iter()
            .find(|(of, _)| *of == command)
            .map_or(usual_volumes(&command), |(_, volumes)| volumes);
        volumes_of_others.retain(|(of, _)| *of != command);
        let directory = tempfile::tempdir().unwrap();
        copy(home.path(), directory.path(), volumes, &examples);
        for example in &examples {
            if ELSEWHERE.contains(&&example[..]) {
                not_met.retain(|known| known != example);
                continue;
            }
            // Each begins anew, or makes its volume anew.
            let target = example.split(' ').next_back().unwrap_or_default();
            let output = example.split(" --output ").nth(1).and_then(|rest| rest.split(' ').next());
            let cleared = match () {
                () if output.is_some() => format!("rm -f {}; ", output.unwrap_or_default()),
                () if volumes.is_empty() => "rm -f ./*.img; ".to_owned(),
                () if example.contains(" --on ") => String::new(),
                () if example.contains("undercroft build") => format!("rm -f {target}; "),
                () if example.ends_with(" rootfs/") => "rm -rf rootfs; ".to_owned(),
                () => String::new(),
            };
            works(directory.path(), &format!("{cleared}{example}"));
        }
    }
    assert!(
        not_met.is_empty() && volumes_of_others.is_empty(),
        "{not_met:?} {volumes_of_others:?}"
    );
}
