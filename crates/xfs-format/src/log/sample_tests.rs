//! Items of the journal against bytes that the kernel wrote (docs/format/journal/example.md#items).

use super::record::LOG_BLOCK;
use super::record_seal::{restore_words, seal_record, verify_record};
use super::*;
use crate::bytes::{be64, put_be64};
use crate::units::{AgBlock, AgNumber, FileBlock, FsBlock, InodeNumber, Lsn};
use crate::{AttrFlags, BmapRoot, RmapFlags, RmapOwner};
use sha2::{Digest, Sha256};
use undercroft_block::Sector;
use uuid::Uuid;

/// Bytes from hexadecimal digits, blanks left out; `00*16` style repetitions are written out.
fn hex(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).collect::<Vec<_>>();
    let value = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

fn intent(regions: &[&str]) -> Intent {
    let regions = regions.iter().map(|text| hex(text)).collect::<Vec<_>>();
    let slices = regions.iter().map(Vec::as_slice).collect::<Vec<_>>();
    let (kind, count) = LogItemKind::decode(slices[0]).unwrap();
    assert_eq!(count, slices.len());
    let intent = Intent::decode(kind, &slices).unwrap().unwrap();
    assert_eq!(intent.kind(), kind);
    assert_eq!(intent.encode(), regions, "written as it was read");
    intent
}

fn done(region: &str, of: &Intent) {
    let region = hex(region);
    let (kind, _) = LogItemKind::decode(&region).unwrap();
    let done = IntentDone::decode(kind, &region).unwrap().unwrap();
    assert_eq!(done.intent, of.kind());
    let mut again = Vec::new();
    done.encode(&mut again);
    assert_eq!(again, region, "written as it was read");
}

#[test]
fn inode_items() {
    let zeros = "00".repeat(16);
    let local = format!(
        "3b120300 03000000 00000f00 00000000 8000000000000000 {zeros} 8000000000000000 20000000 \
         00000000"
    );
    let tree = format!(
        "3b120400 49000000 14005800 00000000 8300000000000000 {zeros} 8000000000000000 20000000 \
         00060000"
    );
    let expected = InodeItem {
        fields: InodeItemFields::CORE | InodeItemFields::DATA_LOCAL,
        attr_len: 0,
        data_len: 15,
        inode: InodeNumber(128),
        device: 0,
        cluster: Sector(128),
        cluster_sectors: 32,
        offset: 0,
    };
    let with_root = InodeItem {
        fields: InodeItemFields::CORE | InodeItemFields::DATA_ROOT | InodeItemFields::ATTR_LOCAL,
        attr_len: 20,
        data_len: 88,
        inode: InodeNumber(131),
        offset: 0x600,
        ..expected
    };
    for (text, expected) in [(local, expected), (tree, with_root)] {
        let region = hex(&text);
        let item = InodeItem::decode(&region).unwrap();
        assert_eq!(item, expected);
        assert_eq!(LogItemKind::decode(&region), Ok((LogItemKind::Inode, item.regions())));
        let mut again = Vec::new();
        item.encode(&mut again);
        assert_eq!(again, region);
        // The form of 32-bit kernels lacks the padding behind the lengths.
        let narrow = [&region[..12], &region[16..]].concat();
        assert_eq!(InodeItem::decode(&narrow), Ok(expected));
        assert!(InodeItem::decode(&region[..55]).is_err());
    }
}

