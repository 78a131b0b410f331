//! The kernel in a tree: whether the volume that is made of it will be mounted by its own kernel.

use undercroft_source::{Entry, Kind};
use undercroft_xfs::mkfs::{Kernel, MkfsOptions, Preset};

/// The newest kernel in a tree: the modules of each are in a directory of the name of its release.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernels {
    newest: Option<(Kernel, String)>,
}

/// The newest kernel in the tree does not mount the volume.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OldKernel {
    /// The name of its release.
    pub release: String,
    /// The oldest kernel that mounts the volume.
    pub needed: Kernel,
    /// The preset of a volume that the kernel mounts, if there is one.
    pub preset: Option<Preset>,
}

impl Kernels {
    /// Looks at an entry of the tree.
    pub(super) fn add(&mut self, entry: &Entry) {
        let path = entry.path.as_bytes();
        let path = path.strip_prefix(b"usr/").unwrap_or(path);
        let release = path.strip_prefix(b"lib/modules/");
        let release = release.filter(|_| entry.kind == Kind::Directory);
        if let Some(release) = release.filter(|release| !release.contains(&b'/'))
            && let Some(kernel) = Kernel::of_release(release)
            && self.newest.as_ref().is_none_or(|(newest, _)| *newest < kernel)
        {
            self.newest = Some((kernel, release.escape_ascii().to_string()));
        }
    }

    /// The preset for the newest kernel, if it mounts one.
    pub(super) fn preset(&self) -> Option<Preset> {
        self.newest.as_ref().and_then(|(kernel, _)| Preset::for_kernel(*kernel))
    }

    /// The newest kernel, if it does not mount a volume of these options.
    pub(super) fn too_old(self, options: &MkfsOptions) -> Option<OldKernel> {
        let (needed, preset) = (options.first_kernel(), self.preset());
        let (_, release) = self.newest.filter(|(kernel, _)| *kernel < needed)?;
        Some(OldKernel { release, needed, preset })
    }
}
