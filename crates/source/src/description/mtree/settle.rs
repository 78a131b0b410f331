//! Lines of an mtree(5) description as files and names.

use super::super::accounts::Accounts;
use super::super::check_target;
use super::super::contents::Contents;
use super::super::error::{DescriptionProblem, cut};
use super::super::file::{File, Origin};
use super::super::ignored::Ignored;
use super::super::tree::{Draft, FileId};
use super::keywords::{Keywords, Rare};
use super::values::Type;
use crate::entry::{Kind, MAX_FILE_SIZE};
use crate::files::{ContentsProblem, Expected, PartialMetadata};
use crate::{Device, EntryPath};
use rustc_hash::FxHashMap;

/// What tells a file with several names.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    /// Numbers of the file system that was described, as they are written.
    Described(Option<Vec<u8>>, Vec<u8>),
    Tag(Vec<u8>),
    /// Numbers of the file system that has the contents.
    Contents(u64, u64),
}

/// Files and names, as lines are taken.
pub(super) struct Settling<'a> {
    contents: Option<&'a mut Contents>,
    ignored: &'a mut Ignored,
    users: Option<Accounts>,
    groups: Option<Accounts>,
    /// Files that may have further names, with the line of the first.
    shared: FxHashMap<Identity, (FileId, u64)>,
    draft: Draft,
}

impl<'a> Settling<'a> {
    /// Makes room for so many names.
    pub(super) fn new(
        contents: Option<&'a mut Contents>,
        ignored: &'a mut Ignored,
        names: usize,
    ) -> Self {
        let (shared, draft) = (FxHashMap::default(), Draft::with_capacity(names));
        Self { contents, ignored, users: None, groups: None, shared, draft }
    }

    pub(super) fn finish(self) -> Draft {
        self.draft
    }

    /// Takes what is said about one path.
    pub(super) fn take(
        &mut self,
        path: &EntryPath,
        line: u64,
        mut keywords: Keywords,
    ) -> Result<(), DescriptionProblem> {
        let mut rare = keywords.rare.take().map(|rare| *rare).unwrap_or_default();
        let kind = kind(path, &keywords, &mut rare)?;
        let origin = self.origin(path, &keywords, rare.contents.take(), &kind)?;
        let Some(origin) = origin else { return Ok(()) };
        let metadata = self.metadata(path, &keywords, &rare, kind == Kind::Directory)?;
        if metadata.mode.is_none() && origin == Origin::Nowhere {
            return Err(ContentsProblem::NoMode { path: cut(path.as_bytes()) }.into());
        }
        let unknown_digest = rare.unknown_digest;
        let identity = self.identity(path, line, rare, &kind)?;
        let mut expected = Expected::default();
        if matches!(kind, Kind::Regular { .. }) && !keywords.is_unchanged {
            if let (true, Some(keyword)) = (keywords.digests.is_empty(), unknown_digest) {
                self.ignored.keyword(keyword, line);
            }
            expected = Expected { size: keywords.size, digests: keywords.digests };
        }
        let file = File { kind, metadata, xattrs: Box::default(), origin, expected };
        let id = match identity.as_ref().and_then(|identity| self.shared.get(identity)) {
            Some(&(id, first)) => {
                let known = self.draft.file(id);
                let is_same = known.kind == file.kind
                    && known.metadata == file.metadata
                    && known.expected == file.expected;
                if !is_same {
                    return Err(DescriptionProblem::Names { path: cut(path.as_bytes()), first });
                }
                id
            }
            None => {
                let id = self.draft.add(file)?;
                if let Some(identity) = identity {
                    self.shared.insert(identity, (id, line));
                }
                id
            }
        };
        self.draft.name(path, line, id);
        Ok(())
    }

    /// Where contents and attributes that are not told are; `None` if an optional file is not there.
    fn origin(
        &mut self,
        path: &EntryPath,
        keywords: &Keywords,
        elsewhere: Option<EntryPath>,
        kind: &Kind,
    ) -> Result<Option<Origin>, DescriptionProblem> {
        let is_regular = matches!(kind, Kind::Regular { .. });
        let Some(contents) = self.contents.as_deref_mut() else {
            return match elsewhere {
                _ if !is_regular => Ok(Some(Origin::Nowhere)),
                None if keywords.size == Some(0) => Ok(Some(Origin::Nowhere)),
                _ if keywords.is_optional => Ok(None),
                _ => Err(DescriptionProblem::NoContents { path: cut(path.as_bytes()) }),
            };
        };
        let origin = match elsewhere.filter(|_| is_regular) {
            Some(file) => Origin::Below(file),
            None => Origin::AtPath,
        };
        let place = if let Origin::Below(file) = &origin { file } else { path };
        let is_missing = is_regular
            && keywords.is_optional
            && contents.stat(place).is_ok_and(|found| found.is_none());
        Ok((!is_missing).then_some(origin))
    }

