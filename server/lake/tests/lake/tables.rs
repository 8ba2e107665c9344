use std::collections::HashMap;

use lance_gateway_lake::*;

use crate::*;

#[tokio::test]
async fn whoever_races_one_creates_the_table_and_all_see_it() {
    let (_folder, local) = local_lake().await;
    for lake in [local, memory_lake().await] {
        let race = |n: usize| {
            let lake = lake.clone();
            async move {
                let columns = schema(&[&format!("column{n}")]);
                let created =
                    lake.create_table(&name("t"), columns, &CreateOptions::default(), &format!("r{n}"), true).await;
                (n, created.unwrap())
            }
        };
        let outcomes = futures::future::join_all((0..16).map(race)).await;
        let winners: Vec<usize> = outcomes.iter().filter(|(_, (_, created))| *created).map(|(n, _)| *n).collect();
        assert_eq!(winners.len(), 1);
        assert!(outcomes.iter().all(|(_, (version, _))| *version == 1));
        let description = describe(&lake, &name("t")).await.unwrap();
        assert_eq!(description.version, 1);
        assert_eq!(description.schema.field(0).name(), &format!("column{}", winners[0]));
        assert!(description.stable_row_ids);
        assert_eq!(lake.versions(&name("t"), 10).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_repeated_request_answers_as_the_first_time() {
    let lake = memory_lake().await;
    let create = |request: &'static str, if_not_exists| {
        let lake = lake.clone();
        async move {
            lake.create_table(&name("t"), schema(&["id"]), &CreateOptions::default(), request, if_not_exists).await
        }
    };
    assert_eq!(create("r1", false).await.unwrap(), (1, true));
    assert_eq!(create("r1", false).await.unwrap(), (1, true));
    assert_eq!(create("r2", true).await.unwrap(), (1, false));
    assert_eq!(create("r2", false).await.unwrap_err().kind(), ErrorKind::TableAlreadyExists);
}

#[tokio::test]
async fn a_table_that_is_dropped_and_created_again_is_another_one() {
    let (folder, lake) = local_lake().await;
    // A second gateway on the same folder, whose kept handles nobody tells.
    let warehouse = folder.path().join("ware house").to_str().unwrap().to_owned();
    let other = Lake::open(LakeOptions { warehouse, ..Default::default() }).await.unwrap();
    let table = name("t");
    for columns in [&["a"][..], &["b", "c"], &["a"]] {
        lake.create_table(&table, schema(columns), &CreateOptions::default(), "", false).await.unwrap();
        for lake in [&lake, &other] {
            assert_eq!(describe(lake, &table).await.unwrap().schema, schema(columns));
            let pinned = lake.describe(&table, &VersionSelector::Version(1)).await.unwrap();
            assert_eq!(pinned.schema, schema(columns), "also by number");
        }
        assert!(lake.drop_table(&table, false).await.unwrap());
        for lake in [&lake, &other] {
            assert_eq!(describe(lake, &table).await.unwrap_err().kind(), ErrorKind::TableNotFound);
            let pinned = lake.describe(&table, &VersionSelector::Version(1)).await.unwrap_err();
            assert_eq!(pinned.kind(), ErrorKind::TableNotFound);
        }
    }
    assert!(!lake.drop_table(&table, true).await.unwrap());
    assert_eq!(lake.drop_table(&table, false).await.unwrap_err().kind(), ErrorKind::TableNotFound);
}

#[tokio::test]
async fn a_pinned_version_of_a_replaced_table_is_read_from_the_new_one() {
    let (folder, lake) = local_lake().await;
    let warehouse = folder.path().join("ware house").to_str().unwrap().to_owned();
    let other = Lake::open(LakeOptions { warehouse, ..Default::default() }).await.unwrap();
    let table = name("t");
    create(&lake, &table).await.unwrap();
    describe(&other, &table).await.unwrap();
    lake.drop_table(&table, false).await.unwrap();
    lake.create_table(&table, schema(&["new"]), &CreateOptions::default(), "", false).await.unwrap();
    let pinned = other.describe(&table, &VersionSelector::Version(1)).await.unwrap();
    assert_eq!(pinned.schema, schema(&["new"]));
}

#[tokio::test]
async fn creation_keeps_its_options() {
    let lake = memory_lake().await;
    let options = CreateOptions {
        data_storage_version: Some("2.1".into()),
        primary_key: parts("b.a"),
        properties: HashMap::from([("owner".to_owned(), "tests".to_owned())]),
    };
    lake.create_table(&name("t"), schema(&["a", "b", "c"]), &options, "", false).await.unwrap();
    let description = describe(&lake, &name("t")).await.unwrap();
    assert_eq!(description.data_storage_version, "2.1");
    assert_eq!(description.primary_key, ["b", "a"]);
    assert_eq!(description.properties["owner"], "tests");
    assert_eq!((description.num_rows, description.num_fragments, description.num_bytes), (0, 0, 0));
    for bad in [
        CreateOptions { data_storage_version: Some("1.0".into()), ..Default::default() },
        CreateOptions { data_storage_version: Some("0.1".into()), ..Default::default() },
        CreateOptions {
            properties: HashMap::from([("lance.auto_cleanup.interval".into(), "1".into())]),
            ..Default::default()
        },
        CreateOptions { primary_key: parts("nope"), ..Default::default() },
        CreateOptions { primary_key: parts("a.a"), ..Default::default() },
    ] {
        assert!(lake.create_table(&name("u"), schema(&["a"]), &bad, "", false).await.is_err(), "{bad:?}");
    }
}

#[tokio::test]
async fn nothing_but_the_warehouse_and_the_allowed_prefixes_can_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = |tail: &str| folder.path().join(tail).to_str().unwrap().to_owned();
    let options = LakeOptions { warehouse: path("wh"), uri_prefixes: vec![path("extra")], ..Default::default() };
    let lake = Lake::open(options).await.unwrap();
    let uri = |tail: &str| TableId::Uri(path(tail));
    create(&lake, &uri("wh/t.lance")).await.unwrap();
    assert_eq!(describe(&lake, &name("t")).await.unwrap().version, 1, "the same table by name and by URI");
    let by_url = TableId::Uri(format!("file://{}", path("wh/t.lance/")));
    assert_eq!(describe(&lake, &by_url).await.unwrap().version, 1);
    create(&lake, &uri("extra/deep/vectors")).await.unwrap();
    for (table, kind) in [
        (uri("other/t"), ErrorKind::PermissionDenied),
        (uri("extra2/t"), ErrorKind::PermissionDenied),
        (uri("extra"), ErrorKind::PermissionDenied),
        (uri("wh"), ErrorKind::PermissionDenied),
        (uri("wh/t.lance/data/x"), ErrorKind::PermissionDenied),
        (uri("wh/../other/t"), ErrorKind::InvalidArgument),
        (TableId::Uri("s3://bucket/t".into()), ErrorKind::PermissionDenied),
        (TableId::Uri("memory://t".into()), ErrorKind::PermissionDenied),
        (TableId::Uri("file-object-store:///etc/t".into()), ErrorKind::PermissionDenied),
        (TableId::Uri("relative".into()), ErrorKind::InvalidArgument),
        (TableId::Name(vec!["..".into(), "etc".into()]), ErrorKind::InvalidArgument),
        (TableId::Name(vec!["../../etc/passwd".into()]), ErrorKind::InvalidArgument),
        (TableId::Name(vec![]), ErrorKind::InvalidArgument),
    ] {
        let error = create(&lake, &table).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{table:?}: {error}");
        if !matches!(table, TableId::Uri(_)) {
            assert!(!error.message().contains(folder.path().to_str().unwrap()), "{error}");
        }
    }
}

#[tokio::test]
async fn errors_do_not_show_where_the_warehouse_is() {
    let (folder, lake) = local_lake().await;
    create(&lake, &name("t")).await.unwrap();
    let hidden = folder.path().to_str().unwrap();
    let errors = [
        describe(&lake, &name("nope")).await.unwrap_err(),
        lake.describe(&name("t"), &VersionSelector::Version(9)).await.unwrap_err(),
        lake.describe(&name("t"), &VersionSelector::Tag("nope".into())).await.unwrap_err(),
        lake.describe(&name("t"), &VersionSelector::Tag("../x".into())).await.unwrap_err(),
        create(&lake, &name("t")).await.unwrap_err(),
    ];
    for error in errors {
        assert!(!error.message().contains(hidden), "{error}");
    }
}

#[tokio::test]
async fn versions_are_found_by_number_tag_and_time() {
    use lance::Dataset;
    use lance::dataset::InsertBuilder;
    let (folder, lake) = local_lake().await;
    create(&lake, &name("t")).await.unwrap();
    let uri = folder.path().join("ware house/t.lance");
    let mut times = Vec::new();
    for step in 0..4 {
        let rows = arrow_array::RecordBatch::try_new(
            schema(&["id"]),
            vec![std::sync::Arc::new(arrow_array::Int64Array::from_iter_values(0..step + 1))],
        );
        let params = lance::dataset::WriteParams { mode: lance::dataset::WriteMode::Append, ..Default::default() }
            .with_transaction_properties(HashMap::from([("step".to_owned(), step.to_string())]));
        let done =
            InsertBuilder::new(uri.to_str().unwrap()).with_params(&params).execute(vec![rows.unwrap()]).await.unwrap();
        times.push(done.manifest().timestamp());
    }
    Dataset::open(uri.to_str().unwrap()).await.unwrap().tags().create("good", 3).await.unwrap();
    let rows = |selector: VersionSelector| {
        let lake = lake.clone();
        async move { lake.count_rows(&name("t"), &selector, None).await }
    };
    assert_eq!(rows(VersionSelector::Latest).await.unwrap(), (10, 5));
    assert_eq!(rows(VersionSelector::Version(2)).await.unwrap(), (1, 2));
    assert_eq!(rows(VersionSelector::Tag("good".into())).await.unwrap(), (3, 3));
    assert_eq!(rows(VersionSelector::AsOf(times[1])).await.unwrap(), (3, 3));
    let just_before = times[1] - chrono::TimeDelta::nanoseconds(1);
    assert_eq!(rows(VersionSelector::AsOf(just_before)).await.unwrap(), (1, 2));
    assert_eq!(rows(VersionSelector::AsOf(times[3] + chrono::TimeDelta::days(1))).await.unwrap(), (10, 5));
    let too_old = rows(VersionSelector::AsOf(times[0] - chrono::TimeDelta::days(1))).await.unwrap_err();
    for error in [
        too_old,
        rows(VersionSelector::Version(6)).await.unwrap_err(),
        rows(VersionSelector::Tag("x".into())).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::TableVersionNotFound, "{error}");
    }
    let versions = lake.versions(&name("t"), 2).await.unwrap();
    let shape: Vec<_> =
        versions.iter().map(|v| (v.version, v.operation.as_str(), v.num_rows, v.num_fragments)).collect();
    assert_eq!(shape, [(5, "Append", 10, 4), (4, "Append", 6, 3)]);
    assert_eq!(versions[0].properties["step"], "3");
    assert_eq!(versions[0].committed_at, times[3]);
    assert_eq!(lake.versions(&name("t"), 100).await.unwrap().len(), 5);
}
