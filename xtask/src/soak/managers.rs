//! `cargo xtask soak managers`: arrays, groups and containers of a kernel, read and changed by us, and seen
//! by that kernel again.
//!
//! The kernel of the machine's release runs in QEMU, since that of this machine need have neither RAID nor
//! the device mapper. It makes volumes on all kinds that are read here. We compare the data, change each
//! volume, and the kernel looks whether all copies are the same, mounts the volume and reads what we wrote.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::machine::{self, Kernel};
use crate::{shell, system, workspace};

/// Make and read volumes on volume managers.
#[derive(Args)]
pub(crate) struct ManagersArguments {
    /// Directory for the kernel and the disks; what is there from an earlier run is used again
    #[arg(long)]
    work: Option<PathBuf>,
    /// Seconds after which the machine must have said all
    #[arg(long, default_value_t = 600)]
    seconds: u32,
}

const MODULES: [&str; 12] = [
    "virtio_pci",
    "virtio_blk",
    "crc32c_generic",
    "xfs",
    "dm_mod",
    "dm_raid",
    "dm_crypt",
    "raid0",
    "raid1",
    "raid10",
    "linear",
    "xts",
];
const PROGRAMS: [&str; 6] = ["mdadm", "lvm", "cryptsetup", "mkfs.xfs", "xfs_repair", "blockdev"];
const MIB: u64 = 1 << 20;
const KEY: &str = "secret";

/// A case: its name, its number of disks, and the words before them for us. `$1`, `$2`, ... are its disks
/// in the scripts that make it, and that have it again; both leave its device in `$device`. The last looks
/// for copies that differ.
struct Case {
    name: &'static str,
    disks: usize,
    set: &'static str,
    make: &'static str,
    again: &'static str,
    differ: &'static str,
}

const ARRAY: &str = "device=/dev/md0; mdadm --assemble --run $device \"$@\"";
const ARRAY_DIFFERS: &str = "mdadm --action=check $device; mdadm --wait $device; echo DIFFER $(cat /sys/block/md0/md/mismatch_cnt)";
const NONE: &str = "echo DIFFER 0";

const fn array(name: &'static str, disks: usize, make: &'static str, has_copies: bool) -> Case {
    let differ = if has_copies { ARRAY_DIFFERS } else { NONE };
    Case { name, disks, set: "raid", make, again: ARRAY, differ }
}

const CASES: [Case; 9] = [
    array(
        "stripe",
        3,
        "device=/dev/md0; mdadm --create --run $device -l0 -n3 -c64 -e1.2 \"$@\"",
        false,
    ),
    array(
        "mirror",
        2,
        "device=/dev/md0; mdadm --create --run $device -l1 -n2 -e1.0 --bitmap=none \"$@\"; mdadm --wait $device",
        true,
    ),
    array(
        "bitmap",
        2,
        "device=/dev/md0; mdadm --create --run $device -l1 -n2 -e1.1 --bitmap=internal \"$@\"; mdadm --wait $device",
        true,
    ),
    array(
        "old",
        2,
        "device=/dev/md0; mdadm --create --run $device -l1 -n2 -e0.90 --bitmap=none \"$@\"; mdadm --wait $device",
        true,
    ),
    array(
        "ten",
        4,
        "device=/dev/md0; mdadm --create --run $device -l10 -pn2 -n4 -c64 -e1.2 \"$@\"; mdadm --wait $device",
        true,
    ),
    array(
        "linear",
        2,
        "device=/dev/md0; mdadm --create --run $device -llinear -n2 -e1.2 \"$@\"",
        false,
    ),
    Case {
        name: "group",
        disks: 2,
        set: "lvm",
        make: "device=/dev/mapper/vg-lv; lvm pvcreate -q \"$@\"; lvm vgcreate -q vg \"$@\"; \
               lvm lvcreate -q -y -Wn -i2 -I64k -n lv -l100%FREE vg; lvm vgmknodes -q",
        again: "device=/dev/mapper/vg-lv; lvm vgchange -q -ay vg; lvm vgmknodes -q",
        differ: NONE,
    },
    Case {
        name: "copies",
        disks: 2,
        set: "lvm",
        make: "device=/dev/mapper/vg2-lv; lvm pvcreate -q \"$@\"; lvm vgcreate -q vg2 \"$@\"; \
               lvm lvcreate -q -y -Wn --type raid1 -m1 -n lv -l90%FREE vg2; lvm vgmknodes -q; \
               for i in 1 2 3 4 5 6 7 8 9; do lvm lvs --noheadings -o sync_percent vg2/lv | grep -q 100 && break; sleep 2; done",
        again: "device=/dev/mapper/vg2-lv; lvm vgchange -q -ay vg2; lvm vgmknodes -q",
        differ: "lvm lvchange --syncaction check vg2/lv; sleep 5; \
                 echo DIFFER $(lvm lvs --noheadings -o raid_mismatch_count vg2/lv)",
    },
    Case {
        name: "crypt",
        disks: 1,
        set: "raid",
        make: "cryptsetup -q luksFormat --key-file /key --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $1; \
               cryptsetup open --key-file /key $1 c; device=/dev/mapper/c",
        again: "cryptsetup open --key-file /key $1 c; device=/dev/mapper/c",
        differ: NONE,
    },
];

