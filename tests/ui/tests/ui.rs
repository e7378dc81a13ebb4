//! Compiles the cases. `TRYBUILD=overwrite cargo test -p ui` writes the messages anew, to be read
//! before they are kept.

#[test]
fn mistakes_are_told() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*/*.rs");
}
