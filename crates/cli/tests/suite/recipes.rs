//! The recipes of docs/recipes, run as they stand.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};

use crate::run::{as_nobody, crashed, succeeds};

fn recipe(name: &str) -> PathBuf {
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    recipes.canonicalize().unwrap().join(name)
}

/// A directory in which there is the command, by its name.
fn bin(home: &Path) -> PathBuf {
    let bin = home.join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_undercroft"), bin.join("undercroft")).unwrap();
    bin
}

fn run(script: &Path, bin: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(script);
    command.args(words).env("PATH", path).envs(variables.iter().copied());
    command.env_remove("SOURCE_DATE_EPOCH").stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn works(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {message}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A volume as a snapshot has it that was taken while a kernel had it mounted, and its UUID.
fn snapshot(home: &Path) -> (String, String) {
    let [volume, origin] = ["snapshot.img", "origin.img"].map(|name| home.join(name));
    Xfsprogs::newest().unwrap().mkfs(&origin, 320 << 20, &[]).unwrap();
    crashed(&origin, &volume);
    let volume = volume.display().to_string();
    let uuid = uuid(&volume);
    (volume, uuid)
}

fn uuid(volume: &str) -> String {
    let info = succeeds(["info", "--json", volume]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    info["uuid"].as_str().unwrap().to_owned()
}

/// A kernel, and xfs_repair, which does not look at a volume whose journal is dirty.
fn judged(volume: &str) {
    Xfsprogs::newest().unwrap().repair_check(Path::new(volume)).unwrap();
    let mount = LoopMount::new(Path::new(volume), Access::ReadOnly, &[]).unwrap();
    assert_eq!(fs::read(mount.join("early")).unwrap(), b"early");
    mount.unmount().unwrap();
}

#[test]
fn a_clone_is_made_ready_for_a_mount() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (volume, origin) = snapshot(home.path());
    let (script, bin) = (recipe("init-container.sh"), bin(home.path()));
    works(&run(&script, &bin, &[&volume, &origin], &[]));
    let identity = uuid(&volume);
    assert_ne!(identity, origin);
    judged(&volume);
    // Again, as when a pod starts once more.
    works(&run(&script, &bin, &[&volume, &origin], &[]));
    assert_eq!(uuid(&volume), identity);
    let missing = home.path().join("missing").display().to_string();
    assert_eq!(run(&script, &bin, &[&missing], &[]).status.code(), Some(8));
}

/// The steps of the pod, each in a root directory that holds the binary, its libraries and the
/// device alone.
#[test]
fn the_steps_of_the_pod_work() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (volume, origin) = snapshot(home.path());
    let pod = fs::read_to_string(recipe("init-container.yaml")).unwrap();
    let steps = pod.lines().filter_map(|line| line.trim().strip_prefix("args: "));
    let steps: Vec<Vec<String>> = steps.map(|list| serde_json::from_str(list).unwrap()).collect();
    assert_eq!(steps.len(), 4);
    for mut step in steps {
        let device = step.iter_mut().find(|word| *word == "/dev/volume").unwrap();
        device.clone_from(&volume);
        succeeds(step);
    }
    assert_ne!(uuid(&volume), origin);
    judged(&volume);
}

#[test]
fn a_disk_is_built_without_privileges() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o777)).unwrap();
    let source = home.path().join("checkout");
    fs::create_dir_all(source.join("etc")).unwrap();
    fs::write(source.join("etc/hostname"), "box\n").unwrap();
    for path in ["checkout", "checkout/etc", "checkout/etc/hostname"] {
        std::os::unix::fs::chown(home.path().join(path), Some(1000), Some(1000)).unwrap();
    }
    let disk = out.join("disk.img");
    // The command and the script, where that user may read them.
    let script = home.path().join("root-disk.sh");
    assert!(
        Command::new("cp").arg(recipe("root-disk.sh")).arg(&script).status().unwrap().success()
    );
    let program = as_nobody(home.path());
    let mut command = Command::new(program.get_program());
    command.args(program.get_args().filter(|word| word.as_encoded_bytes().starts_with(b"--")));
    command.arg(&script).arg(&source).arg(&disk).current_dir(&out).stdin(Stdio::null());
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap());
    works(&command.env("PATH", path).env_remove("SOURCE_DATE_EPOCH").output().unwrap());
    let verified = Command::new("sfdisk").arg("--verify").arg(&disk).output().unwrap();
    works(&verified);
    let stat =
        succeeds(["stat", "--json", "--partition", "1", &disk.display().to_string(), "/etc"]);
    let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
    assert_eq!((&stat["uid"], &stat["gid"]), (&0.into(), &0.into()), "{stat}");
}

#[test]
fn the_hook_of_an_initramfs_replays() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (volume, _) = snapshot(home.path());
    let bin = bin(home.path());
    let (hook, script) = (
        recipe("initramfs/hooks/undercroft"),
        recipe("initramfs/scripts/local-premount/undercroft"),
    );
    for file in [&hook, &script] {
        assert_eq!(works(&run(file, &bin, &["prereqs"], &[])), "");
    }
    let image = home.path().join("initramfs");
    fs::create_dir_all(image.join("usr/bin")).unwrap();
    let (program, image) = (env!("CARGO_BIN_EXE_undercroft"), image.display().to_string());
    let variables = [("UNDERCROFT", program), ("DESTDIR", &image[..]), ("verbose", "n")];
    works(&run(&hook, &bin, &[], &variables));
    let taken = Path::new(&image).join("usr/bin/undercroft");
    assert_eq!(fs::read(taken).unwrap(), fs::read(program).unwrap());
    let told = works(&run(&script, &bin, &[], &[("ROOT", &volume)]));
    assert!(told.contains("replayed") && told.contains("clean"), "{told}");
    judged(&volume);
    // Another file system is let alone.
    let other = home.path().join("other").display().to_string();
    fs::write(&other, [7; 4096]).unwrap();
    assert_eq!(works(&run(&script, &bin, &[], &[("ROOT", &other)])), "");
}

/// The Containerfile takes the binary of this version.
#[test]
fn the_containerfile_names_this_version() {
    let file = recipe("../../Containerfile");
    let file = fs::read_to_string(file).unwrap();
    let version = concat!("ARG VERSION=", env!("CARGO_PKG_VERSION"));
    assert!(file.lines().any(|line| line == version), "{file}");
}
