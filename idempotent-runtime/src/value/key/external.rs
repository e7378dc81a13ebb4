//! The types of other crates that can be key parts, each behind the feature of its crate's name.

/// Makes key parts of types, each of the crate that the feature names, by the text in which a
/// value is shown.
macro_rules! external {
    ($(
        $(#[$about:meta])*
        $part:ty $([$($generics:tt)*])?, $feature:literal: |$it:ident| $shown:expr;
    )*) => {$(
        $(#[$about])*
        #[cfg(feature = $feature)]
        #[cfg_attr(docsrs, doc(cfg(feature = $feature)))]
        impl$(<$($generics)*>)? super::KeyPart for $part {
            fn write(&self, key: &mut super::KeyWriter) {
                let $it = self;
                key.display($shown);
            }
        }
    )*};
}

external! {
    /// Lower-case, with hyphens.
    uuid::Uuid, "uuid": |it| it.hyphenated();
    /// The 26 digits of its canonical form.
    ulid::Ulid, "ulid": |it| it;
    /// By value: 1.0 and 1.00 are one key, as they are equal.
    rust_decimal::Decimal, "rust_decimal": |it| it.normalize();
    /// The instant, whatever the zone.
    chrono::DateTime<Tz> [Tz: chrono::TimeZone], "chrono": |it| moments::Instant {
        seconds: it.timestamp(),
        nanoseconds: it.timestamp_subsec_nanos(),
    };
    /// Year, month and day.
    chrono::NaiveDate, "chrono": |it| moments::Day(it.to_epoch_days().into());
    /// Date and time of day without a zone, and so another key than any instant.
    chrono::NaiveDateTime, "chrono": |it| moments::Local(moments::Instant {
        seconds: it.and_utc().timestamp(),
        nanoseconds: it.and_utc().timestamp_subsec_nanos(),
    });
    /// The instant, whatever the offset.
    time::OffsetDateTime, "time":
        |it| moments::Instant::from_nanoseconds(it.unix_timestamp_nanos());
    /// Year, month and day.
    time::Date, "time": |it| {
        let epoch = time::OffsetDateTime::UNIX_EPOCH.date();
        moments::Day((it.to_julian_day() - epoch.to_julian_day()).into())
    };
    /// The instant.
    jiff::Timestamp, "jiff": |it| moments::Instant::from_nanoseconds(it.as_nanosecond());
    /// The instant, whatever the zone.
    jiff::Zoned, "jiff": |it| moments::Instant::from_nanoseconds(it.timestamp().as_nanosecond());
    /// Year, month and day.
    jiff::civil::Date, "jiff": |it| it;
}

/// One text for an instant, whichever crate it comes from: `2026-11-21T04:05:06.5Z`, without
/// needless digits.
#[cfg(any(feature = "chrono", feature = "time", feature = "jiff"))]
mod moments {
    #![allow(dead_code, reason = "not every crate has every kind of moment")]

    use std::fmt;

    const DAY: i64 = 86_400;

    /// Days since 1970-01-01.
    pub(super) struct Day(pub(super) i64);

    impl fmt::Display for Day {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            // The Gregorian calendar repeats every 146,097 days; years that start in March have
            // their leap day last.
            let days = self.0 + 719_468;
            let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
            let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
            let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
            let from_march = (5 * of_year + 2) / 153;
            let day = of_year - (153 * from_march + 2) / 5 + 1;
            let month = if from_march < 10 {
                from_march + 3
            } else {
                from_march - 9
            };
            let year = year_of_era + era * 400 + i64::from(month <= 2);
            if year < 0 {
                return write!(formatter, "-{:06}-{month:02}-{day:02}", -year);
            }
            write!(formatter, "{year:04}-{month:02}-{day:02}")
        }
    }

    /// Time since 1970-01-01 in UTC; a leap second is a second with more than 1,000,000,000
    /// nanoseconds.
    pub(super) struct Instant {
        pub(super) seconds: i64,
        pub(super) nanoseconds: u32,
    }

    impl Instant {
        pub(super) fn from_nanoseconds(nanoseconds: i128) -> Self {
            const SECOND: i128 = 1_000_000_000;
            Self {
                seconds: nanoseconds.div_euclid(SECOND) as i64,
                nanoseconds: nanoseconds.rem_euclid(SECOND) as u32,
            }
        }
    }

    impl fmt::Display for Instant {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_moment(self, formatter)?;
            formatter.write_str("Z")
        }
    }

    /// The same without a zone.
    pub(super) struct Local(pub(super) Instant);

    impl fmt::Display for Local {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_moment(&self.0, formatter)
        }
    }

    fn write_moment(moment: &Instant, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_day = moment.seconds.rem_euclid(DAY);
        let (hour, minute) = (of_day / 3_600, of_day / 60 % 60);
        let second = of_day % 60 + i64::from(moment.nanoseconds / 1_000_000_000);
        write!(
            formatter,
            "{}T{hour:02}:{minute:02}:{second:02}",
            Day(moment.seconds.div_euclid(DAY))
        )?;
        let (mut fraction, mut width) = (moment.nanoseconds % 1_000_000_000, 9);
        if fraction == 0 {
            return Ok(());
        }
        while fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        write!(formatter, ".{fraction:0width$}")
    }
}
