//! apt with state, caches, sources and hooks of its own: it reads the machine's configuration for
//! how to fetch (proxies, credentials) and from where, and writes only below its directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::sources::{self, Archive};
use crate::{shell, system};

/// A private apt whose index of one suite is loaded and whose signature was verified.
pub(crate) struct PrivateApt {
    directory: PathBuf,
}

impl PrivateApt {
    /// Loads the index of `suite` from the first of the machine's archives that has it.
    ///
    /// The suite's signature is checked with the key the machine's source names. When that key ring
    /// is too old to know the suite's present key, the archive's newest key ring is fetched as a
    /// package of the machine's own release, whose signature the machine's apt verifies, and used
    /// instead: trust is handed on, never assumed.
    pub(crate) fn prepare(directory: &Path, suite: &str) -> Result<Self> {
        for name in ["state/lists/partial", "cache/archives/partial", "parts", "packages"] {
            let path = directory.join(name);
            fs::create_dir_all(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        fs::write(directory.join("status"), "")?;
        let apt = Self { directory: directory.to_owned() };
        apt.write_configuration()?;
        let mut complaints = Vec::new();
        for archive in sources::archives(Path::new("/etc/apt"), &codename()?)? {
            match apt.load(&archive, suite) {
                Ok(()) => return Ok(apt),
                Err(error) => complaints.push(format!("{}: {error:#}", archive.uri)),
            }
        }
        bail!("no archive of this machine serves suite {suite}:\n{}", complaints.join("\n"))
    }

    /// Downloads `packages` in the suite's newest versions; apt checks each against the index.
    pub(crate) fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        let packages_directory = self.directory.join("packages");
        let mut command = self.command("apt-get");
        shell::output(
            command.current_dir(&packages_directory).args(["download", "--quiet"]).args(packages),
        )?;
        let mut files = fs::read_dir(&packages_directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        files.sort();
        Ok(files)
    }

    /// The packages that `package` depends on, without alternatives and virtual packages.
    pub(crate) fn depends(&self, package: &str) -> Result<Vec<String>> {
        let text =
            shell::output(self.command("apt-cache").args(["depends", "--important", package]))?;
        Ok(text
            .lines()
            .filter_map(|line| line.trim_start().split_once("Depends: "))
            .map(|(_, name)| name.to_owned())
            .filter(|name| !name.starts_with('<'))
            .collect())
    }

    /// A command of the apt family that uses this configuration.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.directory.join("apt.conf")).env("LC_ALL", "C");
        command
    }

    /// Writes the configuration: own directories, no hooks, the machine's way to fetch.
    fn write_configuration(&self) -> Result<()> {
        let at = |name: &str| self.directory.join(name).display().to_string();
        let mut text = String::new();
        for (key, value) in [
            ("Dir::State", at("state")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("Dir::Etc::sourcelist", at("suite.sources")),
            ("Dir::Etc::sourceparts", at("parts")),
            ("Dir::Etc::preferences", at("status")),
            ("Dir::Etc::preferencesparts", at("parts")),
            ("Dir::Etc::main", at("status")),
            ("Dir::Etc::parts", at("parts")),
            ("APT::Sandbox::User", "root".to_owned()),
            ("Acquire::Retries", "3".to_owned()),
        ] {
            text.push_str(&format!("{key} \"{value}\";\n"));
        }
        for line in shell::output(Command::new("apt-config").arg("dump"))?.lines() {
            if line.starts_with("Acquire::") && !line.starts_with("Acquire::IndexTargets") {
                text.push_str(line);
                text.push('\n');
            }
        }
        fs::write(self.directory.join("apt.conf"), text)?;
        Ok(())
    }

    /// Loads the index of `suite` from `archive`, with a newer key ring if it is needed.
    fn load(&self, archive: &Archive, suite: &str) -> Result<()> {
        let Err(error) = self.update(&archive.stanza(suite, None)) else { return Ok(()) };
        if !format!("{error:#}").contains("NO_PUBKEY") {
            return Err(error);
        }
        let keyring = self.fetch_keyring().context("cannot fetch a newer archive key ring")?;
        self.update(&archive.stanza(suite, Some(&keyring.display().to_string())))
    }

    /// Loads the index that `stanza` describes.
    fn update(&self, stanza: &str) -> Result<()> {
        fs::write(self.directory.join("suite.sources"), stanza)?;
        let mut command = self.command("apt-get");
        // Without error-mode any, a failed or unsigned index is only a warning.
        shell::output(command.args(["update", "--quiet", "--error-on=any"])).map(drop)
    }

    /// Fetches the archive's key ring with the machine's own apt configuration.
    fn fetch_keyring(&self) -> Result<PathBuf> {
        let directory = self.directory.join("keyring");
        system::unpack_package("debian-archive-keyring", &directory)?;
        Ok(directory.join("usr/share/keyrings/debian-archive-keyring.gpg"))
    }
}

/// The code name of the Debian release that the machine runs.
fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(|value| value.trim_matches('"').to_owned())
    };
    if field("ID").as_deref() != Some("debian") {
        bail!(
            "this machine does not run Debian; put the tools of xfsprogs 7 or newer into one \
             directory and name it in {}",
            undercroft_judges::xfsprogs::NEWEST_VARIABLE
        );
    }
    field("VERSION_CODENAME").context("/etc/os-release has no VERSION_CODENAME")
}
