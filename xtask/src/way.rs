//! Draws the way of a duplicate: two calls with one key, the store between them, and the body that
//! runs once.

use std::{fs, io, path::PathBuf};

use crate::plan::root;

const WIDTH: u32 = 760;
const TOP: u32 = 70;
const ROW: u32 = 44;

/// The places of the lifelines, from left to right.
const LANES: [(&str, u32); 4] = [
    ("body", 90),
    ("first call", 280),
    ("store", 480),
    ("duplicate", 670),
];

const BODY: usize = 0;
const FIRST: usize = 1;
const STORE: usize = 2;
const DUPLICATE: usize = 3;

/// The messages, in the order of time: from a lane to a lane.
const MESSAGES: [(usize, usize, &str); 8] = [
    (FIRST, STORE, "claim the key, with a lease"),
    (FIRST, BODY, "run"),
    (DUPLICATE, STORE, "claim the key"),
    (STORE, DUPLICATE, "it is held: wait"),
    (BODY, FIRST, "value or error"),
    (FIRST, STORE, "record the outcome"),
    (STORE, DUPLICATE, "the recorded outcome"),
    (STORE, FIRST, "the recorded outcome"),
];

/// Writes the picture anew.
pub(crate) fn write() -> io::Result<()> {
    fs::write(picture(), drawn())
}

fn picture() -> PathBuf {
    root().join("docs/duplicate.svg")
}

fn drawn() -> String {
    let rows = u32::try_from(MESSAGES.len()).unwrap_or(u32::MAX);
    let height = TOP + rows * ROW + 10;
    let label = "Two calls with one key: the body runs once, and both get the recorded outcome";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">\n{STYLE}"
    );
    for (name, x) in LANES {
        svg += &format!(
            "<text x=\"{x}\" y=\"28\" class=\"lane\">{name}</text>\n<line x1=\"{x}\" y1=\"40\" x2=\"{x}\" y2=\"{height}\" class=\"life\"/>\n"
        );
    }
    let runs = TOP + ROW;
    svg += &format!(
        "<rect x=\"{}\" y=\"{runs}\" width=\"12\" height=\"{}\" class=\"runs\"/>\n",
        LANES[BODY].1 - 6,
        3 * ROW
    );
    for (row, (from, to, words)) in (0_u32..).zip(MESSAGES) {
        svg += &arrow(TOP + row * ROW, (LANES[from].1, LANES[to].1), words);
    }
    svg + "</svg>\n"
}

/// One message, with its words above it.
fn arrow(y: u32, (from, to): (u32, u32), words: &str) -> String {
    let (middle, above) = (u32::midpoint(from, to), y - 8);
    let back = if from < to { to - 8 } else { to + 8 };
    let (up, down) = (y - 4, y + 4);
    format!(
        "<text x=\"{middle}\" y=\"{above}\" class=\"words\">{words}</text>\n<line x1=\"{from}\" y1=\"{y}\" x2=\"{back}\" y2=\"{y}\" class=\"message\"/>\n<path d=\"M{to} {y} L{back} {up} L{back} {down} Z\" class=\"head\"/>\n"
    )
}

const STYLE: &str = "<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
.lane { font-weight: 600; }
.life { stroke: #818b98; stroke-dasharray: 3 4; }
.message { stroke: #0969da; stroke-width: 1.5; }
.head { fill: #0969da; }
.runs { fill: #0969da; fill-opacity: 0.25; stroke: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .message, .runs { stroke: #4493f8; }
  .head, .runs { fill: #4493f8; }
}
</style>
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_the_one_that_is_drawn() {
        let there = fs::read_to_string(picture()).unwrap_or_default();
        assert!(there == drawn(), "`cargo xtask plot` draws it anew");
    }
}
