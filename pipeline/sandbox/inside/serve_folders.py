"""Fill, read back and empty the folders of a job, as its own user."""

import errno
import os
import stat

CHUNK_BYTES = 2**20


def lay_out(folder, entries, take, blobs):
    """Make what a listing says.

    Args:
        folder: where; it exists and is empty.
        entries: each path, kind, mode, size, mtime_ns, link or blob; folders before their content.
        take: returns the next bytes of the files' content, at least one and at most so many.
        blobs: contents of earlier listings by name, which do not come again.
    """
    folders = []
    for path, kind, mode, size, mtime_ns, name in entries:
        place = os.path.join(folder, path)
        if kind == "dir":
            if not os.path.ismount(place):
                os.mkdir(place, 0o700)
            folders.append((place, mode, mtime_ns))
        elif kind == "link":
            os.symlink(name, place)
            os.utime(place, ns=(mtime_ns, mtime_ns), follow_symlinks=False)
        else:
            write_file(place, mode, mtime_ns, pieces(size, name, take, blobs))
    for place, mode, mtime_ns in reversed(folders):  # only now: filling one changes its time
        os.chmod(place, mode)
        os.utime(place, ns=(mtime_ns, mtime_ns))


def pieces(size, name, take, blobs):
    """Return the content of a file in pieces; one with a name is kept."""
    if not name:
        return taken(size, take)
    if name not in blobs:
        blobs[name] = b"".join(taken(size, take))
    return [blobs[name]]


def taken(size, take):
    while size:
        piece = take(size)
        size -= len(piece)
        yield piece


def write_file(place, mode, mtime_ns, content):
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        for piece in content:
            write_all(fd, piece)
        os.utime(fd, ns=(mtime_ns, mtime_ns))
    finally:
        os.close(fd)


def marks(folder, entries):
    """Return what tells the files of a listing from changed ones, by path."""
    return {
        path: mark(os.lstat(os.path.join(folder, path)))
        for path, kind, *_ in entries
        if kind == "file"
    }


def write_all(fd, data):
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def mark(found):
    """Return what no process can change back once it has touched a file."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def send_files(folder, entries, send):
    """Send the content of what a listing calls a file."""
    for path, kind, _, size, _, _ in entries:
        if kind == "file":
            send_file(os.path.join(folder, path), size, send)


def listing(folder, marks):
    """Yield what is in a folder, line by line, in the form that `lay_out` takes.

    A file that is as it was laid out is of the kind `kept`.

    Raises:
        OSError: something cannot be looked into.
    """
    waiting = ["."]
    while waiting:
        path = waiting.pop()
        line = entry(folder, path, marks)
        if line is None:
            continue
        yield line
        if line[1] == "dir":
            inner = "" if path == "." else path
            waiting += [
                os.path.join(inner, name) for name in os.listdir(os.path.join(folder, path))
            ]


def entry(folder, path, marks):
    """Return one line of a listing; None for what is neither file, folder nor link.

    A folder or file that its user has locked is opened up first, as the host would do.
    """
    place = os.path.join(folder, path)
    found = os.lstat(place)
    mode, mtime_ns = stat.S_IMODE(found.st_mode), found.st_mtime_ns
    if stat.S_ISLNK(found.st_mode):
        return path, "link", mode, 0, mtime_ns, os.readlink(place)
    if stat.S_ISDIR(found.st_mode):
        unlock(place, mode, 0o700)
        return path, "dir", mode, 0, mtime_ns, ""
    if not stat.S_ISREG(found.st_mode):
        return None
    kind = "kept" if marks.get(path) == mark(found) else "file"
    unlock(place, mode, 0o400)
    return path, kind, mode, found.st_size, mtime_ns, ""


def unlock(place, mode, needed):
    if mode & needed != needed:
        os.chmod(place, mode | needed)


def send_file(place, size, send):
    """Send as many bytes as the listing says: nobody is alive who could change the file."""
    with open(place, "rb", buffering=0) as file:
        while size:
            chunk = file.read(min(size, CHUNK_BYTES))
            if not chunk:
                raise OSError(errno.EIO, "a file became shorter")
            size -= len(chunk)
            send(chunk)


def wipe(folder):
    """Remove everything in a folder.

    Raises:
        OSError: something cannot be removed.
        RecursionError: it is nested too deep.
    """
    try:
        found = list(os.scandir(folder))
    except PermissionError:
        os.chmod(folder, 0o700)
        found = list(os.scandir(folder))
    for item in found:
        if item.is_dir(follow_symlinks=False):
            wipe(item.path)
            os.rmdir(item.path)
        else:
            unlink(folder, item.path)


def unlink(folder, path):
    try:
        os.unlink(path)
    except PermissionError:
        os.chmod(folder, 0o700)
        os.unlink(path)