#[test]
fn space_intents() {
    let id = 0xffff_8881_06b9_b0e0;
    let free = intent(&["36120100 01000000 e0b0b9068188ffff e915000000000000 01000000 00000000"]);
    let extent = ExtentChange { start: FsBlock(0x15e9), len: 1 };
    assert_eq!((free.id, &free.work), (id, &IntentWork::Free(vec![extent])));
    done("37120100 01000000 e0b0b9068188ffff e915000000000000 01000000 00000000", &free);
    assert_eq!(free.done().freed, [extent]);
    // Extents of 32-bit kernels.
    let narrow = hex("36120100 01000000 e0b0b9068188ffff e915000000000000 01000000");
    assert_eq!(Intent::decode(LogItemKind::FreeIntent, &[&narrow]), Ok(Some(free)));

    let reverse = intent(&["40120100 01000000 909d7cbe8288ffff 8300000000000000 \
         381f000000000000 321f000000000000 01000000 04000000"]);
    let change = ReverseChange {
        action: ReverseAction::UnmapShared,
        owner: RmapOwner(131),
        start: FsBlock(0x1f38),
        offset: FileBlock(0x1f32),
        len: 1,
        flags: RmapFlags::empty(),
    };
    assert_eq!(reverse.work, IntentWork::Reverse(vec![change]));
    done("41120100 00000000 909d7cbe8288ffff", &reverse);

    let counts = intent(&["42120100 01000000 202aac8a8188ffff 381f000000000000 01000000 02000000"]);
    let change =
        RefcountChange { action: RefcountAction::Decrease, start: FsBlock(0x1f38), len: 1 };
    assert_eq!(counts.work, IntentWork::Refcount(vec![change]));
    done("43120100 00000000 202aac8a8188ffff", &counts);

    let mapping = intent(&["44120100 01000000 30ec84438188ffff 8300000000000000 \
         2921000000000000 7b00000000000000 01000000 01000040"]);
    let change = MappingChange {
        action: MappingAction::Map,
        inode: InodeNumber(131),
        start: FsBlock(0x2129),
        offset: FileBlock(0x7b),
        len: 1,
        attr_fork: false,
        unwritten: true,
        realtime: false,
    };
    assert_eq!(mapping.work, IntentWork::Mapping(change));
    done("45120100 00000000 30ec84438188ffff", &mapping);
}

#[test]
fn attribute_and_exchange_intents() {
    let attr = intent(&[
        "46120300 eb4b1c4b 5007143b8188ffff 8c07010000000000 04000000 06000000 0c000000 08000000",
        "6c30303338390000",
        "0000000000000086 7c7f358c",
    ]);
    let IntentWork::Attr(change) = &attr.work else { panic!("{attr:?}") };
    assert_eq!((change.inode.0, change.generation), (0x1_078c, 0x4b1c_4beb));
    assert_eq!(change.filter, AttrFlags::PARENT);
    let AttrAction::SetParent(pair) = &change.action else { panic!("{change:?}") };
    assert_eq!((&pair.name[..], be64(&pair.value, 0)), (&b"l00389"[..], 134));
    done("47120100 00000000 40338a5b8388ffff", &attr);
    let rename = intent(&[
        "46120500 71f8183b 40338a5b8388ffff a800000000000000 06000000 0600 1400 0c000000 08000000",
        "6f6c646e616d0000",
        "6e657720 6e616d65 206f6620 74776e74 79206279",
        "0000000000000086 7c7f358c",
        "0000000000000087 7c7f358d",
    ]);
    let IntentWork::Attr(change) = rename.work else { panic!("not an attribute") };
    let AttrAction::ReplaceParent { old, new } = change.action else { panic!("not a rename") };
    assert_eq!((old.name.len(), new.name.len(), be64(&new.value, 0)), (6, 20, 135));

    let exchange = intent(&["48120100 00000000 e83206668388ffff 8300000000000000 \
         8500000000000000 afef5187 96ea91a9 0100000000000000 0100000000000000 3e1f000000000000 \
         0a00000000000000 00f0f30100000000 00f0f30100000000"]);
    let IntentWork::Exchange(work) = exchange.work else { panic!("not an exchange") };
    assert_eq!((work.blocks, work.sides[1].inode.0), (0x1f3e, 0x85));
    assert_eq!((work.sides[0].generation, work.sides[0].size), (0x8751_efaf, 0x1f3_f000));
    assert_eq!(work.flags, ExchangeFlags::SET_SIZES | ExchangeFlags::FIRST_CLEAR_REFLINK);
    done("49120100 00000000 e83206668388ffff", &exchange);
}

