//! Features of new volumes by the names of `mkfs.xfs`, and what a preset and single settings make.

use super::error::MkfsError;
use super::feature::{Feature, Preset};
use crate::format::{Features, Features2, Incompat, RoCompat, VersionBits};
use std::str::FromStr;

impl FromStr for Preset {
    type Err = MkfsError;

    fn from_str(name: &str) -> Result<Self, MkfsError> {
        Self::by_name(name).ok_or_else(|| MkfsError::UnknownPreset { name: name.to_owned() })
    }
}

impl FromStr for Feature {
    type Err = MkfsError;

    fn from_str(name: &str) -> Result<Self, MkfsError> {
        Self::by_name(name).ok_or_else(|| MkfsError::UnknownFeature { name: name.to_owned() })
    }
}

impl Feature {
    /// Reads a setting of the form `NAME=0` or `NAME=1`.
    ///
    /// # Errors
    ///
    /// [`MkfsError::FeatureSetting`] for another form, [`MkfsError::UnknownFeature`] for another
    /// name.
    pub fn parse_setting(setting: &str) -> Result<(Self, bool), MkfsError> {
        match setting.split_once('=') {
            Some((name, "0")) => Ok((name.parse()?, false)),
            Some((name, "1")) => Ok((name.parse()?, true)),
            _ => Err(MkfsError::FeatureSetting { setting: setting.to_owned() }),
        }
    }
}

/// The features of a preset that are on after `settings`, and those that these turn on.
pub(super) fn chosen(
    preset: Preset,
    settings: &[(Feature, bool)],
) -> impl Iterator<Item = Feature> {
    let set = settings.iter().map(|(feature, _)| feature);
    let all = preset.features().iter().chain(set).copied();
    all.filter(move |feature| is_on(preset, settings, *feature))
}

fn is_on(preset: Preset, settings: &[(Feature, bool)], feature: Feature) -> bool {
    let last = settings.iter().rev().find(|(set, _)| *set == feature);
    last.map_or_else(|| preset.features().contains(&feature), |(_, on)| *on)
}

/// The features of a preset with `settings` applied in order; the last of a name counts. Bits that
/// follow from sizes (sectors, stripes) are not set yet.
pub(super) fn resolve(preset: Preset, settings: &[(Feature, bool)]) -> Result<Features, MkfsError> {
    let on = |feature| is_on(preset, settings, feature);
    for (feature, on) in settings {
        if !on && matches!(feature, Feature::Crc | Feature::Ftype) {
            return Err(MkfsError::FixedFeature { feature: *feature });
        }
    }
    if on(Feature::Inobtcount) && !on(Feature::Finobt) {
        let (feature, needed) = (Feature::Inobtcount, Feature::Finobt);
        return Err(MkfsError::MissingFeature { feature, needed });
    }
    let mut features = Features {
        version: VersionBits::NLINK
            | VersionBits::ALIGN
            | VersionBits::LOGV2
            | VersionBits::EXTFLG
            | VersionBits::DIRV2
            | VersionBits::MOREBITS,
        features2: Features2::LAZYSBCOUNT | Features2::ATTR2 | Features2::PROJID32 | Features2::CRC,
        incompat: Incompat::FTYPE,
        crc: true,
        ..Features::default()
    };
    features.ro_compat.set(RoCompat::FINOBT, on(Feature::Finobt));
    features.ro_compat.set(RoCompat::RMAPBT, on(Feature::Rmapbt));
    features.ro_compat.set(RoCompat::REFLINK, on(Feature::Reflink));
    features.ro_compat.set(RoCompat::INOBTCNT, on(Feature::Inobtcount));
    features.incompat.set(Incompat::SPINODES, on(Feature::Sparse));
    features.incompat.set(Incompat::BIGTIME, on(Feature::Bigtime));
    features.incompat.set(Incompat::NREXT64, on(Feature::Nrext64));
    features.incompat.set(Incompat::EXCHRANGE, on(Feature::Exchange));
    features.incompat.set(Incompat::PARENT, on(Feature::Parent));
    // Every inode but the root gets a parent pointer, so the first file has an attribute fork.
    features.version.set(VersionBits::ATTR, on(Feature::Parent));
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(preset: &str) -> (u16, u32, u32, u32) {
        let features = resolve(preset.parse().unwrap(), &[]).unwrap();
        let version = features.version.bits() | 5;
        let features2 = features.features2.bits();
        (version, features2, features.ro_compat.bits(), features.incompat.bits())
    }

    #[test]
    fn presets_match_the_history_of_defaults() {
        assert_eq!(masks("4.19"), (0xb4a5, 0x18a, 0x1, 0x3));
        assert_eq!(masks("5.10"), (0xb4a5, 0x18a, 0x5, 0x3));
        assert_eq!(masks("6.1"), (0xb4a5, 0x18a, 0xd, 0xb));
        assert_eq!(masks("6.12"), (0xb4a5, 0x18a, 0xf, 0x2b));
        assert_eq!(masks("default"), (0xb4b5, 0x18a, 0xf, 0xeb));
        assert!(matches!("6.2".parse::<Preset>(), Err(MkfsError::UnknownPreset { .. })));
    }

    #[test]
    fn settings_override_the_preset_and_are_checked() {
        let settings = ["rmapbt=0", "finobt=0", "inobtcount=0", "finobt=1"]
            .map(|setting| Feature::parse_setting(setting).unwrap());
        let features = resolve(Preset::Default, &settings).unwrap();
        assert_eq!(features.ro_compat, RoCompat::FINOBT | RoCompat::REFLINK);

        let error = resolve(Preset::Default, &[(Feature::Finobt, false)]).unwrap_err();
        assert_eq!(error.to_string(), "inobtcount=1 needs finobt=1; turn both on or both off");
        let error = resolve(Preset::Default, &[(Feature::Crc, false)]).unwrap_err();
        assert!(matches!(error, MkfsError::FixedFeature { feature: Feature::Crc }));
        assert!(Feature::parse_setting("finobt").is_err());
        let error = Feature::parse_setting("quota=1").unwrap_err();
        assert!(error.to_string().contains("nrext64"));
    }
}
