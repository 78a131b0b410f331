//! Images and layers that are wrong: an error that names the thing, and nothing left behind.

use std::fs;
use std::path::Path;

use serde_json::json;
use undercroft_image::pack::PackOptions;
use undercroft_source::SourceSpec;

use super::image::{Form, Layout, digest};
use super::layer::Layer;
use undercroft_testkit::image::judged::{build, chain};

/// The error of a build, which leaves nothing in the directory of the image.
fn refused(source: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let spec = SourceSpec::from(std::path::PathBuf::from(source));
    let mut options = PackOptions::new(spec, home.path().join("image"));
    options.source_options.reading.temporary_directory = home.path().to_owned();
    let error = build(&options).expect_err(source);
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    chain(&error)
}

fn text(path: &Path) -> String {
    format!("oci:{}", path.display())
}

/// The error of layers in a form.
fn refused_layers(form: Form, layers: &[Layer]) -> String {
    let home = tempfile::tempdir().unwrap();
    let layers: Vec<_> = layers.iter().map(|layer| (form, layer.clone().end())).collect();
    let layout = Layout::of(home.path(), &layers);
    refused(&text(&layout.path))
}

fn base() -> Layer {
    Layer::at(5).directory("a/", 0o755).file("a/one", b"one").file("b", b"b")
}

#[track_caller]
fn assert_says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
}

/// Two layers of a form, of which `change` spoils the blob of the second.
fn spoilt(form: Form, change: impl Fn(&Path)) -> (String, String) {
    let home = tempfile::tempdir().unwrap();
    let second = Layer::at(9).file("big", &[b'x'; 100_000]).end();
    let blob = digest(&form.encode(&second).1);
    let layout = Layout::of(home.path(), &[(form, base().end()), (form, second)]);
    change(&layout.blob_path(&blob));
    (refused(&text(&layout.path)), blob)
}

#[test]
fn blobs_that_are_missing_short_or_changed_are_named() {
    for form in [Form::Plain, Form::Gzip, Form::Zstd, Form::Stargz] {
        let (error, blob) = spoilt(form, |path| fs::remove_file(path).unwrap());
        assert_says(&error, &["layer 2", &blob, "is missing"]);
        let (error, blob) = spoilt(form, |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
        });
        assert_says(&error, &["layer 2", &blob, "truncated"]);
        for place in [0.0, 0.3, 0.6, 0.99] {
            let (error, blob) = spoilt(form, |path| {
                let mut bytes = fs::read(path).unwrap();
                let at = (bytes.len() as f64 * place) as usize;
                bytes[at] ^= 0x10;
                fs::write(path, bytes).unwrap();
            });
            assert_says(&error, &["layer 2", &blob, "has the digest sha256:", "damaged"]);
        }
    }
}

#[test]
fn a_blob_that_is_no_file_is_said_to_be_none() {
    let (error, blob) = spoilt(Form::Plain, |path| {
        fs::remove_file(path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    });
    assert_says(&error, &["layer 2", &blob.replace("sha256:", ""), "no regular file"]);
}

#[test]
fn documents_that_are_wrong_are_named() {
    let home = tempfile::tempdir().unwrap();
    let says = |parts: &[&str]| assert_says(&refused(&text(home.path())), parts);
    says(&["no OCI image layout", "oci-layout is missing", "docker-archive:FILE"]);
    let mut layout = Layout::new(home.path());
    says(&["index.json is missing"]);
    fs::write(home.path().join("index.json"), "{ no json").unwrap();
    says(&["the index cannot be understood", "line 1"]);
    fs::write(home.path().join("index.json"), "{\"manifests\":[]}").unwrap();
    says(&["the index names no image"]);

    let tar = base().end();
    let config = |diff_ids: &[String]| json!({ "architecture": "amd64", "os": "linux", "rootfs": { "diff_ids": diff_ids } });
    let with = |layout: &mut Layout, media_type: &str, diff_ids: &[String]| {
        let layer = layout.blob(media_type, &tar);
        let manifest = layout.manifest(&config(diff_ids), &[layer]);
        let mut fresh = Layout::new(&layout.path);
        fresh.add(manifest, None, None);
    };
    let plain = Form::Plain.media_type();
    with(&mut layout, plain, &[digest(b"another")]);
    says(&["layer 1", "diff_id", &digest(b"another"), &digest(&tar)]);
    with(&mut layout, plain, &[]);
    says(&["0 diff_ids for 1 layers"]);
    with(&mut layout, "application/x-rar", &[digest(&tar)]);
    says(&["layer 1", "media type \"application/x-rar\"", "not known"]);
    let encrypted = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted";
    with(&mut layout, encrypted, &[digest(&tar)]);
    says(&["layer 1 is encrypted", "decrypt"]);
    with(&mut layout, plain, &["sha256:../../../etc/passwd".into()]);
    says(&["the config cannot be understood", "no sha256 or sha512 digest"]);

    // A manifest whose bytes are not those of its digest.
    with(&mut layout, plain, &[digest(&tar)]);
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(home.path().join("index.json")).unwrap()).unwrap();
    let manifest = index["manifests"][0]["digest"].as_str().unwrap();
    let path = layout.blob_path(manifest);
    let changed =
        fs::read_to_string(&path).unwrap().replacen("schemaVersion\":2", "schemaVersion\":3", 1);
    fs::write(&path, changed).unwrap();
    says(&["the manifest", manifest, "has the digest"]);
}

