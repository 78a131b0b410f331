//! Pictures with long names, drawn by another program: no word leaves its picture or lies on another.

use std::fs;
use std::process::Command;

use super::figure::{Axis, BarChart, Drawing, LineChart, Panel, Value};
use super::words::width;
use super::{Canvas, SIZE, bars, lines, panel};

/// White around a picture in which nothing may be drawn, in pixels.
const RING: u32 = 60;

fn value(middle: f64) -> Value {
    Value { middle, low: 0.9 * middle, high: 1.2 * middle }
}

/// Ten lines whose ends lie close together.
fn crowded_lines() -> LineChart {
    let (x, y) =
        (Axis::logarithmic("tags"), Axis::logarithmic("I/Os a second of all of the workers"));
    let mut chart = LineChart { x, y, series: Vec::new() };
    for series in 0..10 {
        for depth in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
            let name = format!("variant {series} with a name that is long");
            chart.put(&name, depth, value(depth * 1e5 + f64::from(series)));
        }
    }
    chart
}

fn crowded_bars() -> BarChart {
    let mut chart = BarChart::new("CPU microseconds an I/O, all threads of the process together");
    for category in 0..21 {
        for series in ["threads", "ring-messages", "a third mechanism with a long name", "4"] {
            let name = format!("placement {category} of application, queueing and completion");
            chart.put(series, &name, value(f64::from(category) * 1234.5));
        }
    }
    chart
}

fn panels() -> Vec<Panel> {
    let few = BarChart::new("nothing");
    let single = {
        let (x, y) = (Axis::linear(""), Axis::linear(""));
        let mut chart = LineChart { x, y, series: Vec::new() };
        chart.put("one", 0.0, value(0.0));
        chart
    };
    let title =
        "A title that is longer than the picture below it is wide, so that it takes two lines";
    [
        Drawing::Lines(crowded_lines()),
        Drawing::Bars(crowded_bars()),
        Drawing::Bars(few),
        Drawing::Lines(single),
    ]
    .map(|drawing| Panel { title: title.to_owned(), drawing })
    .into()
}

/// The picture with white around it, drawn by librsvg.
fn drawn(svg: &str) -> (png::OutputInfo, Vec<u8>) {
    let view = svg.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let [x, y, width, height]: [f64; 4] =
        view.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
    let ring = f64::from(RING);
    let wider = format!("{} {} {} {}", x - ring, y - ring, width + 2.0 * ring, height + 2.0 * ring);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("picture.svg");
    fs::write(&path, svg.replacen(view, &wider, 1)).unwrap();
    let output = Command::new("rsvg-convert")
        .args(["--background-color", "white", "--width"])
        .arg(format!("{:.0}", width + 2.0 * ring))
        .arg(&path)
        .output()
        .expect("rsvg-convert of the package librsvg2-bin draws pictures");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let decoder = png::Decoder::new(std::io::Cursor::new(output.stdout));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    (info, pixels)
}

#[test]
fn no_word_leaves_its_picture() {
    for panel_of in panels() {
        let svg = panel(&panel_of);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let (info, pixels) = drawn(&svg);
        let bytes = info.color_type.samples();
        let (width, height) = (info.width, info.height);
        let mut inside = 0;
        for (at, pixel) in pixels.chunks_exact(bytes).enumerate() {
            let (x, y) = (at as u32 % width, at as u32 / width);
            let white = pixel.iter().take(3).all(|sample| *sample == 255);
            let ring = RING - 1;
            let around = x < ring || y < ring || x >= width - ring || y >= height - ring;
            assert!(white || !around, "something at {x}, {y} of {width} x {height}: {svg}");
            inside += u32::from(!white);
        }
        assert!(inside > 0, "nothing is drawn");
    }
}

/// The words of a drawing with their boxes: left, right, top, bottom.
fn boxes(svg: &str) -> Vec<(String, [f64; 4])> {
    let texts = svg.lines().filter(|line| line.starts_with("<text"));
    texts
        .map(|line| {
            let of = |name: &str| line.split(&format!(" {name}=\"")).nth(1)?.split('"').next();
            let number = |name: &str| -> f64 { of(name).unwrap().parse().unwrap() };
            let words = line.split('>').nth(1).unwrap().split("</").next().unwrap().to_owned();
            let (x, y, room) = (number("x"), number("y"), width(&words, SIZE));
            let left = match of("text-anchor").unwrap() {
                "start" => x,
                "middle" => x - room / 2.0,
                _ => x - room,
            };
            (words, [left, left + room, y - SIZE * 0.72, y])
        })
        .collect()
}

#[test]
fn no_word_lies_on_another() {
    let mut canvas = Canvas::new();
    lines::draw(&crowded_lines(), 440.0, &mut canvas);
    let of_lines = boxes(&canvas.into_elements());
    let mut canvas = Canvas::new();
    bars::draw(&crowded_bars(), 440.0, &mut canvas);
    let of_bars = boxes(&canvas.into_elements());
    assert!(of_lines.len() > 20 && of_bars.len() > 100);
    for words in [of_lines, of_bars] {
        for (index, (one, [left, right, top, bottom])) in words.iter().enumerate() {
            for (other, place) in &words[index + 1..] {
                let apart = *left >= place[1]
                    || *right <= place[0]
                    || *top >= place[3]
                    || *bottom <= place[2];
                assert!(apart, "{one:?} lies on {other:?}");
            }
        }
    }
}
