//! `cargo xtask soak disk`: a small Debian on a disk that `build` made, started in QEMU.
//!
//! The kernel of the machine's release finds the partitions by the names in our table, mounts the
//! volume and the EFI system partition, turns the swap space on, and Debian's own programs say so on
//! the console.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::machine::{self, Kernel, executable};
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

/// Finds the root by the name of its partition, and goes on there.
const SCRIPT: &str = "\
for try in 1 2 3 4 5 6 7 8 9 10; do
    found=$($b grep -l PARTNAME=system /sys/class/block/*/uevent) && break
    $b sleep 1
done
$b mount -t xfs /dev/$($b basename $($b dirname $found)) /root
$b mount --move /dev /root/dev
exec $b switch_root /root /sbin/init
";

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
    let ramdisk = kernel.ramdisk(&work.join("ramdisk"), &MODULES, SCRIPT)?;
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
        let disks = [(image.as_path(), format)];
        let console = machine::start(&kernel, &ramdisk, &disks, arguments.seconds)?;
        if !console.contains(MARKER) {
            bail!("the machine ended without having started:\n{console}");
        }
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
