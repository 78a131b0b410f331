//! `cargo xtask soak dist`: what `cargo xtask dist` makes is the same in two directories, judged by
//! the tools of packages, installed, and run on systems that have little.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::dist::{self, Architecture};
use crate::{debian, shell, system, workspace};

/// An old release, whose C library is older than that of any machine that builds.
const OLD_RELEASE: &str = "bullseye";

/// Make what users install twice, and use it.
#[derive(Args)]
pub(crate) struct DistArguments {
    /// Directory for two checkouts and a Debian; the Debian there is used again
    #[arg(long)]
    work: Option<PathBuf>,
    /// Take what is in target/dist, and do not make it again
    #[arg(long)]
    made: bool,
    /// Only for this processor; may be given several times
    #[arg(long, value_name = "ARCHITECTURE")]
    only: Vec<Architecture>,
}

pub(crate) fn run(arguments: &DistArguments) -> Result<()> {
    system::install(system::FOR_DIST_SOAKS)?;
    let work = arguments.work.clone().unwrap_or_else(|| workspace::target("soak-dist"));
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let chosen = Architecture::chosen(&arguments.only);
    let made = if arguments.made { dist::directory() } else { twice(&work, chosen)? };
    shell::run(Command::new("sha256sum").current_dir(&made).args(["--check", "SHA256SUMS"]))?;
    let script = recipes()?;
    for &architecture in chosen {
        let name = dist::name(architecture);
        let [binary, archive, deb, rpm] =
            ["", ".tar.zst", ".deb", ".rpm"].map(|end| made.join(format!("{name}{end}")));
        judge(&archive, &deb, &rpm)?;
        if architecture.name() == std::env::consts::ARCH {
            old_debian(&work, &binary, &deb, &script)?;
            only_a_binary(&work, &binary, &script)?;
            rpm_root(&work, &rpm, &script)?;
        } else {
            emulated(&work, &binary, architecture, &script)?;
        }
    }
    Ok(())
}

/// Makes everything in two checkouts, whose directories have names of different length.
fn twice(work: &Path, chosen: &[Architecture]) -> Result<PathBuf> {
    workspace::ensure_committed(
        workspace::root(),
        "checkouts would not have them; commit them, or `git stash --include-untracked`",
    )?;
    let mut sums = Vec::new();
    let places = ["one", "another/checkout"].map(|place| work.join(place));
    for place in &places {
        afresh(place)?;
        let mut clone = Command::new("git");
        shell::run(
            clone.args(["clone", "--quiet", "--no-local"]).arg(workspace::root()).arg(place),
        )?;
        println!("==> dist in {}", place.display());
        let mut cargo = workspace::cargo();
        // Everything is built in the checkout itself.
        cargo.current_dir(place).env_remove("CARGO_TARGET_DIR");
        cargo.args(["run", "--quiet", "--package", "xtask", "--", "dist"]);
        shell::run(cargo.args(chosen.iter().map(|one| format!("--only={}", one.name()))))?;
        let made = place.join("target/dist");
        sums.push(fs::read_to_string(made.join("SHA256SUMS"))?);
        // What one build leaves must not serve the other, and takes much space.
        for entry in fs::read_dir(place.join("target"))? {
            let path = entry?.path();
            if path != made && path.is_dir() {
                fs::remove_dir_all(path)?;
            }
        }
    }
    ensure!(sums[0] == sums[1], "two checkouts differ:\n{}\n{}", sums[0], sums[1]);
    println!("==> the same bytes in {} and {}", places[0].display(), places[1].display());
    Ok(places[0].join("target/dist"))
}

/// An empty directory.
fn afresh(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}

/// What the tools of packages say of them.
fn judge(archive: &Path, deb: &Path, rpm: &Path) -> Result<()> {
    println!("==> judges of {}", deb.display());
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning", "--allow-root", "--tag-display-limit", "0"]);
    // There is no bug that asks for a package of Debian, and no address of maintainers; cargo-deb
    // writes a list of dependencies that has none.
    lintian.args([
        "--suppress-tags",
        "empty-field,initial-upload-closes-no-bugs,bogus-mail-host,bogus-mail-host-in-debian-changelog",
    ]);
    shell::run(lintian.arg(deb))?;
    shell::run(Command::new("dpkg").arg("--info").arg(deb))?;
    // In a package of RPM a script makes the other names of the command.
    let listed = [
        shell::output(Command::new("dpkg").arg("--contents").arg(deb))?,
        shell::output(Command::new("rpm").args(["--query", "--package", "--list"]).arg(rpm))?,
        shell::output(Command::new("tar").arg("--list").arg("--file").arg(archive))?,
    ];
    for list in listed {
        for part in [
            "bin/undercroft\n",
            "man1/undercroft-build.1",
            "bash-completion/completions/undercroft",
            "/_undercroft",
            "undercroft.fish",
            "undercroft.nu",
            "THIRD-PARTY.txt",
        ] {
            ensure!(list.contains(part), "no {part} in\n{list}");
        }
    }
    shell::run(Command::new("rpm").args(["--query", "--package", "--info"]).arg(rpm))?;
    shell::run(Command::new("rpm").args(["--checksig", "--nosignature"]).arg(rpm))
}

