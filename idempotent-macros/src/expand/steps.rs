//! The steps between the begin of a call and its run: they are known only when it is called.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::Expansion;
use super::tokens::{at, by_reference, rename_self};
use crate::choices::InFlight;
use crate::key::Key;
use crate::model::{Fingerprint, Identity, SelfName};
use crate::template::{Piece, Template};
use crate::values::{AlsoAccept, Period};

impl Expansion<'_> {
    pub(super) fn steps(&self) -> Vec<TokenStream> {
        let Self { private, .. } = self;
        let policies = &self.model.policies;
        let mut steps = Vec::new();
        if let Some(handle) = &policies.handle {
            steps.push(self.step("handle", by_reference(handle)));
        }
        steps.push(match &self.model.identity {
            Identity::Key(key) => self.step("key", self.key(key)),
            Identity::Arguments => self.step("key_from_arguments", TokenStream::new()),
        });
        if let Some(scope) = &policies.scope {
            steps.push(self.step("scope", self.key(scope)));
        }
        if let Some(AlsoAccept::Key(old)) = &policies.also_accept {
            steps.push(self.step("also_accept_key", self.template(old)));
        }
        steps.extend(self.compared());
        if let Some(Period::Computed(ttl)) = &policies.ttl {
            steps.push(self.step("ttl", ttl));
        }
        if let Some(Period::Computed(lease)) = &policies.lease {
            steps.push(self.step("lease", lease));
        }
        if let Some(InFlight::Wait(Period::Computed(limit))) = &policies.in_flight {
            steps.push(self.step("in_flight", quote!(#private::InFlight::Wait(#limit))));
        }
        match self.model.self_name {
            SelfName::Plain => steps,
            SelfName::Renamed => steps.into_iter().map(rename_self).collect(),
        }
    }

    /// A method of the call. It is named by its path: one of a trait that is implemented for every
    /// type would be found before any that takes `&mut self`.
    fn step(&self, method: &str, values: impl ToTokens) -> TokenStream {
        let Self { private, call, .. } = self;
        let method = Ident::new(method, Span::call_site());
        quote!(#private::Call::#method(&mut #call, #values);)
    }

    /// The arguments that a duplicate must have in common with the first call.
    fn compared(&self) -> Vec<TokenStream> {
        match &self.model.fingerprint {
            Fingerprint::Expression(expression) => {
                vec![self.step("fingerprint", by_reference(expression))]
            }
            Fingerprint::Arguments(arguments) => {
                let steps = arguments.iter().map(|argument| {
                    let cfg = &argument.cfg;
                    let name = argument.name.unraw().to_string();
                    let value = argument.by_reference();
                    let step = self.step("argument", quote!(#name, #value));
                    quote!(#(#cfg)* #step)
                });
                steps.collect()
            }
        }
    }

    fn key(&self, key: &Key) -> TokenStream {
        match key {
            Key::Expression(expression) => by_reference(expression),
            Key::Tuple(written, elements) => {
                let private = &self.private;
                let elements = elements.iter().map(|element| {
                    let span = element.span();
                    let part = at(span, quote!(#private::part));
                    let element = self.key(element);
                    quote_spanned!(span=> #part(#element))
                });
                quote_spanned!(written.span()=> &(#(#elements,)*))
            }
            Key::Template(template) => self.template(template),
        }
    }

    fn template(&self, template: &Template) -> TokenStream {
        let private = &self.private;
        let pieces = template.pieces.iter().map(|piece| match piece {
            Piece::Literal(literal) => quote!(.literal(#literal)),
            Piece::Part(part) => {
                let part = by_reference(part);
                quote!(.part(#part))
            }
        });
        quote!(&#private::Template::new()#(#pieces)*)
    }
}
