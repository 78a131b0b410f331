//! Moving names (docs/algorithms/names.md#units).

use super::create::NewInode;
use super::locks::{self, Locked};
use super::make::with_room;
use super::unlink::{UnlinkPlan, affected, expect_empty, take_entry};
use super::whiteout::{self, Whiteout};
use super::{directory, lookup, lookup_in_use, path_text};
use crate::attr::parent::{self as parent_pointer, ParentPointer};
use crate::bmap::worst_case;
use crate::bmap::{ForkReader, ForkWriter};
use crate::dir::{self, Entry};
use crate::error::{Error, ErrorKind};
use crate::format::{FileType, InodeFlags, Timestamp};
use crate::inode::{ForkKind, InodeState};
use crate::inode_allocation;
use crate::log::Work;
use crate::trans::Transaction;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// The choice of a rename about a name that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// Takes its place: a file that of a file, a directory that of an empty directory. The inode it
    /// stood for loses a name, as by [`unlink`](super::unlink).
    Replace,
    /// Fails.
    NoReplace,
    /// Both names change places; both must be there.
    Exchange,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'n> {
    /// The directory.
    pub parent: InodeNumber,
    /// The name.
    pub name: &'n [u8],
}

/// Moves `from` to `to`, in the same directory or another. Two names of one file stay as they are.
///
/// # Errors
/// `from` does not exist; `to` stands in the way; a directory would come to lie below itself; no
/// space; a damaged structure; the device failed.
pub fn rename(
    volume: &Volume,
    from: Name<'_>,
    to: Name<'_>,
    mode: RenameMode,
    now: Timestamp,
) -> Result<(), Error> {
    try_rename(volume, from, to, mode, None, now)
}

/// As [`rename`], and in the same transaction a whiteout of this user and group (a character device
/// 0:0) takes the place of `from`. Two names of one file stay as they are, without a whiteout.
///
/// # Errors
/// As [`rename`]; names that change places leave no room for a whiteout.
pub fn rename_leaving_whiteout(
    volume: &Volume,
    from: Name<'_>,
    to: Name<'_>,
    mode: RenameMode,
    owner: (u32, u32),
    now: Timestamp,
) -> Result<(), Error> {
    if mode == RenameMode::Exchange {
        let what = "names that change places leave no room for a whiteout";
        return Err(Error::Invalid(what.into()));
    }
    let new = whiteout::new(owner, now);
    with_room(volume, || try_rename(volume, from, to, mode, Some(&new), now))
}

/// Does a rename, which leaves `left` behind, with what space is free now.
fn try_rename(
    volume: &Volume,
    from: Name<'_>,
    to: Name<'_>,
    mode: RenameMode,
    left: Option<&NewInode<'_>>,
    now: Timestamp,
) -> Result<(), Error> {
    dir::check_name(from.name)?;
    dir::check_name(to.name)?;
    // While this is held no directory changes its place, so findings about them stay true.
    let moves = (from.parent != to.parent).then(|| volume.lock_moves());
    let mut trans = volume.begin_for(Work::Rename)?;
    let Some((mut inodes, plan)) = Plan::make(volume, from, to, mode)? else {
        return Ok(());
    };
    plan.check(&inodes)?;
    let mut unlink_plan = plan.unlink_plan(&inodes)?;
    plan.reserve(&mut trans, &inodes)?;
    if left.is_some() {
        whiteout::reserve(&mut trans)?;
    }
    let mut groups = Vec::new();
    for number in plan.inodes() {
        groups.extend(affected(volume, inodes.read(number))?);
    }
    if let Some((target, unlink_plan)) = plan.target.zip(unlink_plan.as_ref()) {
        groups.extend(unlink_plan.groups(volume, inodes.read(target))?);
    }
    trans.lock_groups(groups)?;
    let left = match left {
        Some(new) => match Whiteout::find(&mut trans, inodes.read(from.parent), new)? {
            None => return Err(inode_allocation::no_room(trans)),
            found => found,
        },
        None => None,
    };
    trans.begin_changes();
    match plan.target {
        Some(target) if mode == RenameMode::Exchange => {
            plan.exchange(&mut trans, &mut inodes, target, now)?;
        }
        _ => plan.replace(&mut trans, &mut inodes, unlink_plan.as_mut(), left, now)?,
    }
    inodes.commit(trans)?;
    drop((inodes, moves));
    unlink_plan.map_or(Ok(()), |unlink_plan| unlink_plan.finish(volume))
}

