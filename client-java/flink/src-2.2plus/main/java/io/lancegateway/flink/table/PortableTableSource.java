package io.lancegateway.flink.table;

import org.apache.flink.table.connector.source.ScanTableSource;

/** What a table source must be in this version of Flink. */
interface PortableTableSource extends ScanTableSource {}
