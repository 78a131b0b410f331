//! A machine in QEMU with the kernel of this machine's release, without hardware support.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{shell, system};

/// The kernel of the machine's release.
pub(crate) struct Kernel {
    root: PathBuf,
    release: String,
}

impl Kernel {
    /// Fetches it, unless it is there, with busybox.
    pub(crate) fn fetch(work: &Path) -> Result<Self> {
        let root = work.join("kernel");
        if !root.join("boot").exists() {
            let depends =
                shell::output(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
            let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
            let package = package.context("linux-image-amd64 depends on no kernel")?;
            fs::create_dir_all(&root)?;
            system::unpack_package(package, &root)?;
            system::unpack_package("busybox-static", &root)?;
        }
        let modules = root.join("lib/modules");
        let release = fs::read_dir(&modules)
            .with_context(|| format!("cannot list {}", modules.display()))?
            .next()
            .context("the kernel has no modules")??
            .file_name();
        let release = release.to_string_lossy().into_owned();
        shell::run(Command::new("depmod").arg("-b").arg(&root).arg(&release))?;
        Ok(Self { root, release })
    }

    /// The file of it.
    pub(crate) fn image(&self) -> Result<PathBuf> {
        let image = self.root.join("boot").join(format!("vmlinuz-{}", self.release));
        ensure!(image.exists(), "{} is missing", image.display());
        Ok(image)
    }

    /// An initial file system in a directory: it loads modules, and then does what the script says, in
    /// which `$b` is busybox. The directory may have further files.
    pub(crate) fn ramdisk(&self, tree: &Path, modules: &[&str], script: &str) -> Result<PathBuf> {
        for directory in ["bin", "dev", "proc", "sys", "root", "modules"] {
            fs::create_dir_all(tree.join(directory))?;
        }
        fs::copy(self.root.join("bin/busybox"), tree.join("bin/busybox"))
            .context("the package busybox-static has no bin/busybox")?;
        let loads: String = self
            .modules(modules)?
            .iter()
            .map(|module| {
                let name = module.file_name().unwrap_or(OsStr::new(""));
                fs::copy(module, tree.join("modules").join(name))?;
                Ok(format!("$b insmod /modules/{} 2>/dev/null\n", name.to_string_lossy()))
            })
            .collect::<Result<_>>()?;
        let script = format!(
            "#!/bin/busybox sh\n\
             b=/bin/busybox\n\
             $b mount -t devtmpfs dev /dev\n\
             $b mount -t proc proc /proc\n\
             $b mount -t sysfs sys /sys\n\
             {loads}{script}"
        );
        executable(&tree.join("init"), &script)?;
        let archive = tree.with_extension("cpio");
        let mut command = Command::new("sh");
        command.current_dir(tree).args(["-ec", "find . | cpio --quiet -o -H newc > \"$0\""]);
        shell::run(command.arg(&archive))?;
        Ok(archive)
    }

    /// Files of the modules and of those that they need, in the order in which they load.
    fn modules(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for module in names {
            let mut command = Command::new("modprobe");
            command.args(["--show-depends", "-d"]).arg(&self.root).args([
                "-S",
                &self.release,
                module,
            ]);
            // What is built in has no file.
            for line in shell::output(&mut command)?.lines() {
                let Some(module) = line.strip_prefix("insmod ") else { continue };
                // Parameters may stand behind it.
                let path = PathBuf::from(module.split(' ').next().unwrap_or_default());
                if !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        Ok(files)
    }
}

/// Makes a script that can be run.
pub(crate) fn executable(path: &Path, script: &str) -> Result<()> {
    fs::write(path, script).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Starts a machine with disks, each a file and its format; returns what the console said.
pub(crate) fn start(
    kernel: &Kernel,
    ramdisk: &Path,
    disks: &[(&Path, &str)],
    seconds: u32,
) -> Result<String> {
    let mut command = Command::new("timeout");
    command.arg(seconds.to_string()).arg("qemu-system-x86_64");
    command.args(["-accel", "tcg", "-cpu", "max", "-m", "512", "-nographic", "-no-reboot"]);
    command.args(["-nic", "none", "-kernel"]).arg(kernel.image()?).arg("-initrd").arg(ramdisk);
    command.args(["-append", "console=ttyS0 quiet panic=-1"]);
    for (file, format) in disks {
        command.arg("-drive").arg(format!("file={},format={format},if=virtio", file.display()));
    }
    shell::output(&mut command)
        .with_context(|| format!("the machine did not end within {seconds} s"))
}
