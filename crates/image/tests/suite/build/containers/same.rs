//! The same tree from layers, from a directory and from an archive: the same bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use undercroft_image::pack::PackOptions;
use undercroft_judges::mount::Access;
use undercroft_judges::random::{Options as Random, random_tree};
use undercroft_judges::{LoopMount, Scratch, kernel};
use undercroft_source::{Exclude, SourceSpec};

use super::image::{Form, Layout};
use super::layer::Layer;
use undercroft_testkit::image::judged::build;

/// The archive that tar makes of names in a directory.
fn tar(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("tar");
    command.args(["-c", "--format=pax", "--sort=name", "--xattrs", "--xattrs-include=*"]);
    command.args(["--numeric-owner", "-C"]).arg(directory).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn image(spec: SourceSpec, exclude: &[&str], at: &Path) -> Vec<u8> {
    let mut options = PackOptions::new(spec, at.to_owned());
    options.force = true;
    options.source_options.reading.exclude = Exclude::new(exclude).unwrap();
    build(&options).unwrap();
    fs::read(at).unwrap()
}

#[test]
fn layers_directory_and_archive_give_the_same_bytes() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 << 20).unwrap();
    let home = tempfile::tempdir().unwrap();
    let tree = scratch.path().join("tree");
    fs::create_dir(&tree).unwrap();
    // Without sockets and holes, which archives of tar do not keep in the same way.
    random_tree(&tree, 11, &Random { entries: 500, ..Random::default() }).unwrap();
    let out = home.path().join("image");
    // What archives can keep is what the first image has.
    let flat = home.path().join("flat.tar");
    fs::write(&flat, tar(&tree, &["."])).unwrap();
    let first = image(SourceSpec::Path(flat.clone()), &[], &out);
    let mount = LoopMount::new(&out, Access::ReadOnly, &[]).unwrap();
    let names = fs::read_dir(mount.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> =
        names.map(|name| format!("./{}", name.into_string().unwrap())).collect();
    names.sort_by(|one, other| other.cmp(one));
    let backwards: Vec<_> = names.iter().map(String::as_str).collect();
    let half = tar(mount.path(), &backwards[..names.len() / 2]);
    // What hides junk; the whole in one layer, and backwards over a half of it.
    let junk =
        Layer::at(3).directory("./", 0o700).file("junk", &[1; 50_000]).directory("gone/", 0o1);
    let junk = junk.file("gone/x", b"x").end();
    let stacks = [
        vec![junk.clone(), Layer::at(4).mark(".wh..wh..opq").end(), tar(mount.path(), &["."])],
        vec![
            junk,
            Layer::at(4).mark(".wh.junk").mark(".wh.gone").end(),
            half,
            tar(mount.path(), &backwards),
            tar(mount.path(), &["--no-recursion", "."]),
        ],
    ];
    let whole =
        image(SourceSpec::Directory(mount.path().to_owned()), &[], &out.with_extension("d"));
    assert!(whole == first, "directory and archive differ");
    for (number, stack) in stacks.into_iter().enumerate() {
        for form in [Form::Plain, Form::Gzip, Form::Zstd] {
            let layers: Vec<_> = stack.iter().map(|layer| (form, layer.clone())).collect();
            let layout = Layout::of(&home.path().join(format!("{number}{form:?}")), &layers);
            let spec = SourceSpec::Path(layout.path.clone());
            let layers = image(spec, &[], &out.with_extension("l"));
            assert!(layers == first, "stack {number}, {form:?}: layers and archive differ");
        }
    }
    mount.unmount().unwrap();
}

#[test]
fn exclusions_count_names_as_those_of_a_directory() {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["a.o", "b.c", "d.c"] {
        fs::write(tree.join(name), name).unwrap();
    }
    fs::hard_link(tree.join("a.o"), tree.join("c.c")).unwrap();
    let layers = [(Form::Plain, tar(&tree, &["."]))];
    let layout = Layout::of(&home.path().join("layout"), &layers);
    let out = home.path().join("image");
    // The first name of a file is excluded; another stays.
    let directory = image(SourceSpec::Directory(tree), &["*.o"], &out);
    let layers = image(SourceSpec::Path(layout.path.clone()), &["*.o"], &out);
    assert!(directory == layers);
}

#[test]
fn labels_are_attributes_only_if_asked() {
    let home = tempfile::tempdir().unwrap();
    let mut layout = Layout::new(&home.path().join("layout"));
    let labels = json!({ "Labels": { "org.example.title": "a title", "empty": "" } });
    let layers = [(Form::Plain, Layer::at(1).file("f", b"f").end())];
    let manifest = layout.image(&layers, "amd64", &labels);
    layout.add(manifest, None, None);
    let mut options = undercroft_source::SourceOptions::default();
    let root = |options: &undercroft_source::SourceOptions| {
        let spec = SourceSpec::Path(layout.path.clone());
        let mut source = undercroft_source::open(&spec, options).unwrap().source;
        source.next_entry().unwrap().unwrap()
    };
    assert_eq!(root(&options).path.as_bytes(), b"f");
    options.image.labels = true;
    let root = root(&options);
    let xattrs = root.xattrs.iter().map(|xattr| (&xattr.name[..], &xattr.value[..]));
    let expected = [(&b"user.empty"[..], &b""[..]), (b"user.org.example.title", b"a title")];
    assert!(root.path.is_root() && xattrs.eq(expected));
}
