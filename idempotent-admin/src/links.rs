//! Links between pages: relative, so that a prefix and a proxy in front change nothing.

use std::fmt::Write as _;

/// How deep a page lies below the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Beside the overview.
    Top,
    /// One folder below it, as the page of a record.
    Below,
    /// Two folders below it, as an act on a record.
    Lower,
}

impl Depth {
    /// The link to a page beside the overview.
    pub(crate) fn to(self, page: &str) -> String {
        match self {
            Self::Top => page.to_owned(),
            Self::Below => format!("../{page}"),
            Self::Lower => format!("../../{page}"),
        }
    }
}

/// A page with a search: only fields that have a value stand in its link.
pub(crate) fn with_search(page: &str, fields: &[(&str, &str)]) -> String {
    let mut link = page.to_owned();
    let fields = fields.iter().filter(|(_, value)| !value.is_empty());
    for (place, (name, value)) in fields.enumerate() {
        let before = if place == 0 { '?' } else { '&' };
        let _a_string_takes_all = write!(link, "{before}{name}={}", encoded(value));
    }
    link
}

/// A value in a link. Every byte that may mean something there is written as its digits.
fn encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                text.push(char::from(byte));
            }
            _ => {
                let _a_string_takes_all = write!(text, "%{byte:02X}");
            }
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_leave_its_field() {
        let link = with_search("records", &[("operation", "a&b=\"<ä"), ("key", "")]);
        assert_eq!(link, "records?operation=a%26b%3D%22%3C%C3%A4");
        assert_eq!(Depth::Below.to(&link), format!("../{link}"));
        assert_eq!(Depth::Top.to("overview"), "overview");
    }
}
