//! Durations as people write them: `"24h"`, `"1h30m"`, `"500ms"`.

use std::time::Duration;

/// The units, from large to small, in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 24 * 60 * 60 * 1000),
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

const ACCEPTED: &str =
    "the units are `w`, `d`, `h`, `m`, `s` and `ms`, as in `\"24h\"`, `\"1h30m\"` or `\"500ms\"`";

/// Reads whole numbers with units, large before small, each unit once.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err(format!("a duration is missing here; {ACCEPTED}"));
    }
    let mut rest = text;
    let mut larger = UNITS.as_slice();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, char::is_alphabetic);
        if number.is_empty() || unit.is_empty() {
            return Err(unreadable(text, number, after));
        }
        let Some((_, milliseconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!(
                "unknown unit `{unit}` in the duration `{text}`; {ACCEPTED}"
            ));
        };
        let Some(place) = larger.iter().position(|(name, _)| *name == unit) else {
            return Err(format!(
                "the units of `{text}` are out of order or repeated: write each once, large before small, as in `\"1h30m\"`"
            ));
        };
        larger = &larger[place + 1..];
        total = number
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(*milliseconds))
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| too_long(text))?;
        rest = after;
    }
    match Duration::from_millis(total) {
        Duration::ZERO => Err(format!(
            "`{text}` is no time at all: a duration here is at least `1ms`"
        )),
        duration if duration > LONGEST => Err(too_long(text)),
        duration => Ok(duration),
    }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn unreadable(text: &str, number: &str, rest: &str) -> String {
    if rest.starts_with('.') {
        format!(
            "`{text}` has a fraction: write whole numbers with smaller units, as in `\"1h30m\"`"
        )
    } else if rest.starts_with('-') {
        format!("`{text}` is negative: a duration here is at least `1ms`")
    } else if rest.is_empty() && !number.is_empty() {
        format!("`{text}` has a number without a unit; {ACCEPTED}")
    } else {
        format!("`{text}` is not a duration; {ACCEPTED}")
    }
}

fn too_long(text: &str) -> String {
    format!("`{text}` is longer than 100 years: write at most `\"36500d\"`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, part: &str) {
        let message = parse(text).unwrap_err();
        assert!(message.contains(part), "`{text}`: {message}");
    }

    #[test]
    fn whole_numbers_with_units_are_read() {
        let seconds = Duration::from_secs;
        assert_eq!(parse("24h"), Ok(seconds(86_400)));
        assert_eq!(parse("1h30m"), Ok(seconds(5_400)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10s"), Ok(seconds(10)));
        assert_eq!(parse("7d"), Ok(seconds(604_800)));
        assert_eq!(parse("2w"), Ok(seconds(1_209_600)));
        assert_eq!(parse("1s5ms"), Ok(Duration::from_millis(1_005)));
        assert_eq!(parse("36500d"), Ok(LONGEST));
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_units() {
        refused("", "missing");
        refused("24", "number without a unit");
        refused("h", "not a duration");
        refused("soon", "not a duration");
        refused("24 h", "not a duration");
        refused("5 minutes", "not a duration");
        refused("24hours", "unknown unit `hours`");
        refused("5µs", "unknown unit `µs`");
        refused("24h ", "not a duration");
        refused("24x", "the units are `w`, `d`, `h`, `m`, `s` and `ms`");
        refused("-5s", "negative");
        refused("1.5h", "fraction");
    }

    #[test]
    fn units_stand_once_and_large_before_small() {
        refused("30m1h", "out of order");
        refused("1h1h", "repeated");
    }

    #[test]
    fn zero_and_more_than_a_century_are_refused() {
        refused("0s", "no time at all");
        refused("0h0m", "no time at all");
        refused("36501d", "100 years");
        refused("99999999999999999999h", "100 years");
        refused("18446744073709551615ms1s", "out of order");
        refused("18446744073709551615w", "100 years");
        refused("30500568905w", "100 years");
    }
}
