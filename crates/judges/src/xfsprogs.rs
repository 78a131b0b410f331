//! The xfsprogs tools as judges: `mkfs.xfs` makes volumes, `xfs_repair -n` accepts or refuses
//! them, `xfs_db` reads and damages them.
//!
//! Two versions are asked: the distribution's, which knows the formats that machines in service
//! know, and the newest, set up by `cargo xtask judges`, which knows every feature. What no version
//! sees: wrong file sizes, times out of range, and a damaged secondary superblock. A test that
//! accepts a volume therefore also compares its whole tree through [`Xfsprogs::rdump`] or a
//! [`crate::LoopMount`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::program::{self, Finished};
use crate::{Error, Report};

/// The tools that a directory of xfsprogs must hold.
pub const TOOLS: [&str; 6] =
    ["mkfs.xfs", "xfs_db", "xfs_io", "xfs_logprint", "xfs_mdrestore", "xfs_repair"];

/// The environment variable that names a directory with the newest tools, for machines where
/// `cargo xtask judges` cannot set them up.
pub const NEWEST_VARIABLE: &str = "UNDERCROFT_XFSPROGS";

const INSTALL: &str = "install the package xfsprogs, or run `cargo xtask test`, which does";
const SET_UP: &str = "run `cargo xtask judges`, which sets up the newest xfsprogs";

/// The home of the newest xfsprogs that `cargo xtask judges` unpacks: `bin/` holds the wrappers.
/// It is in the user's cache directory, so that all worktrees share it.
#[must_use]
pub fn newest_directory() -> PathBuf {
    crate::cache::directory().join("xfsprogs-newest")
}

/// One version of the xfsprogs tools.
#[derive(Debug, Clone)]
pub struct Xfsprogs {
    tools: [PathBuf; TOOLS.len()],
    version: (u32, u32),
}

impl Xfsprogs {
    /// The tools that the distribution installed.
    ///
    /// # Errors
    /// A tool is missing or does not run.
    pub fn distribution() -> Result<Self, Error> {
        static FOUND: OnceLock<Xfsprogs> = OnceLock::new();
        cached(&FOUND, || Self::with(|name| program::find(name.as_ref()), INSTALL))
    }

    /// The newest tools, from [`NEWEST_VARIABLE`] or as `cargo xtask judges` set them up.
    ///
    /// # Errors
    /// A tool is missing or does not run.
    pub fn newest() -> Result<Self, Error> {
        static FOUND: OnceLock<Xfsprogs> = OnceLock::new();
        cached(&FOUND, || match std::env::var_os(NEWEST_VARIABLE) {
            Some(directory) => Self::in_directory(Path::new(&directory)),
            None => Self::in_directory(&newest_directory().join("bin")),
        })
    }

    /// The tools in `directory`.
    ///
    /// # Errors
    /// A tool is missing or does not run.
    pub fn in_directory(directory: &Path) -> Result<Self, Error> {
        let inside = |name: &str| Some(directory.join(name)).filter(|path| path.is_file());
        Self::with(inside, SET_UP)
    }

    fn with(find: impl Fn(&str) -> Option<PathBuf>, remedy: &'static str) -> Result<Self, Error> {
        let mut tools: [PathBuf; TOOLS.len()] = std::array::from_fn(|_| PathBuf::new());
        for (tool, name) in tools.iter_mut().zip(TOOLS) {
            *tool =
                find(name).ok_or_else(|| Error::Missing { program: name.to_owned(), remedy })?;
        }
        let answer = program::run(Command::new(&tools[0]).arg("-V"))?;
        let Some(version) = parse_version(&answer.text) else { return Err(answer.failure()) };
        Ok(Self { tools, version })
    }

    /// Major and minor version.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The path of the tool called `name`, one of [`TOOLS`].
    ///
    /// # Errors
    /// The name is none of those.
    pub fn tool(&self, name: &str) -> Result<&Path, Error> {
        let index = TOOLS.iter().position(|tool| *tool == name).ok_or_else(|| Error::Missing {
            program: name.to_owned(),
            remedy: "name one of the tools in undercroft_judges::xfsprogs::TOOLS",
        })?;
        Ok(&self.tools[index])
    }

