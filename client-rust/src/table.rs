//! Tables, namespaces, versions, and the gateway's own status.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use arrow_schema::{Schema, SchemaRef};
use chrono::{DateTime, Utc};
use lance_gateway_proto::{Reason, v1};

use crate::client::{Call, send};
use crate::ids::time_from_wire;
use crate::{Client, Filter, Result, TableId, VersionSelector, schema};

pub use lance_gateway_proto::v1::{GatewayState, Limits};

/// How a table is created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Lance file format: `2.0`, `2.1` or `2.2`. None: as the gateway is configured.
    pub data_storage_version: Option<String>,
    /// Columns of the primary key, in order; they must not be nullable.
    pub primary_key: Vec<String>,
    /// Kept in the table's configuration.
    pub properties: HashMap<String, String>,
}

impl CreateOptions {
    pub(crate) fn to_wire(&self) -> v1::CreateOptions {
        v1::CreateOptions {
            data_storage_version: self.data_storage_version.clone().unwrap_or_default(),
            primary_key: self.primary_key.clone(),
            properties: self.properties.clone(),
        }
    }
}

/// A table that was created, or was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// Its version.
    pub version: u64,
    /// False if it was there.
    pub created: bool,
}

/// A table at one version.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableDescription {
    /// Its columns.
    pub schema: SchemaRef,
    /// The version that is described.
    pub version: u64,
    /// Rows.
    pub num_rows: u64,
    /// Fragments.
    pub num_fragments: u64,
    /// Bytes of the data files.
    pub num_bytes: u64,
    /// Columns of the primary key, in order.
    pub primary_key: Vec<String>,
    /// The table's configuration.
    pub properties: BTreeMap<String, String>,
    /// Lance file format.
    pub data_storage_version: String,
    /// Whether row ids survive compaction.
    pub stable_row_ids: bool,
    /// Indexes.
    pub indexes: Vec<IndexDescription>,
    /// When the version was committed.
    pub committed_at: Option<DateTime<Utc>>,
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// The columns that it covers.
    pub columns: Vec<String>,
    /// Its type.
    pub index_type: String,
}

/// A version that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableVersion {
    /// Its number.
    pub version: u64,
    /// When it was committed.
    pub committed_at: Option<DateTime<Utc>>,
    /// Lance's name of the transaction: Append, Overwrite, Delete, ...
    pub operation: String,
    /// What the writer noted on it.
    pub properties: BTreeMap<String, String>,
    /// Rows.
    pub num_rows: u64,
    /// Fragments.
    pub num_fragments: u64,
}

/// How many rows, and of which version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCount {
    /// Rows.
    pub num_rows: u64,
    /// The version that was counted.
    pub version: u64,
}

/// What the gateway says about itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Whether it takes work.
    pub state: GatewayState,
    /// Version of lance-gateway.
    pub version: String,
    /// Version of Lance.
    pub lance_version: String,
    /// Time since its start.
    pub uptime: Duration,
    /// What a client must keep to.
    pub limits: Limits,
}

impl Client {
    /// Asks the gateway about itself; answered in every state.
    pub async fn status(&self) -> Result<Status> {
        let answer = send!(self.statuses().get_status, Call::reads("status"), v1::GetStatusRequest {})?;
        Ok(Status {
            state: answer.state(),
            version: answer.version,
            lance_version: answer.lance_version,
            uptime: Duration::from_secs(answer.uptime_seconds),
            limits: answer.limits.unwrap_or_default(),
        })
    }

    /// Creates an empty table; an existing one is an error.
    pub async fn create_table(
        &self,
        table: impl Into<TableId>,
        schema: &Schema,
        options: &CreateOptions,
    ) -> Result<Created> {
        self.create(table.into(), schema, options, false).await
    }

    /// Creates an empty table unless it is there; its schema is not compared.
    pub async fn create_table_if_not_exists(
        &self,
        table: impl Into<TableId>,
        schema: &Schema,
        options: &CreateOptions,
    ) -> Result<Created> {
        self.create(table.into(), schema, options, true).await
    }

    async fn create(
        &self,
        table: TableId,
        schema: &Schema,
        options: &CreateOptions,
        if_not_exists: bool,
    ) -> Result<Created> {
        let call = Call::changes("create table");
        let message = v1::CreateTableRequest {
            request_id: call.request_id.clone(),
            table: table.to_wire(),
            schema: schema::to_wire(schema),
            options: Some(options.to_wire()),
            if_not_exists,
        };
        let answer = send!(self.tables().create_table, call, message)?;
        Ok(Created { version: answer.version, created: answer.created })
    }

