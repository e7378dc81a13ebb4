//! Moments and days, which are one key whatever the crate that they come from.

use chrono::{DateTime, FixedOffset, NaiveDate, TimeZone as _, Utc};

use super::*;

#[test]
fn an_instant_is_one_key_whatever_the_zone_and_the_crate() {
    let nanoseconds = [
        (0, "1970-01-01T00:00:00Z"),
        (1_795_233_906_500_000_000, "2026-11-21T04:05:06.5Z"),
        (1_795_233_906_000_000_001, "2026-11-21T04:05:06.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
        (-2_203_891_200_000_000_000, "1900-03-01T00:00:00Z"),
    ];
    let east = FixedOffset::east_opt(5 * 3_600 + 1_800).expect("half past five hours");
    for (nanoseconds, shown) in nanoseconds {
        let utc = Utc.timestamp_nanos(nanoseconds);
        assert_eq!(readable(&utc), shown);
        assert_eq!(readable(&utc.with_timezone(&east)), shown);
        let offset =
            time::OffsetDateTime::from_unix_timestamp_nanos(nanoseconds.into()).expect("in range");
        assert_eq!(readable(&offset), shown);
        assert_eq!(
            readable(&offset.to_offset(time::UtcOffset::from_hms(-7, 0, 0).expect("in range"))),
            shown
        );
        let timestamp = jiff::Timestamp::from_nanosecond(nanoseconds.into()).expect("in range");
        assert_eq!(readable(&timestamp), shown);
        assert_eq!(
            readable(&timestamp.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(9)))),
            shown
        );
    }
}

#[test]
fn a_day_is_one_key_whatever_the_crate() {
    for days in (-750_000..2_900_000)
        .step_by(997)
        .chain([-1, 0, 1, 11_016, 11_017])
    {
        let naive = NaiveDate::from_epoch_days(days).expect("in range");
        let shown = naive.to_string();
        let shown = if shown.starts_with('-') {
            shown.replacen('-', "-00", 1)
        } else {
            shown
        };
        if !naive.to_string().starts_with('-') {
            assert_eq!(readable(&naive), shown);
        }
        let julian = time::OffsetDateTime::UNIX_EPOCH.date().to_julian_day() + days;
        assert_eq!(
            key(&time::Date::from_julian_day(julian).expect("in range")),
            key(&naive)
        );
        let civil = jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(days));
        assert_eq!(key(&civil), key(&naive));
    }
}

#[test]
fn the_ends_of_time_are_keys() {
    assert_eq!(
        readable(&DateTime::<Utc>::MAX_UTC),
        "262142-12-31T23:59:59.999999999Z"
    );
    assert_eq!(
        readable(&DateTime::<Utc>::MIN_UTC),
        "-262143-01-01T00:00:00Z"
    );
    assert_eq!(
        readable(&jiff::Timestamp::MAX).len(),
        "9999-12-30T22:00:00.999999999Z".len()
    );
    let west = time::UtcOffset::from_hms(-23, 0, 0).expect("in range");
    let last = time::PrimitiveDateTime::MAX.assume_offset(west);
    assert!(readable(&last).ends_with('Z'));
    let leap = NaiveDate::from_ymd_opt(2016, 12, 31)
        .and_then(|day| day.and_hms_nano_opt(23, 59, 59, 1_500_000_000));
    assert_eq!(readable(&leap), "2016-12-31T23:59:60.5");
}

#[test]
fn a_time_without_a_zone_is_no_instant() {
    let naive = NaiveDate::from_ymd_opt(2026, 11, 21)
        .and_then(|day| day.and_hms_opt(4, 5, 6))
        .expect("it exists");
    assert_eq!(readable(&naive), "2026-11-21T04:05:06");
    assert_ne!(key(&naive), key(&naive.and_utc()));
}
