use idempotent_runtime::KeyPart;

#[derive(KeyPart)]
enum Payment {
    Card(String),
    Cash,
    Transfer { iban: String },
}

#[derive(KeyPart)]
union Bits {
    whole: u64,
}

#[derive(KeyPart)]
struct Unit;

#[derive(KeyPart)]
struct Empty {}

#[derive(KeyPart)]
enum Never {}

#[derive(KeyPart)]
struct Phantom<T>(std::marker::PhantomData<T>);

#[derive(KeyPart)]
#[key_part(rename = "id")]
struct Renamed(u64);

fn main() {}
