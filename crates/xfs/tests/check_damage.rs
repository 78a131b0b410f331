//! Every damage that `xfs_repair -n` sees is seen, and some that it does not.

mod common;

use common::{check_image, describe};
use std::path::Path;
use std::thread;
use undercroft_judges::damage::{CORPUS, Damage, volume};
use undercroft_judges::{image, kernel};
use undercroft_xfs::check::Severity;

/// Damages that `xfs_repair -n` is silent about.
const SILENT: &[Damage] = &[
    Damage { name: "secondary superblock crc", script: &["sb 1", "write -c crc 0"] },
    Damage { name: "secondary superblock label", script: &["sb 1", "write -d fname \"other\""] },
    Damage { name: "secondary superblock logblocks", script: &["sb 2", "write -d logblocks 900"] },
    Damage {
        name: "size of a directory",
        script: &["path /directories/leaf", "write -d core.size 4096"],
    },
];

/// Applies a damage to a copy of `pristine`; says why it went unseen, if it did.
fn judge(pristine: &Path, copy: &Path, damage: &Damage) -> Result<(), String> {
    image::copy(pristine, copy).map_err(|error| error.to_string())?;
    damage.apply(copy).map_err(|error| error.to_string())?;
    match check_image(copy) {
        // No XFS superblock at all.
        Err(_) => Ok(()),
        Ok((report, findings)) if report.is_clean() => {
            Err(format!("clean\n{}", describe(&findings)))
        }
        Ok((_, findings)) if findings.iter().any(|found| found.severity == Severity::Error) => {
            Ok(())
        }
        Ok((report, _)) => Err(format!("no finding, but {report:?}")),
    }
}

#[test]
fn each_damage_is_seen() {
    if !kernel::available_or_report("xfs::check::each_damage_is_seen") {
        return;
    }
    let (directory, pristine) = volume().unwrap();
    let (report, findings) = check_image(&pristine).unwrap();
    assert!(report.is_clean(), "{report:?}\n{}", describe(&findings));
    let damages: Vec<&Damage> = CORPUS.iter().chain(SILENT).collect();
    let unseen: Vec<String> = thread::scope(|scope| {
        let parts = damages.chunks(damages.len().div_ceil(3)).enumerate();
        let (directory, pristine) = (directory.path(), &pristine);
        let threads: Vec<_> = parts
            .map(|(part, damages)| {
                scope.spawn(move || {
                    let copy = directory.join(format!("copy-{part}.img"));
                    let result = |damage: &&Damage| {
                        let what = judge(pristine, &copy, damage).err()?;
                        Some(format!("{}: {what}", damage.name))
                    };
                    damages.iter().filter_map(result).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}