const BEFORE: &str = "\
$b --install -s /bin
export PATH=/bin QA_CHECK_FS=1 TEST_DIR=/ TEST_DEV=/
mount -t tmpfs run /run
mkdir -p /run/lock /run/lvm /run/mdadm /run/cryptsetup /etc/lvm /tmp
echo 'devices { use_devicesfile=0 } activation { udev_sync=0 udev_rules=0 monitoring=0 }' > /etc/lvm/lvm.conf
sleep 1
leave() { mdadm --stop /dev/md0; lvm vgchange -q -an vg; lvm vgchange -q -an vg2; cryptsetup close c; } 2>/dev/null
";
const AFTER: &str = "sync\necho THE END\necho o > /proc/sysrq-trigger\nsleep 60\n";

pub(crate) fn managers(arguments: &ManagersArguments) -> Result<()> {
    system::install(system::FOR_DISKS)?;
    let work = arguments.work.clone().unwrap_or_else(|| workspace::target("soak-managers"));
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    // As for the tests.
    let build = ["build", "--workspace", "--all-features", "--bin", "undercroft"];
    shell::run(workspace::cargo().args(build))?;
    let program = workspace::target("debug/undercroft");
    let kernel = Kernel::fetch(&work)?;
    let disks = disks(&work)?;
    let run = |name: &str, of: &dyn Fn(&Case) -> String| {
        let tree = work.join(name);
        let script = format!("{BEFORE}{}{AFTER}", scripts(of));
        fill(&tree)?;
        let ramdisk = kernel.ramdisk(&tree, &MODULES, &script)?;
        let all: Vec<_> = disks.iter().flatten().map(|path| (path.as_path(), "raw")).collect();
        let console = machine::start(&kernel, &ramdisk, &all, arguments.seconds)?;
        fs::write(work.join(format!("{name}.console")), &console)?;
        ensure!(console.contains("THE END"), "the machine ended early:\n{console}");
        Ok(console)
    };
    let made = run("make", &|case| {
        format!(
            "{}; mkfs.xfs -q -f $device && mount -t xfs $device /root && \
             dd if=/dev/urandom of=/root/data bs=64k count=100 2>/dev/null && \
             echo SUM {} $(md5sum < /root/data) && umount /root",
            case.make, case.name
        )
    })?;
    for (case, disks) in CASES.iter().zip(&disks) {
        change(&program, case, disks, &made, &work)?;
    }
    let seen = run("see", &|case| {
        format!(
            "{}; {}; xfs_repair -n $device >/tmp/repair 2>&1 && mount -t xfs $device /root && \
             echo SUM {} $(md5sum < /root/data) $(md5sum < /root/ours) && umount /root || cat /tmp/repair",
            case.again, case.differ, case.name
        )
    })?;
    let ours = digest(&fs::read(work.join("ours"))?, &work)?;
    for case in &CASES {
        let said = seen.split(&format!("CASE {}", case.name)).nth(1).unwrap_or_default();
        let said = said.split("CASE ").next().unwrap_or_default();
        let sums = sums(said, case.name);
        let is_there =
            sums.first() == self::sums(&made, case.name).first() && sums.get(1) == Some(&ours);
        ensure!(
            is_there,
            "{}: the kernel reads {sums:?}, not what we wrote ({ours}):\n{said}",
            case.name
        );
        ensure!(said.contains("DIFFER 0"), "{}: copies differ:\n{said}", case.name);
        println!("{}: read, changed, and seen by the kernel", case.name);
    }
    Ok(())
}

