//! Times, in UTC, and how long ago they were.

use std::time::Duration;

use idempotent_runtime::Time;

/// A time to the second, such as `2026-11-30 07:39:33Z`.
pub(crate) fn day_and_time(time: Time) -> String {
    let text = time.to_string();
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(second)) if text.ends_with('Z') => format!("{day} {second}Z"),
        _ => text,
    }
}

/// How long ago it was, in its largest unit: `3h ago`, or `in 2d`.
pub(crate) fn ago(time: Time, now: Time) -> String {
    match time <= now {
        true => format!("{} ago", in_short(now.since(time))),
        false => format!("in {}", in_short(time.since(now))),
    }
}

/// A duration in its largest unit.
pub(crate) fn in_short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let now = Time::from_micros(1_764_488_373_123_456);
        assert_eq!(day_and_time(now), "2025-11-30 07:39:33Z");
        for (seconds, said) in [
            (0, "0s ago"),
            (59, "59s ago"),
            (61, "1m ago"),
            (7_200, "2h ago"),
            (172_800, "2d ago"),
        ] {
            assert_eq!(ago(now.minus(Duration::from_secs(seconds)), now), said);
        }
        assert_eq!(ago(now.plus(Duration::from_secs(90)), now), "in 1m");
        let far = Time::from_micros(i64::MAX);
        assert_eq!(day_and_time(far), far.to_string());
    }
}
