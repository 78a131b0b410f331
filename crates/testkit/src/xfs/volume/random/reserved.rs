//! The space that the kernel sets aside in each group when it mounts a volume, by its log.

use std::path::Path;
use std::process::Command;

/// Whether there was enough of it at the mount of `root`.
pub(super) fn fits(root: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    let device = mounts.find_map(|mut fields| {
        let device = fields.next()?.strip_prefix("/dev/")?;
        (fields.next()? == root.to_str()?).then_some(device)
    });
    let said = format!("XFS ({}):", device.unwrap());
    let log = Command::new("dmesg").output().unwrap().stdout;
    let log = String::from_utf8_lossy(&log);
    let lines = log.lines().rev().filter(|line| line.contains(&said));
    let mut since = lines.take_while(|line| !line.contains("Mounting V5"));
    !since.any(|line| line.contains("reserving") || line.contains("Reserve"))
}