#[test]
fn names_that_no_layer_can_have_are_refused() {
    for form in [Form::Plain, Form::Gzip] {
        let one = |layer: Layer| refused_layers(form, &[base(), layer]);
        let upper = || Layer::at(9);
        assert_says(&one(upper().mark("a/.wh.")), &["layer 2", "a/.wh.", "whiteout of nothing"]);
        assert_says(&one(upper().mark("a/.wh...")), &["layer 2", "whiteout of nothing"]);
        assert_says(&one(upper().file("../up", b"")), &["layer 2", "..", "component"]);
        assert_says(&one(upper().file("/../up", b"")), &["layer 2", "..", "component"]);
        assert_says(&one(upper().file(".wh.x/in", b"")), &["layer 2", "below", "whiteout"]);
        assert_says(&one(upper().file(".wh.x", b"").file(".wh.x/in", b"")), &["layer 2"]);
        let redirect = upper().xattr("trusted.overlay.redirect", b"/b").directory("a/", 0o755);
        assert_says(&one(redirect), &["layer 2", "trusted.overlay.redirect"]);
    }
}

#[test]
fn links_to_what_is_not_there_are_refused() {
    let one = |layer: Layer| refused_layers(Form::Plain, &[base(), layer]);
    let upper = || Layer::at(9);
    assert_says(&one(upper().link("n", "nothing")), &["layer 2", "\"n\"", "nothing", "neither"]);
    assert_says(&one(upper().mark(".wh.b").link("n", "b")), &["layer 2", "\"b\"", "hides"]);
    assert_says(&one(upper().link("n", "b").mark(".wh.b")), &["layer 2", "\"b\"", "hides"]);
    assert_says(&one(upper().mark(".wh.a").link("n", "a/one")), &["layer 2", "hides"]);
    assert_says(&one(upper().mark("a/.wh..wh..opq").link("n", "a/one")), &["layer 2", "hides"]);
    assert_says(&one(upper().link("n", "a")), &["layer 2", "is a directory"]);
    let gone =
        refused_layers(Form::Plain, &[base(), upper().mark(".wh.b"), upper().link("n", "b")]);
    assert_says(&gone, &["layer 3", "neither"]);
}

#[test]
fn what_is_no_archive_is_a_fault_of_its_layer() {
    let home = tempfile::tempdir().unwrap();
    let layout =
        Layout::of(home.path(), &[(Form::Plain, base().end()), (Form::Gzip, vec![b'x'; 2000])]);
    assert_says(&refused(&text(&layout.path)), &["layer 2", "chksum"]);
    let cut = base().end();
    let layout = Layout::of(home.path(), &[(Form::Gzip, cut[..1200].to_vec())]);
    assert_says(&refused(&text(&layout.path)), &["layer 1", "truncated"]);
    let file = home.path().join("file");
    fs::write(&file, b"x").unwrap();
    assert_says(&refused(&text(&file)), &["cannot open the source", "directory"]);
    let archive = format!("oci-archive:{}", file.display());
    assert_says(&refused(&archive), &["truncated"]);
    let tar = home.path().join("some.tar");
    fs::write(&tar, base().end()).unwrap();
    for (prefix, missing) in [("oci-archive", "oci-layout"), ("docker-archive", "manifest.json")] {
        let error = refused(&format!("{prefix}:{}", tar.display()));
        assert_says(&error, &[missing, "is missing"]);
    }
}
