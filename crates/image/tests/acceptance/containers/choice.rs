//! Which image is meant: tags, platforms, nested indexes, archives of both kinds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;
use undercroft_image::pack::{PackOptions, Summary};
use undercroft_source::oci::ImageFormat;
use undercroft_source::{Options, SourceSpec, open};

use super::image::{Form, Layout};
use super::layer::Layer;
use super::unpacked::run;
use crate::judged::{build, chain};

/// Names of the files at the root, or the error.
fn names(source: &str, platform: Option<&str>) -> Result<Vec<String>, String> {
    let mut options = Options::default();
    options.image.platform = platform.map(|platform| platform.parse().unwrap());
    let spec = SourceSpec::from(PathBuf::from(source));
    let mut source = open(&spec, &options).map_err(|error| chain(&error))?;
    let mut names = Vec::new();
    source.scan(&mut |entry| names.push(entry.path.to_string())).map_err(|error| chain(&error))?;
    Ok(names)
}

fn layer(name: &str) -> Vec<(Form, Vec<u8>)> {
    vec![(Form::Gzip, Layer::at(7).file(name, name.as_bytes()).end())]
}

#[track_caller]
fn assert_refused(result: Result<Vec<String>, String>, parts: &[&str]) {
    let error = result.unwrap_err();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn tags_and_digests_choose() {
    let home = tempfile::tempdir().unwrap();
    let mut layout = Layout::new(home.path());
    let path = layout.path.display().to_string();
    let one = layout.image(&layer("one"), "amd64", &json!({}));
    let digest = one["digest"].as_str().unwrap().to_owned();
    layout.add(one.clone(), Some("1.0"), None);
    layout.add(one, Some("latest"), None);
    // Two tags of one image are no question.
    assert_eq!(names(&format!("oci:{path}"), None).unwrap(), ["one"]);
    let two = layout.image(&layer("two"), "amd64", &json!({}));
    layout.add(two, Some("2.0"), None);
    assert_eq!(names(&format!("oci:{path}:1.0"), None).unwrap(), ["one"]);
    assert_eq!(names(&format!("oci:{path}:2.0"), None).unwrap(), ["two"]);
    assert_eq!(names(&format!("oci:{path}@{digest}"), None).unwrap(), ["one"]);
    assert_refused(names(&format!("oci:{path}"), None), &["several", "1.0", "2.0", "latest"]);
    assert_refused(names(&format!("oci:{path}:3"), None), &["\"3\"", "1.0", "2.0"]);
}

#[test]
fn platforms_choose() {
    let home = tempfile::tempdir().unwrap();
    let mut layout = Layout::new(home.path());
    let path = layout.path.display().to_string();
    let mut manifests = Vec::new();
    for (architecture, variant) in
        [("amd64", None), ("arm", Some("v6")), ("arm", Some("v7")), ("s390x", None)]
    {
        let name = format!("{architecture}{}", variant.unwrap_or(""));
        let mut manifest = layout.image(&layer(&name), architecture, &json!({}));
        manifest["platform"] = json!({ "os": "linux", "architecture": architecture });
        if let Some(variant) = variant {
            manifest["platform"]["variant"] = json!(variant);
        }
        manifests.push(manifest);
    }
    let mut attestation = layout.image(&layer("no image"), "unknown", &json!({}));
    attestation["platform"] = json!({ "os": "unknown", "architecture": "unknown" });
    manifests.push(attestation);
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "manifests": manifests });
    let index = layout.blob(media_type, index.to_string().as_bytes());
    layout.add(index, Some("t"), None);
    let source = format!("oci:{path}");
    for (platform, name) in [
        ("linux/amd64", "amd64"),
        ("linux/arm", "armv7"),
        ("linux/arm/v6", "armv6"),
        ("linux/s390x", "s390x"),
    ] {
        assert_eq!(names(&source, Some(platform)).unwrap(), [name]);
    }
    let host = names(&source, None);
    match std::env::consts::ARCH {
        "x86_64" => assert_eq!(host.unwrap(), ["amd64"]),
        "aarch64" => assert_refused(host, &["linux/arm64", "linux/amd64", "--platform"]),
        _ => {}
    }
    let all = ["linux/amd64", "linux/arm/v6", "linux/arm/v7", "linux/s390x", "--platform"];
    assert_refused(names(&source, Some("linux/riscv64")), &all);
    // A single image is asked for its own platform only when one is wanted.
    let single = Layout::of(&home.path().join("single"), &layer("x"));
    let single = format!("oci:{}", single.path.display());
    assert_refused(names(&single, Some("linux/arm64")), &["linux/amd64"]);
}

/// A layout and what skopeo makes of it.
fn archives() -> (TempDir, [(String, ImageFormat); 3]) {
    let home = tempfile::tempdir().unwrap();
    let layers = [
        (Form::Gzip, Layer::at(7).directory("./", 0o755).file("one", b"1").file("two", b"2").end()),
        (Form::Gzip, Layer::at(8).mark(".wh.one").link("three", "two").end()),
    ];
    let layout = Layout::of(&home.path().join("layout"), &layers);
    let from = format!("oci:{}:t", layout.path.display());
    let copy = |to: &str| {
        run(Command::new("skopeo").args(["--insecure-policy", "copy", "--quiet", &from, to]));
    };
    let [oci, docker] = ["oci.tar", "docker.tar"].map(|name| home.path().join(name));
    copy(&format!("oci-archive:{}:t", oci.display()));
    copy(&format!("docker-archive:{}:example/app:1.0", docker.display()));
    let text = |path: &Path| path.display().to_string();
    let all = [
        (text(&layout.path), ImageFormat::Oci),
        (text(&oci), ImageFormat::OciArchive),
        (text(&docker), ImageFormat::DockerArchive),
    ];
    (home, all)
}

fn built(source: &str, image: &Path) -> Summary {
    let spec = SourceSpec::from(PathBuf::from(source));
    let mut options = PackOptions::new(spec, image.to_owned());
    options.force = true;
    build(&options).unwrap()
}

#[test]
fn archives_of_skopeo_are_read_and_recognised() {
    let (home, all) = archives();
    let image = home.path().join("image");
    let mut images = Vec::new();
    for (path, format) in &all {
        for (source, recognised) in
            [(path.clone(), true), (format!("{}{path}", format.prefix()), false)]
        {
            let summary = built(&source, &image);
            let report = summary.image.unwrap();
            assert_eq!((report.spec.format, report.is_recognised), (*format, recognised));
            assert_eq!((report.layers, summary.hard_links), (2, 1));
            assert!(report.config.starts_with(b"{"));
            images.push(fs::read(&image).unwrap());
        }
    }
    assert!(images.iter().all(|other| *other == images[0]), "the same tree, the same bytes");
    // As they are, they are an archive and a directory.
    assert!(names(&format!("tar:{}", all[1].0), None).unwrap().iter().any(|n| n == "index.json"));
    assert!(names(&format!("dir:{}", all[0].0), None).unwrap().iter().any(|n| n == "index.json"));
    // Compressed, they are images, too.
    run(Command::new("gzip").arg(&all[2].0));
    let summary = built(&format!("{}.gz", all[2].0), &image);
    assert!(summary.image.unwrap().is_recognised);
    let named = format!("docker-archive:{}.gz", all[2].0);
    assert_eq!(names(&named, None).unwrap(), [".", "three", "two"]);
    assert_eq!(names(&format!("{named}:example/app:1.0"), None).unwrap().len(), 3);
    assert_refused(names(&format!("{named}:example/app:2"), None), &["example/app:1.0"]);
}
