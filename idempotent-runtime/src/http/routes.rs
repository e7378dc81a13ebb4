//! Which requests a rule is for: paths with places for what changes.

/// A path such as `/orders/{id}/payments`, or `/admin/{*rest}` for all that begins so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    /// `{id}`: exactly one segment, which may be empty where more follows.
    One,
    /// `{*rest}`: everything to the end, which is not nothing.
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

    /// Tells whether a router of axum whose only route this is would take the path there: where the
    /// two differed, a second slash would lead around the rules of a route, and to its handler all
    /// the same.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let mut rest = path.strip_prefix('/');
        for segment in &self.0 {
            let Some(left) = rest else { return false };
            let (part, behind) = match left.split_once('/') {
                Some((part, behind)) => (part, Some(behind)),
                None => (left, None),
            };
            let matched = match segment {
                Segment::Rest => return !left.is_empty(),
                Segment::One => !left.is_empty(),
                Segment::Text(text) => part == text,
            };
            if !matched {
                return false;
            }
            rest = behind;
        }
        rest.is_none()
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
            ("/orders/{id}/pay", "/orders//pay", true),
            ("/orders/{id}/pay", "/orders/pay", false),
            ("/orders/{id}/", "/orders//", true),
            ("/orders/{id}/", "/orders/", false),
            ("/{shop}/{id}", "//1", true),
            ("/{shop}/{id}", "/a/", false),
            ("/orders/{id}", "/orders/%31", true),
            ("/orders", "/%6frders", false),
            ("/admin/{*rest}", "/admin/a/b", true),
            ("/admin/{*rest}", "/admin", false),
            ("/admin/{*rest}", "/admin/", false),
            ("/admin/{*rest}", "/admin//", true),
            ("/admin/{*rest}", "/admin//a", true),
            ("/admin/{*rest}", "//admin/a", false),
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
