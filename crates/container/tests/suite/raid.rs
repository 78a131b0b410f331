//! Arrays with superblocks of the kernel, whose data are put where md(4) says that they are. mdadm reads
//! the superblocks, too. `cargo xtask soak managers` has a kernel make the data as well.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::stack::Together;
use undercroft_block::{BlockDevice, FileDevice, Sector, flush, read_buffer, write_all_at};
use undercroft_container::layers::{Choice, Depth, Layers, Place};
use undercroft_container::luks::Keys;

const CHUNK: u64 = 64 << 10;

/// The members of an array, as files.
struct Members {
    home: tempfile::TempDir,
    count: usize,
    /// Where the data of each start, and how many there are, in bytes.
    data: Vec<(u64, u64)>,
}

impl Members {
    fn new(array: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut data = Vec::new();
        for line in include_str!("../fixtures/raid.txt").lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [name, number, bytes, place, block] = fields[..] else { continue };
            if name != array {
                continue;
            }
            let path = home.path().join(number);
            let file = File::options().create_new(true).write(true).open(&path).unwrap();
            file.set_len(bytes.parse().unwrap()).unwrap();
            let block: Vec<u8> = (0..block.len() / 2)
                .map(|at| u8::from_str_radix(&block[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            file.write_all_at(&block, place.parse().unwrap()).unwrap();
            data.push(examine(&path.display().to_string()));
        }
        Self { count: data.len(), home, data }
    }

    fn put(&self, member: usize, at: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(self.home.path().join(member.to_string()));
        file.unwrap().write_all_at(bytes, self.data[member].0 + at).unwrap();
    }

    fn get(&self, member: usize, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let file = File::open(self.home.path().join(member.to_string())).unwrap();
        file.read_exact_at(&mut bytes, self.data[member].0 + at).unwrap();
        bytes
    }

    fn look(&self, members: &[usize], read_only: bool) -> Layers {
        let open = |member: &usize| {
            let path = self.home.path().join(member.to_string());
            Arc::new(FileDevice::open(&path, read_only).unwrap()) as Arc<dyn BlockDevice>
        };
        let members = members.iter().map(open).collect();
        let disk: Arc<dyn BlockDevice> = Arc::new(Together::new("raid", members).unwrap());
        Layers::look(&disk, &Choice::default(), Depth::Everything, &Keys::default()).unwrap()
    }

    fn open(&self, members: &[usize], read_only: bool) -> Result<Arc<dyn BlockDevice>, String> {
        let layers = self.look(members, read_only);
        let is_array = |place: &Place| matches!(place, Place::Array { .. });
        let array = layers.nodes().iter().find(|node| is_array(&node.place));
        let array = array.unwrap_or_else(|| panic!("no array: {:?}", layers.nodes()));
        array.device.clone()
    }
}

/// Start and length of the data, as mdadm reads the superblock.
fn examine(path: &str) -> (u64, u64) {
    let output = Command::new("mdadm").args(["--examine", path]).output();
    let said = String::from_utf8(output.expect("mdadm is there").stdout).unwrap();
    // Where the superblock says that there is a bitmap, mdadm misses it.
    assert!(said.contains(" - correct") || said.contains("Name : (none):9"), "{said}");
    let number = |name: &str| {
        let line =
            said.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix(": "));
        line.map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap())
    };
    let length =
        number("Used Dev Size").filter(|used| *used > 0).or(number("Avail Dev Size")).unwrap();
    // Lengths of version 0.90 are in KiB.
    let unit = if said.contains("Version : 0.90") { 1024 } else { 512 };
    (number("Data Offset").unwrap_or(0) * 512, length * unit)
}

fn random(bytes: u64) -> Vec<u8> {
    let mut random = vec![0; bytes as usize];
    fastrand::Rng::with_seed(11).fill(&mut random);
    random
}

fn content(device: &dyn BlockDevice) -> Vec<u8> {
    read_buffer(device, Sector(0), device.capacity().to_bytes().unwrap() as usize).unwrap().to_vec()
}

/// Where each chunk of an array is: its members, and the byte of the data of each.
fn places(array: &str, members: usize, chunk: u64) -> Vec<(usize, u64)> {
    let copies = if array == "ten" { 2 } else { 1 };
    let each = |copy: u64| {
        let at = chunk * copies + copy;
        ((at % members as u64) as usize, at / members as u64 * CHUNK)
    };
    (0..copies).map(each).collect()
}

#[test]
fn stripes_with_and_without_copies() {
    for array in ["stripe", "ten"] {
        let members = Members::new(array);
        let all: Vec<usize> = (0..members.count).collect();
        let copies = if array == "ten" { 2 } else { 1 };
        let bytes = random(members.data[0].1 * members.count as u64 / copies);
        for (number, chunk) in (0..).zip(bytes.chunks(CHUNK as usize)) {
            for (member, at) in places(array, members.count, number) {
                members.put(member, at, chunk);
            }
        }
        let device = members.open(&all, false).unwrap();
        assert!(content(&*device) == bytes, "{array}");
        let other = vec![7; 5 * CHUNK as usize];
        write_all_at(&*device, Sector(CHUNK / 512), &other).unwrap();
        flush(&*device).unwrap();
        drop(device);
        for number in 1..6 {
            for (member, at) in places(array, members.count, number) {
                assert!(members.get(member, at, CHUNK as usize) == vec![7; CHUNK as usize]);
            }
        }
        for member in &all {
            examine(&members.home.path().join(member.to_string()).display().to_string());
        }
    }
}

