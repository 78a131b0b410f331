//! A mounted volume aged by random operations, until a random share of it is in use.

use rustix::fs::{FallocateFlags, XattrFlags, fallocate, ioctl_ficlone, lsetxattr, statvfs};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use undercroft_judges::random::Random;

/// Most operations.
const OPERATIONS: usize = 6000;

/// Does operations until 30 to 95 % of the volume are in use. Returns `false` if the kernel shut the
/// volume down.
pub(super) fn age(root: &Path, random: &mut Random) -> bool {
    let share = 30 + random.below(66);
    let mut aged = Aged { directories: vec![root.to_owned()], files: Vec::new(), next: 0 };
    for step in 0..OPERATIONS {
        if step % 64 == 0 && used(root) > share {
            break;
        }
        // An operation may fail: the volume is full, a name too long.
        let _ = aged.step(random, step);
    }
    // Room for the trees of the kernel, and holes in all groups.
    for index in (0..aged.files.len()).step_by(7) {
        let _ = fs::remove_file(&aged.files[index]);
    }
    File::open(root).and_then(|root| root.sync_all()).is_ok()
}

fn used(root: &Path) -> u64 {
    let found = statvfs(root).unwrap();
    100 - found.f_bavail * 100 / found.f_blocks.max(1)
}

struct Aged {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    next: u64,
}

impl Aged {
    fn step(&mut self, random: &mut Random, step: usize) -> std::io::Result<()> {
        match random.below(24) {
            0 | 1 => {
                let path = self.name(random);
                fs::create_dir(&path)?;
                self.directories.push(path);
            }
            2..=7 => {
                let path = self.name(random);
                fs::write(&path, bytes(random, 21))?;
                self.files.push(path);
            }
            8 => {
                // Many names in one directory.
                let parent = self.directory(random);
                for number in 0..random.below(400) {
                    let path = parent.join(format!("entry-{step}-{number}-with-a-longer-name"));
                    fs::write(&path, b"")?;
                    self.files.push(path);
                }
            }
            9..=12 => self.change(random)?,
            13 | 14 => {
                let (path, link) = (self.file(random), self.name(random));
                for number in 0..random.below(20) {
                    let link = link.with_extension(number.to_string());
                    fs::hard_link(&path, &link)?;
                    self.files.push(link);
                }
            }
            15 => {
                let target = "t".repeat(1 + random.below(1000) as usize);
                std::os::unix::fs::symlink(target, self.name(random))?;
            }
            16 | 17 => self.attribute(random)?,
            18 | 19 => {
                let (from, path) = (File::open(self.file(random))?, self.name(random));
                ioctl_ficlone(File::create(&path)?, from)?;
                self.files.push(path);
            }
            20 => {
                let (from, to) = (self.file(random), self.name(random));
                fs::rename(&from, &to)?;
                self.files.push(to);
            }
            _ => {
                let index = random.below(self.files.len().max(1) as u64) as usize;
                if index < self.files.len() {
                    fs::remove_file(self.files.swap_remove(index))?;
                }
            }
        }
        Ok(())
    }

    /// Writes into a file, or takes from it or gives to it without writing.
    fn change(&self, random: &mut Random) -> std::io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.file(random))?;
        let (offset, len) = (random.magnitude(22), 1 + random.magnitude(20));
        match random.below(5) {
            0 => fallocate(&file, FallocateFlags::empty(), offset, len)?,
            1 => {
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&file, punch, offset, len)?;
            }
            2 => {
                // In pieces, so that the mapping becomes a tree.
                for piece in 0..random.below(300) {
                    file.write_all_at(&[piece as u8; 100], offset + piece * 131_072)?;
                }
            }
            3 => file.set_len(offset)?,
            _ => file.write_all_at(&bytes(random, 18), offset)?,
        }
        Ok(())
    }

    fn attribute(&self, random: &mut Random) -> std::io::Result<()> {
        let path = if random.one_in(2) { self.file(random) } else { self.directory(random) };
        let many = random.one_in(6);
        let count = random.below(if many { 200 } else { 4 });
        for number in 0..=count {
            let (name, value) = (format!("user.attribute-{number}"), bytes(random, 13));
            lsetxattr(&path, name.as_str(), &value, XattrFlags::empty())?;
        }
        Ok(())
    }

    fn directory(&self, random: &mut Random) -> PathBuf {
        self.directories[random.below(self.directories.len() as u64) as usize].clone()
    }

    fn file(&self, random: &mut Random) -> PathBuf {
        let index = random.below(self.files.len().max(1) as u64) as usize;
        self.files.get(index).cloned().unwrap_or_else(|| PathBuf::from("/nonexistent"))
    }

    fn name(&mut self, random: &mut Random) -> PathBuf {
        self.next += 1;
        let tail = "x".repeat(random.magnitude(7) as usize);
        self.directory(random).join(format!("name-{}-{tail}", self.next))
    }
}

fn bytes(random: &mut Random, bits: u32) -> Vec<u8> {
    let mut bytes = vec![0; random.magnitude(bits) as usize];
    for chunk in bytes.chunks_mut(512) {
        chunk.fill(random.bits() as u8);
    }
    bytes
}
