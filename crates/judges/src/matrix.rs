//! The formats worth testing: feature combinations and geometries, and which tool makes each.

use std::path::Path;

use crate::mount::Access;
use crate::{Error, LoopMount, Scratch, Xfsprogs, populate};

const MIB: u64 = 1 << 20;

/// Which version of `mkfs.xfs` makes a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// The distribution's.
    Distribution,
    /// The newest.
    Newest,
}

/// One format of a volume.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Unique in [`FORMATS`].
    pub name: &'static str,
    /// The tool that makes it.
    pub tool: Tool,
    /// Arguments of `mkfs.xfs`.
    pub arguments: &'static [&'static str],
    /// Commands for `xfs_db -x` after that, for what `mkfs.xfs` cannot do.
    pub tuning: &'static [&'static str],
    /// Size of the volume in bytes: enough for [`crate::populate`].
    pub size: u64,
    /// Whether every kernel of today mounts it. Version 4 and case-insensitive names are options
    /// of the kernel that many leave out; fill such a volume with `mkfs.xfs -p DIRECTORY`.
    pub mounts: bool,
    /// Features beyond what the distribution's tools may know; see [`Xfsprogs::accepts`].
    pub features: &'static [&'static str],
}

impl Format {
    /// Makes an empty volume of this format. `further` arguments follow the format's own, such as
    /// `-p DIRECTORY`.
    ///
    /// # Errors
    /// The tool is missing or refuses the format.
    pub fn make(&self, image: &Path, further: &[&str]) -> Result<(), Error> {
        let tools = match self.tool {
            Tool::Distribution => Xfsprogs::distribution()?,
            Tool::Newest => Xfsprogs::newest()?,
        };
        let arguments: Vec<&str> = self.arguments.iter().chain(further).copied().collect();
        tools.mkfs(image, self.size, &arguments)?;
        if !self.tuning.is_empty() {
            tools.db_expert(image, self.tuning)?;
        }
        Ok(())
    }

    /// Makes a volume of this format with what [`populate::populate`] puts on it: by the kernel,
    /// which also ages it, or by `mkfs.xfs` from a directory when kernels may not mount the format.
    /// Needs root.
    ///
    /// # Errors
    /// A tool is missing, or the kernel cannot mount.
    pub fn make_filled(&self, image: &Path) -> Result<(), Error> {
        if self.mounts {
            self.make(image, &[])?;
            let mount = LoopMount::new(image, Access::ReadWrite, &[])?;
            populate::populate(mount.path())?;
            mount.unmount()
        } else {
            let source = Scratch::new(self.size)?;
            populate::populate(source.path())?;
            self.make(image, &["-p", &source.path().display().to_string()])
        }
    }

    /// Asks each version of `xfs_repair -n` that knows the format.
    ///
    /// # Errors
    /// A version complains, or is missing.
    pub fn repair_check(&self, image: &Path) -> Result<(), Error> {
        for tools in [Xfsprogs::distribution()?, Xfsprogs::newest()?] {
            if tools.accepts(self.features.iter().copied()) {
                tools.repair_check(image)?;
            }
        }
        Ok(())
    }
}

/// What the newest `mkfs.xfs` turns on that older tools refuse.
const NEWEST: &[&str] = &["exchange", "parent", "nrext64"];

