//! Positions in the journal that metadata carries: none may be behind its end.

use undercroft_block::Sector;
use undercroft_xfs::format::{BufferKind, FileType, Header, bytes};
use undercroft_xfs::recovery::{journal_position, renew_journal};
use undercroft_xfs::units::{AgNumber, FsBlock, InodeNumber, Lsn};

use crate::action::Place;
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::inode::sound::Sound;
use crate::journal::next_cycle;
use crate::pass;
use crate::subject::Subject;

/// Where an inode has its position.
const LSN: usize = 112;

/// Pieces of metadata whose position is taken away. If there are more, it is the journal that is wrong.
const MOST: usize = 1024;

/// A piece of metadata that carries a position behind the end of the journal.
enum Piece {
    Inode(InodeNumber),
    Block(Sector, usize, BufferKind),
}

impl Piece {
    /// In the order of the device, more or less.
    const fn order(&self) -> (bool, u64) {
        match self {
            Self::Inode(number) => (false, number.0),
            Self::Block(sector, ..) => (true, sector.0),
        }
    }
}

/// Takes positions away that cannot be, or, where most cannot be, makes the journal begin behind them.
pub(crate) fn settle(subject: &mut Subject, chunks: &Chunks) -> Result<(), RepairError> {
    let end = journal_position(&subject.device(), &subject.superblock)?;
    let (mut pieces, mut latest) = (Vec::new(), Lsn(0));
    let mut found = |piece: Piece, lsn: Lsn| {
        if lsn > end && !lsn.is_null() {
            latest = latest.max(lsn);
            pieces.push(piece);
        }
    };
    for ag in (0..subject.geometry.ag_count).map(AgNumber) {
        headers(subject, ag, &mut found)?;
    }
    let parts = pass::over(subject, chunks, Vec::new, |pieces, inode| {
        let mut found = |piece: Piece, lsn: Lsn| {
            if lsn > end && !lsn.is_null() {
                pieces.push((piece, lsn));
            }
        };
        found(Piece::Inode(inode.number), Lsn(bytes::be64(inode.bytes, LSN)));
        match Sound::read(subject, inode.number, inode.bytes) {
            Some(sound) => blocks(subject, &sound, &mut found),
            None => Ok(()),
        }
    })?;
    let mut parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.sort_unstable_by_key(|(piece, _)| piece.order());
    parts.into_iter().for_each(|(piece, lsn)| found(piece, lsn));
    if pieces.len() > MOST {
        let cycle = next_cycle(latest.cycle());
        renew_journal(&subject.device(), &subject.superblock, cycle)?;
        subject.new_cycle = Some(cycle);
        let what =
            format!("the journal ends before what was written: it begins with cycle {cycle}");
        subject.note(Place::Volume, what);
        return Ok(());
    }
    for piece in pieces {
        take_away(subject, &piece)?;
    }
    Ok(())
}

fn headers(
    subject: &Subject,
    ag: AgNumber,
    found: &mut dyn FnMut(Piece, Lsn),
) -> Result<(), RepairError> {
    let kinds = [BufferKind::Superblock, BufferKind::Agf, BufferKind::Agi, BufferKind::Agfl];
    for (index, kind) in (0..).zip(kinds) {
        let sector = subject.geometry.header_sector(ag, index);
        let size = subject.geometry.sector_size();
        let bytes = subject.scratch.read(sector, size)?;
        let lsn = Header::of(kind).and_then(|header| header.lsn(&bytes)).unwrap_or_default();
        found(Piece::Block(sector, size, kind), lsn);
    }
    Ok(())
}

/// The blocks of an inode that have headers.
fn blocks(
    subject: &Subject,
    inode: &Sound,
    found: &mut dyn FnMut(Piece, Lsn),
) -> Result<(), RepairError> {
    let geometry = &subject.geometry;
    let is_directory = inode.core.file_type() == Some(FileType::Directory);
    let has_headers = is_directory || inode.core.file_type() == Some(FileType::Symlink);
    let data: &[_] = if has_headers { &inode.data.extents } else { &[] };
    let trees = inode.data.tree.iter().chain(&inode.attr.tree).copied();
    let in_data = data
        .iter()
        .flat_map(|extent| (extent.start.0..extent.start.0 + u64::from(extent.len)).map(FsBlock));
    let in_attr =
        inode.attr.extents.iter().flat_map(|extent| {
            (extent.start.0..extent.start.0 + u64::from(extent.len)).map(FsBlock)
        });
    for block in trees.chain(in_data).chain(in_attr) {
        let bytes = subject.blocks(block, 1)?;
        let Some(kind) = BufferKind::of_block(&bytes) else { continue };
        let Some(header) = Header::of(kind) else { continue };
        let sector = geometry.sector(block);
        let is_own =
            header.volume(&bytes) == geometry.meta_uuid && header.address(&bytes) == Some(sector);
        if let Some(lsn) = header.lsn(&bytes).filter(|_| is_own) {
            let len = if is_directory && !matches!(kind, BufferKind::Tree(_) | BufferKind::AttrLeaf)
            {
                geometry.dir_block_size()
            } else {
                geometry.block_size()
            };
            found(Piece::Block(sector, len, kind), lsn);
        }
    }
    Ok(())
}

fn take_away(subject: &mut Subject, piece: &Piece) -> Result<(), RepairError> {
    let what = "it carries a position that the journal never had: taken away";
    match piece {
        Piece::Inode(number) => {
            let mut inode = subject.read_inode(*number)?;
            bytes::put_be64(&mut inode, LSN, 0);
            subject.write_inode(*number, &mut inode)?;
            subject.note(Place::Inode(*number), what);
        }
        Piece::Block(sector, len, kind) => {
            let mut bytes = subject.scratch.read(*sector, *len)?;
            if let Some(header) = Header::of(*kind) {
                header.stamp(&mut bytes, Lsn(0), subject.geometry.block_size());
                subject.scratch.write(*sector, &bytes)?;
            }
            subject.note(Place::Volume, format!("the block at sector {sector}: {what}"));
        }
    }
    Ok(())
}
