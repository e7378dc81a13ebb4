//! The value of `key` and of `scope`: an expression, a tuple, or a template.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, ExprLit, Lit, Result};

use crate::derive::gather;
use crate::syntax::bare;
use crate::template::Template;

/// For as many elements the runtime knows tuples of key parts.
const MOST_PARTS: usize = 8;

const TOO_MANY_PARTS: &str = "a tuple of key parts has at most eight: put some of them in a tuple of their own, as in `(a, (b, c))`, or write a template";

pub(crate) enum Key {
    Expression(Expr),
    /// Each element is a part of its own; the expression is the tuple as written.
    Tuple(Expr, Vec<Key>),
    Template(Template),
}

impl Key {
    pub(crate) fn read(written: &Expr) -> Result<Self> {
        let written = bare(written);
        match written {
            Expr::Tuple(tuple) => {
                if let Some(ninth) = tuple.elems.get(MOST_PARTS) {
                    return Err(syn::Error::new_spanned(ninth, TOO_MANY_PARTS));
                }
                let elements = gather(tuple.elems.iter().map(Self::read))?;
                Ok(Self::Tuple(written.clone(), elements))
            }
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) if text.value().contains(['{', '}']) => Template::parse(text).map(Self::Template),
            _ => Ok(Self::Expression(written.clone())),
        }
    }

    /// The expressions in it: of a tuple its elements, of a template what stands in braces.
    pub(crate) fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Expression(expression) => vec![expression],
            Self::Tuple(_, elements) => elements.iter().flat_map(Self::expressions).collect(),
            Self::Template(template) => template.parts().collect(),
        }
    }
}

/// The tokens as they were written.
impl ToTokens for Key {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Expression(written) | Self::Tuple(written, _) => written.to_tokens(tokens),
            Self::Template(template) => template.written.to_tokens(tokens),
        }
    }
}