/// A rename whose inodes are locked.
struct Plan<'a> {
    volume: &'a Volume,
    from: Name<'a>,
    to: Name<'a>,
    mode: RenameMode,
    /// What `from` stands for.
    source: InodeNumber,
    /// What `to` stands for, if anything.
    target: Option<InodeNumber>,
}

impl<'a> Plan<'a> {
    /// Looks up both names and locks their inodes; `None` if there is nothing to do.
    fn make(
        volume: &'a Volume,
        from: Name<'a>,
        to: Name<'a>,
        mode: RenameMode,
    ) -> Result<Option<(Locked, Self)>, Error> {
        let found = |inodes: Option<&Locked>| -> Result<_, Error> {
            let look = |at: Name<'_>| match inodes {
                Some(inodes) => lookup(volume, inodes.read(at.parent), at.name),
                None => lookup_in_use(volume, &volume.inode(at.parent)?.read(), at.name),
            };
            let source = look(from)?.ok_or_else(|| Error::NotFound(path_text(from.name)))?;
            Ok((source, look(to)?))
        };
        let (mut source, mut target) = found(None)?;
        loop {
            match target {
                Some(_) if mode == RenameMode::NoReplace => {
                    return Err(Error::Exists(path_text(to.name)));
                }
                None if mode == RenameMode::Exchange => {
                    return Err(Error::NotFound(path_text(to.name)));
                }
                Some(target) if target == source => return Ok(None),
                _ => {}
            }
            let plan = Self { volume, from, to, mode, source, target };
            plan.check_loops()?;
            let numbers: smallvec::SmallVec<[_; 4]> = plan.inodes().collect();
            let inodes = match Locked::new(volume, &numbers) {
                Err(Error::Stale { inode }) if inode == source || Some(inode) == target => {
                    // Another thread removed it between the look and the lock.
                    (source, target) = found(None)?;
                    continue;
                }
                locked => locked?,
            };
            let now = found(Some(&inodes))?;
            if now == (source, target) {
                return Ok(Some((inodes, plan)));
            }
            (source, target) = now;
        }
    }

    /// All inodes that take part.
    fn inodes(&self) -> impl Iterator<Item = InodeNumber> {
        [self.from.parent, self.to.parent, self.source].into_iter().chain(self.target)
    }

    /// Refuses to put a directory below itself. No inode is locked yet; moves are.
    fn check_loops(&self) -> Result<(), Error> {
        if self.from.parent == self.to.parent {
            // Only a damaged directory has an entry for itself or for a directory above it.
            let own = [Some(self.source), self.target].contains(&Some(self.from.parent));
            return if own { Err(below_itself(self.from)) } else { Ok(()) };
        }
        if is_within(self.volume, self.to.parent, self.source)? {
            return Err(below_itself(self.from));
        }
        if let Some(target) = self.target
            && is_within(self.volume, self.from.parent, target)?
        {
            return match self.mode {
                RenameMode::Exchange => Err(below_itself(self.to)),
                _ => Err(Error::NotEmpty(path_text(self.to.name))),
            };
        }
        Ok(())
    }

    /// Finds all else that speaks against it.
    fn check(&self, inodes: &Locked) -> Result<(), Error> {
        for parent in [self.from.parent, self.to.parent] {
            locks::expect_directory(inodes.read(parent))?;
            inodes.read(parent).expect_mutable(true)?;
        }
        let source = inodes.read(self.source);
        locks::expect_linked(source)?;
        source.expect_mutable(true)?;
        expect_same_project(inodes.read(self.to.parent), source)?;
        let Some(target) = self.target.map(|target| inodes.read(target)) else {
            return Ok(());
        };
        locks::expect_linked(target)?;
        target.expect_mutable(true)?;
        if self.mode == RenameMode::Exchange {
            return expect_same_project(inodes.read(self.from.parent), target);
        }
        let wrong = |what, kind| {
            let path = path_text(self.to.name);
            Err(Error::WrongKind { path, what, kind })
        };
        match (is_directory(source), is_directory(target)) {
            (true, true) => expect_empty(self.volume, target, self.to.name),
            (true, false) => {
                wrong("is no directory, so none can take its place", ErrorKind::NotDirectory)
            }
            (false, true) => {
                wrong("is a directory, which no file can take the place of", ErrorKind::IsDirectory)
            }
            (false, false) => Ok(()),
        }
    }

    /// How what stood in the way takes leave.
    fn unlink_plan(&self, inodes: &Locked) -> Result<Option<UnlinkPlan>, Error> {
        let (RenameMode::Replace, Some(target)) = (self.mode, self.target) else {
            return Ok(None);
        };
        let target = inodes.read(target);
        let gone = is_directory(target) || target.core.nlink == 1;
        UnlinkPlan::of(self.volume, target, gone).map(Some)
    }

    /// Makes sure of the space for the worst case: an entry, or two that outgrow their short form,
    /// and a parent pointer for each inode that moves. On a full volume, operations that need none
    /// of it are done without, as in Linux.
    fn reserve(&self, trans: &mut Transaction<'_>, inodes: &Locked) -> Result<(), Error> {
        let count = if self.mode == RenameMode::Exchange { 2 } else { 1 };
        // ".." of a directory that moves may outgrow its form too.
        let entries = 2 * count * worst_case::entry(trans);
        let blocks =
            entries + count * worst_case::parent_pointer(trans) + 3 * worst_case::removal(trans);
        match trans.reserve(blocks) {
            Err(Error::NoSpace { .. }) if self.fits(trans, inodes)? => Ok(()),
            other => other,
        }
    }

    /// Whether the names fit the present blocks, and the blocks set aside are enough for the names
    /// removed: these are reserved then.
    fn fits(&self, trans: &mut Transaction<'_>, inodes: &Locked) -> Result<bool, Error> {
        if trans.geometry().features.parent_pointers() {
            // They may outgrow the inode, which is not known before.
            return Ok(false);
        }
        let moves = [(self.source, self.from, self.to)].into_iter().chain(
            self.target
                .filter(|_| self.mode == RenameMode::Exchange)
                .map(|target| (target, self.to, self.from)),
        );
        for (number, from, to) in moves {
            let (inode, parent) = (inodes.read(number), inodes.read(to.parent));
            if !entry_fits(self.volume, parent, to.name, entry_for(inode))? {
                return Ok(false);
            }
            let dots = Entry { inode: to.parent, ftype: FileType::Directory.into() };
            if is_directory(inode)
                && from.parent != to.parent
                && !entry_fits(self.volume, inode, b"..", dots)?
            {
                return Ok(false);
            }
        }
        if self.mode == RenameMode::Exchange {
            return Ok(true);
        }
        let blocks = worst_case::removal_of(trans, inodes.read(self.from.parent))?;
        Ok(trans.reserve_for_removal(blocks))
    }

    /// Puts the source in the place of the target, or of nothing.
    fn replace(
        &self,
        trans: &mut Transaction<'_>,
        inodes: &mut Locked,
        unlink_plan: Option<&mut UnlinkPlan>,
        left: Option<Whiteout<'_>>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let entry = entry_for(inodes.read(self.source));
        let directory = is_directory(inodes.read(self.source));
        let to = inodes.get(self.to.parent);
        let replaces = unlink_plan.is_some();
        match replaces {
            true => {
                let mut fork = ForkWriter::new(trans, to, ForkKind::Data);
                dir::replace(&mut fork, self.to.name, entry)?;
            }
            false => {
                let mut space = to.space;
                let mut fork = ForkWriter::new(trans, to, ForkKind::Data);
                dir::add(&mut fork, self.to.name, entry, &mut space)?;
                to.space = space;
            }
        }
        if directory {
            // A directory that another took the place of is one subdirectory less.
            if !replaces {
                to.core.nlink += 1;
            }
            inodes.get(self.from.parent).core.nlink -= 1;
        }
        match left {
            None => take_entry(trans, inodes.get(self.from.parent), self.from.name)?,
            Some(left) => {
                let whiteout = left.enter(trans, inodes.get(self.from.parent), self.from.name)?;
                inodes.add(whiteout);
            }
        }
        inodes.get(self.from.parent).set_modified(now);
        inodes.get(self.to.parent).set_modified(now);
        if let Some((target, unlink_plan)) = self.target.zip(unlink_plan) {
            let (target, parent) = inodes.pair(target, self.to.parent);
            unlink_plan.drop_name(trans, target, parent, self.to.name, now)?;
        }
        self.note_new_name(trans, inodes, self.source, (self.from, self.to), now)
    }

    /// Lets the two names change places.
    fn exchange(
        &self,
        trans: &mut Transaction<'_>,
        inodes: &mut Locked,
        target: InodeNumber,
        now: Timestamp,
    ) -> Result<(), Error> {
        for (at, newcomer) in [(self.from, target), (self.to, self.source)] {
            let entry = entry_for(inodes.read(newcomer));
            let parent = inodes.get(at.parent);
            dir::replace(&mut ForkWriter::new(trans, parent, ForkKind::Data), at.name, entry)?;
            parent.set_modified(now);
        }
        let subdirectories =
            [self.source, target].map(|number| u32::from(is_directory(inodes.read(number))));
        let [moved_out, moved_in] = subdirectories;
        for (parent, less, more) in
            [(self.from.parent, moved_out, moved_in), (self.to.parent, moved_in, moved_out)]
        {
            let core = &mut inodes.get(parent).core;
            core.nlink = core.nlink + more - less;
        }
        self.note_new_name(trans, inodes, self.source, (self.from, self.to), now)?;
        self.note_new_name(trans, inodes, target, (self.to, self.from), now)
    }

    /// Tells an inode that its name moved: `..` of a directory, the parent pointer.
    fn note_new_name(
        &self,
        trans: &mut Transaction<'_>,
        inodes: &mut Locked,
        number: InodeNumber,
        (from, to): (Name<'_>, Name<'_>),
        now: Timestamp,
    ) -> Result<(), Error> {
        let generation = |parent| inodes.read(parent).core.generation;
        let pointers = [from, to].map(|at| ParentPointer {
            name: at.name,
            parent: at.parent,
            generation: generation(at.parent),
        });
        let inode = inodes.get(number);
        if is_directory(inode) && from.parent != to.parent {
            dir::set_parent(&mut ForkWriter::new(trans, inode, ForkKind::Data), to.parent)?;
        }
        inode.set_changed(now);
        if !trans.geometry().features.parent_pointers() {
            return Ok(());
        }
        let mut fork = ForkWriter::new(trans, inode, ForkKind::Attr);
        parent_pointer::replace(&mut fork, &pointers[0], &pointers[1])
    }
}

