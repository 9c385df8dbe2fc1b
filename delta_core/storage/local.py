"""The local file system as a `LogStore`.

Every write goes to a temporary name in the same directory, is flushed to the disk, and gets its final name
in one step: by a hard link when nothing may be replaced (the kernel decides the race), otherwise by a
rename. Then the directory is flushed, and each directory that was created.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    AmbiguousWriteError,
    DeltaError,
    InvalidUriError,
    NameBlockedError,
    ObjectExistsError,
    UnsafeStoreError,
)
from delta_core.storage.listed_files import ListedFiles
from delta_core.storage.local_many import delete_files, walk_directory
from delta_core.storage.local_system import (
    MANY_FILES,
    FileSystemFlush,
    is_in,
    is_shared,
    link_on_the_way,
    not_found,
    not_written,
    open_directory,
    translated,
)
from delta_core.storage.log_store import ObjectInfo, in_place_of, plain_parts
from delta_core.storage.request_meter import METER
from delta_core.storage.unchanged import Deleted, SeenObject
from delta_core.storage.uri import canonical_table_uri, local_path_of_uri, uri_scheme

TEMPORARY_PREFIX = ".tmp-"

# Do not block: a pipe may never have another end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# The errors of link(2) on a file system without hard links.
_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)


class LocalLogStore:
    """Objects below a local directory, which need not exist yet."""

    def __init__(self, root: str | os.PathLike[str], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._uri = canonical_table_uri(root)
        if uri_scheme(self._uri) != "file":
            raise InvalidUriError(f"{self._uri!r} is not a local path.", fix="Open it with open_store.")
        self._root = local_path_of_uri(self._uri)
        self.clock = clock
        self._flusher: FileSystemFlush | None = None

    def __getstate__(self) -> dict[str, object]:
        # The file descriptor is not valid in another process.
        return {**self.__dict__, "_flusher": None}

    def __repr__(self) -> str:
        return f"LocalLogStore({str(self._root)!r})"

    @property
    def uri(self) -> str:
        """The table root's canonical URI."""
        return self._uri

    @property
    def root(self) -> Path:
        """The table root, links resolved."""
        return self._root

    @property
    def consistent_listing(self) -> bool:
        """True for a local directory, whose listing shows all earlier writes; False for a share."""
        return not self._is_shared

    @cached_property
    def _is_shared(self) -> bool:
        return is_shared(self._root)

    @property
    def remote(self) -> bool:
        """False: a local read needs no round trip."""
        return False

    def parent(self) -> LocalLogStore | None:
        """The store of the directory above; None for the root of the file system."""
        above = self._root.parent
        return None if above == self._root else LocalLogStore(above, clock=self.clock)

    # ------------------------------------------------------------ reads

    def read(self, path: str) -> bytes:
        """The whole object. Raises ObjectNotFoundError.

        Reads at most the size that the file has when it is opened. Anything other than a regular file, such
        as a pipe or a device, counts as missing, as in `head` and in listings.
        """
        try:
            descriptor = os.open(self._resolve(path), _READ)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise not_found(path)
                data = _read_bytes(descriptor, status.st_size)
                METER.count(bytes_read=len(data))
                return data
            finally:
                os.close(descriptor)
        except OSError as error:
            raise translated(error, path, "read") from error

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object. Raises ObjectNotFoundError."""
        METER.count()
        try:
            status = self._resolve(path).stat()
        except OSError as error:
            raise translated(error, path, "inspect") from error
        if not stat.S_ISREG(status.st_mode):
            raise not_found(path)
        return _info(path, status)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """The files directly in a directory, sorted by name; a missing directory is empty.

        A symbolic link to a file is listed: it occupies the name, and hiding it could hide a version.
        """
        directory = self._resolve(path, directory=True)
        prefix = f"{path}/" if path else ""
        infos: list[ObjectInfo] = []
        METER.count()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith(TEMPORARY_PREFIX) or (start_after is not None and name <= start_after):
                        continue
                    with suppress(FileNotFoundError):  # deleted since the directory was read
                        if entry.is_file():
                            infos.append(_info(prefix + name, entry.stat()))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise translated(error, path, "list") from error
        infos.sort(key=lambda info: info.path)
        return infos

    def list_directories(self, path: str) -> list[str]:
        """The names of the directories directly in a directory, sorted. Symbolic links are not listed."""
        directory = self._resolve(path, directory=True)
        METER.count()
        try:
            with os.scandir(directory) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise translated(error, path, "list") from error

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every regular file below a directory. Symbolic links are neither followed nor listed."""
        pending = [path]
        while pending:
            current = pending.pop()
            prefix = f"{current}/" if current else ""
            METER.count()
            try:
                with os.scandir(self._resolve(current, directory=True)) as entries:
                    listed = list(entries)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise translated(error, current, "list") from error
            for entry in listed:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(prefix + entry.name)
                elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(TEMPORARY_PREFIX):
                    with suppress(FileNotFoundError):
                        yield _info(prefix + entry.name, entry.stat(follow_symlinks=False))

    @in_place_of(walk)
    def walk_batches(self, path: str = "") -> Iterator[ListedFiles]:
        """As `walk`, in columns. Memory does not grow with the size of a directory."""
        if path:
            self._parts(path)
        return walk_directory(self._root, path, temporary_prefix=TEMPORARY_PREFIX)

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader. Raises ObjectNotFoundError, also for anything other than a regular file."""
        target = self._resolve(path)
        try:
            # Opening a pipe would block until another process writes to it.
            status = os.stat(target)
            if not stat.S_ISREG(status.st_mode):
                raise not_found(path)
            METER.count(bytes_read=status.st_size)
            # Arrow encodes strings as UTF-8, but a file name need not be UTF-8.
            return pa.OSFile(os.fsencode(target), "rb")
        except OSError as error:
            raise translated(error, path, "open") from error

    def open_whole(self, path: str) -> pa.NativeFile:
        """As `open_input`: reading ahead has no advantage for local files."""
        return self.open_input(path)

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it.

        Raises:
            ObjectExistsError: the name is taken.
            NameBlockedError: a directory or special file has the name, or a file has
                the name of a directory; nothing was created.
            UnsafeStoreError: the file system has no hard links; nothing was created.
            WriteRefusedError: the disk or a quota is full; nothing was created.
            NotWrittenError: the file could not be written; nothing was created.
            AmbiguousWriteError: it is not known whether the object was created.
            StorePermissionError: refused; nothing was created.
            PathEscapeError: a directory on the path is a symbolic link; nothing was created.
        """
        target = self._place(path)
        temporary = self._write_temporary(target, data, path)
        try:
            self._link(temporary, target, path)
            try:
                _sync_directory(os.path.dirname(target))
            except OSError as error:
                raise AmbiguousWriteError(
                    f"{path!r} was created but could not be made durable.",
                    cause=str(error),
                    fix="Check the disk. Then call persist for the object.",
                ) from error
        finally:
            with suppress(OSError):
                os.unlink(temporary)

    def put(self, path: str, data: bytes) -> None:
        """Create or atomically replace the object.

        Raises:
            PathEscapeError: a directory on the path is a symbolic link.
        """
        target = self._place(path)
        temporary = self._write_temporary(target, data, path)
        self._rename(temporary, target, path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the modification time of an object; durable when its file is. Raises ObjectNotFoundError."""
        nanoseconds = modified_ms * 1_000_000
        try:
            os.utime(self._resolve(path), ns=(nanoseconds, nanoseconds))
        except FileNotFoundError as error:
            raise not_found(path) from error
        except OSError as error:
            raise translated(error, path, "set the time of") from error

    def delete(self, path: str) -> None:
        """Delete the object; a missing one is not an error. Does not follow symbolic links on the path.

        Raises:
            PathEscapeError: a directory on the path is a symbolic link, or is not a directory.
        """
        *parents, name = self._parts(path)
        try:
            directory = open_directory(self._root, parents, path=path)
            try:
                os.unlink(name, dir_fd=directory)
                METER.count()
            finally:
                os.close(directory)
        except FileNotFoundError:
            return
        except NotADirectoryError as error:
            raise link_on_the_way(path) from error
        except OSError as error:
            raise translated(error, path, "delete") from error

    @in_place_of(head, delete)
    def delete_unchanged(self, objects: Sequence[SeenObject]) -> Deleted:
        """Delete objects whose size and time have not changed since they were listed. Two system calls each.

        Raises:
            PathEscapeError: a directory on the path is a symbolic link, with an unchanged object behind it.
        """
        return delete_files(self, self._root, objects)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A writer whose object appears, durable, when the context ends normally.

        Raises:
            PathEscapeError: a directory on the path is a symbolic link.
        """
        return self._open_output(path, flush=True)

    @in_place_of(open_output)
    def open_unflushed(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """As `open_output`; the object is durable only after `persist` has returned for it."""
        return self._open_output(path, flush=False)

    @in_place_of(put, open_output)
    def create_unflushed(self, path: str, data: bytes | pa.Buffer) -> None:
        """Create an object whose name nothing refers to yet, without a temporary name.

        The object is durable only after `persist` has returned for it. A process that is killed in here can
        leave a part of the object behind.

        Raises:
            ObjectExistsError: the name is taken.
            PathEscapeError: a directory on the path is a symbolic link.
            StorageError: the disk failed; the object does not exist.
        """
        name = self._parts(path)[-1]
        try:
            with self._directory_of(path, flush=False) as directory:
                self._prepare_flush()
                file = os.open(name, _CREATE, 0o666, dir_fd=directory)
                try:
                    with open(file, "wb", buffering=0) as sink:
                        left = memoryview(data)
                        while left:
                            left = left[sink.write(left) :]
                except BaseException:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=directory)
                    raise
        except FileExistsError as error:
            raise ObjectExistsError(
                f"{path!r} exists already.",
                cause="Another writer created it.",
                fix="Write under another name.",
            ) from error
        except OSError as error:
            raise translated(error, path, "create") from error
        METER.count(bytes_written=len(memoryview(data)))

    @contextmanager
    def _open_output(self, path: str, *, flush: bool) -> Iterator[pa.NativeFile]:
        target = self._place(path)
        name, temporary = _temporary_beside(target)
        try:
            with self._directory_of(path, flush=flush) as directory:
                if not flush:
                    self._prepare_flush()
                sink = pa.OSFile(os.fsencode(temporary), "wb")
                inside = is_in(directory, name)
        except OSError as error:
            raise translated(error, path, "create") from error
        try:
            with sink:
                if not inside:
                    raise link_on_the_way(path)
                yield sink
                size_bytes = sink.tell()
            METER.count(bytes_written=size_bytes)
            if flush:
                _sync_file(temporary)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError) and not isinstance(error, DeltaError):
                raise translated(error, path, "write") from error
            raise
        if flush:
            self._rename(temporary, target, path)
        else:
            self._replace(temporary, target, path)

    def persist(self, paths: Sequence[str]) -> None:
        """Flush files, and the directories between them and the root. Many files: flush the file system.

        Raises:
            ObjectNotFoundError: a file is missing.
            StorageError: the disk failed.
        """
        if not paths:
            return
        directories: set[Path] = set()
        for path in self._flush_file_system(paths) if len(paths) >= MANY_FILES else paths:
            target = self._resolve(path)
            try:
                _sync_file(target)
            except OSError as error:
                raise translated(error, path, "open") from error
            parent = target.parent
            while parent not in directories and parent.is_relative_to(self._root):
                directories.add(parent)
                parent = parent.parent
        for directory in sorted(directories, reverse=True):
            try:
                _sync_directory(directory)
            except OSError as error:
                raise translated(error, str(directory), "flush") from error
        try:
            # The process that created the table's directory may not have flushed the directory's name.
            _sync_directory(self._root.parent)
        except PermissionError:
            return
        except OSError as error:
            raise translated(error, str(self._root.parent), "flush") from error

    # ------------------------------------------------------------ helpers

    def _prepare_flush(self) -> None:
        """Note the errors of the file system before the first unflushed file, for `persist`."""
        if self._flusher is None:
            self._flusher = FileSystemFlush(self._root_string)

    def _flush_file_system(self, paths: Sequence[str]) -> Sequence[str]:
        """Flush the root's file system. Returns the paths that this does not make durable."""
        if self._is_shared or self._flusher is None:
            return paths
        try:
            device = os.stat(self._root).st_dev
            other = [path for path in paths if os.lstat(self._place(path)).st_dev != device]
            return other if self._flusher.flush() else paths
        except FileNotFoundError:
            return paths  # flushing each file finds the missing one
        except OSError as error:
            raise translated(error, str(self._root), "flush") from error

    def _parts(self, path: str) -> list[str]:
        return plain_parts(path, root_uri=self._uri)

    def _place(self, path: str) -> str:
        """As `_resolve`, without creating a Path object for each part."""
        return f"{self._root_string}/{'/'.join(self._parts(path))}"

    @cached_property
    def _root_string(self) -> str:
        return os.fspath(self._root).rstrip("/")

    def _resolve(self, path: str, *, directory: bool = False) -> Path:
        if directory and path == "":
            return self._root
        return self._root.joinpath(*self._parts(path))

    @contextmanager
    def _directory_of(self, path: str, *, flush: bool = True) -> Iterator[int]:
        """A file descriptor of the directory of an object. Creates the directory when it is missing."""
        parents = self._parts(path)[:-1]
        try:
            directory = open_directory(self._root, parents, path=path, make=True, flush=flush)
        except FileNotFoundError:
            _make_directories(self._root)
            directory = open_directory(self._root, parents, path=path, make=True, flush=flush)
        try:
            yield directory
        finally:
            os.close(directory)

    def _write_temporary(self, target: str, data: bytes, path: str) -> str:
        name, temporary = _temporary_beside(target)
        try:
            with self._directory_of(path) as directory:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
                inside = is_in(directory, name)
            try:
                if not inside:
                    raise link_on_the_way(path)
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                os.fsync(descriptor)
                METER.count(bytes_written=len(data))
            finally:
                os.close(descriptor)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError):
                raise not_written(error, path) from error
            raise
        return temporary

    def _link(self, temporary: str, target: str, path: str) -> None:
        try:
            os.link(temporary, target)
        except FileExistsError as error:
            if _is_linked(temporary, target):
                return
            if _is_blocked(target):
                raise NameBlockedError(
                    f"{path!r} cannot be created.",
                    cause="A directory, a broken link or a special file has the name.",
                    fix="Find out which program created it, and move it away.",
                ) from error
            raise ObjectExistsError(
                f"{path!r} exists already.", fix="Read it to see which writer created it."
            ) from error
        except OSError as error:
            # Over NFS the response can be lost although the link was created.
            if _is_linked(temporary, target):
                return
            if error.errno in _NO_HARD_LINKS:
                raise UnsafeStoreError(
                    f"The file system below {self._uri!r} has no hard links.",
                    cause=f"{error.strerror}. Without them a commit could overwrite another.",
                    fix="Put the table on a file system with hard links (ext4, xfs, btrfs, NFS).",
                ) from error
            if error.errno in (errno.EACCES, errno.EROFS):
                raise translated(error, path, "create") from error
            raise AmbiguousWriteError(
                f"It is not known whether {path!r} was created.",
                cause=str(error),
                fix="Read the object to see whether it was created.",
            ) from error

    def _rename(self, temporary: str, target: str, path: str) -> None:
        self._replace(temporary, target, path)
        try:
            _sync_directory(os.path.dirname(target))
        except OSError as error:
            raise translated(error, path, "write") from error

    def _replace(self, temporary: str, target: str, path: str) -> None:
        try:
            os.replace(temporary, target)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            raise translated(error, path, "write") from error


