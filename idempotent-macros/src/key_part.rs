//! `#[derive(KeyPart)]`

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::visit::Visit;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, Generics, Ident, Index, Member, Path,
    Result, Type, Variant, parse_quote,
};

use crate::derive::{gather, quiet, runtime};
use crate::function::bare;

// Input:
//     struct OrderKey { cart: CartId, seq: u32 }
//
// Output:
//     impl KeyPart for OrderKey {
//         fn write(&self, key: &mut KeyWriter) {
//             KeyWriter::part::<CartId>(key, &self.cart);
//             KeyWriter::part::<u32>(key, &self.seq);
//         }
//     }
pub(crate) fn derive(item: TokenStream) -> Result<TokenStream> {
    let mut input: DeriveInput = syn::parse2(item)?;
    let runtime = runtime(&input.attrs, "key_part", |meta| {
        Err(meta.error("`key_part` knows one argument: `crate = path`"))
    })?;
    nothing_inside(&input)?;
    let name = quiet(&input.ident);
    let body = match &input.data {
        Data::Struct(data) => {
            let fields = parts(&input, &data.fields)?;
            bound_fields(&mut input.generics, &fields, &runtime);
            write_fields(&fields, &runtime)
        }
        Data::Enum(data) => {
            let variants: Vec<&Variant> = data.variants.iter().collect();
            write_variant(&input.ident, &variants)?
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "a union cannot be a key part, because nothing says which field counts: use a struct or an enum",
            ));
        }
    };
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #runtime::KeyPart for #name #type_generics #where_clause {
            fn write(&self, key: &mut #runtime::KeyWriter) {
                #body
            }
        }
    })
}

/// A field that is a part of the key.
struct Part {
    member: Member,
    ty: Type,
}

/// The fields in their order; a `PhantomData` tells nothing apart and is left out.
fn parts(input: &DeriveInput, fields: &Fields) -> Result<Vec<Part>> {
    let parts: Vec<Part> = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| !is_phantom(field))
        .map(|(index, field)| Part {
            member: field
                .ident
                .clone()
                .map_or_else(|| Member::Unnamed(Index::from(index)), Member::Named),
            ty: field.ty.clone(),
        })
        .collect();
    if parts.is_empty() {
        return Err(Error::new(
            input.ident.span(),
            format!(
                "`{}` has no field that could tell one key from another: give it one, or leave it out of the key",
                input.ident
            ),
        ));
    }
    Ok(parts)
}

fn is_phantom(field: &Field) -> bool {
    matches!(bare(&field.ty), Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "PhantomData"))
}

/// Stands at the type of each field, where it is reported that one is no part of a key. The names
/// in it are those of the derive, also where the type was written elsewhere: a `macro_rules` may
/// have been given it.
fn write_fields(parts: &[Part], runtime: &Path) -> TokenStream {
    let writes = parts.iter().map(|Part { member, ty }| {
        let here = Span::call_site().located_at(ty.span());
        let (member, ty) = (quiet(member), quiet(ty));
        quote_spanned!(here=> #runtime::KeyWriter::part::<#ty>(key, &self.#member);)
    });
    quote!(#(#writes)*)
}

/// A field whose type mentions a type parameter must be a key part itself.
fn bound_fields(generics: &mut Generics, parts: &[Part], runtime: &Path) {
    let parameters: Vec<Ident> = generics
        .type_params()
        .map(|parameter| parameter.ident.clone())
        .collect();
    for Part { ty, .. } in parts.iter().filter(|part| mentions(&part.ty, &parameters)) {
        let ty = quiet(ty);
        generics
            .make_where_clause()
            .predicates
            .push(parse_quote!(#ty: #runtime::KeyPart));
    }
}

fn mentions(ty: &Type, parameters: &[Ident]) -> bool {
    struct Search<'a> {
        parameters: &'a [Ident],
        found: bool,
    }

    impl Visit<'_> for Search<'_> {
        fn visit_ident(&mut self, ident: &Ident) {
            self.found |= self.parameters.contains(ident);
        }
    }

    let mut search = Search {
        parameters,
        found: false,
    };
    search.visit_type(ty);
    search.found
}

fn write_variant(name: &Ident, variants: &[&Variant]) -> Result<TokenStream> {
    if variants.is_empty() {
        return Err(Error::new(
            name.span(),
            format!("`{name}` has no variant, so no key can hold one"),
        ));
    }
    let arms = gather(variants.iter().map(|variant| {
        let ident = &variant.ident;
        if matches!(variant.fields, Fields::Unit) {
            let text = ident.unraw().to_string();
            let ident = quiet(ident);
            return Ok(quote!(Self::#ident => key.text(#text),));
        }
        Err(Error::new_spanned(
            &variant.fields,
            format!(
                "`{name}::{ident}` holds data, and the derive writes plain variants only: implement `KeyPart` by hand, or use the data itself as the key"
            ),
        ))
    }))?;
    Ok(quote!(match self { #(#arms)* }))
}

/// Refuses `#[key_part(…)]` on fields and variants: an author who writes one there means that it
/// changes the key.
fn nothing_inside(input: &DeriveInput) -> Result<()> {
    struct Inside(Option<Error>);

    impl Visit<'_> for Inside {
        fn visit_attribute(&mut self, attribute: &Attribute) {
            if !attribute.path().is_ident("key_part") {
                return;
            }
            let mistake = Error::new_spanned(
                attribute,
                "`key_part` stands on the type only: every field is a part of the key, and a variant is written by its name; for another key implement `KeyPart` by hand",
            );
            match &mut self.0 {
                Some(mistakes) => mistakes.combine(mistake),
                None => self.0 = Some(mistake),
            }
        }
    }

    let mut inside = Inside(None);
    inside.visit_data(&input.data);
    inside.0.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn picture(item: TokenStream, expected: &Expect) {
        let derived = derive(item).unwrap();
        let forbidden = crate::expand::what_a_user_may_have_forbidden(&derived.to_string());
        assert_eq!(forbidden, None);
        expected.assert_eq(&prettyplease::unparse(&syn::parse2(derived).unwrap()));
    }

    #[test]
    fn a_struct_writes_its_fields_in_order() {
        // Input:
        picture(
            quote! {
                #[key_part(crate = my::runtime)]
                struct Line<'a, T, M = ()> where T: Clone {
                    order: OrderId,
                    product: Option<&'a T>,
                    marker: PhantomData<M>,
                }
            },
            // Output:
            &expect![[r#"
                #[automatically_derived]
                impl<'a, T, M> my::runtime::KeyPart for Line<'a, T, M>
                where
                    T: Clone,
                    Option<&'a T>: my::runtime::KeyPart,
                {
                    fn write(&self, key: &mut my::runtime::KeyWriter) {
                        my::runtime::KeyWriter::part::<OrderId>(key, &self.order);
                        my::runtime::KeyWriter::part::<Option<&'a T>>(key, &self.product);
                    }
                }
            "#]],
        );
    }

    #[test]
    fn an_enum_of_plain_variants_writes_their_names() {
        // Input:
        picture(
            quote! { enum Channel { Web, r#Self_ = 5 } },
            // Output:
            &expect![[r##"
                #[automatically_derived]
                impl ::idempotent_runtime::KeyPart for Channel {
                    fn write(&self, key: &mut ::idempotent_runtime::KeyWriter) {
                        match self {
                            Self::Web => key.text("Web"),
                            Self::r#Self_ => key.text("Self_"),
                        }
                    }
                }
            "##]],
        );
    }
}
