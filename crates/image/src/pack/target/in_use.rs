//! Whether a file or device is mounted.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Where a target is mounted: itself, or through a loop device over it.
#[must_use]
pub fn mounted_at(image: &Path, metadata: &std::fs::Metadata) -> Option<String> {
    let mut devices = Vec::new();
    if metadata.file_type().is_block_device() {
        devices.push(metadata.rdev());
    } else if let Ok(image) = image.canonicalize() {
        devices.extend(loop_devices(&image));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        // Fields: id, parent, major:minor, root, mount point, ...
        let mut fields = line.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        let mount_point = fields.nth(1)?;
        devices.contains(&device).then(|| mount_point.to_owned())
    })
}

/// Loop devices whose backing file is `image`.
fn loop_devices(image: &Path) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let backed = entries.flatten().filter(|entry| {
        std::fs::read_to_string(entry.path().join("loop/backing_file"))
            .is_ok_and(|backing| Path::new(backing.trim_end_matches('\n')) == image)
    });
    backed
        .filter_map(|entry| {
            let device = std::fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = device.trim().split_once(':')?;
            Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
        })
        .collect()
}