    /// Whether this version knows the format features in `features`, by their `mkfs.xfs` names. An
    /// older version refuses such a volume, which is no verdict on it.
    #[must_use]
    pub fn accepts<'a>(&self, features: impl IntoIterator<Item = &'a str>) -> bool {
        features.into_iter().all(|feature| {
            let since = match feature {
                "exchange" | "parent" => (6, 10),
                "metadir" => (6, 13),
                "nrext64" => (5, 19),
                "bigtime" | "inobtcount" => (5, 10),
                _ => (0, 0),
            };
            self.version >= since
        })
    }

    /// Makes an empty volume: the file `image` becomes `size` bytes, sparse, and `mkfs.xfs` runs
    /// on it with `arguments`. Volumes below the tool's 300 MB limit are allowed.
    ///
    /// # Errors
    /// The file cannot be made, or the tool refuses the arguments.
    pub fn mkfs(&self, image: &Path, size: u64, arguments: &[&str]) -> Result<(), Error> {
        let file = File::create(image).map_err(Error::io("cannot create", image))?;
        file.set_len(size).map_err(Error::io("cannot resize", image))?;
        let mut command = Command::new(self.tool("mkfs.xfs")?);
        command.args(["-q", "-f", "--unsupported"]).args(arguments).arg(image);
        program::run(&mut command)?.success().map(drop)
    }

    /// Asks `xfs_repair -n` about `image`: accepted only with exit status 0 and without any line
    /// that is not progress, because several warnings leave the status at 0.
    ///
    /// # Errors
    /// [`Error::Complaint`] with the lines that name faults, or the tool does not run.
    pub fn repair_check(&self, image: &Path) -> Result<(), Error> {
        let mut command = Command::new(self.tool("xfs_repair")?);
        // A volume of one group has no secondary superblock; without this it is refused unseen.
        command.args(["-n", "-f", "-o", "force_geometry"]).arg(image);
        let answer = program::run(&mut command)?;
        let complaints: Vec<String> =
            answer.text.lines().filter(|line| is_complaint(line)).map(str::to_owned).collect();
        if answer.status.success() && complaints.is_empty() {
            return Ok(());
        }
        let Finished { command, status, .. } = answer;
        Err(Error::Complaint(Report { command, status: status.to_string(), complaints }))
    }

    /// Runs `xfs_db` commands on `image`, read-only, and returns their output.
    ///
    /// # Errors
    /// The tool cannot open the image or does not run. A command that fails inside `xfs_db` leaves
    /// the exit status at 0; its message is in the text.
    pub fn db(&self, image: &Path, commands: &[&str]) -> Result<String, Error> {
        self.db_with("-r", image, commands)
    }

    /// Runs `xfs_db` commands on `image` in expert mode, in which they may write to it.
    ///
    /// # Errors
    /// As for [`Self::db`].
    pub fn db_expert(&self, image: &Path, commands: &[&str]) -> Result<String, Error> {
        self.db_with("-x", image, commands)
    }

    fn db_with(&self, mode: &str, image: &Path, commands: &[&str]) -> Result<String, Error> {
        let mut command = Command::new(self.tool("xfs_db")?);
        command.arg(mode).arg("-f");
        for text in commands {
            command.args(["-c", text]);
        }
        program::run(command.arg(image))?.success()
    }

    /// Copies the whole tree in `image` to the existing directory `destination`, with attributes: a
    /// reader that is neither ours nor the kernel's. Only the newest can, and as root: it also
    /// copies owners, and attributes of other namespaces than users'.
    ///
    /// # Errors
    /// The tool does not run, or says anything while it copies.
    pub fn rdump(&self, image: &Path, destination: &Path) -> Result<(), Error> {
        let mut command = Command::new(self.tool("xfs_db")?);
        let copy = format!("rdump -s / {}", destination.display());
        command.args(["-r", "-f", "-c", &copy]).arg(image);
        let answer = program::run(&mut command)?;
        // Said of the root directory whenever "/" is copied, with or without ACLs.
        let harmless = format!("{}: some ACLs could not be translated", destination.display());
        if answer.status.success() && answer.text.lines().all(|line| line == harmless) {
            return Ok(());
        }
        Err(answer.failure())
    }
}