fn is_directory(inode: &InodeState) -> bool {
    inode.file_type() == FileType::Directory
}

/// Whether `name` can stand for `entry` without a new block of the directory.
fn entry_fits(
    volume: &Volume,
    directory: &InodeState,
    name: &[u8],
    entry: Entry,
) -> Result<bool, Error> {
    let mut fork = ForkReader::new(volume, directory, ForkKind::Data);
    dir::fits(&mut fork, name, entry, directory.space)
}

fn entry_for(inode: &InodeState) -> Entry {
    Entry { inode: inode.number, ftype: inode.file_type().into() }
}

/// Refuses an inode of another project in a directory that hands its project down.
pub(super) fn expect_same_project(parent: &InodeState, inode: &InodeState) -> Result<(), Error> {
    if parent.core.flags.contains(InodeFlags::PROJINHERIT)
        && parent.core.project != inode.core.project
    {
        return Err(Error::CrossDevice(format!(
            "inode {} is of project {}, the directory is for project {}: copy it instead",
            inode.number, inode.core.project, parent.core.project
        )));
    }
    Ok(())
}

fn below_itself(at: Name<'_>) -> Error {
    let what = "the directory cannot be moved below itself";
    Error::WrongKind { path: path_text(at.name), what, kind: ErrorKind::Invalid }
}

