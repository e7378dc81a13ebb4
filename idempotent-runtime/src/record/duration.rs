//! Durations as people write them: `"24h"`, `"1h30m"`, `"500ms"`.

use std::time::Duration;

use crate::error::Error;

/// A `Duration`, or a text such as `"24h"`, `"1h30m"` or `"500ms"` with the units `w`, `d`, `h`,
/// `m`, `s` and `ms`, the larger before the smaller. A `String`, as from a configuration, is read
/// as well.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, MemoryStore};
///
/// struct Configuration { ttl: String }
///
/// fn set_up(configuration: &Configuration) -> Result<Idempotency, Error> {
///     Idempotency::builder(MemoryStore::new()).ttl(&configuration.ttl).lease("30s").build()
/// }
/// # set_up(&Configuration { ttl: "7d".into() }).map(drop)?;
/// # Ok::<(), Error>(())
/// ```
pub trait IntoDuration {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] when the text is no duration, or too long a one.
    fn into_duration(self) -> Result<Duration, Error>;
}

/// Reads a duration for a builder, which keeps the first mistake for its end.
pub(crate) fn read(duration: impl IntoDuration, mistake: &mut Option<Error>) -> Option<Duration> {
    let read = duration.into_duration();
    read.map_err(|error| mistake.get_or_insert(error)).ok()
}

impl IntoDuration for Duration {
    fn into_duration(self) -> Result<Duration, Error> {
        Ok(self)
    }
}

impl IntoDuration for &str {
    fn into_duration(self) -> Result<Duration, Error> {
        const NONE: Error = Error::InvalidPolicy(
            "a duration is a number with a unit, such as `\"24h\"`, `\"1h30m\"` or `\"500ms\"`; the units are `w`, `d`, `h`, `m`, `s`, `ms`, the larger before the smaller",
        );
        let mut rest = self;
        let mut total = Duration::ZERO;
        let mut largest = u64::MAX;
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, after) = rest.split_at(digits);
            let letters = after.len()
                - after
                    .trim_start_matches(|c: char| c.is_ascii_alphabetic())
                    .len();
            let (unit, after) = after.split_at(letters);
            let milliseconds: u64 = match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                "w" => 604_800_000,
                _ => return Err(NONE),
            };
            if milliseconds >= largest {
                return Err(NONE);
            }
            largest = milliseconds;
            let part = number
                .parse()
                .ok()
                .and_then(|number: u64| number.checked_mul(milliseconds))
                .ok_or(NONE)?;
            total = total.checked_add(Duration::from_millis(part)).ok_or(NONE)?;
            rest = after;
        }
        if self.is_empty() {
            Err(NONE)
        } else {
            Ok(total)
        }
    }
}

impl IntoDuration for &String {
    fn into_duration(self) -> Result<Duration, Error> {
        self.as_str().into_duration()
    }
}

impl IntoDuration for String {
    fn into_duration(self) -> Result<Duration, Error> {
        self.as_str().into_duration()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_with_units() {
        let read = |text: &str| text.into_duration().ok();
        assert_eq!(read("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(read("1h30m"), Some(Duration::from_secs(5_400)));
        assert_eq!(read("500ms"), Some(Duration::from_millis(500)));
        for wrong in [
            "",
            "24",
            "h",
            "-1s",
            "1.5h",
            "1 h",
            "9999999999999999999w",
            "5y",
            "30m1h",
            "1h1h",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