#[test]
fn buffer_items() {
    let agi = hex("3c120200 00380100 0200000000000000 01000000 01000000");
    let cancel = hex("3c120100 02000800 6803010000000000 01000000 00000000");
    let pointers = hex("3c120d00 01402000 4006010000000000 04000000 00000010 11111111 11010000 \
         00000000");
    for region in [&agi, &cancel, &pointers] {
        let item = BufferItem::decode(region).unwrap();
        let mut again = Vec::new();
        item.encode(&mut again);
        assert_eq!(again, **region);
        assert_eq!(LogItemKind::decode(region).unwrap().1, item.regions());
    }
    let item = BufferItem::decode(&agi).unwrap();
    assert_eq!((item.buffer_type, item.sector), (BufferItemType::Agi, Sector(2)));
    assert!(item.runs().eq(std::iter::once(0..128)));
    assert_eq!(BufferItem::decode(&cancel).unwrap(), BufferItem::cancel(Sector(0x1_0368), 8));
    let item = BufferItem::decode(&pointers).unwrap();
    assert_eq!(item.flags, BufferItemFlags::UNLINKED_POINTERS);
    assert_eq!(item.runs().count(), 12);
    assert!(item.covers(28 * 128 + 96) && !item.covers(29 * 128));
    let mut wrong = agi.clone();
    wrong[16] = 2;
    assert_eq!(BufferItem::decode(&wrong).unwrap_err().field, "blf_map_size");
    wrong[5] = 0xf8;
    assert_eq!(BufferItem::decode(&wrong).unwrap_err().field, "blf_map_size");
    wrong[16] = 1;
    assert_eq!(BufferItem::decode(&wrong).unwrap_err().field, "blf_flags");
}

#[test]
fn inode_create_items() {
    let region = hex("3f120100 00000000 000020c8 00000040 00000200 00000008 82c28fdc");
    let item = InodeCreateItem::decode(&region).unwrap();
    assert_eq!((item.ag, item.block, item.count), (AgNumber(0), AgBlock(0x20c8), 64));
    assert_eq!((item.inode_size, item.blocks, item.generation), (512, 8, 0x82c2_8fdc));
    let mut again = Vec::new();
    item.encode(&mut again);
    assert_eq!(again, region);
}

#[test]
fn roots_of_trees_survive_the_log() {
    let root = BmapRoot::over_leaf(336, FileBlock(5), FsBlock(9)).unwrap();
    let image = root_to_log(&root, InodeNumber(131), &Uuid::from_u128(7));
    assert_eq!((image.len(), &image[..4], be64(&image, 56)), (88, &b"BMA3"[..], 131));
    let mut fork = vec![0; 336];
    root_from_log(&image, &mut fork).unwrap();
    assert_eq!(fork, root.as_bytes());
    assert_eq!(root_from_log(&image, &mut [0; 19]).unwrap_err().field, "entries of the root");
    assert_eq!(root_from_log(&image[..71], &mut fork).unwrap_err().field, "length");
}

/// The core of the worked checkpoint of the reference, as it is in the log.
const CORE: &str = "4e49ff43 03010000 00000000 00000000 02000000 00000000 00000000 00000000 \
     84d08f06 7e4db736 28801c97 774db736 40f91c97 774db736 06000000 00000000 \
     00000000 00000000 00000000 00000000 00002501 00000000 00000000 00000000 \
     ffffffff 00000000 05000000 00000000 00000000 00000000 18000000 00000000 \
     00000000 00000000 00000000 00000000 28801c97 774db736 80000000 00000000 \
     7d889b8d 06d740c2 ab80c062 2dd05dc6";

