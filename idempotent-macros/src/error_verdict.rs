//! `#[derive(ErrorVerdict)]`

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Meta, Result, Token};

use crate::derive::{gather, quiet, runtime};
use crate::errors::unknown;

const WORDS: [&str; 3] = ["replay", "release", "uncertain"];
const FIX: &str =
    "write `#[verdict(replay)]`, `#[verdict(release)]` or `#[verdict(uncertain)]` above it";

// Input:
//     enum PayError {
//         #[verdict(replay)] Declined,
//         #[verdict(release)] Database(sqlx::Error),
//     }
//
// Output:
//     impl ErrorVerdict for PayError {
//         fn verdict(&self) -> Verdict {
//             match self {
//                 Self::Declined { .. } => Verdict::Replay,
//                 Self::Database { .. } => Verdict::Release,
//             }
//         }
//     }
pub(crate) fn derive(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    nothing_on_fields(&input)?;
    let mut whole = Vec::new();
    let runtime = runtime(&input.attrs, "verdict", |meta| {
        let word = meta.path.require_ident()?.clone();
        whole.push(Verdict::read(word)?);
        Ok(())
    })?;
    let verdict = quote!(#runtime::Verdict);
    let body = match &input.data {
        Data::Struct(data) => {
            let is_said = Verdict::single(whole, &input.ident, &input.ident.to_string())?;
            let said = is_said.checked(&input.attrs, &data.fields)?.variant();
            quote!(#verdict::#said)
        }
        Data::Enum(data) => {
            if let Some(on_enum) = whole.first() {
                return Err(Error::new(
                    on_enum.word.span(),
                    "`verdict` stands on each variant of an enum, so that a new one is decided: write it there",
                ));
            }
            let arms = gather(data.variants.iter().map(|variant| {
                let name = format!("{}::{}", input.ident, variant.ident);
                let said = Verdict::of(&variant.attrs, &variant.ident, &name)?;
                let said = said.checked(&variant.attrs, &variant.fields)?.variant();
                let ident = quiet(&variant.ident);
                Ok(quote!(Self::#ident { .. } => #verdict::#said,))
            }))?;
            quote!(match *self { #(#arms)* })
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "a union is no error type: use an enum",
            ));
        }
    };
    let name = quiet(&input.ident);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #runtime::ErrorVerdict for #name #type_generics #where_clause {
            fn verdict(&self) -> #verdict {
                #body
            }
        }
    })
}

/// A verdict as it was written: one of [`WORDS`].
struct Verdict {
    word: Ident,
}

impl Verdict {
    fn read(word: Ident) -> Result<Self> {
        let written = word.to_string();
        if WORDS.contains(&written.as_str()) {
            return Ok(Self { word });
        }
        Err(Error::new(
            word.span(),
            unknown("verdict", &written, &WORDS),
        ))
    }

    /// The verdict that the attributes of a variant say. Messages call the variant `name`.
    fn of(attributes: &[Attribute], at: &Ident, name: &str) -> Result<Self> {
        let mut said = Vec::new();
        for attribute in attributes {
            if attribute.path().is_ident("verdict") {
                let words = attribute
                    .parse_args_with(Punctuated::<Ident, Token![,]>::parse_terminated)
                    .map_err(|error| {
                        Error::new(error.span(), format!("`verdict` takes one word: {FIX}"))
                    })?;
                said.extend(gather(words.into_iter().map(Self::read))?);
            }
        }
        Self::single(said, at, name)
    }

    fn single(said: Vec<Self>, at: &Ident, name: &str) -> Result<Self> {
        let mut said = said.into_iter();
        let Some(first) = said.next() else {
            return Err(Error::new(
                at.span(),
                format!("`{name}` says no verdict: {FIX}"),
            ));
        };
        match said.next() {
            Some(second) => Err(Error::new(
                second.word.span(),
                format!("`{name}` says two verdicts: keep one"),
            )),
            None => Ok(first),
        }
    }

    /// Refuses to replay an error of which serde leaves a part out of the record.
    fn checked(self, attributes: &[Attribute], fields: &Fields) -> Result<Self> {
        if self.word != "replay" {
            return Ok(self);
        }
        let of_fields = fields.iter().flat_map(|field| &field.attrs);
        match attributes
            .iter()
            .chain(of_fields)
            .find_map(skipped_by_serde)
        {
            Some(skip) => Err(Error::new(
                skip,
                "serde leaves this out of the record, so a duplicate could not get it: write `#[verdict(release)]` or `#[verdict(uncertain)]`, or let serde store it",
            )),
            None => Ok(self),
        }
    }

    fn variant(&self) -> Ident {
        let name = match self.word.to_string().as_str() {
            "replay" => "Replay",
            "release" => "Release",
            _ => "Uncertain",
        };
        Ident::new(name, Span::call_site())
    }
}

/// The place that tells serde to leave something out, in one direction at least.
fn skipped_by_serde(attribute: &Attribute) -> Option<Span> {
    const SKIPS: [&str; 3] = ["skip", "skip_serializing", "skip_deserializing"];
    if !attribute.path().is_ident("serde") {
        return None;
    }
    let words = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let words = words.ok()?;
    let skip = words.iter().find(|word| {
        let is_skip = |skip: &&str| word.path().is_ident(skip);
        SKIPS.iter().any(is_skip)
    })?;
    skip.path().get_ident().map(Ident::span)
}

fn nothing_on_fields(input: &DeriveInput) -> Result<()> {
    struct Misplaced(Vec<Result<()>>);

    impl Visit<'_> for Misplaced {
        fn visit_field(&mut self, field: &Field) {
            let verdicts = field.attrs.iter();
            let verdicts = verdicts.filter(|attribute| attribute.path().is_ident("verdict"));
            self.0.extend(verdicts.map(|attribute| {
                Err(Error::new_spanned(
                    attribute,
                    "`verdict` stands on a variant, not on a field: one word says what becomes of the whole error",
                ))
            }));
        }
    }

    let mut misplaced = Misplaced(Vec::new());
    misplaced.visit_data(&input.data);
    gather(misplaced.0).map(drop)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_enum_says_a_verdict_for_each_variant() {
        let derived = derive(quote! {
            #[verdict(crate = my::runtime)]
            enum PayError<T> where T: Clone {
                #[verdict(replay)]
                Declined { reason: String, #[serde(default)] code: T },
                #[verdict(release)]
                #[serde(skip)]
                Database(#[from] sqlx::Error),
                #[verdict(uncertain)]
                NoAnswer,
            }
        });
        let derived = derived.unwrap();
        let forbidden = crate::expand::what_a_user_may_have_forbidden(&derived.to_string());
        assert_eq!(forbidden, None);
        // Output:
        let expected = expect![[r#"
            #[automatically_derived]
            impl<T> my::runtime::ErrorVerdict for PayError<T>
            where
                T: Clone,
            {
                fn verdict(&self) -> my::runtime::Verdict {
                    match *self {
                        Self::Declined { .. } => my::runtime::Verdict::Replay,
                        Self::Database { .. } => my::runtime::Verdict::Release,
                        Self::NoAnswer { .. } => my::runtime::Verdict::Uncertain,
                    }
                }
            }
        "#]];
        expected.assert_eq(&prettyplease::unparse(&syn::parse2(derived).unwrap()));
    }
}
