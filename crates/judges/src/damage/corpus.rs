//! The damages as data.

use super::Damage;

const fn damage(name: &'static str, script: &'static [&'static str]) -> Damage {
    Damage { name, script }
}

/// Damages of every structure, each of which `xfs_repair -n` of the newest xfsprogs complains about.
pub const CORPUS: &[Damage] = &[
    // Superblock
    damage("sb magic", &["sb 0", "write -d magicnum 0"]),
    damage("sb crc", &["sb 0", "write -c crc 0"]),
    damage("sb dblocks", &["sb 0", "write -d dblocks 99999999"]),
    damage("sb agcount", &["sb 0", "write -d agcount 5"]),
    damage("sb agblocks", &["sb 0", "write -d agblocks 4096"]),
    damage("sb blocksize", &["sb 0", "write -d blocksize 3000"]),
    damage("sb inode size", &["sb 0", "write -d inodesize 300"]),
    damage("sb inopblog", &["sb 0", "write -d inopblog 1"]),
    damage("sb rootino", &["sb 0", "write -d rootino 200"]),
    damage("sb icount", &["sb 0", "write -d icount 64"]),
    damage("sb ifree", &["sb 0", "write -d ifree 9999"]),
    damage("sb fdblocks", &["sb 0", "write -d fdblocks 5"]),
    damage("sb logstart", &["sb 0", "write -d logstart 7"]),
    damage("sb features_incompat", &["sb 0", "write -d features_incompat 0x8001"]),
    damage("sb features_log_incompat", &["sb 0", "write -d features_log_incompat 0x80"]),
    damage("sb qflags", &["sb 0", "write -d qflags 0x10"]),
    damage("secondary sb flags", &["sb 1", "write -d flags 8"]),
    // Free space header
    damage("agf magic", &["agf 0", "write -d magicnum 0"]),
    damage("agf crc", &["agf 0", "write -c crc 0"]),
    damage("agf seqno", &["agf 0", "write -d seqno 3"]),
    damage("agf length", &["agf 0", "write -d length 100"]),
    damage("agf bnoroot", &["agf 0", "write -d bnoroot 0xffffff"]),
    damage("agf cntroot", &["agf 0", "write -d cntroot 1"]),
    damage("agf bnolevel", &["agf 0", "write -d bnolevel 2"]),
    damage("agf rmaproot", &["agf 0", "write -d rmaproot 9"]),
    damage("agf refcntroot", &["agf 0", "write -d refcntroot 0"]),
    damage("agf freeblks", &["agf 0", "write -d freeblks 7"]),
    damage("agf longest", &["agf 0", "write -d longest 1"]),
    damage("agf flcount", &["agf 0", "write -d flcount 1"]),
    damage("agf flfirst", &["agf 0", "write -d flfirst 90"]),
    damage("agf btreeblks", &["agf 0", "write -d btreeblks 77"]),
    damage("agf rmapblocks", &["agf 0", "write -d rmapblocks 1"]),
    damage("agf refcntblocks", &["agf 0", "write -d refcntblocks 5"]),
    damage("agf uuid", &["agf 0", "write -d uuid 00112233-4455-6677-8899-aabbccddeeff"]),
    // Inode header
    damage("agi magic", &["agi 0", "write -d magicnum 0"]),
    damage("agi crc", &["agi 0", "write -c crc 0"]),
    damage("agi seqno", &["agi 0", "write -d seqno 9"]),
    damage("agi length", &["agi 0", "write -d length 100"]),
    damage("agi count", &["agi 0", "write -d count 64"]),
    damage("agi freecount", &["agi 0", "write -d freecount 1"]),
    damage("agi root", &["agi 0", "write -d root 7"]),
    damage("agi level", &["agi 0", "write -d level 2"]),
    damage("agi free_root", &["agi 0", "write -d free_root 7"]),
    damage("agi unlinked", &["agi 0", "write -d unlinked[3] 131"]),
    damage("agi ino_blocks", &["agi 0", "write -d ino_blocks 9"]),
    // Free list
    damage("agfl magic", &["agfl 0", "write -d magicnum 0"]),
    damage("agfl crc", &["agfl 0", "write -c crc 0"]),
    damage("agfl entry out of range", &["agfl 0", "write -d bno[8] 0xfffff0"]),
    // Free space by block
    damage("bnobt magic", &["agf 0", "addr bnoroot", "write -d magic 0"]),
    damage("bnobt crc", &["agf 0", "addr bnoroot", "write -c crc 0"]),
    damage("bnobt level", &["agf 0", "addr bnoroot", "write -d level 1"]),
    damage("bnobt numrecs", &["agf 0", "addr bnoroot", "write -d numrecs 1000"]),
    damage("bnobt fewer records", &["agf 0", "addr bnoroot", "write -d numrecs 3"]),
    damage("bnobt owner", &["agf 0", "addr bnoroot", "write -d owner 2"]),
    damage("bnobt start", &["agf 0", "addr bnoroot", "write -d recs[2].startblock 1"]),
    damage("bnobt length", &["agf 0", "addr bnoroot", "write -d recs[2].blockcount 60000"]),
    damage("bnobt order", &["agf 0", "addr bnoroot", "write -d recs[2].startblock 9000"]),
    // Free space by length
    damage("cntbt magic", &["agf 0", "addr cntroot", "write -d magic 0"]),
    damage("cntbt crc", &["agf 0", "addr cntroot", "write -c crc 0"]),
    damage("cntbt numrecs", &["agf 0", "addr cntroot", "write -d numrecs 1"]),
    damage("cntbt length", &["agf 0", "addr cntroot", "write -d recs[1].blockcount 5000"]),
    damage("cntbt start", &["agf 0", "addr cntroot", "write -d recs[1].startblock 1"]),
    // Reverse mappings
    damage("rmapbt root level", &["agf 0", "addr rmaproot", "write -d level 0"]),
    damage("rmapbt root high key", &["agf 0", "addr rmaproot", "write -d keys[1].startblock_hi 1"]),
    damage("rmapbt root pointer", &["agf 0", "addr rmaproot", "write -d ptrs[1] 3"]),
    damage("rmapbt leaf crc", &["agf 0", "addr rmaproot", "addr ptrs[1]", "write -c crc 0"]),
    damage(
        "rmapbt leaf owner",
        &["agf 0", "addr rmaproot", "addr ptrs[1]", "write -d recs[4].owner 12345"],
    ),
    damage(
        "rmapbt leaf length",
        &["agf 0", "addr rmaproot", "addr ptrs[1]", "write -d recs[4].blockcount 1000"],
    ),
    damage(
        "rmapbt leaf offset",
        &["agf 0", "addr rmaproot", "addr ptrs[1]", "write -d recs[8].offset 77"],
    ),
    damage(
        "rmapbt leaf start",
        &["agf 0", "addr rmaproot", "addr ptrs[1]", "write -d recs[4].startblock 16000"],
    ),
    // Reference counts
    damage("refcountbt magic", &["agf 0", "addr refcntroot", "write -d magic 0"]),
    damage("refcountbt crc", &["agf 0", "addr refcntroot", "write -c crc 0"]),
    damage("refcountbt count", &["agf 0", "addr refcntroot", "write -d recs[1].refcount 9"]),
    damage("refcountbt length", &["agf 0", "addr refcntroot", "write -d recs[1].blockcount 3"]),
    damage("refcountbt numrecs", &["agf 0", "addr refcntroot", "write -d numrecs 1"]),
    damage("refcountbt flag", &["agf 0", "addr refcntroot", "write -d recs[1].cowflag 1"]),
    // Inode trees
    damage("inobt magic", &["agi 0", "addr root", "write -d magic 0"]),
    damage("inobt crc", &["agi 0", "addr root", "write -c crc 0"]),
    damage("inobt numrecs", &["agi 0", "addr root", "write -d numrecs 2"]),
    damage("inobt startino", &["agi 0", "addr root", "write -d recs[2].startino 200"]),
    damage("inobt free mask", &["agi 0", "addr root", "write -d recs[1].free 0xff"]),
    damage("inobt freecount", &["agi 0", "addr root", "write -d recs[1].freecount 50"]),
    damage("inobt holemask", &["agi 0", "addr root", "write -d recs[1].holemask 0xff"]),
    damage("finobt magic", &["agi 0", "addr free_root", "write -d magic 0"]),
    damage("finobt crc", &["agi 0", "addr free_root", "write -c crc 0"]),
    damage("finobt numrecs", &["agi 0", "addr free_root", "write -d numrecs 1"]),
    damage("finobt startino", &["agi 0", "addr free_root", "write -d recs[1].startino 128"]),
    damage("finobt free mask", &["agi 0", "addr free_root", "write -d recs[1].free 0xff"]),
    damage("finobt freecount", &["agi 0", "addr free_root", "write -d recs[1].freecount 77"]),
    // Inode
    damage("inode magic", &["path /files/extents", "write -d core.magic 0"]),
    damage("inode crc", &["path /files/extents", "write -c v3.crc 0"]),
    damage("inode version", &["path /files/extents", "write -d core.version 9"]),
    damage("inode kind", &["path /files/extents", "write -d core.mode 0"]),
    damage("inode unknown kind", &["path /files/extents", "write -d core.mode 0170644"]),
    damage("inode format", &["path /files/extents", "write -d core.format 3"]),
    damage("inode attribute format", &["path /files/extents", "write -d core.aformat 3"]),
    damage("inode forkoff", &["path /files/extents", "write -d core.forkoff 3"]),
    damage("inode nblocks", &["path /files/extents", "write -d core.nblocks 1"]),
    damage("inode nextents", &["path /files/extents", "write -d core.nextents 2"]),
    damage("inode naextents", &["path /files/extents", "write -d core.naextents 2"]),
    damage("inode nlink", &["path /files/extents", "write -d core.nlinkv2 5"]),
    damage("inode nlink pinned", &["path /files/extents", "write -d core.nlinkv2 0xffffffff"]),
    damage("inode number", &["path /files/extents", "write -d v3.inumber 99"]),
    damage(
        "inode uuid",
        &["path /files/extents", "write -d v3.uuid 00112233-4455-6677-8899-aabbccddeeff"],
    ),
    damage("inode next_unlinked", &["path /files/extents", "write -d next_unlinked 5"]),
    damage("inode on no list", &["path /files/extents", "write -d next_unlinked 131"]),
    damage("inode extent start", &["path /files/extents", "write -d u3.bmx[0].startblock 1"]),
    damage("inode extent length", &["path /files/extents", "write -d u3.bmx[0].blockcount 500"]),
    damage("inode extent order", &["path /files/extents", "write -d u3.bmx[1].startoff 0"]),
    damage("inode extent shared", &["path /files/extents", "write -d u3.bmx[1].startblock 24"]),
    damage("inode real-time flag", &["path /files/extents", "write -d core.realtime 1"]),
    damage("inode copy-on-write hint", &["path /files/extents", "write -d v3.cowextsize 5"]),
    damage("inode extent size hint", &["path /files/extents", "write -d core.extsz 1"]),
    damage("inode of a link flags2", &["path /links/short", "write -d v3.flags2 0x19"]),
    // Shared file
    damage("inode shared reflink flag", &["path /files/shared", "write -d v3.reflink 0"]),
    // Extent tree
    damage("bmbt root level", &["path /files/btree", "write -d u3.bmbt.level 5"]),
    damage("bmbt root numrecs", &["path /files/btree", "write -d u3.bmbt.numrecs 1"]),
    damage("bmbt root key", &["path /files/btree", "write -d u3.bmbt.keys[2] 1"]),
    damage("bmbt root pointer", &["path /files/btree", "write -d u3.bmbt.ptrs[2] 1"]),
    damage("bmbt leaf magic", &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d magic 0"]),
    damage("bmbt leaf crc", &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -c crc 0"]),
    damage("bmbt leaf owner", &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d owner 9"]),
    damage(
        "bmbt leaf numrecs",
        &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d numrecs 5"],
    ),
    damage(
        "bmbt leaf rightsib",
        &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d rightsib 3"],
    ),
    damage(
        "bmbt leaf offset",
        &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d recs[2].startoff 1000"],
    ),
    damage(
        "bmbt leaf start",
        &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d recs[2].startblock 1"],
    ),
    damage(
        "bmbt leaf length",
        &["path /files/btree", "addr u3.bmbt.ptrs[1]", "write -d recs[2].blockcount 2000000"],
    ),
    // Directories
    damage("dir short count", &["path /directories/short", "write -d u3.sfdir3.hdr.count 9"]),
    damage("dir short parent", &["path /directories/short", "write -d u3.sfdir3.hdr.parent.i4 77"]),
    damage(
        "dir short entry inode",
        &["path /directories/short", "write -d u3.sfdir3.list[0].inumber.i4 9999999"],
    ),
    damage(
        "dir short name length",
        &["path /directories/short", "write -d u3.sfdir3.list[0].namelen 200"],
    ),
    damage(
        "dir short offset",
        &["path /directories/short", "write -d u3.sfdir3.list[1].offset 0x10"],
    ),
    damage(
        "dir short file type",
        &["path /directories/short", "write -d u3.sfdir3.list[0].filetype 3"],
    ),
    damage("dir short size", &["path /directories/short", "write -d core.size 60"]),
    damage(
        "dir block magic",
        &["path /directories/block", "dblock 0", "write -d bhdr.hdr.magic 0"],
    ),
    damage("dir block crc", &["path /directories/block", "dblock 0", "write -c bhdr.hdr.crc 0"]),
    damage(
        "dir block owner",
        &["path /directories/block", "dblock 0", "write -d bhdr.hdr.owner 7"],
    ),
    damage(
        "dir block bestfree",
        &["path /directories/block", "dblock 0", "write -d bhdr.bestfree[0].length 16"],
    ),
    damage(
        "dir block entry inode",
        &["path /directories/block", "dblock 0", "write -d bu[5].inumber 9999999"],
    ),
    damage(
        "dir block entry of another",
        &["path /directories/block", "dblock 0", "write -d bu[5].inumber 131"],
    ),
    damage(
        "dir block name length",
        &["path /directories/block", "dblock 0", "write -d bu[5].namelen 0"],
    ),
    damage(
        "dir block name",
        &[
            "path /directories/block",
            "dblock 0",
            "write -d bu[5].name \"entry-000001-with-a-longer-name\"",
        ],
    ),
    damage("dir block tag", &["path /directories/block", "dblock 0", "write -d bu[5].tag 0"]),
    damage(
        "dir block file type",
        &["path /directories/block", "dblock 0", "write -d bu[5].filetype 2"],
    ),
    damage("dir block dot", &["path /directories/block", "dblock 0", "write -d bu[0].inumber 131"]),
    damage(
        "dir block dot dot",
        &["path /directories/block", "dblock 0", "write -d bu[1].inumber 278273"],
    ),
    damage(
        "dir block leaf count",
        &["path /directories/block", "dblock 0", "write -d btail.count 3"],
    ),
    damage(
        "dir block leaf stale",
        &["path /directories/block", "dblock 0", "write -d btail.stale 9"],
    ),
    damage(
        "dir block hash",
        &["path /directories/block", "dblock 0", "write -d bleaf[9].hashval 1"],
    ),
    damage(
        "dir block address",
        &["path /directories/block", "dblock 0", "write -d bleaf[9].address 0x3"],
    ),
    damage("dir data magic", &["path /directories/leaf", "dblock 1", "write -d dhdr.hdr.magic 0"]),
    damage("dir data crc", &["path /directories/leaf", "dblock 1", "write -c dhdr.hdr.crc 0"]),
    damage(
        "dir data block number",
        &["path /directories/leaf", "dblock 1", "write -d dhdr.hdr.bno 8"],
    ),
    damage(
        "dir data entry inode",
        &["path /directories/leaf", "dblock 1", "write -d du[3].inumber 0"],
    ),
    damage(
        "dir leaf magic",
        &["path /directories/leaf", "dblock 8388608", "write -d lhdr.info.hdr.magic 0"],
    ),
    damage(
        "dir leaf crc",
        &["path /directories/leaf", "dblock 8388608", "write -c lhdr.info.crc 0"],
    ),
    damage(
        "dir leaf count",
        &["path /directories/leaf", "dblock 8388608", "write -d lhdr.count 300"],
    ),
    damage(
        "dir leaf stale",
        &["path /directories/leaf", "dblock 8388608", "write -d lhdr.stale 3"],
    ),
    damage(
        "dir leaf best",
        &["path /directories/leaf", "dblock 8388608", "write -d lbests[3] 0x10"],
    ),
    damage(
        "dir leaf hash",
        &["path /directories/leaf", "dblock 8388608", "write -d lents[9].hashval 1"],
    ),
    damage(
        "dir leaf address",
        &["path /directories/leaf", "dblock 8388608", "write -d lents[9].address 0x7"],
    ),
    damage(
        "dir node magic",
        &["path /directories/node", "dblock 8388608", "write -d nhdr.info.hdr.magic 0"],
    ),
    damage(
        "dir node crc",
        &["path /directories/node", "dblock 8388608", "write -c nhdr.info.crc 0"],
    ),
    damage(
        "dir node level",
        &["path /directories/node", "dblock 8388608", "write -d nhdr.level 3"],
    ),
    damage(
        "dir node count",
        &["path /directories/node", "dblock 8388608", "write -d nhdr.count 2"],
    ),
    damage(
        "dir node hash",
        &["path /directories/node", "dblock 8388608", "write -d nbtree[3].hashval 1"],
    ),
    damage(
        "dir node pointer",
        &["path /directories/node", "dblock 8388608", "write -d nbtree[3].before 8388610"],
    ),
    damage(
        "dir node leaf forw",
        &["path /directories/node", "dblock 8388609", "write -d lhdr.info.hdr.forw 0"],
    ),
    damage(
        "dir node leaf count",
        &["path /directories/node", "dblock 8388609", "write -d lhdr.count 9"],
    ),
    damage(
        "dir node leaf hash",
        &["path /directories/node", "dblock 8388609", "write -d lents[9].hashval 1"],
    ),
    damage(
        "dir node leaf address",
        &["path /directories/node", "dblock 8388609", "write -d lents[9].address 0x7"],
    ),
    damage(
        "dir free magic",
        &["path /directories/node", "dblock 16777216", "write -d fhdr.hdr.magic 0"],
    ),
    damage(
        "dir free crc",
        &["path /directories/node", "dblock 16777216", "write -c fhdr.hdr.crc 0"],
    ),
    damage(
        "dir free firstdb",
        &["path /directories/node", "dblock 16777216", "write -d fhdr.firstdb 5"],
    ),
    damage(
        "dir free nvalid",
        &["path /directories/node", "dblock 16777216", "write -d fhdr.nvalid 2"],
    ),
    damage(
        "dir free nused",
        &["path /directories/node", "dblock 16777216", "write -d fhdr.nused 1"],
    ),
    damage(
        "dir free best",
        &["path /directories/node", "dblock 16777216", "write -d fbests[35] 0x10"],
    ),
    // Attributes
    damage(
        "attr short total size",
        &["path /attributes/short", "write -d a.sfattr.hdr.totsize 200"],
    ),
    damage("attr short count", &["path /attributes/short", "write -d a.sfattr.hdr.count 9"]),
    damage(
        "attr short name length",
        &["path /attributes/short", "write -d a.sfattr.list[1].namelen 0"],
    ),
    damage(
        "attr short parent inode",
        &["path /attributes/short", "write -d a.sfattr.list[0].parent_dir.inumber 132"],
    ),
    damage(
        "attr short parent name",
        &["path /attributes/short", "write -d a.sfattr.list[0].name \"shirt\""],
    ),
    damage(
        "attr leaf magic",
        &["path /attributes/leaf", "ablock 0", "write -d hdr.info.hdr.magic 0"],
    ),
    damage("attr leaf crc", &["path /attributes/leaf", "ablock 0", "write -c hdr.info.crc 0"]),
    damage("attr leaf owner", &["path /attributes/leaf", "ablock 0", "write -d hdr.info.owner 7"]),
    damage("attr leaf count", &["path /attributes/leaf", "ablock 0", "write -d hdr.count 3"]),
    damage(
        "attr leaf usedbytes",
        &["path /attributes/leaf", "ablock 0", "write -d hdr.usedbytes 8"],
    ),
    damage(
        "attr leaf firstused",
        &["path /attributes/leaf", "ablock 0", "write -d hdr.firstused 16"],
    ),
    damage(
        "attr leaf freemap",
        &["path /attributes/leaf", "ablock 0", "write -d hdr.freemap[0].size 4000"],
    ),
    damage(
        "attr leaf hash",
        &["path /attributes/leaf", "ablock 0", "write -d entries[3].hashval 1"],
    ),
    damage(
        "attr leaf name index",
        &["path /attributes/leaf", "ablock 0", "write -d entries[3].nameidx 8"],
    ),
    damage(
        "attr leaf incomplete",
        &["path /attributes/leaf", "ablock 0", "write -d entries[3].incomplete 1"],
    ),
    damage(
        "attr leaf name length",
        &["path /attributes/leaf", "ablock 0", "write -d nvlist[3].namelen 0"],
    ),
    damage(
        "attr leaf parent generation",
        &["path /attributes/leaf", "ablock 0", "write -d nvlist[0].parent_dir.gen 1"],
    ),
    damage(
        "attr node magic",
        &["path /attributes/node", "ablock 0", "write -d hdr.info.hdr.magic 0"],
    ),
    damage("attr node crc", &["path /attributes/node", "ablock 0", "write -c hdr.info.crc 0"]),
    damage("attr node level", &["path /attributes/node", "ablock 0", "write -d hdr.level 4"]),
    damage("attr node count", &["path /attributes/node", "ablock 0", "write -d hdr.count 2"]),
    damage("attr node hash", &["path /attributes/node", "ablock 0", "write -d btree[3].hashval 1"]),
    damage(
        "attr node pointer",
        &["path /attributes/node", "ablock 0", "write -d btree[3].before 99"],
    ),
    damage(
        "attr remote block",
        &["path /attributes/remote", "ablock 0", "write -d nvlist[1].valueblk 0x33"],
    ),
    damage(
        "attr remote length",
        &["path /attributes/remote", "ablock 0", "write -d nvlist[1].valuelen 70000"],
    ),
    damage(
        "attr remote value magic",
        &["path /attributes/remote", "ablock 1", "write -d hdr.magic 0"],
    ),
    damage("attr remote value crc", &["path /attributes/remote", "ablock 1", "write -c hdr.crc 0"]),
    // Symbolic link
    damage("symlink magic", &["path /links/remote", "dblock 0", "write -d magic 0"]),
    damage("symlink crc", &["path /links/remote", "dblock 0", "write -c crc 0"]),
    damage("symlink bytes", &["path /links/remote", "dblock 0", "write -d bytes 5"]),
    damage("symlink offset", &["path /links/remote", "dblock 0", "write -d offset 9"]),
    damage("symlink owner", &["path /links/remote", "dblock 0", "write -d owner 9"]),
    damage("symlink block number", &["path /links/remote", "dblock 0", "write -d bno 9"]),
    damage("symlink inode size", &["path /links/remote", "write -d core.size 2000"]),
    damage("symlink inode extent", &["path /links/remote", "write -d u3.bmx[0].blockcount 3"]),
    // Whole blocks
    damage("trashed bnobt", &["agf 0", "addr bnoroot", "blocktrash -z -3 -n 1 -x 64 -y 256 -s 7"]),
    damage("trashed inobt", &["agi 0", "addr root", "blocktrash -z -3 -n 1 -x 64 -y 256 -s 7"]),
    damage(
        "trashed rmapbt leaf",
        &["agf 0", "addr rmaproot", "addr ptrs[1]", "blocktrash -z -3 -n 1 -x 64 -y 256 -s 7"],
    ),
    damage(
        "trashed bmbt leaf",
        &["path /files/btree", "addr u3.bmbt.ptrs[1]", "blocktrash -z -3 -n 1 -x 64 -y 256 -s 7"],
    ),
    damage(
        "trashed dir leaf",
        &["path /directories/leaf", "dblock 8388608", "blocktrash -z -3 -n 1 -x 64 -y 256 -s 7"],
    ),
    damage(
        "trashed attr leaf",
        &["path /attributes/leaf", "ablock 0", "blocktrash -z -3 -n 1 -x 64 -y 256 -s 7"],
    ),
];
