use lance_gateway_lake::*;

use crate::*;

async fn lakes() -> Vec<(Option<tempfile::TempDir>, Lake)> {
    let (folder, lake) = local_lake().await;
    vec![(Some(folder), lake), (None, memory_lake().await)]
}

#[tokio::test]
async fn namespaces_are_created_listed_and_dropped() {
    for (_folder, lake) in lakes().await {
        assert!(lake.create_namespace(&parts("a"), false).await.unwrap());
        assert!(lake.create_namespace(&parts("a.b"), false).await.unwrap());
        assert!(!lake.create_namespace(&parts("a"), true).await.unwrap());
        let twice = lake.create_namespace(&parts("a"), false).await.unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::NamespaceAlreadyExists);
        let orphan = lake.create_namespace(&parts("x.y"), false).await.unwrap_err();
        assert_eq!(orphan.kind(), ErrorKind::NamespaceNotFound);
        assert_eq!(lake.list_namespaces(&[]).await.unwrap(), ["a"]);
        assert_eq!(lake.list_namespaces(&parts("a")).await.unwrap(), ["b"]);
        assert_eq!(lake.drop_namespace(&parts("a"), false).await.unwrap_err().kind(), ErrorKind::NamespaceNotEmpty);
        assert!(lake.drop_namespace(&parts("a.b"), false).await.unwrap());
        assert!(lake.drop_namespace(&parts("a"), false).await.unwrap());
        assert!(!lake.drop_namespace(&parts("a"), true).await.unwrap());
        assert_eq!(lake.drop_namespace(&parts("a"), false).await.unwrap_err().kind(), ErrorKind::NamespaceNotFound);
        assert!(lake.list_namespaces(&[]).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn tables_are_listed_by_name_in_pages() {
    for (_folder, lake) in lakes().await {
        lake.create_namespace(&parts("ns"), false).await.unwrap();
        for table in ["b", "a", "c"] {
            create(&lake, &name(&format!("ns.{table}"))).await.unwrap();
        }
        create(&lake, &name("root")).await.unwrap();
        let (page, token) = lake.list_tables(&parts("ns"), None, 2).await.unwrap();
        assert_eq!(page, [parts("ns.a"), parts("ns.b")]);
        let (page, token) = lake.list_tables(&parts("ns"), token.as_deref(), 2).await.unwrap();
        assert_eq!((page, token), (vec![parts("ns.c")], None));
        assert_eq!(lake.list_tables(&[], None, 100).await.unwrap().0, [parts("root")]);
        assert_eq!(lake.list_tables(&parts("nope"), None, 1).await.unwrap_err().kind(), ErrorKind::NamespaceNotFound);
        assert_eq!(lake.drop_namespace(&parts("ns"), false).await.unwrap_err().kind(), ErrorKind::NamespaceNotEmpty);
        lake.drop_table(&name("ns.a"), false).await.unwrap();
        assert_eq!(lake.list_tables(&parts("ns"), None, 100).await.unwrap().0.len(), 2);
    }
}

#[tokio::test]
async fn a_folder_without_a_version_is_no_table() {
    let (folder, lake) = local_lake().await;
    std::fs::create_dir_all(folder.path().join("ware house/t.lance/data")).unwrap();
    std::fs::create_dir_all(folder.path().join("ware house/folder")).unwrap();
    assert!(lake.list_tables(&[], None, 100).await.unwrap().0.is_empty());
    assert!(lake.list_namespaces(&[]).await.unwrap().is_empty());
    create(&lake, &name("t")).await.unwrap();
    assert_eq!(lake.list_tables(&[], None, 100).await.unwrap().0, [parts("t")]);
}

#[tokio::test]
async fn a_table_needs_its_namespace() {
    for (_folder, lake) in lakes().await {
        let error = create(&lake, &name("ns.t")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NamespaceNotFound);
        assert!(error.message().contains("ns"), "{error}");
    }
}
