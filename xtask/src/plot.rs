//! Draws the ratios of the benches, out of the tables in `benches/README.md`: one line for each
//! store and operation, and on it one dot for each number of callers at once.

use std::{
    fmt::{self, Display, Write},
    fs, io,
    path::PathBuf,
};

use crate::plan::root;

/// The second column of tables that compare a store with statements written by hand.
const BY_HAND: &str = "by hand";

/// The bounds of the axis; ratios beyond them are drawn at its ends.
const SMALLEST: f64 = 0.25;
const LARGEST: f64 = 16.0;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 64.0;
const LINE: f64 = 20.0;

/// The ratios of one operation on one store.
#[derive(Debug, Default)]
struct Line {
    store: String,
    operation: String,
    dots: Vec<Dot>,
}

#[derive(Debug)]
struct Dot {
    at_once: u32,
    ratio: f64,
    target: Target,
}

/// Writes the picture anew.
pub(crate) fn write() -> io::Result<()> {
    fs::write(picture(), drawn()?)
}

fn picture() -> PathBuf {
    root().join("docs/ratios.svg")
}

fn drawn() -> io::Result<String> {
    let tables = fs::read_to_string(root().join("benches/README.md"))?;
    Ok(Picture(&lines(&tables)).to_string())
}

/// The lines of all tables beside statements by hand. Rows that differ only in how many call at
/// once are one line.
fn lines(tables: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut store = None;
    for row in tables.lines() {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, ours, other, ratio, target] = cells[..] else {
            store = None;
            continue;
        };
        if ours == "ours" {
            let product = name.split_once(',').map_or(name, |(product, _)| product);
            store = other.starts_with(BY_HAND).then(|| product.to_owned());
            continue;
        }
        let (Some(store), Some((operation, dot))) = (&store, dot(name, ratio, target)) else {
            continue;
        };
        match lines.last_mut() {
            Some(line) if line.store == *store && line.operation == operation => {
                line.dots.push(dot);
            }
            _ => lines.push(Line {
                store: store.clone(),
                operation: operation.to_owned(),
                dots: vec![dot],
            }),
        }
    }
    lines
}

fn dot<'a>(name: &'a str, ratio: &str, target: &str) -> Option<(&'a str, Dot)> {
    let (operation, at_once) = name.rsplit_once(", ")?;
    let dot = Dot {
        at_once: at_once.strip_suffix(" at once")?.parse().ok()?,
        ratio: ratio.parse().ok()?,
        target: match target {
            "" => Target::None,
            target if target.contains("missed") => Target::Missed,
            _ => Target::Met,
        },
    };
    Some((operation, dot))
}

/// Whether a ratio is as small as it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    None,
    Met,
    Missed,
}

/// The place of a ratio on the axis, which is logarithmic.
fn place(ratio: f64) -> f64 {
    let part = (ratio.clamp(SMALLEST, LARGEST) / SMALLEST).log2() / (LARGEST / SMALLEST).log2();
    LEFT + part * (RIGHT - LEFT)
}

struct Picture<'a>(&'a [Line]);

impl Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let bottom = TOP + LINE * f64::from(count);
        let height = bottom + 16.0;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="The time of a call over that of statements by hand">"#
        )?;
        f.write_str(STYLE)?;
        writeln!(
            f,
            r#"<text x="8" y="20" class="title">Time of a call, divided by that of statements by hand: less is better</text>"#
        )?;
        f.write_str(LEGEND)?;
        for ratio in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0] {
            let (x, class) = (place(ratio), if ratio == 1.0 { "one" } else { "axis" });
            writeln!(
                f,
                r#"<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" class="{class}"/><text x="{x}" y="{}" class="number">{ratio}</text>"#,
                TOP - 6.0
            )?;
        }
        for (number, line) in (0_u32..).zip(self.0) {
            line.draw(f, TOP + LINE * (f64::from(number) + 0.5))?;
        }
        writeln!(f, "</svg>")
    }
}

impl Line {
    fn draw(&self, f: &mut fmt::Formatter<'_>, y: f64) -> fmt::Result {
        let mut store = self.store.clone();
        let _ = write!(store, ", {}", self.operation);
        let baseline = y + 4.0;
        writeln!(f, r#"<text x="8" y="{baseline}">{store}</text>"#)?;
        for dot in &self.dots {
            let (x, radius) = (place(dot.ratio), dot.radius());
            let class = match dot.target {
                Target::None => "free",
                Target::Met => "met",
                Target::Missed => "missed",
            };
            writeln!(
                f,
                r#"<circle cx="{x:.1}" cy="{y}" r="{radius}" class="{class}"><title>{store}, {} at once: {}</title></circle>"#,
                dot.at_once, dot.ratio
            )?;
        }
        Ok(())
    }
}

impl Dot {
    fn radius(&self) -> f64 {
        match self.at_once {
            ..=1 => 3.0,
            2..=16 => 5.0,
            _ => 7.0,
        }
    }
}

const STYLE: &str = r"<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; }
.number { text-anchor: middle; font-size: 11px; }
.axis { stroke: #d1d9e0; }
.one { stroke: #1f2328; }
.met { fill: #0969da; fill-opacity: 0.75; }
.missed { fill: #bc4c00; fill-opacity: 0.75; }
.free { fill: #818b98; fill-opacity: 0.75; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .axis { stroke: #3d444d; }
  .one { stroke: #f0f6fc; }
  .met { fill: #4493f8; }
  .missed { fill: #f0883e; }
}
</style>
";

const LEGEND: &str = r#"<circle cx="16" cy="42" r="3" class="free"/><circle cx="28" cy="42" r="5" class="free"/><circle cx="44" cy="42" r="7" class="free"/><text x="58" y="46">1, 16, 64 at once</text><circle cx="184" cy="42" r="5" class="met"/><text x="196" y="46">target met</text><circle cx="284" cy="42" r="5" class="missed"/><text x="296" y="46">missed</text><circle cx="364" cy="42" r="5" class="free"/><text x="376" y="46">none set</text>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_that_of_the_tables() {
        let stands = fs::read_to_string(picture()).unwrap_or_default();
        assert!(
            stands == drawn().expect("the tables"),
            "`cargo xtask plot` draws it anew"
        );
    }

    #[test]
    fn rows_of_one_operation_are_one_line() {
        let tables = "\
| Postgres 15, on the same machine | ours | by hand, on held connections | ratio | target |
|---|---:|---:|---:|---:|
| replay, 1 at once | 52 µs | 45 µs | 1.11 | 1.20 |
| replay, 64 at once | 52 µs | 45 µs | 19.00 | 1.20, **missed** |
| first call, 1 at once | 52 µs | 45 µs | 1.11 | |

| axum | ours | without the layer | ratio | target |
|---|---:|---:|---:|---:|
| replay, 1 at once | 9.37 µs | 8.08 µs | 1.16 | 1.05, **missed** |
";
        let lines = lines(tables);

        let found: Vec<_> = lines
            .iter()
            .map(|line| (&*line.store, &*line.operation, line.dots.len()))
            .collect();
        assert_eq!(
            found,
            [
                ("Postgres 15", "replay", 2),
                ("Postgres 15", "first call", 1)
            ]
        );
        let dots = &lines[0].dots;
        assert_eq!(
            [dots[0].target, dots[1].target],
            [Target::Met, Target::Missed]
        );
        assert!(place(dots[0].ratio) < place(dots[1].ratio));
        assert!((place(dots[1].ratio) - RIGHT).abs() < f64::EPSILON);
    }
}
