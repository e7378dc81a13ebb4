use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
struct Rate(f64);

struct Inner;

#[derive(KeyPart)]
struct Outer {
    id: u64,
    inner: Inner,
}

fn main() {}
