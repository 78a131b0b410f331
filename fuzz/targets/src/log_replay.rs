//! Recovery of a journal whose transaction was patched: the records are sound, their contents are
//! not.

use crate::PatchedDevice;
use crate::input::{Change, Input, Patches, overwrite};
use crate::sample::{Sample, samples};
use std::sync::Arc;
use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Sector, write_all_at};
use undercroft_xfs::Volume;
use undercroft_xfs::format::log_record::{LOG_BLOCK, clean_log};
use undercroft_xfs::format::log_record_seal::seal_record;
use undercroft_xfs::format::{
    BufferItem, BufferItemType, ExtentChange, InodeCreateItem, InodeItem, InodeItemFields, Intent,
    IntentDevice, IntentWork, LogRecordHeader, MappingAction, MappingChange, RefcountAction,
    RefcountChange, ReverseAction, ReverseChange, RmapFlags, RmapOwner, TransactionHeader,
    core_to_log,
};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::units::{AgBlock, AgNumber, FileBlock, FsBlock, Lsn};

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let sample = input.choose(samples());
    if !sample.geometry.features.crc {
        return;
    }
    let intact = input.0.is_empty();
    let mut regions = sound_regions(sample);
    // Intents follow: as many as the input wants.
    let intents = usize::from(input.byte()) % (intents().len() + 1);
    regions.extend(intents_of(intents));
    for patch in Patches::new(input) {
        let index = usize::from(patch.piece) % regions.len();
        match patch.change {
            Change::Bytes(bytes) => overwrite(&mut regions[index], patch.offset, bytes),
            Change::Copy { from } => {
                regions[index] = regions[usize::from(from) % regions.len()].clone();
            }
            Change::Pointer { .. } => drop(regions.remove(index)),
        }
        if regions.is_empty() {
            break;
        }
    }
    let sound = PatchedDevice::new(sample, Patches::new(Input(&[])), |_| true).into_device();
    let device: Arc<dyn BlockDevice> = Arc::new(Overlay::new(Arc::new(sound)));
    write(sample, device.as_ref(), &regions);
    drop(Volume::open(Arc::clone(&device)).map_err(|error| error.to_string()));
    match recover(&device, &mut |_| {}) {
        Ok(report) => assert!(report.is_some(), "the journal was not empty"),
        Err(error) => assert!(!intact, "a sound journal is refused: {error}"),
    }
}

/// A header of a group and the root directory, logged as they are.
fn sound_regions(sample: &Sample) -> Vec<Vec<u8>> {
    let geometry = &sample.geometry;
    let sector = geometry.header_sector(AgNumber(0), 2);
    let sectors = (geometry.sector_size() / 512) as u16;
    let mut buffer = BufferItem::new(sector, sectors, BufferItemType::Agi);
    buffer.mark(0..128);
    let mut regions = vec![Vec::new(), vec![0; 128], Vec::new(), vec![0; geometry.inode_size()]];
    buffer.encode(&mut regions[0]);
    sample.read(sector.0 * 512, &mut regions[1]);
    let number = geometry.root_inode;
    let (ag, inode) = geometry.split_inode(number);
    let (block, index) = geometry.inode_block(inode);
    let unit = geometry.cluster_blocks();
    let first = AgBlock(block.0 / unit * unit);
    let cluster = geometry.ag_sector(ag, first);
    let offset = ((block.0 - first.0) << geometry.block_log) + (index << geometry.inode_log);
    let item = InodeItem {
        fields: InodeItemFields::CORE,
        attr_len: 0,
        data_len: 0,
        inode: number,
        device: 0,
        cluster,
        cluster_sectors: unit * geometry.sectors_per_block(),
        offset,
    };
    item.encode(&mut regions[2]);
    sample.read(cluster.0 * 512 + u64::from(offset), &mut regions[3]);
    regions[3] = core_to_log(&regions[3]).to_vec();
    regions
}

/// One of each kind of intent about blocks, for blocks that the sample does not have.
fn intents() -> Vec<IntentWork> {
    let (start, offset, len) = (FsBlock(40), FileBlock(7), 1);
    vec![
        IntentWork::Free(vec![ExtentChange { start, len }]),
        IntentWork::Reverse(vec![ReverseChange {
            action: ReverseAction::Unmap,
            owner: RmapOwner(131),
            start,
            offset,
            len,
            flags: RmapFlags::empty(),
        }]),
        IntentWork::Refcount(vec![RefcountChange { action: RefcountAction::Decrease, start, len }]),
        IntentWork::Mapping(MappingChange {
            action: MappingAction::Map,
            inode: undercroft_xfs::units::InodeNumber(131),
            start,
            offset,
            len,
            attr_fork: false,
            unwritten: false,
            realtime: false,
        }),
    ]
}

fn intents_of(count: usize) -> Vec<Vec<u8>> {
    let chunk = InodeCreateItem {
        ag: AgNumber(0),
        block: AgBlock(64),
        count: 64,
        inode_size: 512,
        blocks: 8,
        generation: 1,
    };
    let mut regions = Vec::new();
    if count > 2 {
        regions.push(Vec::new());
        chunk.encode(&mut regions[0]);
    }
    for (id, work) in (1..).zip(intents()).take(count) {
        regions.extend(Intent { id, device: IntentDevice::Data, work }.encode());
    }
    regions
}

/// Writes a record with one transaction of these regions behind the last one.
fn write(sample: &Sample, device: &dyn BlockDevice, regions: &[Vec<u8>]) {
    const TRANSACTION: u32 = 77;
    let geometry = &sample.geometry;
    let log = geometry.sector(geometry.log_start);
    let head = clean_log(geometry.uuid, geometry.log_stripe_unit, 1).len() / LOG_BLOCK;
    let lsn = Lsn::new(1, head as u32);
    let buffer = geometry.log_stripe_unit.max(32 << 10);
    let frame = TransactionHeader { transaction: TRANSACTION, regions: regions.len() as u32 };
    let header = LogRecordHeader {
        operations: regions.len() as u32 + 3,
        ..LogRecordHeader::new(geometry.uuid, lsn, lsn, buffer)
    };
    let mut record = vec![0; header.header_blocks() as usize * LOG_BLOCK];
    let mut put = |flags: u8, payload: &[u8]| {
        record.extend(TRANSACTION.to_be_bytes());
        record.extend((payload.len() as u32).to_be_bytes());
        record.extend([0x69, flags, 0, 0]);
        record.extend(payload);
    };
    put(1, &[]);
    put(0, &frame.encode());
    regions.iter().for_each(|region| put(0, region));
    put(2, &[]);
    record.resize(record.len().next_multiple_of(LOG_BLOCK), 0);
    seal_record(&header, &mut record, usize::MAX);
    write_all_at(device, Sector(log.0 + head as u64), &record).expect("memory takes it");
}
