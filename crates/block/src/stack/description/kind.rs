//! Kinds of devices.

/// Kinds of devices, by their names on the command line and in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Linear,
    Stripe,
    Mirror,
    Delay,
    /// Disks that are one by what is on them.
    Set,
}

impl Kind {
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("file", Self::File),
        ("linear", Self::Linear),
        ("stripe", Self::Stripe),
        ("mirror", Self::Mirror),
        ("delay", Self::Delay),
        ("lvm", Self::Set),
        ("raid", Self::Set),
    ];
}

/// The kind of device that `text` begins with; `None` if it begins with a path. The name of the
/// kind is followed by `(` or `:`, but not by `://`, as in a URI.
pub(super) fn kind(text: &[u8]) -> Option<(&'static str, Kind)> {
    Kind::ALL.into_iter().find(|(name, _)| {
        text.strip_prefix(name.as_bytes())
            .is_some_and(|rest| matches!(rest, [b'(' | b':', ..]) && !rest.starts_with(b"://"))
    })
}
