"""What only the kernel can do: namespaces, a root of one's own, no rights, limits. Linux's calls.

`man 7 namespaces`, `man 2 pivot_root`, `man 2 prctl` and `man 2 setrlimit` have the details. Where
a call is missing it raises an `OSError` or an `AttributeError`, and `assignments.sandbox` does
without.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from pathlib import Path
from typing import Any

import smelib

NEW_MOUNTS, NEW_HOST, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NET = 0x10000000, 0x20000000, 0x40000000
READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE, DETACH = 32, 4096, 16384, 1 << 18, 2
DESK = "desk"  # the only folder that a runner may write to
INSIDE = 1000  # the user's number in a namespace of its own
DIE_WITH_PARENT, ADOPT_ORPHANS, NO_NEW_RIGHTS = 1, 36, 38
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(os.uname().machine, -1)


def _call(name: str, *args: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _mount(source: str, target: Path, kind: str = "none", flags: int = 0, data: str = "") -> None:
    _call(
        "mount",
        source.encode(),
        str(target).encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        data.encode() or None,
    )


def prctl(option: int, value: int) -> None:
    """Change something about this process, where the system knows it."""
    with contextlib.suppress(OSError, AttributeError):
        _call("prctl", option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3)


def enter_namespaces() -> None:
    """Own mounts, processes, network; without root also an own user, who is root only there."""
    flags = NEW_MOUNTS | NEW_HOST | NEW_IPC | NEW_PIDS | NEW_NET
    user, group = os.getuid(), os.getgid()
    if user == 0:
        return _call("unshare", flags)
    _call("unshare", flags | NEW_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INSIDE} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{INSIDE} {group} 1")


def spare_user() -> int | None:
    """A user's number that nobody has, another for each process; none where this is not root."""
    if os.getuid() != 0:
        return None
    # A container without root of its own has 65,536 users, or one.
    table = Path("/proc/self/uid_map")
    rows = [line.split() for line in table.read_text().splitlines()] if table.is_file() else []
    for first, many in ((200_000, 100_000), (60_000, 5_000)):
        wanted = first + os.getpid() % many
        if not rows or any(int(low) <= wanted < int(low) + int(n) for low, _, n in rows):
            return wanted
    return None


def _readable() -> list[Path]:
    """What a runner may read: the system's libraries, Python and its packages, smelib."""
    system = [Path(p) for p in ("/usr", "/lib", "/lib64", "/bin")]
    python = [Path(p) for p in (sys.base_prefix, sys.prefix)]
    found: list[Path] = []
    for path in [*system, *python, Path(smelib.__file__).parent]:
        if path.exists() and not any(path.is_relative_to(f) for f in found if not f.is_symlink()):
            found.append(path)
    return found


def build_root(root: Path, user: int) -> None:
    """Make a folder in memory the root of everything, with what is readable in it."""
    _mount("none", Path("/"), flags=RECURSIVE | PRIVATE)
    _mount("tmpfs", root, "tmpfs", NO_SETUID | NO_DEVICES, "size=64m,mode=755")
    for path in _readable():
        target = root / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            target.symlink_to(os.readlink(path))
            continue
        target.mkdir(exist_ok=True)
        _mount(str(path), target, flags=BIND | RECURSIVE)
        # Inside a user's namespace a mount's flags can be added to, not taken away.
        kept = os.statvfs(target).f_flag & (NO_SETUID | NO_DEVICES | NO_EXEC)
        _mount("none", target, flags=REMOUNT | BIND | READ_ONLY | NO_SETUID | kept)
    (root / "dev").mkdir()
    for name in ("null", "zero", "urandom", "random"):
        (root / "dev" / name).touch()
        _mount(f"/dev/{name}", root / "dev" / name, flags=BIND)
    (root / DESK).mkdir(mode=0o700)
    os.chown(root / DESK, user, user)
    (root / "old").mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(PIVOT_ROOT, str(root).encode(), str(root / "old").encode()) != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    os.chdir("/")
    _call("umount2", b"/old", DETACH)
    os.rmdir("/old")


def give_up_rights(user: int | None) -> None:
    """Nothing that the runner starts can have more rights than nobody."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    with contextlib.suppress(OSError, AttributeError):
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        _call("capset", header, (ctypes.c_uint32 * 6)())
    prctl(NO_NEW_RIGHTS, 1)


def limit(limits: dict, crowded: bool) -> None:
    """Processor time, memory, files and processes."""
    soft = int(limits["cpu"])
    wanted = {
        "RLIMIT_CPU": (soft, soft + 1),
        "RLIMIT_AS": (limits["memory"],) * 2,
        "RLIMIT_FSIZE": (32_000_000,) * 2,
        "RLIMIT_NOFILE": (64, 64),
        "RLIMIT_CORE": (0, 0),
    }
    if not crowded:  # the limit counts all of a user's processes, and this user has others
        wanted["RLIMIT_NPROC"] = (16, 16)
    for name, pair in wanted.items():
        if hasattr(resource, name):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, name), pair)
