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

#[derive(KeyPart)]
struct Marked {
    id: u64,
    #[key_part(skip)]
    seen: u64,
}

#[derive(KeyPart)]
enum MarkedVariant {
    #[key_part(rename = "web")]
    Web,
    #[key_part(rename = "phone")]
    Phone,
}

fn main() {}
