//! Source text of an expression, close to how it was written, for the inventory of operations.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Word,
    Sign,
    Separator,
}

/// `(req.id, "eu")` rather than `(req . id , "eu")`.
pub(crate) fn text(tokens: TokenStream) -> String {
    let mut text = String::new();
    write(tokens, &mut text);
    text
}

fn write(tokens: TokenStream, text: &mut String) {
    let mut last = Last::Nothing;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::None => ("", ""),
                };
                if last == Last::Separator {
                    text.push(' ');
                }
                text.push_str(open);
                write(group.stream(), text);
                text.push_str(close);
                last = Last::Word;
            }
            TokenTree::Punct(punct) => {
                let tight = matches!(
                    punct.as_char(),
                    '.' | ':' | '&' | '*' | '?' | '!' | '<' | '>' | '\'' | '|'
                );
                let separates = matches!(punct.as_char(), ',' | ';');
                if last == Last::Separator || (!tight && !separates && last == Last::Word) {
                    text.push(' ');
                }
                text.push(punct.as_char());
                last = if tight {
                    Last::Sign
                } else if separates || punct.spacing() == proc_macro2::Spacing::Alone {
                    Last::Separator
                } else {
                    Last::Sign
                };
            }
            word => {
                if matches!(last, Last::Word | Last::Separator) {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
                last = Last::Word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn text_reads_as_written() {
        assert_eq!(text(quote!(req.order_id)), "req.order_id");
        assert_eq!(text(quote!((req.id, "eu", 1))), "(req.id, \"eu\", 1)");
        assert_eq!(
            text(quote!(format!("{}-{}", req.id, a + b))),
            "format!(\"{}-{}\", req.id, a + b)"
        );
        assert_eq!(text(quote!(lookup(&req).await?)), "lookup(&req).await?");
        assert_eq!(text(quote!(Kind::of(x as u64))), "Kind::of(x as u64)");
    }
}
