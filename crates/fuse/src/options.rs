//! Mount options as people type them after `-o`, and as `mount(8)` hands them on.

use crate::settings::Settings;
use thiserror::Error;
use undercroft_fs::AccessTimes;

/// What the options of a mount say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountOptions {
    /// `ro` or `rw`.
    pub read_only: Option<bool>,
    /// `dev` or `nodev`.
    pub devices: Option<bool>,
    /// `suid` or `nosuid`.
    pub set_id: Option<bool>,
    /// `exec` or `noexec`.
    pub execute: Option<bool>,
    /// `noatime`, `relatime` or `strictatime`.
    pub access_times: Option<AccessTimes>,
    /// `allow_other`.
    pub allow_other: Option<bool>,
    /// `sync`.
    pub synchronous: bool,
    /// `dirsync`.
    pub synchronous_names: bool,
    /// `norecovery`: the journal is left alone.
    pub no_replay: bool,
    /// `stale`: what others change is read nevertheless.
    pub stale: bool,
    /// `writethrough` or `writeback`.
    pub write_back: Option<bool>,
    /// `uid=`.
    pub shown_uid: Option<u32>,
    /// `gid=`.
    pub shown_gid: Option<u32>,
    /// `commit=`, in seconds.
    pub checkpoint_seconds: Option<u64>,
    /// `discard` or `nodiscard`.
    pub discard: Option<bool>,
    /// `fakeroot`: whoever asks is root.
    pub fake_root: bool,
    /// `partition=`.
    pub partition: Option<String>,
    /// `key-file=`.
    pub key_file: Option<String>,
    /// `lv=`, as it was typed.
    pub lv: Option<String>,
    /// `offset=`, as it was typed.
    pub offset: Option<String>,
    /// `sizelimit=`, as it was typed.
    pub size_limit: Option<String>,
    /// `remount`: a mount gets other options.
    pub remount: bool,
    /// `nofail`: an image that is not there is no failure.
    pub no_fail: bool,
    /// `sloppy`: options behind it that are not known are left out.
    pub sloppy: bool,
    /// Options of the kernel's XFS, of security modules and of other FUSE file systems that mean
    /// nothing here, as they were typed.
    pub without_meaning: Vec<String>,
}

/// An option that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionError {
    /// No such option.
    #[error("mount option {0:?} is not known; one for the kernel's XFS alone can be left out")]
    Unknown(String),
    /// It has a value that it cannot have.
    #[error("mount option {option}: {value:?} is not a number")]
    Value {
        /// Its name.
        option: String,
        /// The value.
        value: String,
    },
}

/// What others know and what means nothing here. `nouuid` is what container storage always passes: volumes of
/// one UUID do not disturb one another here.
const WITHOUT_MEANING: &[&str] = &[
    "nouuid",
    "logbufs",
    "logbsize",
    "logdev",
    "allocsize",
    "largeio",
    "nolargeio",
    "swalloc",
    "ikeep",
    "noikeep",
    "inode32",
    "inode64",
    "attr2",
    "noattr2",
    "acl",
    "noacl",
    "user_xattr",
    "barrier",
    "nobarrier",
    "sunit",
    "swidth",
    "noalign",
    "filestreams",
    "dax",
    "max_atomic_write",
    "lifetime",
    "nolifetime",
    "nogrpid",
    "sysvgroups",
    "symfollow",
    "nosymfollow",
    "norelatime",
    "nostrictatime",
    "context",
    "fscontext",
    "defcontext",
    "rootcontext",
    "seclabel",
    "errors",
    "auto_unmount",
    "fsname",
    "subtype",
    // The kernel lists them, and mount(8) repeats them for a remount.
    "user_id",
    "group_id",
    "max_read",
];

impl MountOptions {
    /// Adds options that are separated by commas. Later ones win.
    ///
    /// # Errors
    /// An option is not known, or its value is no number.
    pub fn add(&mut self, text: &str) -> Result<(), OptionError> {
        text.split(',').filter(|option| !option.is_empty()).try_for_each(|one| self.add_one(one))
    }

