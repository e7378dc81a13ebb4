//! The annotated function: its signature is read, its body stays the tokens that were written.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt as _, quote};
use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{
    AssocType, Attribute, FieldPat, FnArg, Ident, Pat, PatIdent, Receiver, ReturnType, Signature,
    Token, Type, Visibility,
};

use crate::async_trait;
use crate::syntax::regroup;

pub(crate) struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    pub(crate) signature: Signature,
    inner_attributes: Vec<Attribute>,
    body: Body,
    pub(crate) arguments: Vec<Argument>,
}

pub(crate) enum Body {
    /// `;`: a required method of a trait.
    Missing(Token![;]),
    Block(Group),
}

/// A name that the arguments bind.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// The type as written, where the whole argument is this name.
    pub(crate) ty: Option<Type>,
    /// The `mut` before this name, where the whole argument is this name.
    pub(crate) mutability: Option<Token![mut]>,
    pub(crate) cfg: Vec<Attribute>,
}

/// How the function came to be asynchronous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Async,
    /// `#[async_trait]` was there first: a boxed future is returned.
    AsyncTrait,
    Neither,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature: Signature = input.parse()?;
        let (inner_attributes, body) = if input.peek(Token![;]) {
            (Vec::new(), Body::Missing(input.parse()?))
        } else {
            // A `block` of `macro_rules` comes in a group of its own, which `braced` looks through.
            let block;
            let braces = syn::braced!(block in input);
            let attributes = block.call(Attribute::parse_inner)?;
            let mut body = Group::new(Delimiter::Brace, block.parse()?);
            body.set_span(braces.span.join());
            (attributes, Body::Block(body))
        };
        let mut function = Self {
            attributes,
            visibility,
            signature,
            inner_attributes,
            body,
            arguments: Vec::new(),
        };
        function.arguments = function.bindings();
        Ok(function)
    }
}

impl Function {
    pub(crate) fn name(&self) -> &Ident {
        &self.signature.ident
    }

    pub(crate) fn receiver(&self) -> Option<&Receiver> {
        self.signature.receiver()
    }

    pub(crate) fn binds(&self, name: &Ident) -> bool {
        self.argument(name).is_some()
    }

    pub(crate) fn argument(&self, name: &Ident) -> Option<&Argument> {
        self.arguments
            .iter()
            .find(|argument| argument.name == *name)
    }

    pub(crate) fn shape(&self) -> Shape {
        if self.signature.asyncness.is_some() {
            return Shape::Async;
        }
        match &self.body {
            Body::Block(group) if async_trait::expanded(&self.signature, group) => {
                Shape::AsyncTrait
            }
            _ => Shape::Neither,
        }
    }

    pub(crate) fn missing_body(&self) -> Option<&Token![;]> {
        match &self.body {
            Body::Missing(semicolon) => Some(semicolon),
            Body::Block(_) => None,
        }
    }

    /// The type that the future resolves to, as written.
    pub(crate) fn output(&self) -> Option<&Type> {
        let ReturnType::Type(_, ty) = &self.signature.output else {
            return None;
        };
        match self.shape() {
            Shape::AsyncTrait => future_output(ty),
            Shape::Async | Shape::Neither => Some(ty),
        }
    }

    /// The first `Self` outside of items that bring their own.
    pub(crate) fn self_type(&self) -> Option<Ident> {
        let body = match &self.body {
            Body::Block(group) => group.stream(),
            Body::Missing(_) => TokenStream::new(),
        };
        struct SelfType(Option<Ident>);

        impl Visit<'_> for SelfType {
            fn visit_ident(&mut self, ident: &Ident) {
                if self.0.is_none() && ident == "Self" {
                    self.0 = Some(ident.clone());
                }
            }
        }