    /// Schema, rows, bytes and more of a table.
    pub async fn describe_table(
        &self,
        table: impl Into<TableId>,
        version: impl Into<VersionSelector>,
    ) -> Result<TableDescription> {
        let message = v1::DescribeTableRequest { table: table.into().to_wire(), version: version.into().to_wire() };
        let answer = send!(self.tables().describe_table, Call::reads("describe table"), message)?;
        Ok(TableDescription {
            schema: schema::from_wire(&answer.schema)?,
            version: answer.version,
            num_rows: answer.num_rows,
            num_fragments: answer.num_fragments,
            num_bytes: answer.num_bytes,
            primary_key: answer.primary_key,
            properties: answer.properties.into_iter().collect(),
            data_storage_version: answer.data_storage_version,
            stable_row_ids: answer.stable_row_ids,
            indexes: answer
                .indexes
                .into_iter()
                .map(|index| IndexDescription { name: index.name, columns: index.columns, index_type: index.r#type })
                .collect(),
            committed_at: time_from_wire(answer.committed_at),
        })
    }

    /// One page of the tables of a namespace (empty: the root), by name, and where the next page begins.
    pub async fn list_tables_page(
        &self,
        namespace: &[String],
        page_token: Option<String>,
        page_size: u32,
    ) -> Result<(Vec<TableId>, Option<String>)> {
        let message = v1::ListTablesRequest {
            namespace: namespace.to_vec(),
            page_size,
            page_token: page_token.unwrap_or_default(),
        };
        let answer = send!(self.tables().list_tables, Call::reads("list tables"), message)?;
        let tables = answer.tables.into_iter().map(|name| TableId::Name(name.parts)).collect();
        Ok((tables, Some(answer.next_page_token).filter(|token| !token.is_empty())))
    }

    /// All tables of a namespace (empty: the root), by name.
    pub async fn list_tables(&self, namespace: &[String]) -> Result<Vec<TableId>> {
        let (mut tables, mut next) = self.list_tables_page(namespace, None, 0).await?;
        while next.is_some() {
            let (more, token) = self.list_tables_page(namespace, next, 0).await?;
            tables.extend(more);
            next = token;
        }
        Ok(tables)
    }

    /// Deletes a table with all its versions; one that is not there is an error.
    pub async fn drop_table(&self, table: impl Into<TableId>) -> Result<()> {
        self.drop(table.into(), false).await.map(|_| ())
    }

    /// Deletes a table with all its versions. False: there was none.
    pub async fn drop_table_if_exists(&self, table: impl Into<TableId>) -> Result<bool> {
        self.drop(table.into(), true).await
    }

    async fn drop(&self, table: TableId, if_exists: bool) -> Result<bool> {
        let call = Call::changes("drop table");
        let message = v1::DropTableRequest { request_id: call.request_id.clone(), table: table.to_wire(), if_exists };
        let answer = send!(self.tables().drop_table, call, message);
        done_before(answer.map(|answer| answer.dropped), Reason::TableNotFound)
    }

    /// Counts the rows of a table, or those that a filter keeps.
    pub async fn count_rows(
        &self,
        table: impl Into<TableId>,
        version: impl Into<VersionSelector>,
        filter: Option<Filter>,
    ) -> Result<RowCount> {
        let message = v1::CountRowsRequest {
            table: table.into().to_wire(),
            version: version.into().to_wire(),
            filter: filter.map(Filter::into_wire),
        };
        let answer = send!(self.tables().count_rows, Call::reads("count rows"), message)?;
        Ok(RowCount { num_rows: answer.num_rows, version: answer.version })
    }

    /// The newest versions that can be read, newest first; at most `limit`, 0: as many as the gateway tells.
    pub async fn list_versions(&self, table: impl Into<TableId>, limit: u32) -> Result<Vec<TableVersion>> {
        let message = v1::ListVersionsRequest { table: table.into().to_wire(), limit };
        let answer = send!(self.tables().list_versions, Call::reads("list versions"), message)?;
        Ok(answer.versions.into_iter().map(TableVersion::from_wire).collect())
    }

    /// Creates a namespace. False: it was there.
    pub async fn create_namespace_if_not_exists(&self, namespace: &[String]) -> Result<bool> {
        self.create_ns(namespace, true).await
    }

    /// Creates a namespace; an existing one is an error.
    pub async fn create_namespace(&self, namespace: &[String]) -> Result<()> {
        self.create_ns(namespace, false).await.map(|_| ())
    }

    async fn create_ns(&self, namespace: &[String], if_not_exists: bool) -> Result<bool> {
        let call = Call::changes("create namespace");
        let message = v1::CreateNamespaceRequest {
            request_id: call.request_id.clone(),
            namespace: namespace.to_vec(),
            if_not_exists,
        };
        let answer = send!(self.tables().create_namespace, call, message);
        done_before(answer.map(|answer| answer.created), Reason::NamespaceAlreadyExists)
    }

    /// The last parts of the names of the namespaces below `parent` (empty: the root), sorted.
    pub async fn list_namespaces(&self, parent: &[String]) -> Result<Vec<String>> {
        let message = v1::ListNamespacesRequest { parent: parent.to_vec() };
        let answer = send!(self.tables().list_namespaces, Call::reads("list namespaces"), message)?;
        Ok(answer.names)
    }

    /// Drops an empty namespace; one that is not there is an error.
    pub async fn drop_namespace(&self, namespace: &[String]) -> Result<()> {
        self.drop_ns(namespace, false).await.map(|_| ())
    }

    /// Drops an empty namespace. False: there was none.
    pub async fn drop_namespace_if_exists(&self, namespace: &[String]) -> Result<bool> {
        self.drop_ns(namespace, true).await
    }

    async fn drop_ns(&self, namespace: &[String], if_exists: bool) -> Result<bool> {
        let call = Call::changes("drop namespace");
        let message =
            v1::DropNamespaceRequest { request_id: call.request_id.clone(), namespace: namespace.to_vec(), if_exists };
        let answer = send!(self.tables().drop_namespace, call, message);
        done_before(answer.map(|answer| answer.dropped), Reason::NamespaceNotFound)
    }
}

/// If an attempt got no answer and its repeat finds the work done, then it was that attempt.
fn done_before(answer: Result<bool>, reason: Reason) -> Result<bool> {
    match answer {
        Err(error) if error.follows_lost_attempt() && error.reason() == Some(reason) => Ok(true),
        answer => answer,
    }
}

impl TableVersion {
    fn from_wire(version: v1::TableVersion) -> Self {
        Self {
            version: version.version,
            committed_at: time_from_wire(version.committed_at),
            operation: version.operation,
            properties: version.properties.into_iter().collect(),
            num_rows: version.num_rows,
            num_fragments: version.num_fragments,
        }
    }
}
