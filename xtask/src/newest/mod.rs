//! The newest xfsprogs and composefs, beside the system's own: fetched from the Debian development suite with a
//! private apt configuration, unpacked with its own loader and libraries into the cache directory,
//! and run through wrapper scripts. Nothing outside the cache directory changes.

mod apt;
mod sources;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use undercroft_judges::composefs;
use undercroft_judges::xfsprogs::{self, Xfsprogs};

use crate::shell;
use apt::PrivateApt;

/// The Debian suite that carries the newest packages.
const SUITE: &str = "unstable";

/// Tools that are unpacked.
struct Tools {
    /// The package that they come from.
    package: &'static str,
    names: &'static [&'static str],
    /// The directory that they are in then.
    home: PathBuf,
}

/// The oldest version that turns parent pointers and exchange-range on by default.
const OLDEST_MAJOR: u32 = 7;

/// Sets the newest xfsprogs up, unless it is there and runs; `refresh` fetches it again. A directory
/// that the environment names instead is only looked at.
pub(crate) fn install(refresh: bool) -> Result<Xfsprogs> {
    if let Some(directory) = std::env::var_os(xfsprogs::NEWEST_VARIABLE) {
        return verify(Path::new(&directory))
            .with_context(|| format!("{} is set", xfsprogs::NEWEST_VARIABLE));
    }
    let home = xfsprogs::newest_directory();
    set_up(&Tools { package: "xfsprogs", names: &xfsprogs::TOOLS, home }, refresh, verify)
}

/// Sets the newest composefs up, likewise.
pub(crate) fn install_composefs(refresh: bool) -> Result<()> {
    let home = composefs::newest_directory();
    let tools = Tools { package: "composefs", names: &composefs::TOOLS, home };
    set_up(&tools, refresh, |directory| {
        // They tell no version; each reads something.
        let [made, told] = composefs::TOOLS.map(|name| directory.join(name));
        shell::output(Command::new(made).arg("--print-digest-only").arg(directory))?;
        shell::output(Command::new(&told).arg("measure-file").arg(&told)).map(drop)
    })
}

/// Sets tools up that `verify` accepts.
fn set_up<T>(tools: &Tools, refresh: bool, verify: impl Fn(&Path) -> Result<T>) -> Result<T> {
    let Tools { package, home, .. } = tools;
    if !refresh && let Ok(verified) = verify(&home.join("bin")) {
        return Ok(verified);
    }
    let parent = home.parent().context("the cache directory has no parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let work = parent.join(format!("{package}-newest.{}", std::process::id()));
    let result = unpack(tools, &work).and_then(|()| {
        verify(&work.join("bin"))?;
        replace(&work, home)
    });
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    result.with_context(|| format!("cannot set up the newest {package}"))?;
    verify(&home.join("bin"))
}

/// Puts `work` in the place of `home`.
fn replace(work: &Path, home: &Path) -> Result<()> {
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("cannot remove {}", home.display()))?;
    }
    fs::rename(work, home)
        .with_context(|| format!("cannot rename {} to {}", work.display(), home.display()))
}

/// Checks that each tool in `directory` runs and that its version is new enough.
fn verify(directory: &Path) -> Result<Xfsprogs> {
    let tools = Xfsprogs::in_directory(directory)?;
    for name in xfsprogs::TOOLS {
        shell::output(Command::new(tools.tool(name)?).arg("-V"))?;
    }
    let (major, minor) = tools.version();
    ensure!(
        major >= OLDEST_MAJOR,
        "the xfsprogs in {} is {major}.{minor}; {OLDEST_MAJOR}.0 or newer is needed",
        directory.display()
    );
    Ok(tools)
}

/// Fetches the package and the libraries it needs, and lays them out under `work`.
fn unpack(tools: &Tools, work: &Path) -> Result<()> {
    let apt = PrivateApt::prepare(&work.join("apt"), SUITE)?;
    let root = work.join("root");
    fs::create_dir_all(&root)?;
    for package in apt.download(&library_closure(&apt, tools.package)?)? {
        shell::run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
    }
    fs::remove_dir_all(work.join("apt"))?;
    write_wrappers(tools, work, &root)
}

/// The package and, recursively, the libraries it depends on. Other dependencies (the Python of a
/// helper script, terminal data) are not needed to run the binaries.
fn library_closure(apt: &PrivateApt, package: &str) -> Result<Vec<String>> {
    let mut closure = vec![package.to_owned()];
    let mut next = 0;
    while let Some(package) = closure.get(next) {
        for dependency in apt.depends(package)? {
            if dependency.starts_with("lib") && !closure.contains(&dependency) {
                closure.push(dependency);
            }
        }
        next += 1;
    }
    Ok(closure)
}

/// Writes `bin/NAME` for each tool: a script that starts the tool with the unpacked loader.
fn write_wrappers(tools: &Tools, work: &Path, root: &Path) -> Result<()> {
    let mut loader = None;
    let mut libraries = Vec::new();
    find_libraries(root, root, &mut loader, &mut libraries)?;
    let Some(loader) = loader else {
        bail!("no ld-linux loader among the unpacked packages in {}", root.display())
    };
    let mut library_path = String::new();
    for directory in &libraries {
        let separator = if library_path.is_empty() { "" } else { ":" };
        write!(library_path, "{separator}$root/{}", directory.display())?;
    }
    let bin = work.join("bin");
    fs::create_dir_all(&bin)?;
    for name in tools.names {
        let binary = ["usr/sbin", "sbin", "usr/bin"]
            .map(|directory| Path::new(directory).join(name))
            .into_iter()
            .find(|path| root.join(path).is_file())
            .with_context(|| format!("{} of suite {SUITE} has no {name}", tools.package))?;
        let script = format!(
            "#!/bin/sh\nroot=${{0%/*}}/../root\nexec \"$root/{}\" --library-path \"{library_path}\" \"$root/{}\" \"$@\"\n",
            loader.display(),
            binary.display(),
        );
        let path = bin.join(name);
        fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Finds the loader and every directory that holds shared libraries, as paths relative to `root`.
fn find_libraries(
    root: &Path,
    directory: &Path,
    loader: &mut Option<PathBuf>,
    libraries: &mut Vec<PathBuf>,
) -> Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut holds_library = false;
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find_libraries(root, &path, loader, libraries)?;
            continue;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        holds_library |= name.starts_with("lib") && name.contains(".so.") && !name.ends_with(".py");
        // The link of that name in /lib64 may be absolute: the file itself is started.
        if name.starts_with("ld-linux") && entry.file_type()?.is_file() {
            *loader = Some(path.strip_prefix(root)?.to_owned());
        }
    }
    if holds_library {
        libraries.push(directory.strip_prefix(root)?.to_owned());
    }
    Ok(())
}
