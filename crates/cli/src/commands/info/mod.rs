//! `undercroft info`.

#[cfg(feature = "network")]
mod exports;

use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_xfs::Volume;
use undercroft_xfs::format::{Features, Features2, Incompat, VersionBits};
use undercroft_xfs::recovery::LogState;
use uuid::Uuid;

/// Show geometry, features, label, UUID and usage of a volume.
///
/// Of a network disk whose URI names no export (nbd://host), the exports of the server are listed,
/// unless the unnamed one is all that it has.
///
/// For example: undercroft info root.img
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Facts that are known without walking the volume.
#[derive(Serialize)]
struct Info {
    version: u8,
    label: text::Name,
    uuid: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta_uuid: Option<Uuid>,
    block_size: usize,
    blocks: u64,
    sector_size: usize,
    inode_size: usize,
    dir_block_size: usize,
    agcount: u32,
    agsize_blocks: u32,
    inode_alignment_blocks: u32,
    stripe_unit_blocks: u32,
    stripe_width_blocks: u32,
    inode_max_percent: u8,
    root_inode: u64,
    features: Vec<Feature>,
    unknown_ro_compat: u32,
    log_blocks: u32,
    log_stripe_unit: u32,
    log: &'static str,
    rt_blocks: u64,
    free_blocks: u64,
    inodes: u64,
    free_inodes: u64,
    needs_repair: bool,
}

/// A feature by its name in mkfs.xfs.
#[derive(Serialize)]
struct Feature {
    name: &'static str,
    on: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    #[cfg(feature = "network")]
    if let Some(uri) = args.image.uri()
        && exports::list(uri, args.json, out)?
    {
        return Ok(Outcome::Done);
    }
    let volume = args.image.open()?;
    let info = info(&volume)?;
    if args.json {
        report::json_line(out, &info)?;
    } else {
        print(&info, out)?;
    }
    Ok(Outcome::Done)
}

fn info(volume: &Volume) -> Result<Info> {
    let (geometry, superblock) = (volume.geometry(), volume.superblock());
    let log = match volume.log_state()? {
        LogState::Clean => "clean",
        LogState::Dirty => "dirty",
        LogState::External => "external",
    };
    Ok(Info {
        version: if geometry.features.crc { 5 } else { 4 },
        label: text::Name::new(superblock.label_bytes()),
        uuid: superblock.uuid,
        meta_uuid: (geometry.meta_uuid != superblock.uuid).then_some(geometry.meta_uuid),
        block_size: geometry.block_size(),
        blocks: geometry.blocks,
        sector_size: geometry.sector_size(),
        inode_size: geometry.inode_size(),
        dir_block_size: geometry.dir_block_size(),
        agcount: geometry.ag_count,
        agsize_blocks: geometry.ag_blocks,
        inode_alignment_blocks: geometry.inode_alignment,
        stripe_unit_blocks: geometry.stripe_unit,
        stripe_width_blocks: geometry.stripe_width,
        inode_max_percent: geometry.inode_max_percent,
        root_inode: geometry.root_inode.0,
        features: features(&geometry.features),
        unknown_ro_compat: geometry.features.unknown_ro_compat,
        log_blocks: geometry.log_blocks,
        log_stripe_unit: geometry.log_stripe_unit,
        log,
        rt_blocks: superblock.rt_blocks,
        free_blocks: superblock.free_blocks,
        inodes: superblock.inodes,
        free_inodes: superblock.free_inodes,
        needs_repair: superblock.needs_repair(),
    })
}

fn features(features: &Features) -> Vec<Feature> {
    let incompat = |flag| features.incompat.contains(flag);
    [
        ("crc", features.crc),
        ("ftype", features.ftype()),
        ("finobt", features.finobt()),
        ("sparse", features.sparse_inodes()),
        ("rmapbt", features.rmapbt()),
        ("reflink", features.reflink()),
        ("bigtime", features.bigtime()),
        ("inobtcount", features.inobtcnt()),
        ("nrext64", features.nrext64()),
        ("exchange", incompat(Incompat::EXCHRANGE)),
        ("parent", features.parent_pointers()),
        ("metadir", features.metadir()),
        ("zoned", features.zoned()),
        ("version=ci", features.ascii_ci()),
        ("attr2", features.features2.contains(Features2::ATTR2)),
        ("projid32bit", features.features2.contains(Features2::PROJID32)),
        ("lazy-count", features.features2.contains(Features2::LAZYSBCOUNT)),
        ("quota", features.version.contains(VersionBits::QUOTA)),
    ]
    .map(|(name, on)| Feature { name, on })
    .into()
}

fn print(info: &Info, out: &mut dyn Write) -> Result<()> {
    let block = info.block_size as u64;
    let used = info.blocks.saturating_sub(info.free_blocks);
    let size = |blocks: u64| text::bytes(blocks.saturating_mul(block));
    writeln!(out, "XFS version {}", info.version)?;
    writeln!(out, "label       {}", info.label)?;
    writeln!(out, "UUID        {}", info.uuid)?;
    if let Some(uuid) = info.meta_uuid {
        writeln!(out, "            {uuid} in metadata")?;
    }
    writeln!(out, "size        {} ({} blocks of {block} bytes)", size(info.blocks), info.blocks)?;
    writeln!(out, "used        {}, free {}", size(used), size(info.free_blocks))?;
    let used = info.inodes.saturating_sub(info.free_inodes);
    writeln!(out, "inodes      {used} used, {} free in chunks", info.free_inodes)?;
    writeln!(out, "groups      {} of {} blocks", info.agcount, info.agsize_blocks)?;
    writeln!(
        out,
        "sizes       sector {}, inode {}, directory block {}",
        info.sector_size, info.inode_size, info.dir_block_size
    )?;
    if info.stripe_unit_blocks > 0 {
        let (unit, width) = (info.stripe_unit_blocks, info.stripe_width_blocks);
        writeln!(out, "stripe      unit {unit} blocks, width {width} blocks")?;
    }
    writeln!(out, "journal     {}, {}", size(info.log_blocks.into()), info.log)?;
    if info.rt_blocks > 0 {
        writeln!(out, "realtime    {} on another device", size(info.rt_blocks))?;
    }
    let features: Vec<_> =
        info.features.iter().map(|one| format!("{}={}", one.name, u8::from(one.on))).collect();
    writeln!(out, "features    {}", features.join(" "))?;
    if info.unknown_ro_compat != 0 {
        writeln!(out, "            unknown read-only features {:#x}", info.unknown_ro_compat)?;
    }
    if info.needs_repair {
        writeln!(out, "state       marked as in need of repair")?;
    }
    Ok(())
}
