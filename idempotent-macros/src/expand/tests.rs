//! Pictures of the expansion. `UPDATE_EXPECT=1 cargo test -p idempotent-macros` draws them anew.

use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

/// Expands the first attribute of `input`, which stands alone or in an `impl`.
fn picture(arguments: TokenStream, function: TokenStream, expected: &Expect) {
    let is_method = function.to_string().contains("self");
    let expanded = crate::protect(arguments, function);
    let item = if is_method {
        quote!(impl Shop { #expanded })
    } else {
        expanded
    };
    expected.assert_eq(&prettyplease::unparse(&syn::parse2(item).unwrap()));
}

#[test]
fn a_function_with_a_skipped_argument() {
    // Input:
    picture(
        quote!(
            name = "payments.charge",
            key = req.order_id,
            scope = req.merchant,
            ttl = "24h",
            skip(gateway)
        ),
        quote! {
            /// Charges once.
            #[must_use]
            pub async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
                gateway.charge(req).await
            }
        },
        // Output:
        &expect![[r#"
            /// Charges once.
            #[must_use]
            pub async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            "payments.charge",
                        )
                        .key("req.order_id")
                        .scope("req.merchant")
                        .ttl(::idempotent_runtime::__private::Duration::new(86400u64, 0u32));
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call.key(&req.order_id);
                    __call.scope(&req.merchant);
                    __call.argument("req", req);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<Receipt, PayError>,
                    > {
                        return __ret;
                    }
                    { gateway.charge(req).await }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Recorded,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn a_derived_name_and_a_pattern() {
    // Input:
    picture(
        quote!(key = body.id, skip(app)),
        quote! {
            async fn create<T: Store>(State(app): State<App<T>>, Json(body): Json<Order>) -> Result<Json<Order>, ApiError> {
                app.insert(&body).await?;
                Ok(Json(body))
            }
        },
        // Output:
        &expect![[r#"
            async fn create<T: Store>(
                State(app): State<App<T>>,
                Json(body): Json<Order>,
            ) -> Result<Json<Order>, ApiError> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "create"
                            ),
                        )
                        .key("body.id");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call.key(&body.id);
                    __call.argument("body", &body);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<Json<Order>, ApiError>,
                    > {
                        return __ret;
                    }
                    {
                        app.insert(&body).await?;
                        Ok(Json(body))
                    }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Recorded,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn a_method_with_a_tuple_key() {
    // Input:
    picture(
        quote!(
            name = "cart.add",
            key = (&self.cart, (item, "eu")),
            scope = self.tenant()
        ),
        quote! {
            async fn add(&self, item: u64) -> Result<(), CartError> {
                self.push(item).await
            }
        },
        // Output:
        &expect![[r#"
            impl Shop {
                async fn add(&self, item: u64) -> Result<(), CartError> {
                    #[allow(clippy::used_underscore_binding)]
                    let prepared_idempotent_call = {
                        static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                                "cart.add",
                            )
                            .key("(&self.cart, (item, \"eu\"))")
                            .scope("self.tenant()");
                        let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                        __call
                            .key(
                                &(
                                    ::idempotent_runtime::__private::part(&self.cart),
                                    ::idempotent_runtime::__private::part(
                                        &(
                                            ::idempotent_runtime::__private::part(&item),
                                            ::idempotent_runtime::__private::part(&"eu"),
                                        ),
                                    ),
                                ),
                            );
                        __call.scope(&self.tenant());
                        __call.argument("item", &item);
                        __call
                    };
                    let __body = async move {
                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                            Result<(), CartError>,
                        > {
                            return __ret;
                        }
                        { self.push(item).await }
                    };
                    let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                    #[allow(clippy::large_futures)]
                    let __ret = prepared_idempotent_call
                        .run(
                            __body,
                            ::idempotent_runtime::__private::Recorded,
                            ::idempotent_runtime::__private::Whole,
                        )
                        .await;
                    __ret
                }
            }
        "#]],
    );
}

#[test]
fn a_template_key_and_the_old_one() {
    // Input:
    picture(
        quote!(
            key = "{req.cart}:{req.seq}",
            also_accept = "{req.cart}/{req.seq}",
            crate = my::runtime
        ),
        quote! {
            async fn put(req: Put) -> Result<u32, Error> { Ok(1) }
        },
        // Output:
        &expect![[r#"
            async fn put(req: Put) -> Result<u32, Error> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: my::runtime::__private::Site = my::runtime::__private::Site::new(
                            my::runtime::__private::core::concat!(
                                my::runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                my::runtime::__private::core::module_path!(), "::", "put"
                            ),
                        )
                        .key("\"{req.cart}:{req.seq}\"");
                    let mut __call = my::runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call
                        .key(
                            &my::runtime::__private::Template::new()
                                .part(&req.cart)
                                .literal(":")
                                .part(&req.seq),
                        );
                    __call
                        .also_accept_key(
                            &my::runtime::__private::Template::new()
                                .part(&req.cart)
                                .literal("/")
                                .part(&req.seq),
                        );
                    __call.argument("req", &req);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<u32, Error>,
                    > {
                        return __ret;
                    }
                    { Ok(1) }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(__body, my::runtime::__private::Recorded, my::runtime::__private::Whole)
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn every_policy() {
    // Input:
    picture(
        quote!(
            name = "stock.reserve",
            key = lookup(&req).await?,
            handle = &app.idempotency,
            in_flight = wait("10s"),
            on_error = classify,
            on_crash = uncertain,
            on_cancel = detach,
            lease = "1m30s",
            on_missing_key = run,
            on_outage = read_only,
            version = 2,
            upgrade = Receipt::read_old,
            also_accept = "stock.hold",
            skip(app),
        ),
        quote! {
            async fn reserve(app: App, req: Reserve) -> Result<Receipt, StockError> { todo!() }
        },
        // Output:
        &expect![[r#"
            async fn reserve(app: App, req: Reserve) -> Result<Receipt, StockError> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            "stock.reserve",
                        )
                        .key("lookup(&req).await?")
                        .lease(::idempotent_runtime::__private::Duration::new(90u64, 0u32))
                        .in_flight(
                            ::idempotent_runtime::__private::InFlight::Wait(
                                ::idempotent_runtime::__private::Duration::new(10u64, 0u32),
                            ),
                        )
                        .on_crash(::idempotent_runtime::__private::OnCrash::Uncertain)
                        .on_cancel(::idempotent_runtime::__private::OnCancel::Detach)
                        .on_missing_key(::idempotent_runtime::__private::OnMissingKey::Run)
                        .on_outage(::idempotent_runtime::__private::OnOutage::ReadOnly)
                        .version(2u32)
                        .also_accept_name("stock.hold");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call.handle(&app.idempotency);
                    __call.key(&lookup(&req).await?);
                    __call.argument("req", &req);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<Receipt, StockError>,
                    > {
                        return __ret;
                    }
                    { todo!() }
                };
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run_detached(
                        __body,
                        ::idempotent_runtime::__private::Classified(classify),
                        ::idempotent_runtime::__private::Upgraded(Receipt::read_old),
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn computed_durations_and_a_fingerprint() {
    // Input:
    picture(
        quote!(
            key = a + b,
            fingerprint = (a, b),
            ttl = Duration::from_secs(a),
            lease = LEASE,
            in_flight = wait(PATIENCE),
            on_error = release,
        ),
        quote! {
            async fn add(a: u64, b: u64) -> anyhow::Result<u64> { Ok(a + b) }
        },
        // Output:
        &expect![[r#"
            async fn add(a: u64, b: u64) -> anyhow::Result<u64> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "add"
                            ),
                        )
                        .key("a + b");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call.key(&(a + b));
                    __call.fingerprint(&(&a, &b));
                    __call.ttl(Duration::from_secs(a));
                    __call.lease(LEASE);
                    __call.in_flight(::idempotent_runtime::__private::InFlight::Wait(PATIENCE));
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        anyhow::Result<u64>,
                    > {
                        return __ret;
                    }
                    { Ok(a + b) }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Released,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn reconcile_asks_with_every_argument() {
    // Input:
    picture(
        quote!(
            name = "payout",
            key = req.id,
            on_crash = reconcile(Self::ask),
            on_error = uncertain,
            skip(bank)
        ),
        quote! {
            async fn pay(&self, bank: &Bank, conn: Conn, req: Payout) -> Result<Paid, PayError> { bank.pay(req).await }
        },
        // Output:
        &expect![[r#"
            impl Shop {
                async fn pay(&self, bank: &Bank, conn: Conn, req: Payout) -> Result<Paid, PayError> {
                    #[allow(clippy::used_underscore_binding)]
                    let prepared_idempotent_call = {
                        static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                                "payout",
                            )
                            .key("req.id")
                            .on_crash(::idempotent_runtime::__private::OnCrash::Reconcile);
                        let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                        __call.key(&req.id);
                        __call.argument("conn", &conn);
                        __call.argument("req", &req);
                        __call
                    };
                    let __body = async move {
                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                            Result<Paid, PayError>,
                        > {
                            return __ret;
                        }
                        if let ::core::option::Option::Some(__answer) = ::idempotent_runtime::__private::reconcile::<
                            Result<Paid, PayError>,
                            _,
                            _,
                        >(|| Self::ask(self, bank, &conn, &req))
                            .await
                        {
                            return __answer;
                        }
                        { bank.pay(req).await }
                    };
                    let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                    #[allow(clippy::large_futures)]
                    let __ret = prepared_idempotent_call
                        .run(
                            __body,
                            ::idempotent_runtime::__private::LeftUncertain,
                            ::idempotent_runtime::__private::Whole,
                        )
                        .await;
                    __ret
                }
            }
        "#]],
    );
}

#[test]
fn a_reference_is_stored_in_place_of_the_value() {
    // Input:
    picture(
        quote!(
            key = id,
            outcome = reference(|order: &Order| order.id, load),
            on_error = replay
        ),
        quote! {
            async fn make(mut id: u64) -> Result<Order, MakeError> { id += 1; Err(MakeError(id)) }
        },
        // Output:
        &expect![[r#"
            async fn make(mut id: u64) -> Result<Order, MakeError> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "make"
                            ),
                        )
                        .key("id");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call.key(&id);
                    __call.argument("id", &id);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<Order, MakeError>,
                    > {
                        return __ret;
                    }
                    {
                        id += 1;
                        Err(MakeError(id))
                    }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Replayed,
                        ::idempotent_runtime::__private::Reference(|order: &Order| order.id, load),
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn all_arguments_as_the_key() {
    // Input:
    picture(
        quote!(
            key_from_arguments,
            in_flight = reject,
            on_crash = rerun,
            on_cancel = stop
        ),
        quote! {
            async fn send<const N: usize>(#[cfg(feature = "mail")] to: [u8; N], r#type: String) -> Result<(), MailError>
            where
                [u8; N]: Sized,
            {
                #![allow(clippy::unused_async)]
                Ok(())
            }
        },
        // Output:
        &expect![[r#"
            async fn send<const N: usize>(
                #[cfg(feature = "mail")]
                to: [u8; N],
                r#type: String,
            ) -> Result<(), MailError>
            where
                [u8; N]: Sized,
            {
                #![allow(clippy::unused_async)]
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "send"
                            ),
                        )
                        .in_flight(::idempotent_runtime::__private::InFlight::Reject)
                        .on_crash(::idempotent_runtime::__private::OnCrash::Rerun)
                        .on_cancel(::idempotent_runtime::__private::OnCancel::Stop);
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    __call.key_from_arguments();
                    #[cfg(feature = "mail")] __call.argument("to", &to);
                    __call.argument("type", &r#type);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<(), MailError>,
                    > {
                        return __ret;
                    }
                    { Ok(()) }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Recorded,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn a_method_that_async_trait_has_boxed() {
    // Input:
    picture(
        quote!(name = "pay", key = (self.shop, body.id), skip(app)),
        quote! {
            fn pay<'life0, 'life1, 'async_trait>(
                &'life0 self,
                app: &'life1 App,
                __arg2: Json<Body>,
            ) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<Paid, PayError>> + Send + 'async_trait>>
            where
                'life0: 'async_trait,
                'life1: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<Paid, PayError>> {
                        #[allow(unreachable_code)]
                        return __ret;
                    }
                    let __self = self;
                    let Json(body) = { let __arg2 = __arg2; __arg2 };
                    let __ret: Result<Paid, PayError> = { __self.pay_now(app, body).await };
                    #[allow(unreachable_code)]
                    __ret
                })
            }
        },
        // Output:
        &expect![[r#"
            impl Shop {
                fn pay<'life0, 'life1, 'async_trait>(
                    &'life0 self,
                    app: &'life1 App,
                    __arg2: Json<Body>,
                ) -> ::core::pin::Pin<
                    Box<
                        dyn ::core::future::Future<
                            Output = Result<Paid, PayError>,
                        > + Send + 'async_trait,
                    >,
                >
                where
                    'life0: 'async_trait,
                    'life1: 'async_trait,
                    Self: 'async_trait,
                {
                    Box::pin(async move {
                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                            Result<Paid, PayError>,
                        > {
                            #[allow(unreachable_code)] return __ret;
                        }
                        let __self = self;
                        let Json(body) = {
                            let __arg2 = __arg2;
                            __arg2
                        };
                        let __ret: Result<Paid, PayError> = {
                            #[allow(clippy::used_underscore_binding)]
                            let prepared_idempotent_call = {
                                static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                                        "pay",
                                    )
                                    .key("(self.shop, body.id)");
                                let mut __call = ::idempotent_runtime::__private::begin(
                                    &__IDEMPOTENT_SITE,
                                );
                                __call
                                    .key(
                                        &(
                                            ::idempotent_runtime::__private::part(&__self.shop),
                                            ::idempotent_runtime::__private::part(&body.id),
                                        ),
                                    );
                                __call.argument("body", &body);
                                __call
                            };
                            let __body = async move {
                                if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                                    Result<Paid, PayError>,
                                > {
                                    return __ret;
                                }
                                { __self.pay_now(app, body).await }
                            };
                            let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                            #[allow(clippy::large_futures)]
                            let __ret = prepared_idempotent_call
                                .run(
                                    __body,
                                    ::idempotent_runtime::__private::Recorded,
                                    ::idempotent_runtime::__private::Whole,
                                )
                                .await;
                            __ret
                        };
                        #[allow(unreachable_code)] __ret
                    })
                }
            }
        "#]],
    );
}

#[test]
fn a_wrong_attribute_leaves_the_function_as_written() {
    // Input:
    picture(
        quote!(ttl = "1x", tll = 5),
        quote! {
            async fn charge(req: &Charge) -> Result<Receipt, PayError> { gateway.charge(req).await }
        },
        // Output:
        &expect![[r#"
            ::core::compile_error! {
                "unknown unit `x` in the duration `1x`; the units are `w`, `d`, `h`, `m`, `s` and `ms`, as in `\"24h\"`, `\"1h30m\"` or `\"500ms\"`"
            }
            ::core::compile_error! {
                "unknown argument `tll`, did you mean `ttl`? known are `key`, `scope`, `ttl`, `name`, `skip`, `in_flight`, `on_error`, `on_crash`, `on_cancel`, `lease`, `handle`, `key_from_arguments`, `fingerprint`, `on_missing_key`, `on_outage`, `tx`, `outcome`, `version`, `upgrade`, `also_accept` and `crate`"
            }
            ::core::compile_error! {
                "`#[idempotent]` needs a `key`, which says when two calls are the same one: write `key = …` with the argument `req`, or `key_from_arguments`"
            }
            async fn charge(req: &Charge) -> Result<Receipt, PayError> {
                gateway.charge(req).await
            }
        "#]],
    );
}
