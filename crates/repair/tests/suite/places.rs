//! Where files go that have no name left.

use std::path::Path;
use std::sync::Arc;

use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_repair::Plan;
use undercroft_xfs::Volume;
use undercroft_xfs::mkfs::{Feature, MkfsOptions};
use undercroft_xfs::ops::mend;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

use crate::{files, forms};

/// Takes entries away and leaves what they lead to; returns the repaired paths below lost+found.
fn lost(features: &[(Feature, bool)], gone: &[(&str, &str)]) -> Vec<String> {
    let options = MkfsOptions {
        features: features.to_vec(),
        ..MkfsOptions::new(96 << 20, Uuid::from_u128(12))
    };
    let device = forms::volume(&options);
    let fs = FileSystem::open(Arc::clone(&device), &OpenOptions::writable()).unwrap();
    for directory in ["/top", "/top/middle", "/top/middle/below", "/top/other"] {
        fs.create_dir(directory).unwrap();
    }
    fs.write("/top/middle/below/file", b"content").unwrap();
    fs.write("/top/other/alone", b"content").unwrap();
    let number = |path: &str| fs.metadata(path).unwrap().number;
    let entries: Vec<_> = gone.iter().map(|(directory, name)| (number(directory), *name)).collect();
    fs.close().unwrap();
    let volume = Arc::new(Volume::open_live(Arc::clone(&device), &LiveOptions::default()).unwrap());
    for (directory, name) in entries {
        mend::remove_entry(&volume, directory, name.as_bytes()).unwrap();
    }
    volume.close().unwrap();
    let plan = Plan::find(Arc::clone(&device)).unwrap();
    plan.commit(None).unwrap();
    assert!(Plan::find(Arc::clone(&device)).unwrap().is_sound());
    let found = files::of(device);
    let below = found.keys().filter_map(|path| path.strip_prefix("/lost+found").ok());
    let number = |name: &std::ffi::OsStr| name.to_string_lossy().parse::<u64>().is_ok();
    let shown = |path: &Path| {
        let names = path.iter().map(|name| {
            if number(name) { "N".into() } else { name.to_string_lossy().into_owned() }
        });
        names.collect::<Vec<_>>().join("/")
    };
    below.map(shown).filter(|path| !path.is_empty()).collect()
}

const WITHOUT_POINTERS: [(Feature, bool); 1] = [(Feature::Parent, false)];

#[test]
fn a_directory_goes_below_the_path_of_its_parent() {
    let found = lost(&WITHOUT_POINTERS, &[("/top/middle", "below")]);
    assert_eq!(found, ["top", "top/middle", "top/middle/N", "top/middle/N/file"]);
}

#[test]
fn a_file_of_which_nothing_is_known_goes_to_the_top() {
    assert_eq!(lost(&WITHOUT_POINTERS, &[("/top/other", "alone")]), ["N"]);
}

#[test]
fn what_says_its_own_name_is_not_lost() {
    assert!(lost(&[], &[("/top/middle", "below"), ("/top/other", "alone")]).is_empty());
}
