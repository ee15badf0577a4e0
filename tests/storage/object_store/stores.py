"""Stores that are not ours, as real processes on free ports and in a folder that may be thrown away: moto's server, and
OpenStack Swift with s3api. And a proxy that cuts connections."""
import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

START_SECONDS = 60


@dataclasses.dataclass
class Store:
    name: str
    address: str  # "http://127.0.0.1:PORT"
    access_key: str
    secret_key: str
    conditional: bool  # whether it knows If-None-Match

    def environment(self):
        return {"AWS_ENDPOINT_URL": self.address, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": self.access_key,
                "AWS_SECRET_ACCESS_KEY": self.secret_key}


@contextlib.contextmanager
def moto(folder):
    log = pathlib.Path(folder, "moto.log")
    with open(log, "w") as out:
        process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stdout=out, stderr=out)
    try:
        found = None
        while found is None:
            if process.poll() is not None:
                raise SystemExit("moto_server ended: " + log.read_text())
            found = re.search(r"http://127\.0\.0\.1:[1-9]\d*", log.read_text())
        yield Store("moto", found.group(), "key", "secret", True)
    finally:
        process.terminate()
        process.wait()


# ---- OpenStack Swift: a proxy with s3api and tempauth, a server each for accounts, containers and objects, memcached ----

SWIFT_CONF = """[swift-hash]
swift_hash_path_suffix = cairn
swift_hash_path_prefix = cairn
"""
SERVER_CONF = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 1
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
allow_open_expired = false
"""
PROXY_CONF = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {folder}
workers = 2
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats bulk s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
min_segment_size = 5242880
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""
# Swift looks for swift.conf in /etc/swift, which only root may write, unless it is told otherwise before it starts.
SERVE = "import sys; from swift.common import utils; utils.set_swift_dir(sys.argv[1]); " \
        "from swift.common.wsgi import run_wsgi; sys.exit(run_wsgi(sys.argv[2], sys.argv[3]))"
SWIFT_PYTHON = "/usr/bin/python3"  # Debian's, whose packages Swift is among


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def swift_is_installed():
    return bool(shutil.which("memcached")) and all(
        shutil.which(f"swift-{name}-server") for name in ("proxy", "account", "container", "object"))


def make_rings(folder, ports):
    for name, port in ports.items():
        for arguments in (["create", "6", "1", "1"], ["add", f"r1z1-127.0.0.1:{port}/disk", "1"], ["rebalance"]):
            subprocess.run(["swift-ring-builder", f"{folder}/{name}.builder", *arguments], check=True, capture_output=True)


def await_port(port, process, log):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise SystemExit(f"{process.args} does not serve port {port}: " + log.read_text())


@contextlib.contextmanager
def swift(folder):
    folder = pathlib.Path(folder, "swift").absolute()
    (folder / "devices" / "disk").mkdir(parents=True)
    (folder / "swift.conf").write_text(SWIFT_CONF)
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    ports = {name: free_port() for name in ("account", "container", "object")}
    proxy, memcached = free_port(), free_port()
    make_rings(folder, ports)
    for name, port in ports.items():
        (folder / f"{name}.conf").write_text(SERVER_CONF.format(name=name, port=port, user=user, folder=folder))
    (folder / "proxy.conf").write_text(PROXY_CONF.format(port=proxy, user=user, folder=folder, memcached=memcached))
    processes = []

    def start(name, port, command):
        log = folder / f"{name}.log"
        with open(log, "w") as out:
            # A group of its own: Swift's servers have children, which end with it.
            processes.append(subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True))
        await_port(port, processes[-1], log)

    try:
        start("memcached", memcached, ["memcached", "-l", "127.0.0.1", "-p", str(memcached), "-U", "0", "-u", user])
        for name, port in ports.items():
            start(name, port, [SWIFT_PYTHON, "-c", SERVE, str(folder), str(folder / f"{name}.conf"), f"{name}-server"])
        start("proxy", proxy, [SWIFT_PYTHON, "-c", SERVE, str(folder), str(folder / "proxy.conf"), "proxy-server"])
        yield Store("swift", f"http://127.0.0.1:{proxy}", "test:tester", "testing", False)
    finally:
        for process in reversed(processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
        for process in processes:
            process.wait()


# ---- connections that are cut ----

class CuttingProxy:
    """Stands before a store. Of three connections one is cut once so many bytes have passed one way: before the first, within
    the head of a request and of an answer, within their bodies; the next time after the next number of the list."""
    CUTS = [("up", 0), ("down", 0), ("up", 40), ("down", 20), ("up", 500), ("down", 200), ("up", 4_000), ("down", 3_000),
            ("up", 60_000), ("down", 60_000), ("up", 1_000_000), ("down", 1_000_000), ("up", 9_000_000), ("down", 6_000_000)]

    def __init__(self, store):
        self.target = ("127.0.0.1", int(store.address.rsplit(":", 1)[1]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.cuts = itertools.cycle(self.CUTS)
        self.done = {}  # how often after each of them
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        for number in itertools.count():
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            # The others are cut between two requests, or in a large one: a client would keep a good one for ever.
            cut = next(self.cuts) if number % 3 == 0 else ("up", 40_000_000)
            threading.Thread(target=self.serve, args=(client, cut), daemon=True).start()

    def serve(self, client, cut):
        try:
            server = socket.create_connection(self.target)
        except OSError:  # the store has ended
            return client.close()
        way, limit = cut
        back = threading.Thread(target=self.pump, args=(server, client, cut, limit if way == "down" else None), daemon=True)
        back.start()
        self.pump(client, server, cut, limit if way == "up" else None)
        back.join()
        client.close()
        server.close()

    def pump(self, source, sink, cut, limit):
        left = limit
        with contextlib.suppress(OSError):
            while True:
                bytes_read = source.recv(65536)
                if not bytes_read:
                    break
                if left is not None and len(bytes_read) > left:
                    sink.sendall(bytes_read[:left])
                    self.done[cut] = self.done.get(cut, 0) + 1
                    for end in (source, sink):  # at once, as a machine that goes away does
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                left = left - len(bytes_read) if left is not None else None
                sink.sendall(bytes_read)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
