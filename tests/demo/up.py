"""`make up`: gateway and Flink left running, with a script that opens Flink's SQL client on them."""

import json
import sys

from harness import flink, paths
from harness.gateway import Gateway

from . import down, sql
from .down import STATE, WORK, running

USE = """
  Flink's SQL client (the tables `words` and `vectors` are declared, 'execution.runtime-mode' is batch):
    {client}
    Flink SQL> {insert};
    Flink SQL> {count};
  Python:
    {python} -c 'import pyarrow.flight as f; print(*f.connect("{uri}").list_flights())'
  command line:
    export LANCE_GATEWAY_URI={uri}
    {lgw} tables
  Flink's web page: {rest}    metrics of the gateway: http://{admin}/metrics    logs: {work}
  stop both: make down
"""


def main() -> int:
    if state := running():
        print("already running:" + state["use"])
        return 0
    down.main()  # what is left of one that died in part
    gateway = Gateway(WORK / "gateway", warehouse=WORK / "warehouse", outlive=True)
    cluster = flink.Cluster(WORK / "flink", jars=(paths.connector_jar(),), outlive=True)
    try:
        gateway.start()
        cluster.start()
        client, init = WORK / "sql", WORK / "tables.sql"
        statements = ["SET 'execution.runtime-mode' = 'batch'", "SET 'table.dml-sync' = 'true'"]
        statements += ["SET 'sql-client.execution.result-mode' = 'tableau'", sql.words(), sql.vectors(gateway)]
        init.write_text(";\n".join(statements) + ";\n")
        flink.sql_client_script(cluster, client, "-i", str(init))
        use = USE.format(
            client=client,
            insert=sql.INSERT,
            count=sql.COUNT,
            python=sys.executable,
            uri=gateway.uri,
            lgw=paths.lgw_binary(),
            rest=cluster.rest,
            admin=gateway.admin,
            work=WORK,
        )
        processes = (cluster.sqlgateway, cluster.taskmanager, cluster.jobmanager, gateway.process)
        STATE.write_text(json.dumps({"pids": [p.pid for p in processes], "use": use}))
    except BaseException:
        cluster.stop()
        if gateway.process:
            gateway.stop()
        raise
    print("running:" + use)
    return 0


if __name__ == "__main__":
    sys.exit(main())
