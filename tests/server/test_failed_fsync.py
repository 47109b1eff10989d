"""A server whose disk fails in fsync, and which is then killed: what it answered is what is found.

The fsync that fails is one of a library that is loaded before libc: SQLite and the kernel do the rest.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.http.asking import MAPS, config_map
from tests.server.test_kill import made

# Fails for write-ahead logs while the file that FAIL_FSYNC names is there; once, where it is empty.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failing(int fd) {
    const char *control = getenv("FAIL_FSYNC");
    char link[64], path[4096];
    struct stat found;
    if (!control || stat(control, &found)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length < 4 || memcmp(path + length - 4, "-wal", 4)) return 0;
    if (!found.st_size) unlink(control);
    errno = EIO;
    return 1;
}
int fsync(int fd) {
    return failing(fd) ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int fdatasync(int fd) {
    return failing(fd) ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("needs gcc and /proc")
    directory = tmp_path_factory.mktemp("fsync")
    source, library = directory / "fsync.c", directory / "fsync.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("times", ["once", "always"])
async def test_after_a_failed_fsync_and_a_kill_the_object_is_there_only_if_the_answer_allowed_for_it(
    times: str, tmp_path: Path, shim: Path
) -> None:
    control = tmp_path / "failing"
    environment = {"LD_PRELOAD": str(shim), "FAIL_FSYNC": str(control)}
    async with made(tmp_path / "data", environment) as maker:
        async with maker.server() as life:
            assert (await life.ask("POST", MAPS, config_map("before"))).status == 201
            control.write_text("" if times == "once" else "always")
            failed = await life.ask("POST", MAPS, config_map("failed"))
            assert failed.status == 500
            assert (await life.ask("GET", f"{MAPS}/failed")).status == 404
            if times == "always":
                later = await life.ask("POST", MAPS, config_map("later"))
                assert later.status == 500
                assert "nothing was written" in later.message, "it was not even begun"
            life.kill()
        control.unlink(missing_ok=True)
        async with maker.server() as life:
            assert (await life.ask("GET", f"{MAPS}/before")).status == 200
            assert (await life.ask("GET", f"{MAPS}/later")).status == 404
            is_there = (await life.ask("GET", f"{MAPS}/failed")).status == 200
            life.kill()
    if times == "once":
        assert "nothing was written" in failed.message
        assert not is_there
    else:
        assert "whether it was written is not known" in failed.message
        assert "nothing was written" not in failed.message


async def test_a_write_of_unknown_outcome_is_taken_back_before_the_next_is_written(
    tmp_path: Path, shim: Path
) -> None:
    control = tmp_path / "failing"
    environment = {"LD_PRELOAD": str(shim), "FAIL_FSYNC": str(control)}
    async with made(tmp_path / "data", environment) as maker:
        async with maker.server() as life:
            control.write_text("always")
            failed = await life.ask("POST", MAPS, config_map("failed"))
            assert "whether it was written is not known" in failed.message
            control.unlink()
            assert (await life.ask("POST", MAPS, config_map("later"))).status == 201
            assert (await life.ask("GET", "/readyz")).status == 200
            life.kill()
        async with maker.server() as life:
            assert (await life.ask("GET", f"{MAPS}/later")).status == 200
            assert (await life.ask("GET", f"{MAPS}/failed")).status == 404
            life.kill()