/// A format that the newest tool makes with `arguments`, with its default features otherwise.
const fn newest(name: &'static str, arguments: &'static [&'static str]) -> Format {
    Format {
        name,
        tool: Tool::Newest,
        arguments,
        tuning: &[],
        size: 320 * MIB,
        mounts: true,
        features: NEWEST,
    }
}

/// A format of version 4, which kernels may leave out.
const fn version_4(name: &'static str, arguments: &'static [&'static str]) -> Format {
    Format { mounts: false, features: &[], ..newest(name, arguments) }
}

/// All formats.
pub const FORMATS: &[Format] = &[
    newest("default", &[]),
    // Block sizes. Small files take a block each, so large blocks need room.
    newest("block 1k", &["-b", "size=1024"]),
    newest("block 2k", &["-b", "size=2048"]),
    newest("block 8k", &["-b", "size=8192"]),
    newest("block 16k", &["-b", "size=16384"]),
    Format { size: 768 * MIB, ..newest("block 32k", &["-b", "size=32768"]) },
    Format { size: 1536 * MIB, ..newest("block 64k", &["-b", "size=65536"]) },
    // Inode, directory block and sector sizes.
    newest("inode 1k", &["-i", "size=1024"]),
    newest("inode 2k", &["-i", "size=2048"]),
    newest("block 1k, inode 512, directory 8k", &["-b", "size=1024", "-n", "size=8192"]),
    newest("directory 16k", &["-n", "size=16384"]),
    newest("directory 64k", &["-n", "size=65536"]),
    newest("sector 4096", &["-s", "size=4096"]),
    // Groups, log and alignment.
    newest("one group", &["-d", "agcount=1"]),
    newest("two groups", &["-d", "agcount=2"]),
    newest("sixteen groups", &["-d", "agcount=16"]),
    newest("stripe", &["-d", "su=64k,sw=4"]),
    newest("log stripe", &["-l", "su=32k"]),
    newest("small log", &["-l", "size=10m"]),
    newest("label", &["-L", "twelve bytes"]),
    // One feature less each time.
    newest("no rmapbt", &["-m", "rmapbt=0"]),
    newest("no reflink", &["-m", "reflink=0"]),
    newest("no rmapbt, no reflink", &["-m", "rmapbt=0,reflink=0"]),
    newest("no finobt", &["-m", "finobt=0,inobtcount=0"]),
    newest("no inobtcount", &["-m", "inobtcount=0"]),
    newest("no sparse inodes", &["-i", "sparse=0"]),
    newest("no bigtime", &["-m", "bigtime=0"]),
    Format { features: &["exchange", "parent"], ..newest("no nrext64", &["-i", "nrext64=0"]) },
    Format { features: &["parent", "nrext64"], ..newest("no exchange", &["-i", "exchange=0"]) },
    Format { features: &["exchange", "nrext64"], ..newest("no parent", &["-n", "parent=0"]) },
    Format {
        features: &["nrext64"],
        ..newest("no exchange, no parent", &["-i", "exchange=0", "-n", "parent=0"])
    },
    Format {
        features: &[],
        ..newest(
            "least of version 5",
            &[
                "-m",
                "finobt=0,rmapbt=0,reflink=0,bigtime=0,inobtcount=0",
                "-i",
                "sparse=0,nrext64=0,exchange=0",
                "-n",
                "parent=0",
            ],
        )
    },
    Format {
        features: &["exchange", "parent", "metadir"],
        ..newest("metadata directory", &["-m", "metadir=1"])
    },
    // What a volume takes on in service.
    Format { tuning: &["uuid generate"], ..newest("another UUID", &[]) },
    // The distribution's own default.
    Format { tool: Tool::Distribution, features: &["nrext64"], ..newest("distribution", &[]) },
    Format {
        tool: Tool::Distribution,
        features: &["nrext64"],
        ..newest("distribution, rmapbt, nrext64", &["-m", "rmapbt=1", "-i", "nrext64=1"])
    },
    // Case-insensitive names, in both versions.
    Format { mounts: false, ..newest("case-insensitive", &["-n", "version=ci,parent=0"]) },
    version_4("version 4", &["-m", "crc=0"]),
    version_4("version 4, no file types", &["-m", "crc=0", "-n", "ftype=0"]),
    version_4("version 4, inode 2k", &["-m", "crc=0", "-i", "size=2048"]),
    version_4("version 4, block 512", &["-m", "crc=0", "-b", "size=512", "-n", "size=4096"]),
    version_4("version 4, block 16k", &["-m", "crc=0", "-b", "size=16384"]),
    version_4("version 4, attributes 1", &["-m", "crc=0", "-i", "attr=1"]),
    version_4("version 4, project ids of 16 bits", &["-m", "crc=0", "-i", "projid32bit=0"]),
    version_4("version 4, log 1", &["-m", "crc=0", "-l", "version=1,lazy-count=0"]),
    version_4("version 4, case-insensitive", &["-m", "crc=0", "-n", "version=ci"]),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;
    use crate::{kernel, rounds};

    fn fill(format: &Format) -> Result<(), Error> {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        format.make_filled(&image)?;
        format.repair_check(&image)
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = FORMATS.iter().map(|format| format.name).collect();
        assert_eq!(names.len(), FORMATS.len());
    }

    /// Some of them: the tests of the check of volumes fill all.
    #[test]
    fn formats_can_be_made_and_filled() {
        if !kernel::available_or_report() {
            return;
        }
        let formats: Vec<&Format> = FORMATS.iter().step_by(rounds(4, 1)).collect();
        let failed: Vec<String> = thread::scope(|scope| {
            let fill_part = |part: &[&Format]| -> Vec<String> {
                let result = |format: &&Format| Some((format.name, fill(format).err()?));
                let failed = part.iter().filter_map(result);
                failed.map(|(name, error)| format!("{name}: {error}")).collect()
            };
            let parts = formats.chunks(formats.len().div_ceil(4));
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || fill_part(part))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}
