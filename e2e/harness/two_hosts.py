# SPDX-License-Identifier: BSD-3-Clause
"""The setup of the README: an unmodified testpmd that forwards between two hosts; its name is
`my-app`."""

import sys

from .netns import Net
from .proc import run, until
from .testpmd import Testpmd

APP = "my-app"
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
FETCH = f"from urllib.request import urlopen; urlopen('http://{SERVER}/').read()"
NO_ROUTE = "No route to host"  # nobody has answered to ARP for three seconds


class _Preferred:
    """A namespace whose programs have CPU priority."""

    def __init__(self, namespace):
        # Each session is a scheduler group (autogroup), whose nice value counts among groups.
        first = 'echo -15 >/proc/self/autogroup 2>/dev/null; exec nice -n -15 "$@"'
        self.prefix = [*namespace.prefix, "sh", "-c", first, "sh"]


class TwoHosts:
    """Client and server are network namespaces; testpmd forwards between them. The server has web pages."""

    def __init__(self, plugin, pages, preferred=False):
        self.pmd = self.http = None
        self.net = Net()
        try:
            self.client, a = self.net.add_host(CLIENT)
            self.server, b = self.net.add_host(SERVER)
            inside = _Preferred(self.net.hub) if preferred else self.net.hub
            self.pmd = Testpmd(
                [f"net_af_packet0,iface={a}", f"net_af_packet1,iface={b}"], plugin, namespace=inside, prefix=APP
            )
            self.pmd.start()
            self.http = self.server.start(
                [sys.executable, "-u", "-m", "http.server", "--bind", SERVER, "80"], cwd=pages
            )
            self.http.expect("Serving HTTP")
        except BaseException:
            self.close()
            raise

    def ping(self, *args):
        self.client.check(["ping", *args, SERVER])

    def fetch(self):
        """A page over HTTP. On a busy machine the application may not get the CPU for seconds."""
        until(self._fetched, what="a page")

    def _fetched(self):
        done = run([*self.client.prefix, sys.executable, "-c", FETCH])
        assert done.returncode == 0 or NO_ROUTE in done.stderr, done.stderr
        return done.returncode == 0

    def close(self):
        for it in (self.http, self.pmd, self.net):
            if it:
                it.close()
