//! The declaration that an annotated function makes: a constant of the runtime's type `Site`.

use std::fmt::Debug;
use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::Ident;
use syn::ext::IdentExt as _;

use crate::choices::{InFlight, OnCrash};
use crate::model::{Identity, Model, Name};
use crate::source;
use crate::values::{AlsoAccept, Period};

/// `Site::new("payments.charge").key("req.order_id").ttl(…)…`
pub(crate) fn declare(model: &Model<'_>, private: &TokenStream) -> TokenStream {
    let policies = &model.policies;
    let name = name(model, private);
    let mut site =
        quote!(#private::Site::new(#name).at(#private::core::file!(), #private::core::line!()));
    let mut declare = |method: &str, value: TokenStream| {
        let method = Ident::new(method, Span::call_site());
        site.extend(quote!(.#method(#value)));
    };
    if let Identity::Key(key) = &model.identity {
        declare(
            "key",
            source::text(key.to_token_stream()).into_token_stream(),
        );
    }
    if let Some(scope) = &policies.scope {
        declare(
            "scope",
            source::text(scope.to_token_stream()).into_token_stream(),
        );
    }
    if let Some(Period::Fixed { duration, .. }) = &policies.ttl {
        declare("ttl", constant(*duration, private));
    }
    if let Some(Period::Fixed { duration, .. }) = &policies.lease {
        declare("lease", constant(*duration, private));
    }
    match &policies.in_flight {
        Some(InFlight::Wait(Period::Fixed { duration, .. })) => {
            let limit = constant(*duration, private);
            declare("in_flight", quote!(#private::InFlight::Wait(#limit)));
        }
        Some(InFlight::Reject) => declare("in_flight", quote!(#private::InFlight::Reject)),
        Some(InFlight::Wait(Period::Computed(_))) | None => {}
    }
    if let Some(on_crash) = &policies.on_crash {
        let choice = match on_crash {
            OnCrash::Rerun => quote!(Rerun),
            OnCrash::Uncertain => quote!(Uncertain),
            OnCrash::Reconcile(_) => quote!(Reconcile),
        };
        declare("on_crash", quote!(#private::OnCrash::#choice));
    }
    if let Some(on_cancel) = policies.on_cancel {
        let choice = variant(on_cancel);
        declare("on_cancel", quote!(#private::OnCancel::#choice));
    }
    if let Some(on_missing_key) = policies.on_missing_key {
        let choice = variant(on_missing_key);
        declare("on_missing_key", quote!(#private::OnMissingKey::#choice));
    }
    if let Some(on_outage) = policies.on_outage {
        let choice = variant(on_outage);
        declare("on_outage", quote!(#private::OnOutage::#choice));
    }
    if let Some(version) = policies.version {
        declare("version", quote!(#version));
    }
    if let Some(AlsoAccept::Name(old)) = &policies.also_accept {
        declare("also_accept_name", quote!(#old));
    }
    site
}

fn name(model: &Model<'_>, private: &TokenStream) -> TokenStream {
    match &model.name {
        Name::Given(name) => name.to_token_stream(),
        Name::Derived => {
            let function = model.function.name().unraw().to_string();
            quote! {
                #private::core::concat!(
                    #private::core::env!("CARGO_PKG_NAME"), "::", #private::core::module_path!(), "::", #function
                )
            }
        }
    }
}

/// The choices are named like the variants of the runtime.
fn variant(choice: impl Debug) -> Ident {
    Ident::new(&format!("{choice:?}"), Span::call_site())
}

fn constant(duration: Duration, private: &TokenStream) -> TokenStream {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    quote!(#private::Duration::new(#seconds, #nanoseconds))
}
