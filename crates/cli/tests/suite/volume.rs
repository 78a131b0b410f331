//! Commands that change a volume as a whole: size, label, UUID.

use std::fs;
use std::path::Path;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};

use crate::run::{Sample, fails, sample, succeeds, undercroft};

/// A volume of 64 MiB with a small tree.
fn volume() -> Sample {
    sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0", "--uuid", FIRST])
}

const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";

/// Our check and the newest `xfs_repair -n` find nothing, and the file is there.
#[track_caller]
fn judged(image: &str) {
    let report = succeeds(["check", image]);
    assert!(report.starts_with("clean: "), "{report}");
    Xfsprogs::newest().unwrap().repair_check(Path::new(image)).unwrap();
    assert_eq!(succeeds(["cat", image, "/etc/hosts"]), "127.0.0.1 localhost\n");
}

/// Runs a command that must fail with status 1 and change nothing; returns its message.
#[track_caller]
fn refused(sample: &Sample, args: &[&str]) -> String {
    let before = fs::read(&sample.image).unwrap();
    let message = fails(1, args);
    assert!(message.starts_with("error: "), "{message}");
    assert!(fs::read(&sample.image).unwrap() == before, "{args:?}");
    message
}

#[test]
fn a_file_grows_with_its_volume() {
    let sample = volume();
    let image = &sample.image[..];
    let text = succeeds(["grow", "--size", "100M", image]);
    assert!(text.starts_with("grown from 64.0 MiB in "), "{text}");
    judged(image);
    let json = succeeds(["grow", "--groups", "9", "--json", image]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["groups"], 9);
    let bytes = report["blocks"].as_u64().unwrap() * report["block_size"].as_u64().unwrap();
    assert_eq!(fs::metadata(image).unwrap().len(), bytes);
    judged(image);
    let message = refused(&sample, &["grow", "--size", "64M", image]);
    assert!(message.contains("cannot shrink"), "{message}");
    let message = refused(&sample, &["grow", "--groups", "3", image]);
    assert!(message.contains("cannot shrink"), "{message}");
    // The same again, as after a cut.
    let text = succeeds(["grow", "--groups", "9", image]);
    assert!(text.starts_with("nothing to gain: the volume has "), "{text}");
    assert!(succeeds(["grow", image]).starts_with("nothing to gain"));
    fails(2, ["grow", "--size", "1G", "--groups", "3", image]);
    // Room that another program made.
    fs::File::options().write(true).open(image).unwrap().set_len(300 << 20).unwrap();
    succeeds(["grow", image]);
    judged(image);
}

#[test]
fn a_volume_inside_an_image_grows_to_its_end() {
    let sample = volume();
    let disk = sample.path("disk");
    let mut bytes = vec![0xee; 1 << 20];
    bytes.extend(fs::read(&sample.image).unwrap());
    fs::write(&disk, &bytes).unwrap();
    succeeds(["grow", "--offset", "1M", "--size", "100M", &disk]);
    let bytes = fs::read(&disk).unwrap();
    assert!(bytes[..1 << 20].iter().all(|byte| *byte == 0xee));
    fs::write(sample.path("inner"), &bytes[1 << 20..]).unwrap();
    judged(&sample.path("inner"));
    let stack = format!("linear({},{})", sample.image, sample.path("second"));
    fs::write(sample.path("second"), vec![0; 32 << 20]).unwrap();
    let message = refused(&sample, &["grow", "--size", "200M", &stack]);
    assert!(message.contains("make it larger first"), "{message}");
    succeeds(["grow", &stack]);
    assert!(succeeds(["check", &stack]).starts_with("clean: "));
}

#[test]
fn labels_are_printed_and_set() {
    let sample = volume();
    let image = &sample.image[..];
    assert_eq!(succeeds(["label", image]), "\n");
    assert_eq!(succeeds(["label", image, "twelve bytes"]), "");
    assert_eq!(succeeds(["label", image]), "twelve bytes\n");
    judged(image);
    assert_eq!(succeeds(["label", "--json", image, "x"]), "{\"label\":{\"name\":\"x\"}}\n");
    for args in
        [&["label", image, "thirteen byte"][..], &["set", "--label", "thirteen byte", image]]
    {
        let message = fails(2, args);
        assert!(message.contains("at most 12 bytes"), "{message}");
    }
    succeeds(["label", image, ""]);
    assert_eq!(succeeds(["label", "--json", image]), "{\"label\":{\"name\":\"\"}}\n");
    judged(image);
}

#[test]
fn uuids_are_set_and_restored() {
    let sample = volume();
    let image = &sample.image[..];
    let text = succeeds(["set", "--uuid", SECOND, "--label", "both", image]);
    assert_eq!(
        text,
        format!("label       both\nUUID        {SECOND}\n            {FIRST} in metadata\n")
    );
    judged(image);
    let json = succeeds(["set", "--json", "--uuid", "generate", image]);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["meta_uuid"], FIRST);
    assert_eq!(found["label"]["name"], "both");
    assert!(found["uuid"] != FIRST && found["uuid"] != SECOND);
    judged(image);
    succeeds(["set", "--uuid", "nil", image]);
    assert!(succeeds(["info", image]).contains(&uuid::Uuid::nil().to_string()));
    let json = succeeds(["set", "--json", "--uuid", "restore", image]);
    assert!(!json.contains("meta_uuid") && json.contains(FIRST), "{json}");
    judged(image);
    assert!(fails(2, ["set", image]).contains("--uuid"));
    assert!(fails(2, ["set", "--uuid", "12", image]).contains("32 hexadecimal digits"));
}

#[test]
fn a_volume_that_is_in_use_or_dirty() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let changes: [&[&str]; 5] = [
        &["grow", "--size", "100M"],
        &["shrink", "--size", "min"],
        &["label", "--json"],
        &["set", "--uuid", SECOND],
        &["set", "--label", "x"],
    ];
    let on = |change: &[&str], image: &str, further: &[&str]| -> Vec<String> {
        let words = change.iter().chain(further).copied().chain([image]);
        let name = (change[0] == "label").then_some("new");
        words.chain(name).map(str::to_owned).collect()
    };
    let mounted = sample.path("mounted");
    image::copy(Path::new(&sample.image), Path::new(&mounted)).unwrap();
    let mount = LoopMount::new(Path::new(&mounted), Access::ReadWrite, &[]).unwrap();
    for change in changes {
        let message = fails(1, on(change, &mounted, &[]));
        assert!(message.contains("is mounted at"), "{message}");
    }
    fs::write(mount.join("early"), "early").unwrap();
    rustix::fs::syncfs(fs::File::open(mount.path()).unwrap()).unwrap();
    // The image of a volume in use, as a crash would leave it.
    let dirty = sample.path("dirty");
    image::copy(Path::new(&mounted), Path::new(&dirty)).unwrap();
    mount.unmount().unwrap();
    for change in changes {
        image::copy(Path::new(&dirty), Path::new(&sample.image)).unwrap();
        let message = fails(1, on(change, &sample.image, &["--no-replay"]));
        assert!(message.contains("was not unmounted cleanly"), "{message}");
        let output = undercroft(on(change, &sample.image, &[]));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        assert!(message.contains("its journal"), "{message}");
        judged(&sample.image);
        let mount = LoopMount::new(Path::new(&sample.image), Access::ReadWrite, &[]).unwrap();
        assert_eq!(fs::read(mount.join("early")).unwrap(), b"early");
        mount.unmount().unwrap();
    }
}
