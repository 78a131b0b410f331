//! The keywords of an mtree(5) line.

use super::super::error::DescriptionProblem;
use super::super::ignored::Ignored;
use super::values::{Type, contents, decimal, device, kind, mode, names_tag, narrow, text, time};
use crate::digest::{Algorithm, Digest};
use crate::{Device, EntryPath, ModeChange, Timestamp};
use std::sync::Arc;

/// What a line says, or a line of defaults.
#[derive(Debug, Clone, Default)]
pub(super) struct Keywords {
    pub(super) kind: Option<Type>,
    pub(super) mode: Option<ModeChange>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) time: Option<Timestamp>,
    pub(super) size: Option<u64>,
    pub(super) digests: Vec<Digest>,
    pub(super) is_optional: bool,
    pub(super) is_unchanged: bool,
    /// In a place of its own, for most lines say nothing of it.
    pub(super) rare: Option<Box<Rare>>,
}

/// What few lines say.
#[derive(Debug, Clone, Default)]
pub(super) struct Rare {
    pub(super) uname: Option<Arc<[u8]>>,
    pub(super) gname: Option<Arc<[u8]>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) device: Option<Device>,
    pub(super) contents: Option<EntryPath>,
    /// A digest that is not computed here.
    pub(super) unknown_digest: Option<&'static [u8]>,
    pub(super) nlink: Option<u64>,
    pub(super) inode: Option<Vec<u8>>,
    pub(super) resdevice: Option<Vec<u8>>,
    /// The tag by which our own descriptions tell names of one file.
    pub(super) names_tag: Option<Vec<u8>>,
}

impl Keywords {
    /// Takes a word of a line.
    pub(super) fn apply(
        &mut self,
        word: &[u8],
        line: u64,
        ignored: &mut Ignored,
    ) -> Result<(), DescriptionProblem> {
        let (keyword, value) = match word.iter().position(|&byte| byte == b'=') {
            Some(at) => (&word[..at], &word[at + 1..]),
            None => (word, &b""[..]),
        };
        let wrong = |field, reason| DescriptionProblem::value(field, value, reason);
        let number = |field| decimal(value).ok_or_else(|| wrong(field, "write a number"));
        match keyword {
            b"type" => self.kind = Some(kind(value)?),
            b"mode" => self.mode = Some(mode(value)?),
            b"uid" => self.uid = Some(narrow("uid", value)?),
            b"gid" => self.gid = Some(narrow("gid", value)?),
            b"uname" => self.rare_mut().uname = Some(text("uname", value)?.into()),
            b"gname" => self.rare_mut().gname = Some(text("gname", value)?.into()),
            b"size" => self.size = Some(number("size")?),
            b"time" => {
                let reason = "write seconds since 1970, a point and nanoseconds";
                self.time = Some(time(value).ok_or_else(|| wrong("time", reason))?);
            }
            b"link" => self.rare_mut().link = Some(text("link", value)?),
            b"device" => self.rare_mut().device = Some(device(value)?),
            b"contents" => self.rare_mut().contents = Some(contents(value)?),
            b"nlink" => self.rare_mut().nlink = Some(number("nlink")?),
            b"inode" => self.rare_mut().inode = Some(value.to_vec()),
            b"resdevice" => self.rare_mut().resdevice = Some(value.to_vec()),
            b"tags" => self.rare_mut().names_tag = names_tag(value),
            b"optional" => self.is_optional = true,
            b"nochange" => self.is_unchanged = true,
            b"ignore" => {}
            b"flags" if value == b"none" => {}
            b"cksum" => self.rare_mut().unknown_digest = Some(b"cksum"),
            b"rmd160" | b"rmd160digest" | b"ripemd160digest" => {
                self.rare_mut().unknown_digest = Some(b"rmd160");
            }
            _ => match algorithm(keyword) {
                Some(algorithm) => self.add_digest(algorithm, value)?,
                None => ignored.keyword(keyword, line),
            },
        }
        Ok(())
    }

    fn add_digest(&mut self, algorithm: Algorithm, value: &[u8]) -> Result<(), DescriptionProblem> {
        let reason = "this is no digest of that kind, or not all of it";
        let digest = Digest::parse(algorithm, value);
        let digest = digest.ok_or_else(|| DescriptionProblem::value("digest", value, reason))?;
        self.digests.retain(|known| known.algorithm != algorithm);
        // Most lines have one, and all lines are in memory at once.
        self.digests.reserve_exact(1);
        self.digests.push(digest);
        Ok(())
    }

    /// Forgets the default of a keyword.
    pub(super) fn unset(&mut self, keyword: &[u8]) {
        match keyword {
            b"all" => *self = Self::default(),
            b"type" => self.kind = None,
            b"mode" => self.mode = None,
            b"uid" => self.uid = None,
            b"gid" => self.gid = None,
            b"uname" => self.rare_mut().uname = None,
            b"gname" => self.rare_mut().gname = None,
            b"size" => self.size = None,
            b"time" => self.time = None,
            b"link" => self.rare_mut().link = None,
            b"device" => self.rare_mut().device = None,
            b"contents" => self.rare_mut().contents = None,
            b"nlink" => self.rare_mut().nlink = None,
            b"inode" => self.rare_mut().inode = None,
            b"resdevice" => self.rare_mut().resdevice = None,
            b"tags" => self.rare_mut().names_tag = None,
            b"optional" => self.is_optional = false,
            b"nochange" => self.is_unchanged = false,
            keyword => {
                if let Some(algorithm) = algorithm(keyword) {
                    self.digests.retain(|known| known.algorithm != algorithm);
                } else {
                    self.rare_mut().unknown_digest = None;
                }
            }
        }
    }

    /// What both lines of an entry say; the later one, which this is, goes before.
    pub(super) fn over(self, earlier: Self) -> Self {
        let digests = if self.digests.is_empty() { earlier.digests } else { self.digests };
        Self {
            kind: self.kind.or(earlier.kind),
            mode: self.mode.or(earlier.mode),
            uid: self.uid.or(earlier.uid),
            gid: self.gid.or(earlier.gid),
            time: self.time.or(earlier.time),
            size: self.size.or(earlier.size),
            digests,
            is_optional: self.is_optional || earlier.is_optional,
            is_unchanged: self.is_unchanged || earlier.is_unchanged,
            rare: match (self.rare, earlier.rare) {
                (Some(later), Some(earlier)) => Some(Box::new(later.over(*earlier))),
                (later, earlier) => later.or(earlier),
            },
        }
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

impl Rare {
    fn over(self, earlier: Self) -> Self {
        Self {
            uname: self.uname.or(earlier.uname),
            gname: self.gname.or(earlier.gname),
            link: self.link.or(earlier.link),
            device: self.device.or(earlier.device),
            contents: self.contents.or(earlier.contents),
            unknown_digest: self.unknown_digest.or(earlier.unknown_digest),
            nlink: self.nlink.or(earlier.nlink),
            inode: self.inode.or(earlier.inode),
            resdevice: self.resdevice.or(earlier.resdevice),
            names_tag: self.names_tag.or(earlier.names_tag),
        }
    }
}

fn algorithm(keyword: &[u8]) -> Option<Algorithm> {
    Some(match keyword.strip_suffix(b"digest").unwrap_or(keyword) {
        b"md5" => Algorithm::Md5,
        b"sha1" => Algorithm::Sha1,
        b"sha256" => Algorithm::Sha256,
        b"sha384" => Algorithm::Sha384,
        b"sha512" => Algorithm::Sha512,
        _ => return None,
    })
}
