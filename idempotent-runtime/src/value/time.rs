//! The time, as stores tell it.

use std::{fmt, time::Duration};

/// A moment by a store's clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// Makes a moment from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `duration` later; the largest one where that would overflow.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// The moment `duration` earlier; the smallest one where that would overflow.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// How long after `earlier` this is; zero where it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Writes it in the form of RFC 3339, in UTC and with microseconds. A moment outside the years 1970
/// to 9999 is written as its microseconds.
impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const A_DAY: i64 = 86_400_000_000;
        let (days, within) = (self.0 / A_DAY, self.0 % A_DAY);
        let (year, month, day) = date(days);
        if self.0 < 0 || year > 9_999 {
            return write!(formatter, "{} µs", self.0);
        }
        let (seconds, micros) = (within / 1_000_000, within % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        )
    }
}

/// Year, month and day of a day since 1970. A year begins in March here, so that a leap day is its
/// last one. Source: Howard Hinnant, *chrono-Compatible Low-Level Date Algorithms*.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// A duration in whole microseconds, as stores count; the largest number where it would overflow.
#[must_use]
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339_says() {
        let text = |seconds: i64| Time::from_micros(seconds * 1_000_000 + 7).to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.000007Z");
        assert_eq!(text(951_782_399), "2000-02-28T23:59:59.000007Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00.000007Z");
        assert_eq!(text(4_107_542_400), "2100-03-01T00:00:00.000007Z");
        assert_eq!(text(1_796_000_461), "2026-11-30T01:01:01.000007Z");
        assert_eq!(text(253_402_300_799), "9999-12-31T23:59:59.000007Z");
        assert_eq!(Time::from_micros(-1).to_string(), "-1 µs");
        assert_eq!(
            Time::from_micros(i64::MAX).to_string(),
            format!("{} µs", i64::MAX)
        );
    }
}
