//! Stacks of layers, entry by entry the same as overlayfs shows and as umoci unpacks.

use std::fs;
use std::path::Path;
use std::process::Command;

use undercroft_image::pack::PackOptions;
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Holes, Options, compare};
use undercroft_judges::{LoopMount, Scratch, Xfsprogs, kernel};
use undercroft_source::SourceSpec;

use super::image::{FORMS, Form, Layout};
use super::layer::Layer;
use super::unpacked::{merged, run};
use undercroft_testkit::image::judged::{build, chain};

/// Who else says what layers make.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judges {
    Overlay,
    OverlayAndUmoci,
    /// Where overlayfs copies up, which breaks a link group that was of one inode, or has no word.
    Umoci,
}

use Judges::{Overlay, OverlayAndUmoci, Umoci};

/// A base with most kinds of entries, and every directory with an entry of its own.
fn base() -> Layer {
    Layer::at(1_000_000_000)
        .directory("./", 0o755)
        .directory("a/", 0o750)
        .file("a/one", b"one")
        .file("a/two", &[b'2'; 10_000])
        .directory("a/b/", 0o711)
        .file("a/b/deep", b"deep")
        .xattr("user.kept", b"value")
        .xattr("trusted.t", b"\0\x01")
        .directory("d/", 0o1777)
        .file("d/x", b"x")
        .link("d/y", "d/x")
        .link("a/z", "d/x")
        .symlink("s", "a/one")
        .device("c", b'3', (1, 3))
        .device("k", b'4', (7, 9))
        .fifo("p")
        .xattr("user.big", &[7; 5000])
        .owned("setuid", b"#!", 0o4755, (0, 0))
}

fn upper() -> Layer {
    Layer::at(1_200_000_000)
}