/// Fresh disks for each case.
fn disks(work: &Path) -> Result<Vec<Vec<PathBuf>>> {
    let disk = |case: &Case, number: usize| {
        let path = work.join(format!("{}-{number}.img", case.name));
        // Members of a linear array have different lengths.
        File::create(&path)?.set_len((64 + 8 * number as u64) * MIB)?;
        // Those of stripes have the same.
        if case.name == "stripe" || case.name == "ten" {
            File::options().write(true).open(&path)?.set_len(64 * MIB)?;
        }
        Ok(path)
    };
    let all = CASES.iter().map(|case| (0..case.disks).map(|number| disk(case, number)).collect());
    all.collect()
}

/// A script for all cases, each with its disks.
fn scripts(of: &dyn Fn(&Case) -> String) -> String {
    let mut letters = 'a'..='z';
    let case = |case: &Case| {
        let disks: Vec<_> =
            letters.by_ref().take(case.disks).map(|letter| format!("/dev/vd{letter}")).collect();
        format!("echo CASE {}\nset -- {}\n{}\nleave\n", case.name, disks.join(" "), of(case))
    };
    CASES.iter().map(case).collect()
}

/// Puts the programs of this machine in a tree, with their libraries.
fn fill(tree: &Path) -> Result<()> {
    for directory in ["bin", "etc", "run", "tmp"] {
        fs::create_dir_all(tree.join(directory))?;
    }
    fs::write(tree.join("key"), KEY)?;
    let mut files = vec![PathBuf::from("/lib/x86_64-linux-gnu/libgcc_s.so.1")];
    for name in PROGRAMS {
        let program = shell::find(name).with_context(|| format!("{name} is missing"))?;
        let libraries = shell::output(Command::new("ldd").arg(&program))?;
        files.extend(
            libraries.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from),
        );
        fs::copy(&program, tree.join("bin").join(name))?;
    }
    for file in files {
        let to = tree.join(file.strip_prefix("/").unwrap_or(&file));
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::copy(&file, &to).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

/// Compares the data that the kernel wrote, and changes the volume.
fn change(program: &Path, case: &Case, disks: &[PathBuf], made: &str, work: &Path) -> Result<()> {
    let names: Vec<_> = disks.iter().map(|disk| disk.display().to_string()).collect();
    let image = match disks.len() {
        1 => names[0].clone(),
        _ => format!("{}({})", case.set, names.join(",")),
    };
    let ours = work.join("ours");
    if !ours.exists() {
        shell::run(
            Command::new("dd")
                .args(["if=/dev/urandom", "bs=64k", "count=70", "status=none"])
                .arg(format!("of={}", ours.display())),
        )?;
    }
    let undercroft = |verb: &str| {
        let mut command = Command::new(program);
        command.arg(verb).arg("--key-file").arg(work.join("make/key")).arg(&image);
        command
    };
    let data = undercroft("cat").arg("/data").output()?;
    ensure!(data.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&data.stderr));
    let found = digest(&data.stdout, work)?;
    let said = sums(made, case.name);
    ensure!(said.first() == Some(&found), "{}: we read {found}, the kernel {said:?}", case.name);
    shell::run(undercroft("put").arg(&ours).arg("/ours"))?;
    shell::run(&mut undercroft("check"))
}

fn digest(bytes: &[u8], work: &Path) -> Result<String> {
    let path = work.join("bytes");
    fs::write(&path, bytes)?;
    let said = shell::output(Command::new("md5sum").arg(&path))?;
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}

/// The digests that the console has of a case.
fn sums(console: &str, case: &str) -> Vec<String> {
    let line = console.lines().find_map(|line| line.trim().strip_prefix(&format!("SUM {case} ")));
    let words = line.unwrap_or_default().split_whitespace().filter(|word| *word != "-");
    words.map(str::to_owned).collect()
}
