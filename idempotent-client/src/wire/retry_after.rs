//! `Retry-After`, and the moment that it is counted from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{
    HeaderMap,
    header::{DATE, RETRY_AFTER},
};

use idempotent_runtime::record::{Time, micros};

/// How long the server wants the next attempt to wait, counted from its answer. A moment that is
/// past is no wait at all; a malformed or negative value is as good as absent.
///
/// A date is counted from the answer's own `Date`, because the server's clock is not ours; `now`
/// stands in if there is none.
pub(crate) fn retry_after(headers: &HeaderMap, now: Time) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are more seconds than any wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = date(text)?;
    let answered = headers.get(DATE).and_then(|text| date(text.to_str().ok()?));
    Some(moment.since(answered.unwrap_or(now)))
}

fn date(text: &str) -> Option<Time> {
    httpdate::parse_http_date(text).ok().map(time)
}

pub(crate) fn time(moment: SystemTime) -> Time {
    let since_epoch = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(micros(since_epoch))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOON: &str = "Sun, 06 Nov 1994 12:00:00 GMT";

    fn read(value: &str, answered: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).expect("a value"));
        if let Some(date) = answered {
            headers.insert(DATE, HeaderValue::from_str(date).expect("a value"));
        }
        retry_after(&headers, date(NOON).expect("it is a date"))
    }

    #[test]
    fn cl15_seconds_dates_and_nonsense() {
        let seconds = |number| Some(Duration::from_secs(number));
        assert_eq!(read("2", None), seconds(2));
        assert_eq!(read(" 2 ", None), seconds(2));
        assert_eq!(read("0", None), seconds(0));
        assert_eq!(read("99999999999999999999", None), seconds(u64::MAX));
        assert_eq!(read("Sun, 06 Nov 1994 12:00:30 GMT", None), seconds(30));
        assert_eq!(read("Sun, 06 Nov 1994 11:00:00 GMT", None), seconds(0));
        for nonsense in ["-1", "1.5", "soon", "", "2s", "Sun, 06 Nov 1994"] {
            assert_eq!(read(nonsense, None), None, "{nonsense}");
        }
    }

    #[test]
    fn cl15_a_date_is_counted_from_the_server_s_own() {
        let ahead = "Sun, 06 Nov 1994 15:00:00 GMT";
        let then = "Sun, 06 Nov 1994 15:00:07 GMT";
        assert_eq!(read(then, Some(ahead)), Some(Duration::from_secs(7)));
    }
}
