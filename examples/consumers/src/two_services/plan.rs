//! The orders of the plan, and the databases that they come to.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;

/// The topic of the messages is the name of the queue that they come to.
pub(super) const QUEUE: &str = "orders-placed";

pub(super) const ORDERS: u32 = 200;
const CUSTOMERS: u32 = 5;

/// An order, as its message tells it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) number: u32,
    pub(super) customer: u32,
    pub(super) cents: i64,
}

impl Order {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            customer: number % CUSTOMERS,
            cents: 100 + i64::from(number),
        }
    }

    /// Whether its transaction is rolled back.
    pub(super) fn is_rolled_back(&self) -> bool {
        self.number % 10 == 3
    }

    pub(super) fn id(&self) -> String {
        format!("order-{}", self.number)
    }
}

/// How many orders are committed.
pub(super) fn committed() -> u32 {
    let orders = (1..=ORDERS).map(Order::new);
    let committed = orders.filter(|order| !order.is_rolled_back());
    committed.map(|_| 1).sum()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Orders,
    Invoices,
}

impl Service {
    /// Its name on the command line of its process.
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::Orders => "--orders",
            Self::Invoices => "--invoices",
        }
    }

    /// The word that it says after each order.
    pub(super) fn step(self) -> &'static str {
        match self {
            Self::Orders => "placed",
            Self::Invoices => "settled",
        }
    }

    /// The word of its killer.
    pub(super) fn kill(self) -> &'static str {
        match self {
            Self::Orders => "killed-orders",
            Self::Invoices => "killed-invoices",
        }
    }

    /// Nothing in its table refuses a second row of one order.
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Orders => "CREATE TABLE orders (number INTEGER, customer INTEGER, cents INTEGER)",
            Self::Invoices => {
                "CREATE TABLE invoices (number INTEGER, customer INTEGER, cents INTEGER)"
            }
        }
    }

    /// Whether all orders of the plan have come to its table.
    pub(super) async fn is_done(self, pool: &SqlitePool) -> Result<bool, sqlx::Error> {
        let count = match self {
            Self::Orders => "SELECT count(*) FROM orders",
            Self::Invoices => "SELECT count(DISTINCT number) FROM invoices",
        };
        let rows: u32 = sqlx::query_scalar(count).fetch_one(pool).await?;
        Ok(rows >= committed())
    }
}

/// The work of both services.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) url: String,
    pub(super) folder: PathBuf,
    pub(super) protected: bool,
}

impl Work {
    /// The file of a service's own database.
    pub(super) fn file(&self, service: Service) -> PathBuf {
        self.folder.join(match service {
            Service::Orders => "orders.db",
            Service::Invoices => "invoices.db",
        })
    }
}
