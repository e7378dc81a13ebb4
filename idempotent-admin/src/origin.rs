//! The page from which a request comes: another site may send forms to this one.

use http::HeaderMap;

/// Whether a browser sends it from the page itself. The header `Sec-Fetch-Site` says so. Where it
/// is absent, `Origin` is one of the public origins; the header `Host` is never asked, which
/// another site can choose.
pub(crate) fn is_own(headers: &HeaderMap, origins: &[String]) -> bool {
    let one = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap_or(""));
        // Two of them are none that can be trusted.
        (first, values.next().is_none())
    };
    match (one("sec-fetch-site"), one("origin")) {
        ((Some(site), is_alone), _) => is_alone && site == "same-origin",
        ((None, _), (Some(origin), is_alone)) => {
            is_alone && origins.iter().any(|own| own == origin)
        }
        ((None, _), (None, _)) => false,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn own(headers: &[(&'static str, &'static str)]) -> bool {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, HeaderValue::from_static(value));
        }
        is_own(&all, &["https://ops.example.com".to_owned()])
    }

    #[test]
    fn only_the_page_itself_sends_a_form() {
        let origin = ("origin", "https://ops.example.com");
        assert!(own(&[("sec-fetch-site", "same-origin")]));
        assert!(own(&[origin]), "an older browser");
        for site in [
            "same-site",
            "cross-site",
            "none",
            "",
            "same-origin, same-origin",
        ] {
            assert!(!own(&[("sec-fetch-site", site), origin]), "{site}");
        }
        for other in [
            "https://ops.example.com.evil.org",
            "http://ops.example.com",
            "null",
            "",
        ] {
            assert!(!own(&[("origin", other)]), "{other}");
        }
        let twice = [
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "cross-site"),
        ];
        assert!(!own(&twice));
        assert!(!own(&[origin, origin]));
        assert!(!own(&[("host", "ops.example.com")]));
        assert!(!own(&[]));
    }
}
