//! Listening sockets.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::config::{FileMode, Listen};

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {cause}")]
pub struct ListenError {
    address: String,
    cause: io::Error,
}

/// A bound socket.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket, whose file goes with it.
    Unix(UnixListener, SocketFile),
}

/// What a listener is bound to, for people: the port is the real one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "grpc {address}"),
            Self::Unix(path) => write!(f, "unix {}", path.display()),
        }
    }
}

impl Listener {
    /// Binds. A socket file that nobody listens on any more is replaced.
    pub async fn bind(listen: &Listen, mode: FileMode) -> Result<Self, ListenError> {
        let bound = match listen {
            Listen::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Listen::Unix(path) => bind_unix(path, mode).await,
        };
        bound.map_err(|cause| ListenError { address: listen.to_string(), cause })
    }

    /// What it is bound to.
    pub fn bound(&self) -> Result<Bound, ListenError> {
        match self {
            Self::Tcp(listener) => listener
                .local_addr()
                .map(Bound::Tcp)
                .map_err(|cause| ListenError { address: "an address that is gone".into(), cause }),
            Self::Unix(_, file) => Ok(Bound::Unix(file.path.clone())),
        }
    }
}

/// The file of a Unix socket. Removed when dropped, unless another process has put its own there.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|inode| inode == self.inode)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the socket file stays");
        }
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

async fn bind_unix(path: &Path, mode: FileMode) -> io::Result<Listener> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::other("there is a file that is no socket"));
        }
        Ok(_) if UnixStream::connect(path).await.is_ok() => {
            return Err(io::Error::other("another process listens there"));
        }
        Ok(_) => {}
    }
    // Bound beside its place and then moved there: so nobody can connect before the permissions are set, and a dead socket is
    // replaced in one step.
    let beside = beside(path);
    let listener = UnixListener::bind(&beside)?;
    let placed = std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(mode.0))
        .and_then(|()| std::fs::rename(&beside, path))
        .and_then(|()| inode(path));
    match placed {
        Ok(inode) => Ok(Listener::Unix(listener, SocketFile { path: path.to_owned(), inode })),
        Err(error) => {
            // The first failure is the one to tell.
            let _ = std::fs::remove_file(&beside);
            Err(error)
        }
    }
}

/// In the same folder and no longer than the path itself, which has to fit as well.
fn beside(path: &Path) -> PathBuf {
    let length = path.file_name().map_or(8, std::ffi::OsStr::len);
    let name: String = uuid::Uuid::new_v4().simple().to_string().chars().take(length.clamp(1, 32)).collect();
    path.with_file_name(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    async fn bind(path: &Path) -> Result<Listener, ListenError> {
        Listener::bind(&Listen::Unix(path.to_owned()), FileMode(0o600)).await
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_a_live_one_and_a_plain_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.sock");
        // The standard library's listener leaves its file, as a killed process does.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let live = bind(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = bind(&path).await.unwrap_err().to_string();
        assert!(refused.contains("another process listens there"), "{refused}");
        drop(live);
        assert!(!path.exists(), "the file goes with its listener");

        std::fs::write(&path, "precious").unwrap();
        assert!(bind(&path).await.is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_listener_does_not_remove_the_file_of_its_successor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.sock");
        let old = bind(&path).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let _new = bind(&path).await.unwrap();
        drop(old);
        assert!(path.exists());
    }
}
