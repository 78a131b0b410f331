//! Qcow2 images: the header, the tables of clusters, and the reference counts.
//!
//! The input patches a small sound image, whose clusters have 512 bytes.

use crate::input::{Change, Input, Patches};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use undercroft_block::stack::{DiskFormat, FileLeaf, LeafOptions};
use undercroft_block::{BlockDevice, Sector, flush, read_buffer, write_all_at};

const CLUSTER: usize = 512;
/// Header, table of counts, counts, first table, second table, data.
const CLUSTERS: usize = 6;
/// Sectors that are read at most.
const READ: u64 = 256;

pub(crate) fn run(input: &[u8]) {
    let mut image = sound();
    for patch in Patches::new(Input(input)) {
        if let Change::Bytes(bytes) = patch.change {
            let at =
                usize::from(patch.piece) % CLUSTERS * CLUSTER + usize::from(patch.offset) % CLUSTER;
            crate::input::overwrite(&mut image, at as u16, bytes);
        }
    }
    for read_only in [true, false] {
        let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC).expect("memory"));
        (&file).write_all(&image).expect("a file in memory");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let leaf = FileLeaf { format: DiskFormat::Backed, ..FileLeaf::new(path) };
        let options = LeafOptions { read_only, ..LeafOptions::default() };
        match undercroft_container::open(&leaf, options) {
            Ok(Some(device)) => visit(&*device),
            Ok(None) => {}
            Err(error) => drop(error.to_string()),
        }
    }
}

fn visit(device: &dyn BlockDevice) {
    let sectors = device.capacity().0.min(READ);
    for sector in (0..sectors).step_by(16) {
        let length = (sectors - sector).min(16) as usize * 512;
        drop(read_buffer(device, Sector(sector), length).map_err(|error| error.to_string()));
    }
    if !device.is_read_only() && sectors > 0 {
        for sector in [0, sectors / 2, sectors - 1] {
            let wrote = write_all_at(device, Sector(sector), &[7; 512]);
            drop(wrote.map_err(|error| error.to_string()));
        }
        drop(flush(device).map_err(|error| error.to_string()));
    }
}

/// A disk of 32 KiB, of which one cluster has data.
fn sound() -> Vec<u8> {
    let mut image = vec![0; CLUSTERS * CLUSTER];
    let mut put = |at: usize, value: u64, length: usize| {
        image[at..at + length].copy_from_slice(&value.to_be_bytes()[8 - length..]);
    };
    let place = |cluster: usize| (cluster * CLUSTER) as u64;
    // Magic, version, bits of a cluster, size; first table and its entries; table of counts and its clusters.
    for (at, value, length) in [(0, 0x5146_49fb, 4), (4, 3, 4), (20, 9, 4), (24, 32 << 10, 8)] {
        put(at, value, length);
    }
    for (at, value, length) in [(36, 1, 4), (40, place(3), 8), (48, place(1), 8), (56, 1, 4)] {
        put(at, value, length);
    }
    // Counts of 16 bits; length of the header.
    put(96, 4, 4);
    put(100, 104, 4);
    put(CLUSTER, place(2), 8);
    (0..CLUSTERS).for_each(|cluster| put(2 * CLUSTER + 2 * cluster, 1, 2));
    put(3 * CLUSTER, 1 << 63 | place(4), 8);
    put(4 * CLUSTER, 1 << 63 | place(5), 8);
    image[5 * CLUSTER..].fill(9);
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_image_is_read_and_changed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("image");
        std::fs::write(&path, sound()).unwrap();
        let device = undercroft_container::open(&FileLeaf::new(path), LeafOptions::default());
        let device = device.unwrap().unwrap();
        assert_eq!(device.capacity(), Sector(64));
        assert_eq!(
            read_buffer(&*device, Sector(0), 1024).unwrap()[..],
            [[9; 512], [0; 512]].concat()
        );
        write_all_at(&*device, Sector(40), &[7; 512]).unwrap();
        assert_eq!(read_buffer(&*device, Sector(40), 512).unwrap()[..], [7; 512]);
    }
}
