//! Template keys: `"{req.cart}:{req.seq}"`.

use syn::ext::IdentExt as _;
use syn::{Error, Expr, Ident, LitStr, Result, parse_quote};

pub(crate) struct Template {
    pub(crate) written: LitStr,
    pub(crate) pieces: Vec<Piece>,
}

pub(crate) enum Piece {
    Literal(String),
    Part(Box<Expr>),
}

impl Template {
    /// Reads `{expression}`, with `{{` and `}}` for the braces themselves.
    pub(crate) fn parse(written: &LitStr) -> Result<Self> {
        let text = written.value();
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text.as_str();
        while let Some(brace) = rest.find(['{', '}']) {
            literal.push_str(&rest[..brace]);
            let from_brace = &rest[brace..];
            if from_brace.starts_with("{{") || from_brace.starts_with("}}") {
                literal.push_str(&from_brace[..1]);
                rest = &from_brace[2..];
                continue;
            }
            if from_brace.starts_with('}') {
                return Err(Error::new(
                    written.span(),
                    "`}` without a `{` before it: write `}}` for the brace itself",
                ));
            }
            let inside = &from_brace[1..];
            let end = match inside.find(['{', '}']) {
                Some(end) if inside[end..].starts_with('}') => end,
                _ => {
                    return Err(Error::new(
                        written.span(),
                        "`{` is not closed: write `{req.cart}`, or `{{` for the brace itself",
                    ));
                }
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Part(Box::new(part(written, &inside[..end])?)));
            rest = &inside[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self {
            written: written.clone(),
            pieces,
        })
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &Expr> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Part(part) => Some(&**part),
        })
    }
}

fn part(written: &LitStr, inside: &str) -> Result<Expr> {
    if inside.trim().is_empty() {
        return Err(Error::new(
            written.span(),
            "`{}` names nothing: write what goes there, as in `{req.cart}`",
        ));
    }
    if let Some(before) = before_format(inside) {
        return Err(Error::new(
            written.span(),
            format!(
                "`{{{inside}}}` has a format: a key part is written by its value, so write `{{{before}}}`"
            ),
        ));
    }
    let text = LitStr::new(inside, written.span());
    // A keyword names the raw argument, as it does in `format!`.
    if let Ok(word) = text.parse_with(Ident::parse_any)
        && syn::parse_str::<Ident>(&word.to_string()).is_err()
        && !["self", "Self", "super", "crate", "_"].contains(&word.to_string().as_str())
    {
        let raw = Ident::new_raw(&word.to_string(), word.span());
        return Ok(parse_quote!(#raw));
    }
    text.parse().map_err(|_| {
        Error::new(
            written.span(),
            format!("`{{{inside}}}` is not an expression: write one like `{{req.cart}}`"),
        )
    })
}

/// The text before a single `:`.
fn before_format(inside: &str) -> Option<&str> {
    let mut characters = inside.char_indices().peekable();
    while let Some((place, character)) = characters.next() {
        if character == ':' && characters.next_if(|(_, next)| *next == ':').is_none() {
            return Some(&inside[..place]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;
    use quote::ToTokens as _;

    use super::*;

    fn parse(text: &str) -> Result<Vec<String>> {
        let template = Template::parse(&LitStr::new(text, Span::call_site()))?;
        let shown = template.pieces.iter().map(|piece| match piece {
            Piece::Literal(literal) => format!("{literal:?}"),
            Piece::Part(part) => part.to_token_stream().to_string(),
        });
        Ok(shown.collect())
    }

    fn refused(text: &str, message: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn parts_and_literals_alternate() {
        assert_eq!(
            parse("{req.cart}:{req.seq}").unwrap(),
            ["req . cart", "\":\"", "req . seq"]
        );
        assert_eq!(parse("order-{id}").unwrap(), ["\"order-\"", "id"]);
        assert_eq!(parse("{id}/refund").unwrap(), ["id", "\"/refund\""]);
        assert_eq!(parse("{Kind::of(x)}").unwrap(), ["Kind :: of (x)"]);
        assert_eq!(parse("{{{id}}}").unwrap(), ["\"{\"", "id", "\"}\""]);
    }

    #[test]
    fn first_hour_03_a_keyword_is_the_raw_name_as_in_format() {
        assert_eq!(parse("{type}:{self}").unwrap(), ["r#type", "\":\"", "self"]);
    }

    #[test]
    fn broken_templates_say_what_to_write() {
        refused(
            "{req.cart",
            "`{` is not closed: write `{req.cart}`, or `{{` for the brace itself",
        );
        refused(
            "{req.cart{x}}",
            "`{` is not closed: write `{req.cart}`, or `{{` for the brace itself",
        );
        refused(
            "req.cart}",
            "`}` without a `{` before it: write `}}` for the brace itself",
        );
        refused(
            "a{}",
            "`{}` names nothing: write what goes there, as in `{req.cart}`",
        );
        refused(
            "{id:?}",
            "`{id:?}` has a format: a key part is written by its value, so write `{id}`",
        );
        refused(
            "{a b}",
            "`{a b}` is not an expression: write one like `{req.cart}`",
        );
    }
}
