//! Which requests a rule is for: paths with places for what changes.

/// A path such as `/orders/{id}/payments`, or `/admin/{*rest}` for all that begins so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    /// `{id}`: exactly one segment, which is not empty.
    One,
    /// `{*rest}`: at least one segment, to the end.
    Rest,
}

impl Pattern {
    /// Reads a pattern; `None` where it is none.
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let segments: Option<Vec<_>> = pattern.strip_prefix('/')?.split('/').map(segment).collect();
        let segments = segments?;
        let rests = segments.iter().rev().skip(1);
        let ends_in_rest = !rests.clone().any(|segment| *segment == Segment::Rest);
        ends_in_rest.then_some(Self(segments))
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let mut parts = path.split('/');
        for segment in &self.0 {
            let matched = match (segment, parts.next()) {
                (Segment::Rest, part) => return part.is_some_and(|part| !part.is_empty()),
                (Segment::One, part) => part.is_some_and(|part| !part.is_empty()),
                (Segment::Text(text), part) => part == Some(text),
            };
            if !matched {
                return false;
            }
        }
        parts.next().is_none()
    }
}

fn segment(text: &str) -> Option<Segment> {
    match text.strip_prefix('{') {
        Some(name) => {
            let name = name.strip_suffix('}')?;
            let (kind, name) = match name.strip_prefix('*') {
                Some(name) => (Segment::Rest, name),
                None => (Segment::One, name),
            };
            (!name.is_empty() && !name.contains(['{', '}', '*'])).then_some(kind)
        }
        None => (!text.contains(['{', '}'])).then(|| Segment::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_its_paths_and_no_others() {
        for (pattern, path, matches) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/orders", "/orders", true),
            ("/orders", "/orders/", false),
            ("/orders", "/orders/1", false),
            ("/orders/{id}", "/orders/1", true),
            ("/orders/{id}", "/orders/", false),
            ("/orders/{id}/pay", "/orders/1/pay", true),
            ("/orders/{id}/pay", "/orders/1/2/pay", false),
            ("/admin/{*rest}", "/admin/a/b", true),
            ("/admin/{*rest}", "/admin", false),
            ("/admin/{*rest}", "/admin/", false),
            ("/a", "*", false),
        ] {
            let read = Pattern::parse(pattern).expect("it is a pattern");
            assert_eq!(read.matches(path), matches, "{pattern} and {path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in [
            "", "orders", "/{", "/{}", "/{*}", "/a{b}", "/{*a}/b", "/{a}b", "/{a{b}}",
        ] {
            assert_eq!(Pattern::parse(pattern), None, "{pattern}");
        }
    }
}
