//! The pages that commands write, opened in Chromium: on a telephone, a tablet and a screen, light and
//! dark, and printed. Nothing leaves its place, nothing lies on anything else.

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::succeeds;
use browser::{Looks, print};

/// A page in a directory of its own.
struct Page {
    directory: tempfile::TempDir,
    file: PathBuf,
}

impl Page {
    fn new(make: impl FnOnce(&Path, &Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("page.html");
        make(directory.path(), &file);
        Self { directory, file }
    }

    /// Holds what every page holds to. There are pictures, and words in them.
    fn is_sound(&self, pictures: usize) {
        let text = fs::read_to_string(&self.file).unwrap();
        for looks in [Looks::Light, Looks::Dark] {
            for seen in browser::look(&text, looks, self.directory.path()) {
                let findings = seen.findings.join("\n");
                assert!(findings.is_empty(), "{looks:?}, {} pixels wide:\n{findings}", seen.width);
                assert!(seen.pictures >= pictures, "{seen:?}");
                assert!(seen.words >= 5 * pictures, "{seen:?}");
                assert_eq!(seen.is_dark, looks == Looks::Dark, "{seen:?}");
            }
        }
        let tidy = Command::new("tidy").args(["-q", "-e"]).arg(&self.file).output().unwrap();
        assert!(tidy.status.success(), "{}", String::from_utf8_lossy(&tidy.stderr));
        print(&self.file, self.directory.path());
    }
}

#[test]
fn the_report_is_read_anywhere() {
    let page = Page::new(|_, file| fs::write(file, crate::lab::report()).unwrap());
    page.is_sound(14);
}

/// Claims and figures of a page, without what a browser is for.
#[test]
fn the_report_is_a_document_as_well() {
    let home = tempfile::tempdir().unwrap();
    let [page, document] = ["report.html", "report.md"].map(|name| home.path().join(name));
    fs::write(&page, crate::lab::report()).unwrap();
    let [from, to] = [&page, &document].map(|path| path.to_str().unwrap());
    succeeds(["lab", "report", "--from", from, "-o", to]);
    let (page, document) =
        (fs::read_to_string(&page).unwrap(), fs::read_to_string(&document).unwrap());
    let chapters = document.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(chapters, page.matches("<section id=").count());
    assert!(document.contains("| claim | rule |") && !document.contains("<section"));
}

#[test]
fn the_layout_of_a_volume_is_read_anywhere() {
    let page = Page::new(|directory, file| {
        let image = directory.join("a-volume-with-a-name-that-is-rather-long-for-a-telephone.img");
        let image = image.to_str().unwrap();
        // Far-off and free extents of many lengths.
        succeeds(["lab", "age", image, "--size", "1G", "--map", "random"]);
        succeeds(["frag", "--all", "--html", file.to_str().unwrap(), image]);
    });
    page.is_sound(5);
    let text = fs::read_to_string(&page.file).unwrap();
    for words in ["Free extents by length", "group 0, blocks 0 to", ": free</title>"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn words_out_of_place_are_found() {
    let words =
        "<text x=\"150\" y=\"20\">words that leave</text><text x=\"152\" y=\"22\">it</text>";
    let page = format!(
        "<!DOCTYPE html><meta http-equiv=\"Content-Security-Policy\" content=\"\"><body style=\"background:white\">\
         <p style=\"white-space:nowrap\">{}</p><svg viewBox=\"0 0 200 50\" width=\"200\">{words}</svg></body>",
        "a line that is too long for any screen ".repeat(20)
    );
    let directory = tempfile::tempdir().unwrap();
    for seen in browser::look(&page, Looks::Light, directory.path()) {
        for what in ["the page is", "leaves its picture", "lies on", "leaves the page"] {
            assert!(seen.findings.iter().any(|finding| finding.contains(what)), "{what}: {seen:?}");
        }
    }
}