    fn add_one(&mut self, text: &str) -> Result<(), OptionError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match name {
            "ro" => self.read_only = Some(true),
            "rw" => self.read_only = Some(false),
            "dev" => self.devices = Some(true),
            "nodev" => self.devices = Some(false),
            "suid" => self.set_id = Some(true),
            "nosuid" => self.set_id = Some(false),
            "exec" => self.execute = Some(true),
            "noexec" => self.execute = Some(false),
            "noatime" => self.access_times = Some(AccessTimes::Never),
            "relatime" | "atime" => self.access_times = Some(AccessTimes::Relative),
            "strictatime" => self.access_times = Some(AccessTimes::Always),
            "allow_other" => self.allow_other = Some(true),
            "noallow_other" => self.allow_other = Some(false),
            "sync" => self.synchronous = true,
            "dirsync" | "wsync" => self.synchronous_names = true,
            "async" => (self.synchronous, self.synchronous_names) = (false, false),
            "norecovery" | "no-replay" => self.no_replay = true,
            "stale" => self.stale = true,
            "writethrough" => self.write_back = Some(false),
            "writeback" => self.write_back = Some(true),
            "uid" => self.shown_uid = Some(number(name, value)?),
            "gid" => self.shown_gid = Some(number(name, value)?),
            "commit" => self.checkpoint_seconds = Some(number(name, value)?),
            "discard" => self.discard = Some(true),
            "nodiscard" => self.discard = Some(false),
            "fakeroot" => self.fake_root = true,
            "partition" => self.partition = Some(nonempty(name, value)?),
            "key-file" => self.key_file = Some(nonempty(name, value)?),
            "lv" => self.lv = Some(nonempty(name, value)?),
            "offset" => self.offset = Some(value.to_owned()),
            "sizelimit" => self.size_limit = Some(value.to_owned()),
            // Defaults of this mount, and options for the programs that read fstab.
            "default_permissions"
            | "defaults"
            | "auto"
            | "noauto"
            | "user"
            | "nouser"
            | "users"
            | "owner"
            | "group"
            | "_netdev"
            | "loop"
            | "noquota"
            | "lazytime"
            | "nolazytime"
            | "nodiratime"
            | "diratime"
            | "iversion"
            | "noiversion"
            | "silent"
            | "loud" => {}
            _ if name.starts_with("x-") || name.starts_with("X-") || name == "comment" => {}
            "nofail" => self.no_fail = true,
            "sloppy" => self.sloppy = true,
            "remount" => self.remount = true,
            _ if self.sloppy || WITHOUT_MEANING.contains(&name) => {
                self.without_meaning.push(text.to_owned());
            }
            _ => return Err(OptionError::Unknown(text.to_owned())),
        }
        Ok(())
    }

    /// Changes settings as the options say.
    pub fn apply(&self, settings: &mut Settings) {
        let set = |place: &mut bool, option: Option<bool>| *place = option.unwrap_or(*place);
        set(&mut settings.read_only, self.read_only);
        set(&mut settings.devices, self.devices);
        set(&mut settings.set_id, self.set_id);
        set(&mut settings.execute, self.execute);
        set(&mut settings.allow_other, self.allow_other);
        set(&mut settings.write_back, self.write_back);
        set(&mut settings.discard, self.discard);
        settings.access_times = self.access_times.unwrap_or(settings.access_times);
        settings.exact_access_times |= self.access_times.is_some();
        settings.fake_root |= self.fake_root;
        settings.synchronous |= self.synchronous;
        settings.synchronous_names |= self.synchronous_names;
        settings.shown_uid = self.shown_uid.or(settings.shown_uid);
        settings.shown_gid = self.shown_gid.or(settings.shown_gid);
        if let Some(seconds) = self.checkpoint_seconds {
            settings.checkpoint_interval = std::time::Duration::from_secs(seconds.max(1));
        }
    }
}

fn nonempty(option: &str, value: &str) -> Result<String, OptionError> {
    let is_there = (!value.is_empty()).then(|| value.to_owned());
    is_there.ok_or_else(|| OptionError::Value { option: option.to_owned(), value: String::new() })
}

fn number<N: std::str::FromStr>(option: &str, value: &str) -> Result<N, OptionError> {
    value
        .parse()
        .map_err(|_| OptionError::Value { option: option.to_owned(), value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_people_type_them() {
        let mut options = MountOptions::default();
        options.add("ro,noatime,uid=1000,x-systemd.automount,commit=30").unwrap();
        assert_eq!(options.read_only, Some(true));
        assert_eq!(options.access_times, Some(AccessTimes::Never));
        assert_eq!(options.shown_uid, Some(1000));
        options.add("rw").unwrap();
        let mut settings = Settings::new("disk.img");
        options.apply(&mut settings);
        assert!(!settings.read_only && settings.access_times == AccessTimes::Never);
        assert_eq!(settings.checkpoint_interval.as_secs(), 30);
    }

    #[test]
    fn options_of_others_are_taken_and_told() {
        let mut options = MountOptions::default();
        options.add("nouuid,inode64,logbsize=32k,wsync,nofail").unwrap();
        assert_eq!(options.without_meaning, ["nouuid", "inode64", "logbsize=32k"]);
        assert!(options.synchronous_names && options.no_fail);
        options.add("sloppy,quota,rw").unwrap();
        assert_eq!(options.without_meaning.last().unwrap(), "quota");
        options.add("remount,ro,user_id=0").unwrap();
        assert!(options.remount && options.read_only == Some(true));
    }

    #[test]
    fn options_that_cannot_be_are_named() {
        let mut options = MountOptions::default();
        let unknown = options.add("ro,quota").unwrap_err();
        assert_eq!(unknown, OptionError::Unknown("quota".into()));
        let wrong = options.add("uid=root").unwrap_err();
        assert_eq!(wrong.to_string(), "mount option uid: \"root\" is not a number");
    }
}
