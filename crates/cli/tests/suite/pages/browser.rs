//! Chromium, and what it sees.

use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Pixels of a telephone, a tablet and a screen.
const WIDTHS: [u32; 3] = [390, 768, 1280];
/// What a page asks browsers for, which would keep the script of the test away, too.
const POLICY: &str = "http-equiv=\"Content-Security-Policy\"";

/// The scheme of colours that a reader prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    Light,
    Dark,
}

/// What was seen of a page at one width.
#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    pub(crate) width: u32,
    /// Words that leave their place, or lie on others.
    pub(crate) findings: Vec<String>,
    pub(crate) pictures: usize,
    /// Texts in pictures.
    pub(crate) words: usize,
    pub(crate) is_dark: bool,
}

/// Chromium with a profile of its own in `directory`.
fn chromium(directory: &Path, arguments: &[&str], page: &Path) -> Output {
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let mut command = Command::new("chromium");
    // Its sandbox refuses root, and the pages are our own.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", &profile]);
    let output = command.args(arguments).arg(page).output();
    let output = output.expect("chromium of the package of this name opens pages");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Opens a copy of the page with a script in it, at all widths, each in a frame.
pub(crate) fn look(page: &str, looks: Looks, directory: &Path) -> Vec<Seen> {
    assert!(page.contains(POLICY), "the page lets others be loaded");
    let script = format!("<script>{}</script></body>", include_str!("look.js"));
    let copy = page.replace(POLICY, "name=\"policy\"").replace("</body>", &script);
    fs::write(directory.join("copy.html"), copy).unwrap();
    let frames = WIDTHS.map(|width| {
        format!(
            "<iframe src=\"copy.html\" style=\"width:{width}px;height:900px;border:0\"></iframe>"
        )
    });
    let frame = format!(
        "<!DOCTYPE html><body><pre></pre><script>addEventListener('message', of => {{ \
         document.querySelector('pre').textContent += of.data + '\\n'; }});</script>{}</body>",
        frames.concat()
    );
    let outer = directory.join("frames.html");
    fs::write(&outer, frame).unwrap();
    let scheme = match looks {
        Looks::Dark => "--blink-settings=preferredColorScheme=0",
        Looks::Light => "--blink-settings=preferredColorScheme=1",
    };
    let arguments =
        ["--dump-dom", "--virtual-time-budget=20000", "--window-size=1400,1000", scheme];
    let output = chromium(directory, &arguments, &outer);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next()).unwrap();
    let lines = lines.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let seen = lines.lines().map(|line| serde_json::from_str(line).expect(line));
    let mut seen: Vec<Seen> = seen.collect();
    seen.sort_by_key(|seen| seen.width);
    assert_eq!(seen.iter().map(|seen| seen.width).collect::<Vec<_>>(), WIDTHS, "{text}");
    seen
}

/// Prints the page as it is. Every heading is there, and no word leaves its sheet.
pub(crate) fn print(page: &Path, directory: &Path) {
    let pdf = directory.join("page.pdf");
    let to = format!("--print-to-pdf={}", pdf.display());
    chromium(directory, &["--no-pdf-header-footer", &to], page);
    let pdftotext = |arguments: &[&str]| {
        let output = Command::new("pdftotext").args(arguments).arg(&pdf).arg("-").output();
        let output = output.expect("pdftotext of the package poppler-utils reads what was printed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = words(&pdftotext(&[]));
    let text = fs::read_to_string(page).unwrap();
    for heading in text.split("<h2>").skip(1).map(|rest| rest.split("</h2>").next().unwrap()) {
        assert!(printed.contains(&words(heading)), "{heading} is not printed");
    }
    let (mut sheet, mut count) = ((0.0, 0.0), 0);
    for line in pdftotext(&["-bbox"]).lines() {
        let number = |name: &str| -> Option<f64> {
            line.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.parse().ok()
        };
        if let (true, Some(width), Some(height)) =
            (line.contains("<page"), number("width"), number("height"))
        {
            sheet = (width, height);
        } else if let (Some(left), Some(top), Some(right), Some(bottom)) =
            (number("xMin"), number("yMin"), number("xMax"), number("yMax"))
        {
            let inside = left >= 0.0 && top >= 0.0 && right <= sheet.0 && bottom <= sheet.1;
            assert!(inside, "{} leaves a sheet of {sheet:?}", line.trim());
            count += 1;
        }
    }
    assert!(count > 100, "{count} words are printed");
}
