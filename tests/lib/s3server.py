#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An S3 server for tests: Swift's four servers with its s3api, from Debian's python3-swift.

s3server.py DIR ACCESS SECRET [plain]   on 127.0.0.1, at a port that the system chooses; says
                                     "ready URL" and goes on until its parent ends or TERM

Objects made with "If-None-Match: *" are made only if there is none, which Swift can and its s3api
does not hand on; with "plain" they are refused, as s3api does by itself.
"""
import ctypes
import logging
import os
import signal
import socket
import sys
import time
import types
import urllib.request

RealSocket = socket.socket
HOST = "127.0.0.1"
BACKENDS = ("account", "container", "object")
ACCOUNT = "AUTH_test"

COMMON = """[DEFAULT]
bind_ip = %(host)s
bind_port = %(port)d
swift_dir = %(dir)s
devices = %(dir)s/disk
mount_check = false
workers = 0
user = %(user)s
log_name = %(name)s
fallocate_reserve = 0
disable_fallocate = true
conn_timeout = 20
node_timeout = 120
client_timeout = 120
"""
BACKEND = """
[pipeline:main]
pipeline = %(name)s-server
[app:%(name)s-server]
use = egg:swift#%(name)s
replication_server = false
"""
PROXY = """
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats %(create)s s3api key bulk copy slo dlo %(late)s
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 20
node_timeout = 120
recoverable_node_timeout = 120
error_suppression_limit = 1000000000
error_suppression_interval = 0.1
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:bulk]
use = egg:swift#bulk
[filter:copy]
use = egg:swift#copy
[filter:versioned_writes]
use = egg:swift#versioned_writes
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:create]
paste.filter_factory = test_filters:create
[filter:key]
paste.filter_factory = test_filters:key
"""


def filters(access, secret):
    """In front of s3api and behind it: conditional creation, and the one key that is let in."""
    from swift.common.swob import HTTPUnauthorized
    from eventlet.semaphore import Semaphore

    class Create:
        one = {}

        def __init__(self, app):
            self.app = app

        def __call__(self, env, start):
            if env["REQUEST_METHOD"] != "PUT" or env.get("HTTP_IF_NONE_MATCH") != "*":
                return self.app(env, start)
            del env["HTTP_IF_NONE_MATCH"]
            env["test.create"] = True
            # Swift looks, then writes: one at a time for each object.
            with self.one.setdefault(env["PATH_INFO"], Semaphore()):
                return [b"".join(self.app(env, start))]

    class Key:
        def __init__(self, app):
            self.app = app

        def __call__(self, env, start):
            if env.get("swift.authorize_override"):
                return self.app(env, start)
            env["swift.authorize"] = lambda req: HTTPUnauthorized(request=req)
            details = env.get("s3api.auth_details")
            if details and details["access_key"] == access and details["check_signature"](secret):
                env["PATH_INFO"] = env["PATH_INFO"].replace("/" + access, "/" + ACCOUNT, 1)
                env["swift.authorize"] = self.allow
            if env.get("test.create") and env["REQUEST_METHOD"] == "PUT":
                env["HTTP_IF_NONE_MATCH"] = "*"
            return self.app(env, start)

        @staticmethod
        def allow(req):
            req.environ["swift_owner"] = True

    module = types.ModuleType("test_filters")
    module.create = lambda conf, **local: Create
    module.key = lambda conf, **local: Key
    sys.modules["test_filters"] = module


def listen():
    s = RealSocket(socket.AF_INET, socket.SOCK_STREAM)
    s.bind((HOST, 0))
    s.listen(256)
    return s


def ring(path, port):
    from swift.common.ring import RingBuilder
    b = RingBuilder(4, 1, 0)
    b.add_dev({"id": 0, "region": 1, "zone": 1, "ip": HOST, "port": port, "device": "d",
               "weight": 1.0, "meta": "", "replication_ip": HOST, "replication_port": port})
    b.rebalance()
    b.get_ring().save(path)


def serve(name, conf, sock, log, parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        from swift.common import wsgi
        from eventlet.greenio import GreenSocket
        wsgi.get_socket = lambda conf: GreenSocket(sock)
        wsgi.run_wsgi(conf, name + "-server", verbose=True)
    finally:
        os._exit(1)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def prepare(root, socks, plain):
    import pwd
    for name, sock in socks.items():
        port = sock.getsockname()[1]
        values = {"host": HOST, "port": port, "dir": root, "name": name,
                  "user": pwd.getpwuid(os.geteuid()).pw_name, "create": "" if plain else "create",
                  "late": "versioned_writes proxy-server"}
        if name != "proxy":
            ring("%s/%s.ring.gz" % (root, name), port)
        write("%s/%s.conf" % (root, name),
              (COMMON + (PROXY if name == "proxy" else BACKEND)) % values)


def main():
    root, access, secret = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
    plain = sys.argv[4:] == ["plain"]
    parent = os.getppid()
    try:
        import eventlet.hubs
        import eventlet.patcher
        eventlet.hubs.use_hub("poll")
        eventlet.patcher.monkey_patch(all=False, socket=True, select=True, thread=True)
        import swift.common.utils as utils
    except ImportError as e:
        sys.exit("s3server.py: %s: install python3-swift" % e)
    os.makedirs(root + "/disk/d", exist_ok=True)
    write(root + "/swift.conf", "[swift-hash]\nswift_hash_path_suffix = test\n"
          "[storage-policy:0]\nname = one\ndefault = yes\n")
    utils.SWIFT_CONF_FILE = root + "/swift.conf"

    class Nowhere(logging.NullHandler):
        def __init__(self, *args, **kwargs):
            super().__init__()

    utils.ThreadSafeSysLogHandler = Nowhere
    socks = {name: listen() for name in BACKENDS + ("proxy",)}
    filters(access, secret)
    from swift.common.storage_policy import reload_storage_policies
    from swift.common.constraints import reload_constraints
    utils.validate_configuration()
    reload_storage_policies()
    reload_constraints()
    prepare(root, socks, plain)
    me = os.getpid()
    children = []
    for name, sock in socks.items():
        pid = os.fork()
        if pid == 0:
            serve(name, "%s/%s.conf" % (root, name), sock, "%s/%s.log" % (root, name), me)
        children.append(pid)
    url = "http://%s:%d" % (HOST, socks["proxy"].getsockname()[1])
    for sock in socks.values():
        sock.close()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url + "/", timeout=10)
        except urllib.error.HTTPError:
            print("ready " + url, flush=True)     # it answers, and refuses strangers
            break
        except OSError:
            time.sleep(0.1)
    try:
        while os.getppid() == parent and os.waitpid(-1, os.WNOHANG)[0] == 0:
            time.sleep(0.2)
    finally:
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


if __name__ == "__main__":
    main()