fn cached(
    cell: &OnceLock<Xfsprogs>,
    find: impl FnOnce() -> Result<Xfsprogs, Error>,
) -> Result<Xfsprogs, Error> {
    if let Some(found) = cell.get() {
        return Ok(found.clone());
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found).clone())
}

/// Reads "mkfs.xfs version 6.1.0".
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split("version ").nth(1)?.trim().split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether a line of `xfs_repair -n` is more than progress, or a remark on the file system that the
/// image lies on.
fn is_complaint(line: &str) -> bool {
    const PROGRESS: [&str; 6] = [
        "Phase ",
        "        - ",
        "No modify flag set, skipping ",
        "Cannot get host filesystem geometry.",
        "Repair may fail if there is a sector size mismatch between",
        "the image and the host filesystem.",
    ];
    !line.is_empty() && !PROGRESS.iter().any(|prefix| line.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn both() -> [Xfsprogs; 2] {
        [Xfsprogs::distribution().unwrap(), Xfsprogs::newest().unwrap()]
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(parse_version("mkfs.xfs version 6.1.0\n"), Some((6, 1)));
        assert_eq!(parse_version("no such thing"), None);
        let newest = Xfsprogs::newest().unwrap();
        assert!(newest.version().0 >= 7);
        assert!(newest.accepts(["parent", "exchange", "reflink"]));
    }

    #[test]
    fn features_wait_for_their_version() {
        let mut tools = Xfsprogs::newest().unwrap();
        tools.version = (6, 1);
        assert!(tools.accepts(["nrext64", "bigtime", "rmapbt"]));
        assert!(!tools.accepts(["nrext64", "parent"]));
        assert!(!tools.accepts(["exchange"]));
    }

    #[test]
    fn a_fresh_volume_is_accepted_and_a_damaged_one_is_not() {
        for tools in both() {
            let scratch = tempfile::tempdir().unwrap();
            let image = scratch.path().join("image");
            tools.mkfs(&image, 64 * MIB, &[]).unwrap();
            tools.repair_check(&image).unwrap();
            let said = tools.db_expert(&image, &["agf 0", "write -d freeblks 7"]).unwrap();
            assert!(said.contains("freeblks = 7"), "{said}");
            let Err(Error::Complaint(report)) = tools.repair_check(&image) else {
                panic!("{:?} accepts a wrong count of free blocks", tools.version());
            };
            assert!(report.to_string().contains("freeblks"), "{report}");
        }
    }

    #[test]
    fn one_group_is_judged_too() {
        for tools in both() {
            let scratch = tempfile::tempdir().unwrap();
            let image = scratch.path().join("image");
            tools.mkfs(&image, 32 * MIB, &["-d", "agcount=1"]).unwrap();
            tools.repair_check(&image).unwrap();
        }
    }

    #[test]
    fn bad_arguments_are_an_error_with_the_reason() {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        let error =
            Xfsprogs::newest().unwrap().mkfs(&image, 64 * MIB, &["-b", "size=3"]).unwrap_err();
        assert!(error.to_string().contains("Invalid value 3"), "{error}");
    }

    #[test]
    fn a_missing_tool_names_its_remedy() {
        let scratch = tempfile::tempdir().unwrap();
        let error = Xfsprogs::in_directory(scratch.path()).unwrap_err().to_string();
        assert!(error.contains("mkfs.xfs is missing"), "{error}");
        assert!(error.contains("cargo xtask judges"), "{error}");
    }

    #[test]
    fn rdump_copies_a_tree() {
        if !crate::kernel::available_or_report() {
            return;
        }
        let tools = Xfsprogs::newest().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let source = scratch.path().join("source");
        std::fs::create_dir_all(source.join("inner")).unwrap();
        std::fs::write(source.join("inner/file"), "contents").unwrap();
        let image = scratch.path().join("image");
        let source = source.display().to_string();
        tools.mkfs(&image, 64 * MIB, &["-p", &source]).unwrap();
        let copy = scratch.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        tools.rdump(&image, &copy).unwrap();
        assert_eq!(std::fs::read(copy.join("inner/file")).unwrap(), b"contents");
    }
}