        let mut found = SelfType(None);
        found.visit_signature(&self.signature);
        found.0.or_else(|| self_type_in(body))
    }

    /// The function with its body replaced by what `wrap` makes of it. The body binds `bound` anew,
    /// so that a `mut` of it stands there.
    pub(crate) fn with_body(
        &self,
        bound: Option<&Ident>,
        wrap: impl FnOnce(&Group) -> TokenStream,
    ) -> TokenStream {
        let Self {
            attributes,
            visibility,
            signature,
            inner_attributes,
            body,
            ..
        } = self;
        let body = match (body, self.shape()) {
            (Body::Missing(semicolon), _) => semicolon.to_token_stream(),
            (Body::Block(block), Shape::AsyncTrait) => {
                async_trait::replace_body(block, wrap).into_token_stream()
            }
            (Body::Block(block), Shape::Async | Shape::Neither) => {
                let wrapped = wrap(block);
                regroup(block, quote!(#(#inner_attributes)* #wrapped)).into_token_stream()
            }
        };
        let mut signature = signature.clone();
        signature.inputs.iter_mut().for_each(use_quietly);
        for input in &mut signature.inputs {
            if let FnArg::Typed(argument) = input
                && let Pat::Ident(pattern) = &mut *argument.pat
                && Some(&pattern.ident) == bound
            {
                pattern.mutability = None;
            }
        }
        quote!(#(#attributes)* #visibility #signature #body)
    }

    fn bindings(&self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        for input in &self.signature.inputs {
            let FnArg::Typed(argument) = input else {
                continue;
            };
            let unpacked = match &self.body {
                Body::Block(group) => async_trait::unpacked(&argument.pat, group),
                Body::Missing(_) => None,
            };
            let pattern = unpacked.as_ref().unwrap_or(&argument.pat);
            let whole = match pattern {
                Pat::Ident(whole) if whole.by_ref.is_none() && whole.subpat.is_none() => {
                    Some(whole)
                }
                _ => None,
            };
            let bound = match whole.map(|whole| &whole.ident) {
                Some(name) if !is_called(&argument.ty, name) => vec![(name.clone(), Vec::new())],
                _ => names(pattern),
            };
            arguments.extend(bound.into_iter().map(|(name, cfg)| Argument {
                name,
                ty: whole.map(|_| bare(&argument.ty).clone()),
                mutability: whole.and_then(|whole| whole.mutability),
                cfg: conditions(&argument.attrs).chain(cfg).collect(),
            }));
        }
        arguments
    }
}

/// Makes `_note @ _` of `_note`. The expansion may use that argument, and clippy then warns of an
/// underscore where the whole pattern is the user's own.
fn use_quietly(input: &mut FnArg) {
    let FnArg::Typed(argument) = input else {
        return;
    };
    if let Pat::Ident(pattern) = &mut *argument.pat
        && pattern.by_ref.is_none()
        && pattern.mutability.is_none()
        && pattern.ident.to_string().starts_with('_')
    {
        let wild = || {
            (
                Token![@](Span::call_site()),
                Box::new(Pat::Verbatim(quote!(_))),
            )
        };
        pattern.subpat.get_or_insert_with(wild);
    }
}

fn conditions(attributes: &[Attribute]) -> impl Iterator<Item = Attribute> {
    let conditions = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.cloned()
}

/// The names that a pattern binds, in order, each with its conditions. A capitalised name is a
/// constant or a unit struct, and alternatives (`Ok(id) | Err(id)`) bind the same names.
fn names(pattern: &Pat) -> Vec<(Ident, Vec<Attribute>)> {
    #[derive(Default)]
    struct Names {
        found: Vec<(Ident, Vec<Attribute>)>,
        conditions: Vec<Attribute>,
    }

    impl Visit<'_> for Names {
        fn visit_field_pat(&mut self, field: &FieldPat) {
            let outside = self.conditions.len();
            self.conditions.extend(conditions(&field.attrs));
            visit::visit_field_pat(self, field);
            self.conditions.truncate(outside);
        }

        fn visit_pat_ident(&mut self, pattern: &PatIdent) {
            let is_constant = pattern.ident.to_string().starts_with(char::is_uppercase);
            let is_known = self.found.iter().any(|(name, _)| *name == pattern.ident);
            if !is_constant && !is_known {
                let found = (pattern.ident.clone(), self.conditions.clone());
                self.found.push(found);
            }
            visit::visit_pat_ident(self, pattern);
        }
    }

    let mut names = Names::default();
    names.visit_pat(pattern);
    names.found
}

/// Whether a type is called so. An argument `Unit: Unit` is the pattern of a unit struct, and `N:
/// u64` is a name.
fn is_called(ty: &Type, name: &Ident) -> bool {
    matches!(bare(ty), Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == *name))
}

/// The type without the parentheses and the groups of `macro_rules` around it.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

/// `R` of `Pin<Box<dyn Future<Output = R> + …>>`.
fn future_output(ty: &Type) -> Option<&Type> {
    struct Output<'a>(Option<&'a Type>);

    impl<'a> Visit<'a> for Output<'a> {
        fn visit_assoc_type(&mut self, binding: &'a AssocType) {
            if self.0.is_none() && binding.ident == "Output" {
                self.0 = Some(&binding.ty);
            }
        }
    }

    let mut output = Output(None);
    output.visit_type(ty);
    output.0
}

/// The first `Self` among these tokens, outside of items that bring their own.
pub(crate) fn self_type_in(tokens: TokenStream) -> Option<Ident> {
    const BRING_THEIR_OWN: [&str; 5] = ["impl", "trait", "struct", "enum", "union"];
    let mut item_ahead = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "Self" && !item_ahead => return Some(ident),
            // A method may be called `union`, too, and what is not called has a name behind it.
            TokenTree::Ident(ident) if BRING_THEIR_OWN.iter().any(|word| ident == word) => {
                let is_named = matches!(tokens.peek(), Some(TokenTree::Ident(_)));
                item_ahead |= is_named || ident == "impl";
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => item_ahead = false,
            TokenTree::Group(group) => {
                let skipped = item_ahead;
                if group.delimiter() == Delimiter::Brace {
                    item_ahead = false;
                }
                if skipped {
                    continue;
                }
                if let Some(found) = self_type_in(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

impl Argument {
    /// A shared reference to the value; what is a reference already stays as it is.
    pub(crate) fn by_reference(&self) -> TokenStream {
        let name = &self.name;
        match &self.ty {
            Some(Type::Reference(reference)) if reference.mutability.is_some() => quote!(&*#name),
            Some(Type::Reference(_)) => name.to_token_stream(),
            _ => {
                let mut tokens = TokenStream::new();
                tokens.append_all(quote::quote_spanned!(name.span()=> &));
                name.to_tokens(&mut tokens);
                tokens
            }
        }
    }
}

#[cfg(test)]
mod tests;
