//! A random format, made by the newest `mkfs.xfs` or by this project.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_judges::random::Random;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

const MIB: u64 = 1 << 20;

/// Makes a volume; tells its format.
pub(super) fn make(random: &mut Random, image: &Path) -> String {
    if random.one_in(5) { make_ours(random, image) } else { make_by_mkfs(random, image) }
}

fn make_ours(random: &mut Random, image: &Path) -> String {
    let (size, groups) = ((340 + random.below(300)) * MIB, 3 + random.below(8) as u32);
    std::fs::File::create(image).unwrap().set_len(size).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    let uuid = Uuid::from_u128(random.bits().into());
    let options = MkfsOptions { ag_count: Some(groups), ..MkfsOptions::new(size, uuid) };
    let root = NewInode::new(FileType::Directory, 0o755);
    let volume = mkfs::begin(&device, mkfs::plan(&options).unwrap(), &root).unwrap();
    mkfs::finish(&volume, false).unwrap();
    format!("ours, {} MiB, {groups} groups", size / MIB)
}

fn make_by_mkfs(random: &mut Random, image: &Path) -> String {
    let block_log = [12, 12, 12, 10, 10, 11, 13, 14, 16][random.below(9) as usize];
    let size = if block_log > 13 { 900 + random.below(300) } else { 340 + random.below(300) } * MIB;
    let groups = 3 + random.below(if block_log > 13 { 3 } else { 8 });
    let directory_log = block_log.max(12 + random.below(5).min(4));
    let inode_log = (9 + random.below(3)).min(block_log - 1);
    let flag = |random: &mut Random| u8::from(!random.one_in(3));
    let (reflink, finobt, sparse) = (flag(random), flag(random), flag(random));
    let rmapbt = flag(random);
    let (parent, exchange) = (flag(random), flag(random));
    let arguments = [
        ["-b".to_owned(), format!("size={}", 1 << block_log)],
        ["-d".to_owned(), format!("agcount={groups}")],
        ["-i".to_owned(), format!("size={},sparse={sparse},exchange={exchange}", 1 << inode_log)],
        ["-n".to_owned(), format!("size={},parent={parent}", 1 << directory_log)],
        ["-m".to_owned(), format!("reflink={reflink},finobt={finobt},rmapbt={rmapbt}")],
    ];
    let mut arguments = arguments.concat();
    if random.one_in(2) {
        arguments.extend(["-l".to_owned(), "agnum=0".to_owned()]);
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Xfsprogs::newest().unwrap().mkfs(image, size, &words).unwrap();
    format!("{} MiB, {}", size / MIB, arguments.join(" "))
}
