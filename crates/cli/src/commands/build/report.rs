//! What a build says to machines.

use super::disk_report::DiskReport;
use serde::Serialize;
use undercroft_image::pack::Summary;
use undercroft_xfs::mkfs::Preset;

/// The summary as JSON.
#[derive(Serialize)]
pub(super) struct Report {
    files: u64,
    directories: u64,
    symlinks: u64,
    specials: u64,
    hard_links: u64,
    bytes: u64,
    shared_bytes: u64,
    clamped_times: u64,
    archive_without_end: bool,
    attributes_left_out: u64,
    rule_warnings: Vec<String>,
    image_bytes: u64,
    free_bytes: u64,
    reserved_bytes: u64,
    seconds: f64,
    bios: u64,
    requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_kernel: Option<Kernel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<DiskReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_rss_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container_image: Option<ContainerImage>,
}

/// The kernel in the tree, which does not mount the volume.
#[derive(Serialize)]
struct Kernel {
    release: String,
    needed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<&'static str>,
}

/// The container image that was the source.
#[derive(Serialize)]
struct ContainerImage {
    name: String,
    platform: String,
    layers: usize,
}

impl Report {
    pub(super) fn new(summary: &Summary, seconds: f64) -> Self {
        Self {
            files: summary.files,
            directories: summary.directories,
            symlinks: summary.symlinks,
            specials: summary.specials,
            hard_links: summary.hard_links,
            bytes: summary.bytes,
            shared_bytes: summary.shared_bytes,
            clamped_times: summary.clamped_times,
            archive_without_end: summary.warnings.no_end
                || summary.warnings.lone_zero_block.is_some(),
            attributes_left_out: summary.warnings.foreign_attributes,
            rule_warnings: summary.warnings.rules.clone(),
            image_bytes: summary.image_bytes,
            free_bytes: summary.free_bytes,
            reserved_bytes: summary.reserved_bytes,
            seconds,
            bios: summary.devices.first().map_or(0, |device| device.statistics.bios),
            requests: summary.devices.first().map_or(0, |device| device.statistics.requests),
            old_kernel: summary.old_kernel.as_ref().map(|kernel| Kernel {
                release: kernel.release.clone(),
                needed: kernel.needed.to_string(),
                preset: kernel.preset.map(Preset::name),
            }),
            disk: summary.disk.as_ref().map(DiskReport::new),
            peak_rss_bytes: peak_rss_bytes(),
            container_image: summary.image.as_ref().map(|image| ContainerImage {
                name: image.spec.to_string(),
                platform: image.platform.to_string(),
                layers: image.layers,
            }),
        }
    }
}

/// Most memory the process had, where the system tells.
pub(super) fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