    fn metadata(
        &mut self,
        path: &EntryPath,
        keywords: &Keywords,
        rare: &Rare,
        is_directory: bool,
    ) -> Result<PartialMetadata, DescriptionProblem> {
        if keywords.is_unchanged {
            return Ok(PartialMetadata::default());
        }
        let contents = &mut self.contents;
        let mut number = |list: &mut Option<Accounts>, file, name: &[u8], keyword, number| {
            let accounts =
                list.get_or_insert_with(|| Accounts::read(contents.as_deref_mut(), file));
            accounts.number(name).ok_or_else(|| DescriptionProblem::Owner {
                path: cut(path.as_bytes()),
                keyword,
                name: cut(name),
                number,
                file,
            })
        };
        let uid = match (keywords.uid, &rare.uname) {
            (None, Some(name)) => {
                Some(number(&mut self.users, "etc/passwd", name, "uname", "uid")?)
            }
            (uid, _) => uid,
        };
        let gid = match (keywords.gid, &rare.gname) {
            (None, Some(name)) => {
                Some(number(&mut self.groups, "etc/group", name, "gname", "gid")?)
            }
            (gid, _) => gid,
        };
        let mode = keywords.mode.as_ref().map(|mode| mode.apply(0, is_directory));
        Ok(PartialMetadata { mode, uid, gid, mtime: keywords.time })
    }

    /// What other names of the file share, if it may have some.
    fn identity(
        &mut self,
        path: &EntryPath,
        line: u64,
        rare: Rare,
        kind: &Kind,
    ) -> Result<Option<Identity>, DescriptionProblem> {
        if *kind == Kind::Directory {
            return Ok(None);
        }
        if let Some(tag) = rare.names_tag {
            return Ok(Some(Identity::Tag(tag)));
        }
        if let Some(inode) = rare.inode {
            return Ok(Some(Identity::Described(rare.resdevice, inode)));
        }
        if rare.nlink.unwrap_or(1) < 2 {
            return Ok(None);
        }
        let found = match self.contents.as_deref_mut() {
            Some(contents) => contents.stat(path).map_err(|error| {
                let (path, file) = (cut(path.as_bytes()), contents.shown(path.as_bytes()));
                ContentsProblem::Unreadable { path, file, source: error.into() }
            })?,
            None => None,
        };
        let Some(stat) = found else {
            self.ignored.unlinked(line);
            return Ok(None);
        };
        #[allow(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
        Ok(Some(Identity::Contents(stat.st_dev as u64, stat.st_ino as u64)))
    }
}

fn kind(
    path: &EntryPath,
    keywords: &Keywords,
    rare: &mut Rare,
) -> Result<Kind, DescriptionProblem> {
    let unsaid = |what| DescriptionProblem::Unsaid { path: cut(path.as_bytes()), what };
    let device = |device: Option<Device>| {
        device.ok_or_else(|| unsaid("is a device without device=; mtree writes it with -K device"))
    };
    Ok(match keywords.kind {
        Some(Type::Block) => Kind::BlockDevice(device(rare.device)?),
        Some(Type::Char) => Kind::CharDevice(device(rare.device)?),
        Some(Type::Directory) => Kind::Directory,
        Some(Type::Fifo) => Kind::Fifo,
        Some(Type::Socket) => Kind::Socket,
        Some(Type::Link) => {
            let target = rare.link.take();
            let target = target.ok_or_else(|| unsaid("is a symbolic link without link="))?;
            Kind::Symlink(check_target(path.as_bytes(), target)?)
        }
        Some(Type::File) | None => {
            if let Some(size) = keywords.size.filter(|size| *size > MAX_FILE_SIZE) {
                return Err(DescriptionProblem::FileSize(size));
            }
            Kind::Regular { size: 0, data: Vec::new() }
        }
    })
}
