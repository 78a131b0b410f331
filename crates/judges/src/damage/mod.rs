//! Ways to break a volume, one structure and one field at a time.
//!
//! Each damage is a script for `xfs_db` in expert mode. Unless its name ends in `crc`, it leaves
//! every checksum right, so that only a check of the field itself can see it. The scripts address
//! the volume that [`volume`] makes: newest default format, 4 KiB blocks, filled by
//! [`crate::populate`].

mod corpus;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub use corpus::CORPUS;

use crate::mount::Access;
use crate::{Error, LoopMount, Xfsprogs, populate};

/// One way to break a volume.
#[derive(Debug, Clone, Copy)]
pub struct Damage {
    /// Structure, place and field, unique in [`CORPUS`].
    pub name: &'static str,
    /// Commands for `xfs_db -x`, in order.
    pub script: &'static [&'static str],
}

impl Damage {
    /// Applies the damage to `image`.
    ///
    /// # Errors
    /// `xfs_db` of the newest xfsprogs is missing, or did not understand a command: the image is
    /// not the volume that the script addresses.
    pub fn apply(&self, image: &Path) -> Result<(), Error> {
        const NOT_UNDERSTOOD: [&str; 7] = [
            "not found",
            "no such",
            "No such",
            "unable to",
            "unmapped",
            "parsing error",
            "out of range",
        ];
        let tools = Xfsprogs::newest()?;
        let text = tools.db_expert(image, self.script)?;
        if NOT_UNDERSTOOD.iter().any(|mark| text.contains(mark)) {
            return Err(Error::Failed {
                command: format!("xfs_db -x {:?} {}", self.script, image.display()),
                status: "a command that was not understood".to_owned(),
                output: text,
            });
        }
        Ok(())
    }
}

/// Makes the volume that [`CORPUS`] addresses; its image is in the returned directory and lives as
/// long as that. Needs root.
///
/// # Errors
/// The newest xfsprogs are missing, or the kernel cannot mount the volume.
pub fn volume() -> Result<(TempDir, PathBuf), Error> {
    /// A kernel that is busy may put what two files share into another group.
    const ATTEMPTS: u32 = 5;
    let directory = tempfile::tempdir()
        .map_err(Error::io("cannot make a directory in", &std::env::temp_dir()))?;
    let image = directory.path().join("populated.img");
    let tools = Xfsprogs::newest()?;
    for _ in 1..ATTEMPTS {
        make(&tools, &image)?;
        let shared = tools.db(&image, &["agf 0", "addr refcntroot", "print numrecs"])?;
        if shared.trim() != "numrecs = 0" {
            return Ok((directory, image));
        }
    }
    make(&tools, &image)?;
    Ok((directory, image))
}

fn make(tools: &Xfsprogs, image: &Path) -> Result<(), Error> {
    /// Large enough for its files, and quick to copy and to repair.
    const SIZE: u64 = 256 << 20;
    tools.mkfs(image, SIZE, &["-d", "agcount=4"])?;
    let mount = LoopMount::new(image, Access::ReadWrite, &[])?;
    populate::populate(mount.path())?;
    mount.unmount()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;
    use crate::{image, kernel, rounds};

    #[test]
    fn names_are_unique() {
        let names: HashSet<_> = CORPUS.iter().map(|damage| damage.name).collect();
        assert_eq!(names.len(), CORPUS.len());
        assert!(CORPUS.len() >= 40);
    }

    /// A part of them: that the check of volumes sees each is tested with it.
    #[test]
    fn repair_sees_damage() {
        if !kernel::available_or_report() {
            return;
        }
        let (directory, image) = volume().unwrap();
        let tools = Xfsprogs::newest().unwrap();
        tools.repair_check(&image).unwrap();
        let judge = &|(part, damages): (usize, &[&Damage])| -> Vec<String> {
            let copy = directory.path().join(format!("copy-{part}.img"));
            let mut unseen = Vec::new();
            for damage in damages {
                image::copy(&image, &copy).unwrap();
                if let Err(error) = damage.apply(&copy) {
                    unseen.push(format!("{}: {error}", damage.name));
                } else if tools.repair_check(&copy).is_ok() {
                    unseen.push(format!("{}: accepted", damage.name));
                }
            }
            unseen
        };
        let damages: Vec<&Damage> = CORPUS.iter().step_by(rounds(4, 1)).collect();
        let unseen: Vec<String> = thread::scope(|scope| {
            let parts = damages.chunks(damages.len().div_ceil(4)).enumerate();
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || judge(part))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(unseen.is_empty(), "{}", unseen.join("\n"));
    }

    #[test]
    fn a_script_for_another_volume_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("empty.img");
        Xfsprogs::newest().unwrap().mkfs(&image, 64 << 20, &[]).unwrap();
        let damage = CORPUS.iter().find(|damage| damage.name == "symlink bytes").unwrap();
        assert!(matches!(damage.apply(&image), Err(Error::Failed { .. })));
    }
}
