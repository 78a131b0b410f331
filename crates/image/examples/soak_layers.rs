//! Makes a container image of a small Debian in four layers with umoci, builds a volume of it, and
//! has outside judges compare the volume with the tree that was packed; needs root.
//!
//! `cargo run --release -p undercroft-image --example soak_layers -- DEBIAN WORK PACKAGE.deb…` takes
//! the Debian in the directory DEBIAN and installs the packages in the second layer. `cargo xtask
//! soak layers` has all of this made.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use undercroft_testkit::image::judged;

use undercroft_image::pack::PackOptions;
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Holes, Options, compare};
use undercroft_judges::{LoopMount, Xfsprogs};
use undercroft_source::SourceSpec;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(debian), Some(work)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: soak_layers DEBIAN WORK PACKAGE.deb…");
        return ExitCode::FAILURE;
    };
    let packages: Vec<_> = arguments.collect();
    let layout = Layout::new(&work);
    layout.pack("base", |root| copy(&debian, root));
    layout.pack("packages", |root| install(root, &packages));
    layout.pack("without", |root| remove(root, &packages));
    layout.pack("kinds", change_kinds);
    let mut same = true;
    for tag in ["base", "packages", "without", "kinds"] {
        same &= layout.judge(tag);
    }
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a program, which has to succeed.
fn run(program: &str, arguments: &[&dyn AsRef<OsStr>]) {
    let mut command = Command::new(program);
    command.args(arguments.iter().map(AsRef::as_ref));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// An image in a directory, and the tree that its next layer is made from.
struct Layout {
    work: PathBuf,
}

impl Layout {
    fn new(work: &Path) -> Self {
        for old in ["oci", "bundle"] {
            let old = work.join(old);
            if old.exists() {
                fs::remove_dir_all(&old).unwrap();
            }
        }
        fs::create_dir_all(work).unwrap();
        let layout = Self { work: work.to_owned() };
        run("umoci", &[&"init", &"--layout", &layout.work.join("oci")]);
        run("umoci", &[&"new", &"--image", &layout.image("empty")]);
        run("umoci", &[&"unpack", &"--image", &layout.image("empty"), &layout.bundle()]);
        layout
    }

    /// The image with `tag` as umoci names it.
    fn image(&self, tag: &str) -> String {
        format!("{}:{tag}", self.work.join("oci").display())
    }

    fn bundle(&self) -> PathBuf {
        self.work.join("bundle")
    }

    /// Changes the tree and packs what changed as the next layer, under a tag of its own.
    fn pack(&self, tag: &str, change: impl FnOnce(&Path)) {
        change(&self.bundle().join("rootfs"));
        let image = self.image(tag);
        run("umoci", &[&"repack", &"--refresh-bundle", &"--image", &image, &self.bundle()]);
    }

    /// Builds a volume of the image with `tag`, and compares it with what umoci unpacks.
    fn judge(&self, tag: &str) -> bool {
        let unpacked = self.work.join(format!("unpacked-{tag}"));
        let volume = self.work.join(format!("{tag}.img"));
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked).unwrap();
        }
        run("umoci", &[&"unpack", &"--image", &self.image(tag), &unpacked]);
        let spec = format!("oci:{}", self.image(tag));
        let mut options = PackOptions::new(SourceSpec::from(PathBuf::from(spec)), volume.clone());
        options.force = true;
        let summary = match judged::build(&options) {
            Ok(summary) => summary,
            Err(error) => panic!("{tag}: {}", judged::chain(&error)),
        };
        judged::repair(&volume, summary.image_bytes, &options.volume).unwrap();
        Xfsprogs::newest().unwrap().repair_check(&volume).unwrap();
        let mount = LoopMount::new(&volume, Access::ReadOnly, &[]).unwrap();
        let options = Options { holes: Holes::Ignore, ..Options::default() };
        let found = compare(&unpacked.join("rootfs"), mount.path(), &options).unwrap();
        mount.unmount().unwrap();
        println!(
            "{tag}: {} entries, {}",
            summary.files + summary.directories + summary.symlinks + summary.specials,
            if found.same() { "the same" } else { "different" }
        );
        if !found.same() {
            println!("{found:?}");
        }
        found.same()
    }
}

fn copy(debian: &Path, root: &Path) {
    run("cp", &[&"-a", &debian.join("."), &root]);
}

fn install(root: &Path, packages: &[PathBuf]) {
    let place = format!("--root={}", root.display());
    for package in packages {
        run("dpkg", &[&place, &"--install", package]);
    }
}

/// Removes the packages again, and whole directories, one of which comes back with other content.
fn remove(root: &Path, packages: &[PathBuf]) {
    let place = format!("--root={}", root.display());
    for package in packages.iter().rev() {
        let output =
            Command::new("dpkg-deb").arg("-f").arg(package).arg("Package").output().unwrap();
        let name = String::from_utf8(output.stdout).unwrap();
        run("dpkg", &[&place, &"--purge", &name.trim()]);
    }
    for directory in ["usr/share/doc", "usr/share/locale"] {
        fs::remove_dir_all(root.join(directory)).unwrap();
    }
    fs::create_dir(root.join("usr/share/doc")).unwrap();
    fs::write(root.join("usr/share/doc/README"), "what was here is gone\n").unwrap();
}

/// Entries of the base become other kinds of entries, and get names and attributes in this layer.
fn change_kinds(root: &Path) {
    let (login, passwd) = (root.join("etc/login.defs"), root.join("etc/passwd"));
    fs::remove_file(&login).unwrap();
    symlink("passwd", &login).unwrap();
    fs::hard_link(&passwd, root.join("etc/passwd.too")).unwrap();
    fs::remove_dir_all(root.join("usr/share/bash-completion")).unwrap();
    fs::write(root.join("usr/share/bash-completion"), "a file now\n").unwrap();
    fs::remove_file(root.join("etc/motd")).unwrap();
    fs::create_dir(root.join("etc/motd")).unwrap();
    fs::write(root.join("etc/motd/part"), "one\n").unwrap();
    fs::set_permissions(root.join("srv"), fs::Permissions::from_mode(0o2750)).unwrap();
    run("chown", &[&"34:50", &root.join("srv")]);
    run("setfattr", &[&"-n", &"user.layer", &"-v", &"four", &root.join("etc/hostname")]);
    run("setcap", &[&"cap_net_raw+ep", &root.join("usr/bin/sleep")]);
}
