//! Volume groups that LVM has made, compared with its own report of where their volumes are.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::stack::Together;
use undercroft_block::{
    BlockDevice, FileDevice, MemoryDevice, Sector, flush, read_buffer, write_all_at,
};
use undercroft_container::layers::{Choice, Depth, Layers, Place, Unselected};
use undercroft_container::luks::Keys;
use undercroft_judges::lvm::{Lvm, Runs};

const MIB: u64 = 1 << 20;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three disks of a group with a volume of two pieces and one in stripes.
struct Group {
    home: tempfile::TempDir,
    linear: Runs,
    striped: Runs,
}

impl Group {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for name in NAMES {
            File::create(home.path().join(name)).unwrap().set_len(32 * MIB).unwrap();
        }
        let lvm = Lvm::attach(home.path(), &NAMES).unwrap();
        let disks = lvm.disks();
        let disks: Vec<&str> = disks.iter().map(String::as_str).collect();
        let run = |arguments: &[&str]| lvm.run(arguments).unwrap();
        run(&[&["pvcreate"], &disks[..]].concat());
        run(&[&["vgcreate", "-s", "1M", "vg"], &disks[..]].concat());
        let quiet = ["-an", "-Zn", "-Wn"];
        run(&[&["lvcreate"], &quiet[..], &["-n", "linear", "-L", "4M", "vg", disks[1]]].concat());
        run(&[&["lvcreate"], &quiet[..], &["-n", "striped", "-i3", "-I64k", "-L", "9M", "vg"]]
            .concat());
        run(&["lvextend", "-L", "+5M", "vg/linear", disks[2]]);
        let (linear, striped) = (lvm.runs("vg/linear").unwrap(), lvm.runs("vg/striped").unwrap());
        assert!(linear.runs.len() == 2 && striped.runs.len() > 100);
        Self { home, linear, striped }
    }

    fn disks(&self, read_only: bool) -> Vec<Arc<dyn BlockDevice>> {
        let open = |name: &&str| {
            Arc::new(FileDevice::open(&self.home.path().join(name), read_only).unwrap()) as _
        };
        NAMES.iter().map(open).collect()
    }
}

fn random(bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes];
    fastrand::Rng::with_seed(7).fill(&mut random);
    random
}

fn look(disks: Vec<Arc<dyn BlockDevice>>) -> Layers {
    let disk: Arc<dyn BlockDevice> = Arc::new(Together::new("lvm", disks).unwrap());
    Layers::look(&disk, &Choice::default(), Depth::Everything, &Keys::default()).unwrap()
}

/// The device of a volume, or why there is none.
fn volume(layers: &Layers, name: &str) -> Result<Arc<dyn BlockDevice>, String> {
    let is_it = |place: &Place| matches!(place, Place::Logical { name: is, .. } if is == name);
    let node = layers.nodes().iter().find(|node| is_it(&node.place));
    node.expect("the volume is listed").device.clone()
}

fn contents(device: &dyn BlockDevice) -> Vec<u8> {
    read_buffer(device, Sector(0), device.capacity().to_bytes().unwrap() as usize).unwrap().to_vec()
}

#[test]
fn volumes_are_where_lvm_has_them() {
    let group = Group::new();
    for (name, runs) in [("linear", &group.linear), ("striped", &group.striped)] {
        let bytes = random(9 << 20);
        runs.write(&bytes).unwrap();
        let device = volume(&look(group.disks(true)), name).unwrap();
        assert!(contents(&*device) == bytes, "{name}");
        assert!(device.is_read_only());
    }
}

#[test]
fn a_volume_is_written_and_nothing_else() {
    let group = Group::new();
    let read = |name: &&str| fs::read(group.home.path().join(name)).unwrap();
    let before: Vec<_> = NAMES.iter().map(read).collect();
    let bytes = random(9 << 20);
    let device = volume(&look(group.disks(false)), "striped").unwrap();
    write_all_at(&*device, Sector(0), &bytes).unwrap();
    flush(&*device).unwrap();
    drop(device);
    assert!(group.striped.read().unwrap() == bytes);
    for (disk, name) in NAMES.iter().enumerate() {
        let after = read(name);
        let changed = (0..after.len()).filter(|at| after[*at] != before[disk][*at]);
        assert!(changed.map(|at| at as u64).all(|at| group.striped.have(disk, at)), "{name}");
    }
    let lvm = Lvm::attach(group.home.path(), &NAMES).unwrap();
    lvm.run(&["vgck", "vg"]).unwrap();
}

#[test]
fn a_missing_disk_is_missed_by_those_that_need_it() {
    let group = Group::new();
    let mut disks = group.disks(true);
    disks.remove(0);
    let layers = look(disks);
    let linear = contents(&*volume(&layers, "linear").unwrap());
    assert!(linear == group.linear.read().unwrap());
    let why = volume(&layers, "striped").unwrap_err();
    assert!(why.contains("the physical volume") && why.contains("'lvm(a.img,b.img)'"), "{why}");
    let choice = Choice { logical: Some("vg/striped".into()), ..Choice::default() };
    assert!(matches!(layers.select(&choice, false), Err(Unselected::Fault(_))));
    let choice = Choice { logical: Some("vg/none".into()), ..Choice::default() };
    assert_eq!(layers.select(&choice, false).unwrap_err(), Unselected::NotThere);
}