#[test]
fn cores_are_exchanged_both_ways() {
    let logged = hex(CORE);
    let mut inode = vec![0xee; 512];
    put_be64(&mut inode, INODE_LSN_OFFSET, 77);
    core_from_log(&logged, &mut inode).unwrap();
    assert_eq!(&inode[..4], &[0x49, 0x4e, 0x43, 0xff]);
    assert_eq!(&inode[96..104], &[0xee; 8], "pointer and checksum stay");
    assert_eq!(be64(&inode, INODE_LSN_OFFSET), 77);
    assert_eq!(core_to_log(&inode)[..], logged[..]);
    // Without the wide encoding, times are two numbers.
    let mut narrow = logged;
    narrow[120] &= !8;
    core_from_log(&narrow, &mut inode).unwrap();
    assert_eq!(inode[32..40], [0x06, 0x8f, 0xd0, 0x84, 0x36, 0xb7, 0x4d, 0x7e]);
    assert_eq!(core_to_log(&inode)[..], narrow[..]);
    narrow[0] = 0;
    assert_eq!(core_from_log(&narrow, &mut inode).unwrap_err().field, "di_magic");
}

/// The worked checkpoint: superblock chunk 0 and the root inode, written from the parts that it is
/// made of, gives the bytes that Linux replayed.
#[test]
fn the_worked_checkpoint() {
    const TRANSACTION: u32 = 0x1234_5678;
    let superblock = hex("58465342 00001000 00000000 00040000 00000000 00000000 00000000 \
         00000000 7d889b8d 06d740c2 ab80c062 2dd05dc6 00000000 00020007 00000000 00000080 \
         00000000 00000081 00000000 00000082 00000001 00010000 00000004 00000000 00004000 \
         b4b50200 02000008 56414e43 484f5200 00000000 0c090903 10000019");
    let mut buffer = BufferItem::new(Sector(0), 1, BufferItemType::Superblock);
    buffer.mark(108..120);
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
    let header = TransactionHeader { transaction: TRANSACTION, regions: 4 };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    buffer.encode(&mut first);
    inode.encode(&mut second);
    let (start, commit) = (OperationFlags::START, OperationFlags::COMMIT);
    let none = OperationFlags::empty();
    let core = hex(CORE);
    let operations: [(OperationFlags, &[u8]); 7] = [
        (start, &[]),
        (none, &header.encode()),
        (none, &first),
        (none, &superblock),
        (none, &second),
        (none, &core),
        (commit, &[]),
    ];
    let mut record = vec![0; LOG_BLOCK];
    for (flags, payload) in operations {
        let (client, len) = (LogClient::Transaction, payload.len() as u32);
        let mut bytes = [0; OperationHeader::LEN];
        OperationHeader { transaction: TRANSACTION, len, client, flags }.encode(&mut bytes);
        record.extend(bytes);
        record.extend(payload);
    }
    assert_eq!(record.len(), LOG_BLOCK + 484);
    record.resize(2 * LOG_BLOCK, 0);
    let plain = record.clone();
    let uuid = Uuid::from_u128(0x7d88_9b8d_06d7_40c2_ab80_c062_2dd0_5dc6);
    let lsn = Lsn(1 << 32 | 8);
    let header = LogRecordHeader {
        operations: 7,
        previous_block: 6,
        ..LogRecordHeader::new(uuid, lsn, lsn, 32 << 10)
    };
    seal_record(&header, &mut record, 2);
    let digest = hex("2747f9c0563260a6bf217aa6d2a52212738fd6fe83074040b33b8a0166acc9e3");
    assert_eq!(Sha256::digest(&record)[..], digest[..]);
    assert_eq!(LogRecordHeader::decode(&record).unwrap().crc, 0xd59d_194c);
    assert_eq!(verify_record(&record, 1), Ok(()));
    restore_words(&mut record, 1);
    assert_eq!(record[LOG_BLOCK..], plain[LOG_BLOCK..]);
}
