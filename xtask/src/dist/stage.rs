//! The files that packages install, under names by which the packages find them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Release;
use crate::{shell, workspace};

/// Shells, the names under which they look for completions, and the directories below `share`.
pub(super) const SHELLS: [(&str, &str); 4] = [
    ("bash", "bash-completion/completions/undercroft"),
    ("zsh", "zsh/vendor-completions/_undercroft"),
    ("fish", "fish/vendor_completions.d/undercroft.fish"),
    ("nushell", "nushell/vendor/autoload/undercroft.nu"),
];

/// Other names of the command, under which mount(8) and fsck(8) call it, and the page that says how.
const NAMES: [(&str, &str); 2] =
    [("mount.undercroft", "undercroft-mount"), ("fsck.undercroft", "undercroft-fsck")];

/// Rules of Debian for its own archive that a package for all systems breaks on purpose.
const OVERRIDES: &str = "\
# One binary for every distribution and for containers without any.
undercroft: statically-linked-binary
undercroft: shared-library-lacks-prerequisites
# Compressors that are linked in.
undercroft: embedded-library *
";

/// A tree of what is installed below `/usr`, but for the binary.
pub(super) struct Stage {
    pub(super) root: PathBuf,
}

impl Stage {
    /// Makes it anew in `root`; `program` runs here and prints the pages and completions.
    pub(super) fn make(root: PathBuf, program: &Path, release: &Release) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)
                .with_context(|| format!("cannot remove {}", root.display()))?;
        }
        let stage = Self { root };
        let man = stage.directory("share/man/man1")?;
        shell::run(Command::new(program).arg("man").arg("--all").arg(&man))?;
        let man8 = stage.directory("share/man/man8")?;
        let sbin = stage.directory("sbin")?;
        for (name, page) in NAMES {
            fs::write(man8.join(format!("{name}.8")), format!(".so man1/{page}.1\n"))?;
            symlink("../bin/undercroft", sbin.join(name))?;
        }
        for (shell, place) in SHELLS {
            let script = shell::output(Command::new(program).args(["completions", shell]))?;
            stage.write(&format!("share/{place}"), &script)?;
        }
        let doc = "share/doc/undercroft";
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            let from = workspace::root().join(file);
            let text = fs::read_to_string(&from)
                .with_context(|| format!("cannot read {}", from.display()))?;
            stage.write(&format!("{doc}/{file}"), &text)?;
        }
        stage.write("debian/copyright", &copyright()?)?;
        stage.write("debian/changelog", &changelog(release)?)?;
        stage.write("debian/overrides", OVERRIDES)?;
        let changes = stage.root.join("debian/changelog.gz");
        let log = workspace::root().join("CHANGELOG.md");
        let mut gzip = Command::new("gzip");
        gzip.args(["--best", "--no-name", "--stdout"]).arg(&log).stdin(Stdio::null());
        let packed =
            gzip.output().with_context(|| format!("cannot start `{}`", shell::line(&gzip)))?;
        ensure!(packed.status.success(), "`{}` ended with {}", shell::line(&gzip), packed.status);
        fs::write(&changes, packed.stdout)
            .with_context(|| format!("cannot write {}", changes.display()))?;
        Ok(stage)
    }

    /// Puts the binary and the licences of what is linked into it there.
    pub(super) fn put(&self, binary: &Path, licences: &str) -> Result<()> {
        self.directory("bin")?;
        let to = self.root.join("bin/undercroft");
        fs::copy(binary, &to).with_context(|| format!("cannot copy {}", binary.display()))?;
        self.write("share/doc/undercroft/THIRD-PARTY.txt", licences)
    }

    fn directory(&self, path: &str) -> Result<PathBuf> {
        let directory = self.root.join(path);
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(directory)
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        // It has a directory, which `root` is at least.
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The file of that name in a Debian package, which names texts that every Debian has.
fn copyright() -> Result<String> {
    let mit = fs::read_to_string(workspace::root().join("LICENSE-MIT"))?;
    let holder = mit.lines().find_map(|line| line.strip_prefix("Copyright (c) "));
    let holder = holder.context("LICENSE-MIT names no holder")?;
    let lines = mit.trim().lines().map(|line| match line.trim_end() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    });
    let text: String = lines.collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: undercroft\n\nFiles: *\nCopyright: {holder}\n\
         License: Expat or Apache-2.0\nComment: What is linked into the program is listed in \
         THIRD-PARTY.txt, with its licences.\n\nLicense: Expat\n{text}\nLicense: Apache-2.0\n On \
         Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n"
    ))
}

/// The file of that name in a Debian package.
fn changelog(release: &Release) -> Result<String> {
    Ok(format!(
        "undercroft ({}-1) unstable; urgency=medium\n\n  * Release; CHANGELOG.md says what \
         changed.\n\n -- {}  {}\n",
        release.version,
        release.maintainer,
        release.time("--rfc-email")?
    ))
}
