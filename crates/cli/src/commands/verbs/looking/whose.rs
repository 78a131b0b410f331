//! `undercroft owner`.

use crate::commands::verbs::Verb;
use crate::failure::Usage;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::{Result, anyhow};
use serde::Serialize;
use std::io::Write;
use std::str::FromStr;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{AllocRecord, RmapFlags, RmapOwner, RmapRecord};
use undercroft_xfs::frag::{BlockHolder, block_holders};
use undercroft_xfs::units::{AgBlock, AgInode, AgNumber, FsBlock, InodeNumber};

/// Show what lies in a block: files with their paths, inodes, trees, the journal, free space.
///
/// A sector that a disk cannot read, or a block that a checker names, becomes a file. Without reverse
/// mappings all inodes are read; without parent pointers all directories, too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The block: GROUP/BLOCK, or its number as xfs_db and xfs_repair write it.
    #[arg(value_name = "BLOCK", required_unless_present_any = ["sector", "byte"])]
    block: Option<BlockName>,

    /// The sector of 512 bytes, from the start of the volume.
    #[arg(long, value_name = "N", conflicts_with_all = ["block", "byte"])]
    sector: Option<u64>,

    /// The byte, from the start of the volume.
    #[arg(long, value_name = "N", conflicts_with = "block")]
    byte: Option<u64>,

    /// Print one JSON object for each that has the block.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft owner root.img 0/12
  undercroft owner --sector 2048 root.img";

/// A block as people name it.
#[derive(Clone, Copy, Debug)]
enum BlockName {
    InGroup(u32, u32),
    Number(u64),
}

impl FromStr for BlockName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "write GROUP/BLOCK, such as 2/1040, or a number";
        match text.split_once('/') {
            Some((group, block)) => {
                let number = |text: &str| text.parse().map_err(|_| wrong);
                Ok(Self::InGroup(number(group)?, number(block)?))
            }
            None => text.parse().map(Self::Number).map_err(|_| wrong),
        }
    }
}

/// What has a block, as JSON.
#[derive(Serialize)]
struct Holder {
    group: u32,
    block: u32,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    /// Byte of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unwritten: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<text::Name>,
    /// Of an inode chunk, the first inode in the block and their number; of free space, the first block
    /// of the extent and its length.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(u64, u64)>,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let (ag, block) = self.place(session.volume)?;
        let found = block_holders(session.volume, ag, block)?;
        for holder in found {
            let holder = describe(session, ag, block, &holder)?;
            if self.json {
                report::json_line(out, &holder)?;
            } else {
                print(&holder, out)?;
            }
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    fn place(&self, volume: &Volume) -> Result<(AgNumber, AgBlock)> {
        let geometry = volume.geometry();
        if let Some(BlockName::InGroup(group, block)) = self.block {
            return Ok((AgNumber(group), AgBlock(block)));
        }
        if let Some(BlockName::Number(number)) = self.block {
            return Ok(geometry.split_block(FsBlock(number)));
        }
        let of_sector = self.sector.map(|sector| sector.checked_mul(512));
        let byte = of_sector.unwrap_or(self.byte).ok_or_else(|| Usage("that is too far".into()))?;
        let block = byte >> geometry.block_log;
        if block >= geometry.blocks {
            let end = geometry.blocks << geometry.block_log;
            return Err(anyhow!("byte {byte} is behind the end of the volume, which has {end}"));
        }
        let group_blocks = u64::from(geometry.ag_blocks);
        // Groups and their blocks are counted with 32 bits.
        Ok((AgNumber((block / group_blocks) as u32), AgBlock((block % group_blocks) as u32)))
    }
}

fn describe(
    session: &Session<'_>,
    ag: AgNumber,
    block: AgBlock,
    holder: &BlockHolder,
) -> Result<Holder> {
    let geometry = session.volume.geometry();
    let plain = |kind| Holder {
        group: ag.0,
        block: block.0,
        kind,
        inode: None,
        offset: None,
        unwritten: false,
        paths: Vec::new(),
        range: None,
    };
    Ok(match holder {
        BlockHolder::Free(AllocRecord { start, len }) => {
            Holder { range: Some((start.0.into(), (*len).into())), ..plain("free") }
        }
        BlockHolder::Tree => plain("tree or free list of the group"),
        BlockHolder::Used(record) => match record.owner.as_inode() {
            Some(number) => of_file(session, record, number, plain)?,
            None if record.owner == RmapOwner::INODES => {
                let per_block = geometry.inodes_per_block();
                let first = geometry.inode_number(ag, AgInode(block.0 * per_block));
                Holder { range: Some((first.0, per_block.into())), ..plain("inodes") }
            }
            None => plain(match record.owner {
                RmapOwner::FILE_SYSTEM => "headers of the group",
                RmapOwner::LOG => "journal",
                RmapOwner::GROUP => "trees of space, or free list",
                RmapOwner::INODE_TREES => "trees of inodes",
                RmapOwner::REFCOUNT_TREE => "tree of reference counts",
                RmapOwner::COW => "set aside for copies of shared blocks",
                _ => "unknown",
            }),
        },
    })
}

fn of_file(
    session: &Session<'_>,
    record: &RmapRecord,
    number: InodeNumber,
    plain: impl Fn(&'static str) -> Holder,
) -> Result<Holder> {
    let is_tree = record.flags.contains(RmapFlags::BMBT_BLOCK);
    let kind = match (record.flags.contains(RmapFlags::ATTR_FORK), is_tree) {
        (false, false) => "data",
        (true, false) => "attributes",
        (false, true) => "map of the data",
        (true, true) => "map of the attributes",
    };
    let offset = (!is_tree).then(|| record.offset.0 << session.volume.geometry().block_log);
    let paths = session.paths_of(number)?;
    Ok(Holder {
        inode: Some(number.0),
        offset,
        unwritten: record.flags.contains(RmapFlags::UNWRITTEN),
        paths: paths.iter().map(|path| text::Name::new(path)).collect(),
        ..plain(kind)
    })
}

fn print(holder: &Holder, out: &mut dyn Write) -> Result<()> {
    let Holder { group, block, kind, inode, offset, unwritten, paths, range } = holder;
    write!(out, "block {group}/{block}: {kind}")?;
    match (range, *kind) {
        (Some((start, len)), "free") => write!(out, ", in an extent of {len} blocks from {start}")?,
        (Some((first, count)), _) => write!(out, " {first} to {}", first + count - 1)?,
        (None, _) => {}
    }
    if let Some(inode) = inode {
        write!(out, " of inode {inode}")?;
    }
    if let Some(offset) = offset {
        write!(out, ", byte {offset}")?;
    }
    if *unwritten {
        write!(out, ", never written")?;
    }
    if inode.is_some() && paths.is_empty() {
        write!(out, ", which has no name")?;
    }
    for path in paths {
        write!(out, "\n  {path}")?;
    }
    Ok(writeln!(out)?)
}
