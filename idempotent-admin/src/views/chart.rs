//! The calls of the last hour, drawn, and as a table.

use idempotent_runtime::Time;
use maud::{Markup, html};

use super::layout::time;
use crate::chart::{KINDS, MINUTES, Minute, NAMES};

/// The size of the drawing, in its own units.
const WIDTH: usize = MINUTES * 10;
const HEIGHT: u64 = 120;

pub(super) fn chart(hour: &[Minute]) -> Markup {
    let sum = |kind: usize| hour.iter().map(|minute| minute.counts[kind]).sum::<u64>();
    let sums: [u64; KINDS] = std::array::from_fn(sum);
    html! {
        section {
            h2 { "Calls of this process in the last hour" }
            (drawing(hour))
            table {
                thead { tr { th scope="col" { "Answer" } th scope="col" { "Calls" } } }
                tbody { @for (place, name) in NAMES.iter().enumerate() {
                    tr { td { span.key.(format!("k{place}")) {} " " (name) } td.number { (sums[place]) } }
                } }
            }
            details {
                summary { "Minute by minute" }
                (minutes(hour))
            }
        }
    }
}

fn drawing(hour: &[Minute]) -> Markup {
    let most = hour
        .iter()
        .map(|minute| minute.counts.iter().sum::<u64>())
        .max();
    let most = most.unwrap_or(0).max(1);
    let bar = |minute: &Minute| {
        let mut top = HEIGHT;
        let parts = minute.counts.iter().enumerate().map(move |(kind, count)| {
            let height = (count * HEIGHT).div_ceil(most).min(top);
            top -= height;
            (kind, top, height)
        });
        parts
            .filter(|(_, _, height)| *height > 0)
            .collect::<Vec<_>>()
    };
    html! {
        svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
            aria-label="Calls of each minute, as the table below has them" {
            @for (place, minute) in hour.iter().enumerate() {
                @for (kind, top, height) in bar(minute) {
                    rect.(format!("k{kind}")) x=(place * 10 + 1) y=(top) width="8" height=(height) {}
                }
            }
        }
    }
}

/// Only minutes in which there were calls.
fn minutes(hour: &[Minute]) -> Markup {
    let busy = hour
        .iter()
        .rev()
        .filter(|minute| minute.counts.iter().any(|it| *it > 0));
    html! {
        table {
            thead { tr { th scope="col" { "Minute" } @for name in NAMES { th scope="col" { (name) } } } }
            tbody { @for minute in busy { tr {
                td { (time(at(minute), None)) }
                @for count in minute.counts { td.number { (count) } }
            } } }
        }
    }
}

fn at(minute: &Minute) -> Time {
    Time::from_micros(i64::try_from(minute.at * 60_000_000).unwrap_or(i64::MAX))
}