#[test]
fn members_after_each_other() {
    let members = Members::new("linear");
    let bytes = random(members.data[0].1 + members.data[1].1);
    let (front, back) = bytes.split_at(members.data[0].1 as usize);
    members.put(0, 0, front);
    members.put(1, 0, back);
    assert!(content(&*members.open(&[1, 0], true).unwrap()) == bytes);
    let why = members.open(&[1], true).unwrap_err();
    assert!(
        why.contains("needs its member 0 of 2") && why.contains("'raid(a.img,b.img)'"),
        "{why}"
    );
}

#[test]
fn copies_are_the_same_or_read_from_one() {
    for array in ["mirror-1.0", "mirror-0.90"] {
        let members = Members::new(array);
        let bytes = random(members.data[0].1);
        members.put(0, 0, &bytes);
        members.put(1, 0, &bytes);
        let device = members.open(&[0, 1], false).unwrap();
        assert!(!device.is_read_only() && content(&*device) == bytes, "{array}");
        write_all_at(&*device, Sector(100), &[9; 4096]).unwrap();
        flush(&*device).unwrap();
        drop(device);
        for member in 0..2 {
            assert_eq!(members.get(member, 51_200, 4096), [9; 4096]);
        }
        let alone = members.open(&[1], false).unwrap();
        assert!(alone.is_read_only());
        assert_eq!(content(&*alone)[51_200..51_200 + 4096], [9; 4096]);
    }
    // The first member failed, and the second was written without it.
    let members = Members::new("degraded");
    let bytes = random(members.data[1].1);
    members.put(1, 0, &bytes);
    let device = members.open(&[0, 1], false).unwrap();
    assert!(device.is_read_only() && content(&*device) == bytes);
    let notes = members.look(&[0, 1], true);
    assert!(notes.notes()[0].contains("is left out of its array: it is spare, or out of date"));
    // Alone, it does not know that it failed: it has what there was before.
    assert!(members.open(&[0], false).unwrap().is_read_only());
    let ten = Members::new("ten");
    assert!(ten.open(&[0, 3], false).unwrap().is_read_only());
    let why = ten.open(&[0, 1], true).unwrap_err();
    assert!(why.contains("needs its member 2 of 4"), "{why}");
}

#[test]
fn kinds_that_are_not_read_and_damage_are_named() {
    let why = Members::new("five").open(&[0, 1, 2], true).unwrap_err();
    assert!(why.contains("is RAID 5, which is not read; `mdadm --assemble`"), "{why}");
    let why = Members::new("three-10").open(&[0, 1, 2], true).unwrap_err();
    assert!(why.contains("RAID 10 with 2 copies on 3 members"), "{why}");
    let members = Members::new("stripe");
    let file = File::options().write(true).open(members.home.path().join("0")).unwrap();
    file.write_all_at(&[1], 4096 + 100).unwrap();
    let layers = members.look(&[0, 1, 2], true);
    let fault = layers.nodes()[1].fault.clone().unwrap();
    assert!(fault.contains("the superblock of a RAID") && fault.contains("checksum"), "{fault}");
    let file = File::options().write(true).open(members.home.path().join("1")).unwrap();
    file.set_len(2 << 20).unwrap();
    let why = Members::new("mirror-1.0");
    let file = File::options().write(true).open(why.home.path().join("0")).unwrap();
    file.set_len(1 << 20).unwrap();
    // Its superblock was at its end.
    assert_eq!(why.look(&[0], true).nodes().len(), 2);
}

/// Moves the second member of a mirror to a disk of twice its length, whose end is where it was put.
fn moved(members: &Members) -> File {
    let path = members.home.path().join("1");
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut block = vec![0; 4096];
    let (end, place) = (8 << 20, (8 << 20) - (64 << 10));
    file.read_exact_at(&mut block, place).unwrap();
    file.write_all_at(&[0; 4096], place).unwrap();
    file.set_len(2 * end).unwrap();
    file.write_all_at(&block, end + place).unwrap();
    file
}

#[test]
fn an_old_superblock_is_at_the_end_of_a_longer_member_or_of_a_last_partition() {
    let members = Members::new("mirror-0.90");
    let file = moved(&members);
    let device = members.open(&[0, 1], false).unwrap();
    assert!(!device.is_read_only(), "both members are there");
    drop(device);
    // A table with one partition: the second half of the disk.
    let mut table = [0; 512];
    table[446 + 4] = 0xfd;
    table[446 + 8..446 + 12].copy_from_slice(&16_384_u32.to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&16_384_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    file.write_all_at(&table, 0).unwrap();
    let disk: Arc<dyn BlockDevice> =
        Arc::new(FileDevice::open(&members.home.path().join("1"), true).unwrap());
    let layers = Layers::look(&disk, &Choice::default(), Depth::Everything, &Keys::default());
    let places: Vec<_> =
        layers.unwrap().nodes().iter().map(|node| node.place.to_string()).collect();
    assert_eq!(places, ["the disk", "partition 1", "an array (RAID 1)"]);
}
