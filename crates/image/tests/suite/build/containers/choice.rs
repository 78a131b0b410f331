//! Which image is meant: tags, platforms, nested indexes, archives of both kinds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;
use undercroft_image::pack::{PackOptions, Summary};
use undercroft_source::oci::ImageFormat;
use undercroft_source::{SourceOptions, SourceSpec, open};

use super::image::{Form, Layout};
use super::layer::Layer;
use super::unpacked::run;
use undercroft_testkit::image::judged::{build, chain};

/// Names of the files at the root, or the error.
fn names(source: &str, platform: Option<&str>) -> Result<Vec<String>, String> {
    let mut options = SourceOptions::default();
    options.image.platform = platform.map(|platform| platform.parse().unwrap());
    let spec = SourceSpec::from(PathBuf::from(source));
    let mut source = open(&spec, &options).map_err(|error| chain(&error))?.source;
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
        "aarch64" => assert_refused(host, &["linux/arm64", "linux/amd64", "name another platform"]),
        _ => {}
    }
    let all =
        ["linux/amd64", "linux/arm/v6", "linux/arm/v7", "linux/s390x", "name another platform"];
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

/// An archive of files, by the system's tar.
fn archive(home: &Path, name: &str, files: &[(&str, Vec<u8>)]) -> String {
    let directory = home.join(format!("{name}.d"));
    for (file, bytes) in files {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let path = home.join(name);
    let names = files.iter().map(|(file, _)| file);
    run(Command::new("tar").arg("-cf").arg(&path).arg("-C").arg(&directory).args(names));
    path.display().to_string()
}

/// The names that go-containerregistry, crane and kaniko give, those of jib, and a file name of each; skopeo
/// reads them, too.
#[test]
fn archives_by_the_names_in_their_list_are_recognised() {
    let home = tempfile::tempdir().unwrap();
    let tar = Layer::at(7).directory("./", 0o755).file("one", b"1").end();
    let blob = Form::Gzip.encode(&tar).1;
    let config = json!({ "architecture": "amd64", "os": "linux", "rootfs": {
        "type": "layers", "diff_ids": [super::image::digest(&tar)] } });
    let config = config.to_string().into_bytes();
    let hex = |bytes: &[u8]| super::image::digest(bytes).replace("sha256:", "");
    let by_digest = format!("sha256:{}", hex(&config));
    let blob_name = format!("{}.tar.gz", hex(&blob));
    for (name, config_name, layer, prefix) in [
        ("crane.tar", &by_digest[..], &blob_name[..], ""),
        ("jib.tar", "config.json", &blob_name, ""),
        ("named.tar", "config.json", "layer.tar", "./"),
    ] {
        let list = json!([{ "Config": format!("{prefix}{config_name}"), "RepoTags": ["a:1"],
            "Layers": [format!("{prefix}{layer}")] }]);
        let list = list.to_string().into_bytes();
        let files = [(config_name, config.clone()), (layer, blob.clone()), ("manifest.json", list)];
        let path = archive(home.path(), name, &files);
        let copy = format!("dir:{}", home.path().join(format!("{name}.copy")).display());
        let from = format!("docker-archive:{path}");
        run(Command::new("skopeo").args(["--insecure-policy", "copy", "--quiet", &from, &copy]));
        assert_eq!(names(&path, None).unwrap(), [".", "one"], "{name}");
        assert_eq!(names(&from, None).unwrap(), [".", "one"], "{name}");
        let copied = copy.trim_start_matches("dir:");
        assert_refused(names(copied, None), &["skopeo copy", copied]);
        assert!(names(&copy, None).unwrap().iter().any(|name| name == "version"));
        let packed = format!("{copied}.tar");
        run(Command::new("tar").args(["-cf", &packed, "-C", copied, "."]));
        assert_refused(names(&packed, None), &["skopeo copy", &format!("tar:{packed}")]);
        assert!(
            names(&format!("tar:{packed}"), None).unwrap().iter().any(|name| name == "version")
        );
        let unpacked = home.path().join(format!("{name}.tree"));
        fs::create_dir(&unpacked).unwrap();
        run(Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(&unpacked));
        let unpacked = unpacked.display().to_string();
        assert_refused(names(&unpacked, None), &["docker-archive:", &unpacked]);
        assert_eq!(names(&format!("dir:{unpacked}"), None).unwrap().len(), 4, "{name}");
        // With a file that the list does not name it is an archive of files.
        let files = [&files[..], &[("other.json", b"{}".to_vec())]].concat();
        let plain = archive(home.path(), &format!("plain-{name}"), &files);
        assert_eq!(names(&plain, None).unwrap().len(), 4, "{name}");
    }
    let pages = [("manifest.json", b"{\"name\":\"app\"}".to_vec())];
    let pages = archive(home.path(), "pages.tar", &pages);
    assert_eq!(names(&pages, None).unwrap(), ["manifest.json"]);
}

/// As docker 25.0.0 saved images: the manifest of the layout has no layers.
#[test]
fn of_two_forms_the_one_that_is_whole_counts() {
    let home = tempfile::tempdir().unwrap();
    let tar = Layer::at(7).directory("./", 0o755).file("one", b"1").end();
    let mut layout = Layout::new(&home.path().join("layout"));
    let config = json!({ "architecture": "amd64", "os": "linux", "rootfs": {
        "type": "layers", "diff_ids": [super::image::digest(&tar)] } });
    let manifest = layout.manifest(&config, &[]);
    layout.add(manifest, Some("t"), None);
    layout.blob("application/vnd.oci.image.layer.v1.tar", &tar);
    let blob = |bytes: &[u8]| super::image::digest(bytes).replace(':', "/");
    let [config, layer] =
        [config.to_string().as_bytes(), &tar].map(|it| format!("blobs/{}", blob(it)));
    let list = json!([{ "Config": config, "RepoTags": ["a:1"], "Layers": [layer] }]);
    fs::write(layout.path.join("manifest.json"), list.to_string()).unwrap();
    let path = home.path().join("saved.tar");
    run(Command::new("tar").arg("-cf").arg(&path).arg("-C").arg(&layout.path).arg("."));
    let path = path.display().to_string();
    assert_eq!(names(&path, None).unwrap(), [".", "one"]);
    assert_refused(names(&format!("oci-archive:{path}"), None), &["1 diff_ids for 0 layers"]);
}
