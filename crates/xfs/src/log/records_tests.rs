//! Records against the checkpoint of docs/format/journal/example.md#checkpoint, and read back.

use super::records::{RecordStream, Seal, SealedRecords};
use super::shape::LogShape;
use crate::bytes::be32;
use crate::format::log_record::{LOG_BLOCK, MAGIC};
use crate::format::log_record_seal::{restore_words, verify_record};
use crate::format::{
    BufferItem, BufferItemType, InodeItem, InodeItemFields, LogRecordHeader, OperationFlags,
    OperationHeader, TransactionHeader,
};
use crate::units::{InodeNumber, Lsn};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use undercroft_block::Sector;
use uuid::Uuid;

const BLOCKS: u32 = 4096;

fn shape(buffer_bytes: u32, unit: usize) -> LogShape {
    LogShape { start: Sector(64), blocks: BLOCKS, buffer_bytes, unit }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

const SUPERBLOCK: &str = "
    58465342 00001000 00000000 00040000 00000000 00000000 00000000 00000000
    7d889b8d 06d740c2 ab80c062 2dd05dc6 00000000 00020007 00000000 00000080
    00000000 00000081 00000000 00000082 00000001 00010000 00000004 00000000
    00004000 b4b50200 02000008 56414e43 484f5200 00000000 0c090903 10000019";

const CORE: &str = "
    4e49ff43 03010000 00000000 00000000 02000000 00000000 00000000 00000000
    84d08f06 7e4db736 28801c97 774db736 40f91c97 774db736 06000000 00000000
    00000000 00000000 00000000 00000000 00002501 00000000 00000000 00000000
    ffffffff 00000000 05000000 00000000 00000000 00000000 18000000 00000000
    00000000 00000000 00000000 00000000 28801c97 774db736 80000000 00000000
    7d889b8d 06d740c2 ab80c062 2dd05dc6";

/// docs/format/journal/example.md#checkpoint, byte for byte.
#[test]
fn the_worked_checkpoint_is_produced() {
    let mut stream = RecordStream::new(shape(32 << 10, 512), 0x1234_5678, vec![0xa5; 99], 1024);
    let mut region = Vec::new();
    let mut buffer = BufferItem::new(Sector(0), 1, BufferItemType::Superblock);
    buffer.mark(108..120);
    buffer.encode(&mut region);
    stream.region(&region);
    stream.region(&hex(SUPERBLOCK));
    region.clear();
    let inode = InodeItem {
        fields: InodeItemFields::CORE,
        attr_len: 0,
        data_len: 0,
        inode: InodeNumber(128),
        device: 0,
        cluster: Sector(128),
        cluster_sectors: 32,
        offset: 0,
    };
    inode.encode(&mut region);
    stream.region(&region);
    stream.region(&hex(CORE));
    stream.finish();
    let position = Lsn::new(1, 8);
    let sealed = stream.seal(&Seal {
        uuid: Uuid::from_u128(0x7d88_9b8d_06d7_40c2_ab80_c062_2dd0_5dc6),
        position,
        tail: position,
        previous_block: 6,
    });
    assert_eq!(sealed.end, Lsn::new(1, 10));
    let digest = hex("2747f9c0563260a6bf217aa6d2a52212738fd6fe83074040b33b8a0166acc9e3");
    assert_eq!(Sha256::digest(&sealed.bytes)[..], digest[..]);
}

/// An unmount record, but for the length of its operation, which
/// the kernel leaves at zero.
#[test]
fn an_unmount_record_is_one_operation() {
    let position = Lsn::new(1, 6);
    let sealed = RecordStream::unmount(shape(32 << 10, 512), 0x5f11_cb94).seal(&Seal {
        uuid: Uuid::from_u128(7),
        position,
        tail: position,
        previous_block: 4,
    });
    assert_eq!(sealed.bytes.len(), 1024);
    let header = LogRecordHeader::decode(&sealed.bytes).unwrap();
    assert_eq!((header.operations, header.lsn, header.tail), (1, Lsn(1 << 32 | 6), header.lsn));
    assert_eq!(sealed.bytes[512..528], hex("00000001 00000008 aa200000 6e550000"));
}

/// Reads records as recovery does: the regions of the transaction, the header first.
fn regions(shape: &LogShape, position: Lsn, sealed: &SealedRecords) -> Vec<Vec<u8>> {
    let headers = shape.header_bytes();
    let (mut regions, mut place) = (Vec::<Vec<u8>>::new(), position);
    for range in &sealed.records {
        let mut record = sealed.bytes[range.clone()].to_vec();
        verify_record(&record, headers / LOG_BLOCK).unwrap();
        let header = LogRecordHeader::decode(&record).unwrap();
        assert_eq!(header.lsn, place);
        assert_eq!(header.data_bytes as usize, record.len() - headers);
        assert!(record.len() <= shape.buffer_bytes as usize);
        assert!(record.len().is_multiple_of(shape.unit));
        for (index, block) in record.chunks(LOG_BLOCK).enumerate().skip(1) {
            let wrapped = place.block() as usize + index >= shape.blocks as usize;
            let cycle = place.cycle() + u32::from(wrapped);
            assert_eq!(be32(block, 0), cycle, "block {index}");
        }
        restore_words(&mut record, headers / LOG_BLOCK);
        let data = &record[headers..];
        let mut at = 0;
        for _ in 0..header.operations {
            let operation = OperationHeader::decode(&data[at..]).unwrap();
            at += OperationHeader::LEN;
            let payload = &data[at..at + operation.len as usize];
            at += payload.len();
            let empty = payload.is_empty();
            match operation.flags {
                OperationFlags::START | OperationFlags::COMMIT => assert!(empty),
                flags if flags.contains(OperationFlags::WAS_CONTINUED) => {
                    regions.last_mut().unwrap().extend(payload);
                }
                _ => {
                    assert!(!empty, "a piece without bytes is lost");
                    regions.push(payload.to_vec());
                }
            }
        }
        assert!(data[at..].iter().all(|byte| *byte == 0), "padding is zero");
        place = shape.advance(place, record.len());
    }
    assert_eq!(place, sealed.end);
    regions
}

proptest! {
    /// Items read back are the items written: cut over records, around the end of the journal, of
    /// all sizes. The estimate is never too low.
    #[test]
    fn regions_survive_the_journal(
        words in prop::collection::vec(1_usize..9000, 1..40),
        before_end in prop::sample::select(vec![1_u32, 2, 3, 10, 60, 500, 4096]),
        large in any::<bool>(),
        unit in prop::sample::select(vec![512_usize, 4096, 32 << 10]),
    ) {
        let shape = shape(if large { 256 << 10 } else { 32 << 10 }, unit);
        let payloads: Vec<Vec<u8>> = words
            .iter()
            .enumerate()
            .map(|(index, words)| (0..words * 4).map(|at| (at * 7 + index) as u8).collect())
            .collect();
        let mut stream = RecordStream::new(shape, 0xfeed_babe, Vec::new(), 0);
        payloads.iter().for_each(|payload| stream.region(payload));
        stream.finish();
        let items: usize = payloads.iter().map(|payload| payload.len() + 12).sum();
        prop_assert!(stream.len() <= shape.checkpoint_bytes(items));
        let position = Lsn::new(5, BLOCKS - before_end);
        let uuid = Uuid::from_u128(3);
        let seal = Seal { uuid, position, tail: Lsn(4 << 32), previous_block: 0 };
        let sealed = stream.seal(&seal);
        let found = regions(&shape, position, &sealed);
        let header = TransactionHeader::decode(&found[0]).unwrap();
        prop_assert_eq!(header.regions as usize, payloads.len());
        prop_assert!(found[1..] == payloads[..]);
    }
}

#[test]
fn positions_go_round() {
    let shape = shape(32 << 10, 512);
    let last = Lsn::new(3, BLOCKS - 2);
    let next = shape.advance(last, 1024);
    assert_eq!(next, Lsn::new(4, 0));
    assert!(next > last);
    assert_eq!(shape.distance(last, next), 1024);
    assert_eq!(shape.distance(next, last), (BLOCKS as usize - 2) * 512);
    // The number that marks headers is no cycle.
    let before = Lsn::new(MAGIC - 1, BLOCKS - 1);
    assert_eq!(shape.advance(before, 512).cycle(), MAGIC + 1);
}