/// A stack with its name.
type Stack = (&'static str, Judges, Vec<Layer>);

/// The stacks.
fn stacks() -> Vec<Stack> {
    [whiteouts(), opaque(), links(), kinds(), roots()].concat()
}

fn top() -> Layer {
    Layer::at(1_400_000_000)
}

/// Whiteouts, before and after what they meet.
fn whiteouts() -> Vec<Stack> {
    vec![
        (
            "whiteouts of all kinds",
            OverlayAndUmoci,
            vec![
                base(),
                upper().mark("a/.wh.one").mark("d/.wh.x").mark(".wh.s").mark(".wh.c").mark(".wh.p"),
            ],
        ),
        ("whiteout of a directory", OverlayAndUmoci, vec![base(), upper().mark(".wh.a")]),
        (
            "whiteout of nothing",
            OverlayAndUmoci,
            vec![base(), upper().mark(".wh.nothing").mark("a/.wh.nothing").mark("a/b/.wh.one")],
        ),
        (
            "whiteout and a new file of the name",
            Overlay,
            vec![
                base(),
                upper()
                    .mark("a/.wh.one")
                    .file("a/one", b"new")
                    .file("a/two", b"n")
                    .mark("a/.wh.two"),
            ],
        ),
        (
            "whiteout after the new directory of the name",
            Overlay,
            vec![
                base(),
                upper()
                    .directory("a/", 0o700)
                    .directory("a/b/", 0o701)
                    .file("a/b/n", b"n")
                    .mark("a/.wh.b"),
            ],
        ),
        (
            "whiteout before the new directory of the name",
            OverlayAndUmoci,
            vec![base(), upper().mark(".wh.a").directory("a/", 0o700).file("a/n", b"n")],
        ),
        (
            "whiteout, then back, then away again",
            OverlayAndUmoci,
            vec![
                base(),
                upper().mark("a/.wh.one"),
                upper().file("a/one", b"back"),
                upper().mark("a/.wh.one"),
            ],
        ),
        (
            "a device 0:0 is a whiteout",
            Overlay,
            vec![base(), upper().device("a/one", b'3', (0, 0))],
        ),
    ]
}

/// Opaque directories, wherever the mark stands, and marks as overlays have them.
fn opaque() -> Vec<Stack> {
    vec![
        (
            "the attribute of overlays",
            Overlay,
            vec![
                base(),
                upper()
                    .xattr("trusted.overlay.opaque", b"y")
                    .directory("a/", 0o755)
                    .file("a/n", b"n"),
            ],
        ),
        (
            "opaque before entries",
            OverlayAndUmoci,
            vec![base(), upper().directory("a/", 0o777).mark("a/.wh..wh..opq").file("a/n", b"n")],
        ),
        (
            "opaque after entries",
            Overlay,
            vec![
                base(),
                upper()
                    .directory("a/", 0o777)
                    .file("a/one", b"1")
                    .directory("a/b/", 0o700)
                    .file("a/b/n", b"n")
                    .mark("a/.wh..wh..opq"),
            ],
        ),
        (
            "opaque without an entry of the directory",
            Overlay,
            vec![base(), upper().mark("a/.wh..wh..opq")],
        ),
        // Overlayfs does not look for the attribute at the root of a layer.
        (
            "opaque root",
            Umoci,
            vec![base(), upper().directory("./", 0o700).mark(".wh..wh..opq").file("n", b"n")],
        ),
        (
            "opaque below an implicit parent",
            Overlay,
            vec![base(), upper().file("a/b/n", b"n").mark("a/b/.wh..wh..opq")],
        ),
    ]
}

/// Hard links over layers, in both directions.
fn links() -> Vec<Stack> {
    vec![
        ("a link to a file below", Overlay, vec![base(), upper().link("new", "a/one")]),
        (
            "a link to a file below with names of its own",
            Umoci,
            vec![base(), upper().link("new", "d/x")],
        ),
        (
            "links below, of which names go",
            OverlayAndUmoci,
            vec![base(), upper().mark("d/.wh.x"), upper().mark(".wh.a")],
        ),
        (
            "a link stays when the other name goes",
            OverlayAndUmoci,
            vec![
                base(),
                upper().link("new", "a/one").link("newer", "new"),
                top().mark("a/.wh.one"),
            ],
        ),
        (
            "a link stays when the other name is replaced",
            OverlayAndUmoci,
            vec![base(), upper().link("new", "a/one"), top().file("a/one", b"other")],
        ),
        (
            "a link, and then the layer replaces its target",
            Umoci,
            vec![base(), upper().link("new", "a/one").file("a/one", b"other")],
        ),
        (
            "a link to the new file of the layer",
            OverlayAndUmoci,
            vec![
                base(),
                upper().file("a/one", b"other").link("new", "a/one").link("a/b/new", "new"),
            ],
        ),
        ("a link replaces a directory", Overlay, vec![base(), upper().link("a/b", "a/two")]),
        (
            "one name of a link group replaced",
            Overlay,
            vec![base(), upper().file("d/x", b"of its own")],
        ),
    ]
}

/// Kinds and attributes replaced, and parents without entries.
fn kinds() -> Vec<Stack> {
    vec![
        ("one layer", OverlayAndUmoci, vec![base()]),
        (
            "directory over directory",
            OverlayAndUmoci,
            vec![
                base(),
                upper().xattr("user.new", b"n").directory("a/", 0o2770).directory("d/", 0o700),
                top().directory("a/", 0o555),
            ],
        ),
        (
            "kinds replaced",
            OverlayAndUmoci,
            vec![
                base(),
                upper()
                    .file("a", b"a file now")
                    .directory("s/", 0o755)
                    .file("s/in", b"in")
                    .symlink("c", "elsewhere")
                    .fifo("d")
                    .device("setuid", b'3', (5, 1)),
                top()
                    .directory("a/", 0o755)
                    .file("a/n", b"n")
                    .file("d", b"file")
                    .file("s/more", b"m"),
            ],
        ),
        (
            "whiteouts below a directory that became a file",
            // By itself the layer cannot be unpacked for overlayfs.
            Umoci,
            vec![
                base(),
                upper()
                    .file("a", b"a file now")
                    .mark("a/.wh.one")
                    .mark("a/b/.wh.deep")
                    .mark("a/b/.wh..wh..opq")
                    .fifo("d")
                    .mark("d/.wh.x"),
            ],
        ),
        (
            "parents without entries",
            // Umoci gives new ones the time of the day.
            Overlay,
            vec![
                base(),
                upper().file("a/b/n", b"n").file("d/n", b"n").file("new/deep/er", b"n"),
                top().file("new/deep/est", b"n"),
            ],
        ),
        (
            "a parent without an entry over a file",
            Overlay,
            vec![base(), upper().file("setuid/n", b"n").file("s/n", b"n")],
        ),
        ("a layer without entries", OverlayAndUmoci, vec![base(), upper(), top().file("n", b"n")]),
    ]
}

/// Names that begin at the root of the image, and names over symbolic links of their own layer.
fn roots() -> Vec<Stack> {
    vec![
        (
            "whole names, as kaniko writes them",
            OverlayAndUmoci,
            vec![
                base(),
                upper()
                    .directory("/", 0o750)
                    .directory("/k/", 0o711)
                    .file("/k/one", b"k")
                    .link("k/two", "/k/one")
                    .link("/k/three", "k/two")
                    .mark("/a/.wh.one"),
            ],
        ),
        (
            "directories that are links",
            OverlayAndUmoci,
            vec![
                base(),
                upper()
                    .directory("usr/", 0o755)
                    .directory("usr/lib/", 0o755)
                    .symlink("lib", "usr/lib")
                    .file("lib/x.so", b"x")
                    .link("usr/y.so", "lib/x.so")
                    .directory("lib/d/", 0o700)
                    .file("lib/d/in", b"in"),
            ],
        ),
    ]
}

/// The stacks of which overlayfs is a judge.
pub(crate) fn for_overlays() -> Vec<(&'static str, Vec<Layer>)> {
    let stacks = stacks().into_iter().filter(|(_, judges, _)| *judges != Umoci);
    stacks.map(|(name, _, layers)| (name, layers)).collect()
}

/// Builds the image, judges the volume, and compares it with other trees.
fn check(name: &str, form: Form, layers: &[Vec<u8>], others: &[&Path]) {
    let home = tempfile::tempdir().unwrap();
    let layers: Vec<_> = layers.iter().map(|layer| (form, layer.clone())).collect();
    let layout = Layout::of(&home.path().join("layout"), &layers);
    let image = home.path().join("image");
    let spec = SourceSpec::from(layout.path.with_file_name("layout"));
    let summary = match build(&PackOptions::new(spec, image.clone())) {
        Ok(summary) => summary,
        Err(error) => panic!("{name}, {form:?}: {}", chain(&error)),
    };
    assert!(summary.image.unwrap().is_recognised);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
    let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
    for other in others {
        let options = Options { holes: Holes::Ignore, ..Options::default() };
        let found = compare(other, mount.path(), &options).unwrap();
        assert!(found.same(), "{name}, {form:?}, {}: {found:?}", other.display());
    }
    mount.unmount().unwrap();
}

#[test]
fn stacks_are_what_others_make_of_them() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 << 20).unwrap();
    for (number, (name, judges, layers)) in stacks().into_iter().enumerate() {
        let layers: Vec<_> = layers.into_iter().map(Layer::end).collect();
        let home = scratch.path().join(number.to_string());
        fs::create_dir(&home).unwrap();
        let overlay = (judges != Umoci).then(|| merged(&home, &layers));
        let umoci = (judges != Overlay).then(|| {
            // It does not read zstd, and wants a tag.
            let gzip: Vec<_> = layers.iter().map(|layer| (Form::Gzip, layer.clone())).collect();
            let layout = Layout::of(&home.join("layout"), &gzip);
            let bundle = home.join("bundle");
            let image = format!("{}:t", layout.path.display());
            run(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle));
            bundle.join("rootfs")
        });
        let others: Vec<&Path> =
            overlay.iter().chain(&umoci).map(std::path::PathBuf::as_path).collect();
        // Forms take turns; each stack has two of them.
        for form in [FORMS[number % 5], FORMS[(number + 2) % 5]] {
            check(name, form, &layers, &others);
        }
    }
}

#[test]
fn forms_and_names_of_an_image_make_no_difference() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(256 << 20).unwrap();
    let layers = [base(), upper().mark("a/.wh.b").file("n", b"n")].map(Layer::end);
    let overlay = merged(scratch.path(), &layers);
    for form in FORMS {
        check("forms", form, &layers, &[&overlay]);
    }
}