/// Memory with what is in a file.
fn copy(path: &Path) -> Arc<MemoryDevice> {
    let bytes = fs::read(path).unwrap();
    let device = MemoryDevice::new(bytes.len() as u64);
    write_all_at(&device, Sector(0), &bytes).unwrap();
    Arc::new(device)
}

#[test]
fn damage_is_named_and_the_newest_metadata_counts() {
    let group = Group::new();
    let path = |name: &str| group.home.path().join(name);
    let old = fs::read(path("a")).unwrap();
    let lvm = Lvm::attach(group.home.path(), &NAMES).unwrap();
    // So many changes that the text goes around in its ring.
    let tags: Vec<_> = (0..200).map(|number| format!("tag{number}-{}", "x".repeat(900))).collect();
    for change in ["--addtag", "--deltag"].repeat(4) {
        let tags = tags.iter().flat_map(|tag| [change, tag]);
        let arguments: Vec<_> = ["vgchange"].into_iter().chain(tags).chain(["vg"]).collect();
        lvm.run(&arguments).unwrap();
        let read = volume(&look(group.disks(true)), "striped");
        assert!(read.is_ok(), "{:?}", read.unwrap_err());
    }
    drop(lvm);
    let wrapped = look(group.disks(true));
    assert!(
        volume(&wrapped, "striped").is_ok() && wrapped.notes().is_empty(),
        "{:?}",
        wrapped.notes()
    );
    // One disk is from before that.
    let stale = MemoryDevice::new(old.len() as u64);
    write_all_at(&stale, Sector(0), &old).unwrap();
    let layers = look(vec![Arc::new(stale), copy(&path("b")), copy(&path("c"))]);
    assert!(volume(&layers, "striped").is_ok());
    assert!(layers.notes().iter().any(|note| note.contains("is older")), "{:?}", layers.notes());
    // The text of one is damaged, the label of another.
    let (damaged, cut) = (copy(&path("a")), copy(&path("b")));
    write_all_at(&*damaged, Sector(9), &vec![0x5a; 2039 * 512]).unwrap();
    let layers = look(vec![Arc::clone(&damaged) as _, Arc::clone(&cut) as _, copy(&path("c"))]);
    assert!(volume(&layers, "striped").is_ok());
    assert!(
        layers.notes().iter().any(|note| note.contains("checksum of its text")),
        "{:?}",
        layers.notes()
    );
    write_all_at(&*cut, Sector(1), &[b"LABELONE", &[1; 504][..]].concat()).unwrap();
    let layers = look(vec![cut, copy(&path("c"))]);
    let fault = layers.nodes()[1].fault.clone().unwrap();
    assert!(fault.contains("the label of LVM on memory is damaged: the checksum"), "{fault}");
    assert!(volume(&layers, "linear").is_err());
    // Alone, it does not know its group.
    let layers = look(vec![damaged]);
    let fault = layers.nodes()[1].fault.clone().unwrap();
    assert!(fault.contains("the metadata of LVM"), "{fault}");
}

#[test]
fn a_disk_that_is_cut_ends_before_its_volumes() {
    let group = Group::new();
    for name in NAMES {
        let file = File::options().write(true).open(group.home.path().join(name)).unwrap();
        file.set_len(2 * MIB).unwrap();
    }
    let why = volume(&look(group.disks(true)), "striped").unwrap_err();
    assert!(why.contains("is the image truncated?"), "{why}");
    let file = File::options().write(true).open(group.home.path().join("a")).unwrap();
    file.set_len(64 << 10).unwrap();
    file.write_all_at(&[0; 512], 4096).unwrap();
    assert!(volume(&look(group.disks(true)), "striped").is_err());
}

#[test]
fn kinds_that_are_not_read_are_refused_by_name() {
    let group = Group::new();
    let lvm = Lvm::attach(group.home.path(), &NAMES).unwrap();
    let text = group.home.path().join("text").display().to_string();
    lvm.run(&["vgcfgbackup", "-f", &text, "vg"]).unwrap();
    let original = fs::read_to_string(&text).unwrap();
    // As LVM writes a snapshot of a volume.
    let snapshot = "\t\tsnapshot0 {\n\t\t\tid = \"AHGaaN-LEK8-oGqO-eVB6-8fqW-FkCu-ORGrR1\"\n\
        \t\t\tstatus = [\"READ\", \"WRITE\"]\n\t\t\tsegment_count = 1\n\t\t\tsegment1 {\n\
        \t\t\tstart_extent = 0\n\t\t\textent_count = 9\n\t\t\ttype = \"snapshot\"\n\
        \t\t\tchunk_size = 8\n\t\t\torigin = \"linear\"\n\t\t\tcow_store = \"striped\"\n\t\t\t}\n\t\t}\n";
    let with =
        original.replace("\tlogical_volumes {\n", &format!("\tlogical_volumes {{\n{snapshot}"));
    fs::write(&text, with).unwrap();
    lvm.run(&["vgcfgrestore", "-f", &text, "vg"]).unwrap();
    assert!(lvm.run(&["lvs", "-a", "vg"]).unwrap().contains("linear"));
    drop(lvm);
    let layers = look(group.disks(false));
    let why = volume(&layers, "striped").unwrap_err();
    assert!(why.contains("vg/striped is a snapshot of linear, which is not read"), "{why}");
    // What is in the snapshot would not fit any more.
    assert!(volume(&layers, "linear").unwrap().is_read_only());
}
