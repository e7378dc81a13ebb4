//! The expansion of single words, numbers and names.

use proc_macro2::TokenStream;
use quote::quote;

fn expanded(arguments: &str) -> String {
    let arguments: TokenStream = arguments.parse().unwrap();
    let function = quote! { async fn r#move(id: u64) -> Result<u64, Error> { Ok(id) } };
    let expanded = crate::protect(quote!(key = id, #arguments), function);
    expanded.to_string().replace(' ', "")
}

#[test]
fn each_word_is_the_variant_of_its_name() {
    for (said, meant) in [
        ("in_flight = reject", "InFlight::Reject"),
        ("on_error = replay", "__private::Replayed"),
        ("on_error = release", "__private::Released"),
        ("on_error = uncertain", "__private::LeftUncertain"),
        ("on_crash = rerun", "OnCrash::Rerun"),
        ("on_crash = uncertain", "OnCrash::Uncertain"),
        ("on_cancel = stop", "OnCancel::Stop"),
        ("on_cancel = detach", "OnCancel::Detach"),
        ("on_missing_key = refuse", "OnMissingKey::Refuse"),
        ("on_missing_key = run", "OnMissingKey::Run"),
        ("on_outage = closed", "OnOutage::Closed"),
        ("on_outage = open", "OnOutage::Open"),
        ("on_outage = read_only", "OnOutage::ReadOnly"),
    ] {
        assert!(expanded(said).contains(meant), "{said}");
    }
}

#[test]
fn a_duration_keeps_its_milliseconds() {
    for said in [
        "ttl = \"1s500ms\"",
        "lease = \"1s500ms\"",
        "in_flight = wait(\"1s500ms\")",
    ] {
        assert!(
            expanded(said).contains("Duration::new(1u64,500000000u32)"),
            "{said}"
        );
    }
}

#[test]
fn the_name_of_a_function_has_no_marks_of_the_language() {
    assert!(expanded("").contains("\"::\",\"move\""));
}
