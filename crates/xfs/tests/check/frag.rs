//! The layout of volumes that a kernel filled, against the figures of `xfs_db`.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel, populate};
use undercroft_xfs::Volume;
use undercroft_xfs::frag::{self, Cell, Layout, Selection};

fn layout(image: &Path, selection: Selection) -> Layout {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    frag::measure(&Volume::open(device).unwrap(), |inode| selection.contains(inode)).unwrap()
}

/// The numbers of a text, in order.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[test]
fn figures_are_those_of_xfs_db() {
    if !kernel::available_or_report() {
        return;
    }
    let tools = Xfsprogs::newest().unwrap();
    for arguments in [&["-b", "size=4096"][..], &["-b", "size=1024", "-m", "rmapbt=0"]] {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("frag.img");
        tools.mkfs(&image, 512 << 20, arguments).unwrap();
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        populate::populate(mount.path()).unwrap();
        mount.unmount().unwrap();

        let found = layout(&image, Selection::Files);
        let text = tools.db(&image, &["frag -f"]).unwrap();
        assert_eq!(numbers(&text)[..2], [found.stored, found.ideal], "{text}");
        assert!(found.actual <= found.stored && found.actual >= found.ideal);
        assert_eq!(found.locality.extents(), found.actual);
        assert_eq!(found.extents_per_inode.sum(), found.actual);

        let text = tools.db(&image, &["freesp -s"]).unwrap();
        let total = |what: &str| numbers(text.lines().find(|line| line.contains(what)).unwrap())[0];
        // It counts the blocks of the free lists as extents of one block.
        let listed = total("total free extents") - found.free.by_block.count();
        assert!((4 * 4..=4 * 30).contains(&listed), "{listed} on the lists: {text}");
        assert_eq!(total("total free blocks"), found.free.by_block.sum() + listed, "{text}");
        assert_eq!(found.free.by_block, found.free.by_size);

        let all = layout(&image, Selection::Everything);
        assert!(all.inodes > found.inodes && all.actual > found.actual);
        let cells: Vec<Cell> = found.picture.groups().flatten().collect();
        for kind in [Cell::Free, Cell::Data, Cell::Metadata] {
            assert!(cells.contains(&kind), "{kind:?}");
        }
    }
}