/// The commands of the recipes of README.md, which a shell runs where `undercroft` is one.
fn recipes() -> Result<String> {
    let readme = fs::read_to_string(workspace::root().join("README.md"))?;
    let section = readme.split("\n## ").find(|section| section.starts_with("Three recipes"));
    let section = section.context("README.md has no section `Three recipes`")?;
    let mut script = String::from(
        "set -e\nmkdir -p rootfs/etc\necho box > rootfs/etc/hostname\necho box > hostname\n",
    );
    let mut lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else { continue };
        commands += 1;
        script.push_str(command);
        script.push('\n');
        if command.ends_with("<<END") {
            for line in lines.by_ref() {
                script.push_str(line);
                script.push('\n');
                if line == "END" {
                    break;
                }
            }
        }
    }
    ensure!(commands >= 6, "README.md has {commands} commands of recipes");
    Ok(script)
}

/// Runs the recipes in `directory`, where `undercroft` stands for `command`.
fn run_recipes(directory: &Path, command: &str, script: &str) -> Result<()> {
    let script = format!("undercroft() {{ {command} \"$@\"; }}\n{script}");
    shell::run(Command::new("sh").current_dir(directory).args(["-c", &script]))
}

fn install_program(binary: &Path, to: &Path) -> Result<()> {
    fs::copy(binary, to).with_context(|| format!("cannot copy {}", binary.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

/// The package in a Debian that is old, and without it the binary alone. Nothing of the package is
/// left when it is removed.
fn old_debian(work: &Path, binary: &Path, deb: &Path, script: &str) -> Result<()> {
    println!("==> {OLD_RELEASE}");
    let root = debian::bootstrap_release(&work.join(OLD_RELEASE), OLD_RELEASE)?;
    let inside = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(&root).args(words).env("DEBIAN_FRONTEND", "noninteractive");
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
    };
    let recipes = |place: &str| {
        afresh(&root.join(place))?;
        let script = format!("cd /{place}\n{script}");
        shell::run(&mut inside(&["sh", "-c", &script]))?;
        fs::remove_dir_all(root.join(place)).context("cannot remove what recipes made")
    };
    let program = root.join("usr/local/bin/undercroft");
    // Of a run that failed: it would come before that of the package.
    if program.exists() {
        fs::remove_file(&program)?;
    }
    fs::copy(deb, root.join("undercroft.deb"))?;
    shell::run(&mut inside(&["dpkg", "--install", "/undercroft.deb"]))?;
    fs::remove_file(root.join("undercroft.deb"))?;
    recipes("recipes-of-package")?;
    shell::run(&mut inside(&["fsck.undercroft", "--help"]))?;
    shell::run(&mut inside(&["dpkg", "--purge", "undercroft"]))?;
    let left = shell::output(&mut inside(&["find", "/", "-xdev", "-name", "*undercroft*"]))?;
    ensure!(left.is_empty(), "dpkg --purge left\n{left}");
    install_program(binary, &program)?;
    recipes("recipes-of-binary")?;
    Ok(fs::remove_file(program)?)
}

/// A root directory that holds the binary and nothing else: no /proc, no /dev, no libraries.
fn only_a_binary(work: &Path, binary: &Path, script: &str) -> Result<()> {
    println!("==> nothing but the binary");
    let root = work.join("empty");
    afresh(&root)?;
    install_program(binary, &root.join("undercroft"))?;
    // The shell and tar are those of this machine, names of files those of the directory.
    run_recipes(&root, "chroot . ./undercroft", script)?;
    Ok(fs::remove_dir_all(root)?)
}

/// The other package, installed in a root directory of its own and removed.
fn rpm_root(work: &Path, rpm: &Path, script: &str) -> Result<()> {
    println!("==> rpm");
    let root = work.join("rpm");
    afresh(&root)?;
    // Every system has it.
    fs::create_dir_all(root.join("usr/sbin"))?;
    let tool = || {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&root).arg("--nodeps");
        command
    };
    shell::run(tool().arg("--install").arg(rpm))?;
    let recipes = root.join("recipes");
    fs::create_dir(&recipes)?;
    run_recipes(&recipes, "../usr/bin/undercroft", script)?;
    shell::run(Command::new(root.join("usr/sbin/fsck.undercroft")).arg("--help"))?;
    shell::run(tool().args(["--erase", "undercroft"]))?;
    for path in ["usr/bin/undercroft", "usr/sbin/fsck.undercroft"] {
        ensure!(root.join(path).symlink_metadata().is_err(), "rpm left {path}");
    }
    Ok(fs::remove_dir_all(root)?)
}

/// The binary for another processor, on an emulator of that.
fn emulated(work: &Path, binary: &Path, architecture: Architecture, script: &str) -> Result<()> {
    let emulator = format!("qemu-{}-static", architecture.name());
    let Some(emulator) = shell::find(&emulator) else { bail!("{emulator} is missing") };
    println!("==> {}", emulator.display());
    let directory = work.join("emulated");
    afresh(&directory)?;
    let binary = binary.canonicalize()?;
    let command = format!("'{}' '{}'", emulator.display(), binary.display());
    run_recipes(&directory, &command, script)?;
    Ok(fs::remove_dir_all(directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_commands_alone() {
        let script = recipes().unwrap();
        assert!(script.contains("tar -C rootfs -c . | undercroft build - disk.img\n"), "{script}");
        assert!(script.contains("<<END\nmkdir -p /srv/www\n"), "{script}");
        assert!(!script.contains("clean: ") && !script.contains('$'), "{script}");
    }
}
