# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages that runs add and give back, of a kernel that is a folder."""

import json

import pytest
from ringtap_lab.tools import hugepages
from ringtap_lab.tools.hugepages import HugePages, give_back


class Kernel:
    """As /proc/sys/vm/nr_hugepages and /proc/meminfo. most: pages that it finds memory for."""

    def __init__(self, total=10, free=4, page_kb=2048, most=100):
        self.total, self.free, self.page_kb, self.most = total, free, page_kb, most
        self.mounts = ["none /dev/hugepages hugetlbfs rw 0 0"]
        self.commands = []

    def meminfo(self, key):
        return {"Hugepagesize": self.page_kb, "HugePages_Free": self.free, "HugePages_Total": self.total}[key]

    def write_text(self, text, encoding):
        before = self.total
        self.total = min(int(text), self.most)
        self.free += self.total - before

    def run(self, argv, **_):
        self.commands.append(argv[0])
        self.mounts = ["none /dev/hugepages hugetlbfs rw 0 0"] if argv[0] == "mount" else []


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    it = Kernel()
    monkeypatch.setattr(hugepages, "NR", it)
    monkeypatch.setattr(hugepages, "MOUNT", str(tmp_path / "huge"))
    monkeypatch.setattr(hugepages, "_meminfo", it.meminfo)
    monkeypatch.setattr(hugepages, "_mounted", lambda: bool(it.mounts))
    monkeypatch.setattr(hugepages.subprocess, "run", it.run)
    return it


@pytest.fixture
def note(tmp_path):
    return tmp_path / "rtlab-1-1-hugepages0"


def test_enough_pages_are_left_as_they_are(kernel, note):
    pages = HugePages(8, note)
    assert pages.reason is None and kernel.total == 10 and not note.exists()
    pages.release()
    assert kernel.total == 10


def test_missing_pages_are_added_and_given_back(kernel, note):
    pages = HugePages(20, note)
    assert pages.reason is None and kernel.total == 16 and kernel.free == 10
    assert json.loads(note.read_text()) == {"before": 10, "set_to": 16}
    pages.release()
    assert kernel.total == 10 and not note.exists()
    pages.release()
    assert kernel.total == 10


def test_kernel_without_enough_memory(kernel, note):
    kernel.most = 12
    pages = HugePages(20, note)
    assert pages.reason == "no huge pages: the kernel does not find 20 MiB"
    assert kernel.total == 10 and not note.exists()


def test_kernel_without_huge_pages(kernel, note):
    kernel.page_kb = 0
    assert HugePages(20, note).reason == "no huge pages: the kernel has none"


def test_number_that_cannot_be_written(kernel, note, monkeypatch):
    monkeypatch.setattr(kernel, "write_text", lambda *_, **__: (_ for _ in ()).throw(PermissionError("no right")))
    assert HugePages(20, note).reason == "no huge pages: no right"


def test_file_system_is_mounted_and_unmounted(kernel, note):
    kernel.mounts = []
    pages = HugePages(8, note)
    assert pages.reason is None and kernel.commands == ["mount"] and json.loads(note.read_text()) == {"mounted": True}
    pages.release()
    assert kernel.commands == ["mount", "umount"] and not note.exists()


def test_pages_of_a_killed_run_are_given_back(kernel, note):
    HugePages(20, note)
    give_back([note], others=False)
    assert kernel.total == 10 and not note.exists()


def test_number_that_another_process_has_changed_is_kept(kernel, note):
    HugePages(20, note)
    kernel.total = 17
    give_back([note], others=False)
    assert kernel.total == 17 and not note.exists()


def test_pages_of_two_killed_runs(kernel, tmp_path):
    """The last run that added some is the first one to remove them."""
    first, second = tmp_path / "rtlab-1-1-hugepages0", tmp_path / "rtlab-2-2-hugepages0"
    HugePages(20, first)
    HugePages(40, second)
    assert kernel.total == 26
    give_back([first, second], others=False)
    assert kernel.total == 10 and not first.exists() and not second.exists()


def test_pages_of_a_killed_run_wait_for_a_live_one(kernel, tmp_path):
    """While another run that has added pages is alive, the owner of a killed run's pages is unknown."""
    killed, alive = tmp_path / "rtlab-1-1-hugepages0", tmp_path / "rtlab-2-2-hugepages0"
    HugePages(20, killed)
    second = HugePages(40, alive)
    give_back([killed], others=True)
    assert kernel.total == 26 and killed.exists()
    second.release()
    assert kernel.total == 16
    give_back([killed], others=False)
    assert kernel.total == 10 and not killed.exists()


def test_note_that_is_not_wholly_written(kernel, note):
    note.write_text('{"before": 1')
    give_back([note], others=True)
    assert kernel.total == 10 and not note.exists()
