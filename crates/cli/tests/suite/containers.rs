//! Container images on the command line, and layers put on a volume.

use std::fs;
use std::path::Path;
use std::process::Command;

use undercroft_judges::Xfsprogs;

use crate::run::{fails, succeeds, undercroft};

/// Runs a line of shell in a directory.
fn shell(directory: &Path, line: &str) {
    let output = Command::new("sh").args(["-ec", line]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What `docker save` would write: one layer with a file.
const SAVE: &str = r#"
mkdir tree; echo one > tree/file; tar -cf layer.tar -C tree .
sum=$(sha256sum layer.tar | cut -c1-64)
echo '{"os":"linux","architecture":"amd64","config":{"Env":["A=b"]},"rootfs":{"diff_ids":["sha256:'$sum'"]}}' > config.json
echo '[{"Config":"config.json","RepoTags":["app:1"],"Layers":["layer.tar"]}]' > manifest.json
tar -cf named.tar manifest.json config.json layer.tar
mkdir blobs && mv config.json layer.tar blobs
sed -i 's,config.json,blobs/config.json,; s,layer.tar,blobs/layer.tar,' manifest.json
tar -cf saved.tar manifest.json blobs
"#;

#[test]
fn an_image_is_recognised_and_its_config_written() {
    let home = tempfile::tempdir().unwrap();
    shell(home.path(), SAVE);
    let path = |name: &str| home.path().join(name).display().to_string();
    let (saved, image, config) = (path("saved.tar"), path("image"), path("out.json"));
    let built = undercroft(["build", &saved, &image, "--config-to", &config]);
    let said = String::from_utf8(built.stderr).unwrap();
    assert!(built.status.success() && said.contains("is a container image"), "{said}");
    assert_eq!(fs::read(&config).unwrap(), fs::read(path("blobs/config.json")).unwrap());
    assert_eq!(succeeds(["cat", &image, "/file"]), "one\n");
    // Neither is replaced without --force, and neither appears when the other cannot.
    assert!(fails(1, ["build", &saved, &path("new"), "--config-to", &config]).contains("--force"));
    assert!(!Path::new(&path("new")).exists());
    let report =
        succeeds(["build", "--force", "--json", &format!("docker-archive:{saved}"), &image]);
    assert!(report.contains("\"layers\":1") && report.contains("linux/amd64"), "{report}");
    // As it is.
    succeeds(["build", "--force", &format!("tar:{saved}"), &image]);
    assert!(succeeds(["ls", &image]).contains("manifest.json"));
    let other = fails(1, ["build", &format!("docker-archive:{saved}:app:2"), &path("new")]);
    assert!(other.contains("app:1"), "{other}");
}

/// A stream shows its form at its end.
#[test]
fn an_image_on_standard_input_is_not_packed_as_files() {
    let home = tempfile::tempdir().unwrap();
    shell(home.path(), SAVE);
    // The names that docker gives.
    let by_digest = r#"
config=$(sha256sum blobs/config.json | cut -c1-64); layer=$(sha256sum blobs/layer.tar | cut -c1-64)
cp blobs/config.json $config.json; mkdir $layer; cp blobs/layer.tar $layer
echo '[{"Config":"'$config.json'","RepoTags":["app:1"],"Layers":["'$layer'/layer.tar"]}]' > manifest.json
tar -cf docker.tar $config.json $layer manifest.json
"#;
    shell(home.path(), by_digest);
    let build = |source: &str, options: &str| {
        let command = env!("CARGO_BIN_EXE_undercroft");
        let line = format!("{command} build --force {options} {source} image < docker.tar");
        Command::new("bash").args(["-c", &line]).current_dir(home.path()).output().unwrap()
    };
    for (source, options) in [("-", ""), ("-", "--exclude /no"), ("<(cat docker.tar)", "")] {
        let refused = build(source, options);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{source} {options}: {said}");
        assert!(said.contains("docker-archive:-") && said.contains("tar:/dev/stdin"), "{said}");
        assert!(!home.path().join("image").exists());
    }
    let image = home.path().join("image").display().to_string();
    assert!(build("docker-archive:-", "").status.success());
    assert_eq!(succeeds(["cat", &image, "/file"]), "one\n");
    assert!(build("tar:/dev/stdin", "").status.success());
    assert!(succeeds(["ls", &image]).contains("manifest.json"));
}

#[test]
fn options_of_images_want_an_image() {
    let home = tempfile::tempdir().unwrap();
    shell(home.path(), SAVE);
    let path = |name: &str| home.path().join(name).display().to_string();
    for option in [&["--platform", "linux/amd64"][..], &["--image-labels"]] {
        let (tree, new) = (path("tree"), path("new"));
        let args = [&["build", &tree, &new][..], option].concat();
        let said = fails(1, args);
        assert!(said.contains("is no container image") && said.contains("oci:DIR"), "{said}");
    }
    assert!(!Path::new(&path("new")).exists());
    fails(2, ["build", "--platform", "linux", &path("saved.tar"), &path("new")]);
    let (saved, three) = (path("saved.tar"), "linux/arm64,linux/amd64,linux/amd64");
    assert!(
        fails(2, ["diff", "--platform", three, &saved, &saved]).contains("one platform, or two")
    );
    let said = fails(2, ["diff", "--platform", "linux/amd64,linux/arm64", &saved, &saved]);
    assert!(said.contains("linux/amd64"), "there is one image: {said}");
}

#[test]
fn a_layer_is_put_on_a_volume() {
    let home = tempfile::tempdir().unwrap();
    shell(home.path(), SAVE);
    let path = |name: &str| home.path().join(name).display().to_string();
    let (image, layer) = (path("image"), path("upper.tar.gz"));
    succeeds(["build", &path("saved.tar"), &image]);
    shell(
        home.path(),
        "mkdir up; echo two > up/new; touch up/.wh.file; tar -czf upper.tar.gz -C up .",
    );
    let said = succeeds(["build", &layer, "--on", &image]);
    assert!(said.contains("1 names taken away"), "{said}");
    assert_eq!(succeeds(["ls", &image]), "new\n");
    assert_eq!(succeeds(["cat", &image, "/new"]), "two\n");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&image)).unwrap();
    // A layer that cannot be changes nothing.
    let before = fs::read(&image).unwrap();
    shell(home.path(), "rm up/.wh.file; touch up/.wh.; tar -cf bad.tar -C up .");
    let said = fails(1, ["build", &path("bad.tar"), "--on", &image]);
    assert!(said.contains("whiteout"), "{said}");
    // Neither does a whole image, but when its files are meant.
    let saved = path("saved.tar");
    let said = fails(1, ["build", &saved, "--on", &image]);
    assert!(said.contains("archive of one layer is wanted"), "{said}");
    assert!(fs::read(&image).unwrap() == before);
    succeeds(["build", &format!("tar:{saved}"), "--on", &image]);
    assert!(succeeds(["ls", &image]).contains("manifest.json"));
    fails(2, ["build", &layer, "--on", &image, "--size", "1G"]);
    fails(2, ["build", &layer, "--on", &image, "--label", "x"]);
    fails(2, ["build", &layer]);
}
