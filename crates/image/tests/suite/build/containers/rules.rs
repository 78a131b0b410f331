//! Rules over container images do what they do over the directory with the same tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use undercroft_image::pack::PackOptions;
use undercroft_source::{RuleList, SourceSpec};

use super::image::{Form, Layout};
use super::layer::Layer;
use super::unpacked::run;
use undercroft_testkit::image::judged::{build, chain};

const RULES: [(&str, &str); 7] = [
    (
        "choice",
        "exclude /usr/share/doc\ninclude copyright\nexclude *.log\ninclude /var/log/kept.log",
    ),
    ("first name left out", "exclude /etc/passwd"),
    (
        "owners",
        "owner-map 0:100000:65536\nchown 33:33 /srv/**\nchmod u=rw,go= /etc/passwd\nmtime @5",
    ),
    (
        "additions",
        "add hosts:/etc/hosts\nadd hosts:/etc/passwd-\nmkdir /new/deep\nsymlink x:/etc/link",
    ),
    ("added over what a layer hid", "add hosts:/hidden/file\nmkdir /opaque/inner\nadd hosts:/s"),
    ("attributes", "xattr user.a=b /etc\nxattr user.kept= /srv/deep\nroot-mode 700"),
    (
        "all",
        "exclude /usr\ninclude copyright\nadd hosts:/usr/share/hosts\nchown 1:2 /usr/share/hosts",
    ),
];

/// Two layers, the second of which hides and replaces.
fn layout(home: &Path) -> Layout {
    let below = Layer::at(1_000_000_000)
        .directory("./", 0o755)
        .directory("etc/", 0o755)
        .file("etc/passwd", b"root")
        .link("etc/passwd-", "etc/passwd")
        .directory("hidden/", 0o755)
        .file("hidden/file", b"secret")
        .directory("opaque/", 0o755)
        .file("opaque/old", b"old")
        .directory("srv/", 0o755)
        .file("srv/deep", b"deep")
        .xattr("user.kept", b"value")
        .directory("usr/", 0o755)
        .directory("usr/share/", 0o755)
        .directory("usr/share/doc/", 0o755)
        .directory("usr/share/doc/x/", 0o755)
        .file("usr/share/doc/x/README", b"read")
        .file("usr/share/doc/x/copyright", b"mine")
        .end();
    let above = Layer::at(1_100_000_000)
        .mark(".wh.hidden")
        .directory("opaque/", 0o700)
        .mark("opaque/.wh..wh..opq")
        .file("opaque/new", b"new")
        .symlink("s", "etc")
        .link("srv/again", "etc/passwd")
        .directory("var/", 0o755)
        .directory("var/log/", 0o755)
        .file("var/log/gone.log", b"gone")
        .file("var/log/kept.log", b"kept")
        .end();
    Layout::of(home, &[(Form::Gzip, below), (Form::Plain, above)])
}

fn image(spec: SourceSpec, rules: &str, home: &Path) -> Result<Vec<u8>, String> {
    let at = home.join("image");
    let mut options = PackOptions { verify: true, ..PackOptions::new(spec, at.clone()) };
    let mut list = RuleList::default();
    list.add_text(rules.as_bytes(), "rules", home).unwrap();
    let (exclude, rules) = list.finish().unwrap();
    options.source_options.reading.exclude = exclude;
    options.source_options.rules = Arc::new(rules);
    options.force = true;
    build(&options).map_err(|error| chain(&error))?;
    Ok(fs::read(&at).unwrap())
}

#[test]
fn rules_over_images_are_those_over_directories() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("hosts"), "127.0.0.1").unwrap();
    let layout = layout(&home.join("layout"));
    // The tree as this crate unpacks it; that layers mean it is proved beside.
    let (flat, tree) = (home.join("flat"), home.join("tree"));
    let plain = PackOptions::new(SourceSpec::Path(layout.path.clone()), flat.clone());
    build(&plain).unwrap();
    let device = undercroft_block::FileDevice::open(&flat, true).unwrap();
    let volume = Arc::new(undercroft_xfs::Volume::open(Arc::new(device)).unwrap());
    let unpacked = undercroft_image::unpack::to_directory(&volume, &tree, false, &mut |_| {});
    assert!(unpacked.unwrap().warnings.is_empty());
    let docker = format!("docker-archive:{}:app:1", home.join("docker.tar").display());
    let from = format!("oci:{}:t", layout.path.display());
    run(Command::new("skopeo").args(["--insecure-policy", "copy", "--quiet", &from, &docker]));
    for (name, rules) in RULES {
        let directory = image(SourceSpec::Directory(tree.clone()), rules, home);
        let directory = directory.unwrap_or_else(|error| panic!("{name}: {error}"));
        for source in [&from, &docker] {
            let spec = SourceSpec::from(PathBuf::from(source));
            let built = image(spec, rules, home);
            let built = built.unwrap_or_else(|error| panic!("{name}, {source}: {error}"));
            assert!(built == directory, "{name}: {source} and the directory differ");
        }
    }
}

#[test]
fn rules_that_do_not_fit_an_image_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("hosts"), "127.0.0.1").unwrap();
    let layout = layout(&home.join("layout"));
    for (rules, said) in [
        ("add hosts:/s/x", "symbolic link"),
        ("add hosts:/etc", "directory"),
        ("mkdir /etc/passwd", "a file"),
        ("add hosts:/etc/passwd", "etc/passwd-"),
    ] {
        let error = image(SourceSpec::Path(layout.path.clone()), rules, home).unwrap_err();
        assert!(error.contains(said), "{rules}: {error}");
        assert!(!home.join("image").exists());
    }
}