def _temporary_beside(target: str) -> tuple[str, str]:
    """The name and the path of a new file in the directory of the target."""
    name = f"{TEMPORARY_PREFIX}{uuid.uuid4()}"
    return name, f"{os.path.dirname(target)}/{name}"


def _is_linked(temporary: str, target: str) -> bool:
    """Whether the target is a link to our temporary file. Backups may also create links, so do not count."""
    try:
        return os.path.samestat(os.lstat(temporary), os.lstat(target))
    except OSError:
        return False


def _is_blocked(target: str) -> bool:
    """Whether the name belongs to something other than a file or a symbolic link to a file."""
    try:
        mode = os.lstat(target).st_mode
        if stat.S_ISLNK(mode):
            mode = os.stat(target).st_mode
            return not stat.S_ISREG(mode)
    except FileNotFoundError:
        return os.path.islink(target)  # a broken link, unless the name has become free since
    except OSError:
        return True  # a loop of links, or a directory without permission
    return not stat.S_ISREG(mode)


def _make_directories(directory: Path) -> None:
    """Create a directory and its parents, each durable in its own parent."""
    missing: list[Path] = []
    current = directory
    while not current.is_dir():
        missing.append(current)
        current = current.parent
    for path in reversed(missing):
        with suppress(FileExistsError):
            path.mkdir()
        _sync_directory(path.parent)


def _read_bytes(descriptor: int, size_bytes: int) -> bytes:
    data = os.read(descriptor, size_bytes)
    if len(data) == size_bytes or not data:
        return data
    # One system call reads at most two gigabytes.
    parts = [data]
    missing = size_bytes - len(data)
    while missing and (data := os.read(descriptor, missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _sync_file(path: str | Path) -> None:
    descriptor = os.open(path, _READ)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(directory: str | Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _info(path: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(path=path, size_bytes=status.st_size, modified_ms=status.st_mtime_ns // 1_000_000)
