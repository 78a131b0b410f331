//! `cargo xtask soak disk`: a small Debian on a disk that `build` made, started in QEMU.
//!
//! The kernel of the machine's release finds the partitions by the names in our table, mounts the
//! volume and the EFI system partition, turns the swap space on, and Debian's own programs say so on
//! the console.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::{debian, shell, system, workspace};

/// What the console says at the end.
const MARKER: &str = "undercroft: started from";

/// What is mounted and used on the way, each with its module.
const MODULES: [&str; 9] = [
    "virtio_pci",
    "virtio_blk",
    "crc32c_generic",
    "crc32c-intel",
    "xfs",
    "vfat",
    "nls_cp437",
    "nls_ascii",
    "nls_utf8",
];

/// Start a disk.
#[derive(Args)]
pub(crate) struct DiskArguments {
    /// Directory for the Debian and the disk; what is there from an earlier run is used again
    #[arg(long)]
    work: Option<PathBuf>,
    /// Seconds after which the machine must have said all
    #[arg(long, default_value_t = 300)]
    seconds: u32,
}

/// Makes a disk with a small Debian and starts it. Needs root and the machine's Debian mirror.
pub(crate) fn disk(arguments: &DiskArguments) -> Result<()> {
    system::install(system::FOR_DISKS)?;
    let work = arguments.work.clone().unwrap_or_else(|| workspace::target("soak-disk"));
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    let root = telling_debian(&work)?;
    let kernel = Kernel::fetch(&work)?;
    let ramdisk = kernel.ramdisk(&work)?;
    let esp = work.join("esp/EFI/undercroft");
    fs::create_dir_all(&esp).with_context(|| format!("cannot create {}", esp.display()))?;
    fs::copy(kernel.image()?, esp.join("vmlinuz with a long name.efi"))?;
    for format in ["raw", "qcow2"] {
        let image = work.join(format!("disk.{format}"));
        let mut build = Command::new(workspace::target("release/undercroft"));
        build.args(["build", "--force", "--disk", "gpt", "--preset", "lts-6.1"]);
        build.arg("--partition").arg(format!("esp:{}", work.join("esp").display()));
        build.args(["--partition", "root:xfs,name=system", "--partition", "swap:64M"]);
        build.args(["--format", format]).arg(&root).arg(&image);
        shell::run(&mut build)?;
        let console = start(&kernel.image()?, &ramdisk, &image, format, arguments.seconds)?;
        for expected in [MARKER, "esp: vmlinuz with a long name.efi", "swap: partition 65532"] {
            ensure!(console.contains(expected), "no {expected:?} on the console:\n{console}");
        }
        println!("{format}: started");
    }
    Ok(())
}

/// A small Debian in a directory, whose first program tells what it finds.
fn telling_debian(work: &Path) -> Result<PathBuf> {
    let root = debian::bootstrap(work)?;
    let first = root.join("sbin/init");
    let script = format!(
        "#!/bin/sh\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sys /sys\n\
         part() {{ echo /dev/$(basename $(dirname $(grep -l \"PARTNAME=$1\" /sys/class/block/*/uevent))); }}\n\
         mount -t vfat -o ro $(part esp) /mnt\n\
         echo esp: $(ls /mnt/EFI/undercroft)\n\
         swapon $(part swap)\n\
         echo swap: $(awk 'NR > 1 {{ print $2, $3 }}' /proc/swaps)\n\
         echo {MARKER} $(findmnt -n -o SOURCE,FSTYPE /) Debian $(cat /etc/debian_version)\n\
         sync\n\
         echo o > /proc/sysrq-trigger\n\
         sleep 60\n"
    );
    // The link of a Debian with systemd, if there is one.
    let _ = fs::remove_file(&first);
    executable(&first, &script)?;
    Ok(root)
}

/// The kernel of the machine's release.
struct Kernel {
    root: PathBuf,
    release: String,
}

impl Kernel {
    fn fetch(work: &Path) -> Result<Self> {
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

    fn image(&self) -> Result<PathBuf> {
        let image = self.root.join("boot").join(format!("vmlinuz-{}", self.release));
        ensure!(image.exists(), "{} is missing", image.display());
        Ok(image)
    }

    /// An initial file system that loads modules, finds the root by the name of its partition, and
    /// goes on there.
    fn ramdisk(&self, work: &Path) -> Result<PathBuf> {
        let tree = work.join("ramdisk");
        for directory in ["bin", "dev", "proc", "sys", "root", "modules"] {
            fs::create_dir_all(tree.join(directory))?;
        }
        fs::copy(self.root.join("bin/busybox"), tree.join("bin/busybox"))
            .context("the package busybox-static has no bin/busybox")?;
        let loads: String = self
            .modules()?
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
             {loads}\
             for try in 1 2 3 4 5 6 7 8 9 10; do\n\
                 found=$($b grep -l PARTNAME=system /sys/class/block/*/uevent) && break\n\
                 $b sleep 1\n\
             done\n\
             $b mount -t xfs /dev/$($b basename $($b dirname $found)) /root\n\
             $b mount --move /dev /root/dev\n\
             exec $b switch_root /root /sbin/init\n"
        );
        executable(&tree.join("init"), &script)?;
        let archive = work.join("ramdisk.cpio");
        let mut command = Command::new("sh");
        command.current_dir(&tree).args(["-ec", "find . | cpio --quiet -o -H newc > \"$0\""]);
        shell::run(command.arg(&archive))?;
        Ok(archive)
    }

    /// Files of the modules and of those that they need, in the order in which they load.
    fn modules(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for module in MODULES {
            let mut command = Command::new("modprobe");
            command.args(["--show-depends", "-d"]).arg(&self.root).args([
                "-S",
                &self.release,
                module,
            ]);
            // What is built in has no file.
            for line in shell::output(&mut command)?.lines() {
                let Some(path) = line.strip_prefix("insmod ") else { continue };
                let path = PathBuf::from(path.trim());
                if !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        Ok(files)
    }
}

fn executable(path: &Path, script: &str) -> Result<()> {
    fs::write(path, script).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Starts the disk; returns what the console said.
fn start(
    kernel: &Path,
    ramdisk: &Path,
    image: &Path,
    format: &str,
    seconds: u32,
) -> Result<String> {
    let mut command = Command::new("timeout");
    command.arg(seconds.to_string()).arg("qemu-system-x86_64");
    command.args(["-accel", "tcg", "-cpu", "max", "-m", "512", "-nographic", "-no-reboot"]);
    command.args(["-nic", "none", "-kernel"]).arg(kernel).arg("-initrd").arg(ramdisk);
    command.args(["-append", "console=ttyS0 quiet panic=-1", "-drive"]);
    command.arg(format!("file={},format={format},if=virtio", image.display()));
    let console = shell::output(&mut command)
        .with_context(|| format!("the machine did not end within {seconds} s"))?;
    if !console.contains(MARKER) {
        bail!("the machine ended without having started:\n{console}");
    }
    Ok(console)
}
