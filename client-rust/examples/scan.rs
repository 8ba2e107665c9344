//! Reads rows: `cargo run --example scan -- TABLE 'FILTER'`

use futures::TryStreamExt;
use lance_gateway_client::{Client, ClientOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let table = args.next().ok_or("which table?")?;

    let client = Client::connect("grpc://127.0.0.1:8815", ClientOptions::default()).await?;
    let mut scan = client.scan(table).limit(10);
    if let Some(filter) = args.next() {
        scan = scan.filter(filter);
    }
    let plan = scan.plan().await?;
    println!("version {}, {} splits", plan.version(), plan.splits().len());

    let batches: Vec<_> = plan.stream().try_collect().await?;
    println!("{}", arrow_cast::pretty::pretty_format_batches(&batches)?);
    Ok(())
}