/// Whether `directory` is `above`, or lies somewhere below it.
fn is_within(volume: &Volume, directory: InodeNumber, above: InodeNumber) -> Result<bool, Error> {
    let climbed = climbs_to(volume, directory, above);
    // Moves wait, and no directory is removed before its content: as long as this one has a name,
    // all above it are in use.
    if matches!(climbed, Err(Error::Stale { .. })) && volume.inode(directory)?.read().core.nlink > 0
    {
        return climbed.map_err(Error::into_damage);
    }
    climbed
}

fn climbs_to(volume: &Volume, directory: InodeNumber, above: InodeNumber) -> Result<bool, Error> {
    let root = volume.geometry().root_inode;
    let mut at = directory;
    // Of a damaged volume, the way up may be a circle: twice the pace of the other finds it.
    let mut slow = directory;
    for step in 0_u64.. {
        if at == above {
            return Ok(true);
        }
        if at == root {
            break;
        }
        at = parent_of(volume, at)?;
        if step % 2 == 1 {
            slow = parent_of(volume, slow)?;
        }
        if at == slow {
            let what = "the way up from this directory does not lead to the root".to_owned();
            return Err(Error::Inode { inode: at, what });
        }
    }
    Ok(false)
}

fn parent_of(volume: &Volume, number: InodeNumber) -> Result<InodeNumber, Error> {
    let inode = volume.inode(number)?;
    let inode = inode.read();
    directory::expect_directory(&inode)?;
    dir::parent(&mut ForkReader::new(volume, &inode, ForkKind::Data))
}
