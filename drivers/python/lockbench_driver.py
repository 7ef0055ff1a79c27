"""The common part of the drivers in Python, which speaks the protocol in docs/DRIVERS.md.

A driver defines a Lock and calls serve. The clients are threads, or asyncio tasks if acquire is a coroutine function.
"""
import asyncio
import concurrent.futures
import inspect
import json
import os
import platform
import ssl
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))  # where install.sh puts libraries

now = time.monotonic_ns
REPORT = 0.05  # seconds between two reports; lockbench expects one every 100 ms
LATE = 100_000_000  # ns after the end of the run at which open waits are reported as stopped
LEAVE = 1.8  # seconds for waiting clients to end; lockbench ends the process after 2
RETRY = 0.05  # seconds of pause after an error


class NotHeld(Exception):
    """The lease was lost before its release."""


class Server:
    """A Redis server: its URL, the decoded parts of the URL, and the TLS settings."""

    def __init__(self, url, ask):
        parts = urllib.parse.urlsplit(url)
        decoded = urllib.parse.unquote  # does not decode a + as a space
        self.url, self.encrypted = url, parts.scheme == "rediss"
        self.username = decoded(parts.username or "") or None
        self.password = decoded(parts.password or "") or None
        if parts.scheme == "unix":
            self.address, db = decoded(parts.path), urllib.parse.parse_qs(parts.query).get("db", [""])[0]
        else:
            self.address, db = (parts.hostname, parts.port), parts.path.strip("/")
        self.db = int(db or 0)
        self.ca, self.cert, self.key = (ask.get(file) for file in ("tls_ca", "tls_cert", "tls_key"))
        self.verify = not ask.get("tls_skip_verify")

    def redis_py(self):
        """Returns the TLS arguments for redis-py, which also trusts the system's certificates."""
        if not self.encrypted:
            return {}
        return {"ssl_ca_certs": self.ca, "ssl_certfile": self.cert, "ssl_keyfile": self.key,
                "ssl_cert_reqs": "required" if self.verify else "none", "ssl_check_hostname": self.verify}

    def context(self):
        """Returns the ssl.SSLContext; None without encryption."""
        if not self.encrypted:
            return None
        context = ssl.create_default_context()
        if self.ca:
            context.load_verify_locations(self.ca)
        if self.cert:
            context.load_cert_chain(self.cert, self.key)
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


class Lock:
    """A lock that does nothing, for measuring the driver itself. Drivers override the methods that they need."""

    name, version, claims, nodes = "noop", "", [], 0
    keys, keeps, caveat = ["{key}"], [], "excludes no client"
    connects = ["unix", "tls"]  # the ways to connect in addition to plain TCP

    def open(self, servers, client_name, prefix, ttl, callers):
        """Connects to servers, each a Server. ttl is in seconds; callers is the number of clients."""

    def acquire(self, key, timeout):
        """Returns a lease, or None after timeout seconds. 0 means a single try, and None no limit."""
        return key

    def release(self, lease):
        """Releases the lease, or raises NotHeld if it was lost."""

    def extend(self, lease, ttl):
        """Makes the lease valid for ttl seconds from now on, or raises NotHeld if it was lost."""
        raise NotImplementedError("extend")

    def token(self, lease):
        """Returns the lease's fencing token; None if the lock has none."""
        return None

    def until(self, lease):
        """Returns the end of the validity by time.monotonic; None if the library does not know it without a request."""
        return None


class Threads:
    """Runs the clients of a library that blocks: each coroutine has a thread and never suspends."""

    async def call(self, do, *args):
        return do(*args)

    async def sleep(self, seconds):
        time.sleep(seconds)

    def start(self, coroutine):
        future = concurrent.futures.Future()

        def play():
            try:
                coroutine.send(None)
            except StopIteration:
                future.set_result(None)

        threading.Thread(target=play, daemon=True).start()
        return future

    def task(self):
        return None  # a call that blocks cannot be cancelled


class Loop:
    """Runs the clients of a library with coroutines, as tasks of one event loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def call(self, do, *args):
        return await do(*args)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)

    def start(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def task(self):
        return asyncio.current_task()


def valid_until(lock, lease):
    """Returns the end of a lease's validity in nanoseconds; None if it is not known."""
    end = lock.until(lease)
    return None if end is None else int(end * 1e9)


class Sleeper:
    """Sleeps until an instant. It measures how late the system wakes it, and ends its sleeps earlier by this time."""

    def __init__(self, sleep):
        self.sleep, self.late = sleep, 50_000

    async def until(self, end):
        left = end - now()
        if left > self.late:
            await self.sleep((left - self.late) / 1e9)
            over = now() - (end - self.late)
            self.late += (min(over, 1_000_000) - self.late) // 16


class Run:
    """The clients of one run, and the thread that reports their cycles."""

    def __init__(self, lock, ask, say, runner):
        self.lock, self.ask, self.say, self.runner = lock, ask, say, runner
        self.stop = ask["stop"]
        self.guard = threading.Lock()
        self.cycles = []  # not reported yet
        self.waiting = {}  # client: [client, key, asked]; None once the open waits have been reported
        self.clients = [runner.start(self.client(*c)) for c in ask["clients"]]
        threading.Thread(target=self.report, daemon=True).start()

    def end(self):
        """Ends the run. Clients that still wait may get and release the lock within LEAVE."""
        self.stop = min(self.stop, now())
        concurrent.futures.wait(self.clients, timeout=LEAVE)

    def report(self):
        done = False
        while not done:
            time.sleep(REPORT)
            running = not all(client.done() for client in self.clients)
            with self.guard:
                if running and now() > self.stop + LATE:  # clients wait and cannot be interrupted
                    self.cycles += [[*w, None, None, now(), None, "stopped"] for w in self.waiting.values()]
                    self.waiting = None
                    running = False
                cycles, self.cycles = self.cycles, []
            done = not running
            for i in range(0, len(cycles), 2000):
                self.say(self.ask, cycles=cycles[i : i + 2000])
            self.say(self.ask, done=done)

    async def client(self, client, step):
        steps, sleeper = self.ask["steps"], Sleeper(self.runner.sleep)
        await sleeper.until(self.ask["start"])
        while True:
            key, hold, think = steps[step % len(steps)]
            step += 1
            asked = now()
            with self.guard:
                if asked >= self.stop or self.waiting is None:
                    return
                self.waiting[client] = [client, key, asked]
            cycle, error = await self.cycle(key, hold, sleeper)
            with self.guard:
                if self.waiting is None:
                    return  # report has reported this wait as stopped
                del self.waiting[client]
                self.cycles.append([client, key, asked, *cycle])
            if error:
                await self.runner.sleep(RETRY)
            await sleeper.until(now() + think)

    async def cycle(self, key, hold, sleeper):
        """Returns the fields of a cycle from granted on, and whether the acquire failed with an error."""
        limit = self.ask.get("timeout_ns")
        try:
            lease = await self.runner.call(
                self.lock.acquire, self.ask["keys"][key], None if limit is None else limit / 1e9)
        except Exception as e:
            return [None, None, now(), None, f"{type(e).__name__}: {e}"], True
        granted = now()
        if lease is None:
            return [None, None, granted, None, "timeout"], False
        token, error = self.lock.token(lease), None
        if hold and self.waiting is not None:  # otherwise it got the lock after the end of the run
            await sleeper.until(granted + hold)
        until, released = valid_until(self.lock, lease), now()
        try:
            await self.runner.call(self.lock.release, lease)
        except NotHeld:
            error = "not held"
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
        return [granted, released, now(), token, error, until], False


def serve(lock):
    """Replies to the requests of lockbench until it closes standard input."""
    out, guard, leases, calls, run = sys.stdout, threading.Lock(), {}, {}, None
    sys.stdout = sys.stderr  # the output of a library must not mix with the replies
    runner = Loop() if inspect.iscoroutinefunction(lock.acquire) else Threads()

    def say(ask, **answer):
        with guard:
            out.write(json.dumps({"id": ask["id"], **answer}) + "\n")
            out.flush()

    async def call(ask, do):
        """Replies with the result of one call of the lock."""
        calls[ask["id"]] = runner.task()
        try:
            say(ask, **await do(ask))
        except NotHeld:
            say(ask, error="not held")
        except asyncio.CancelledError:
            say(ask, error="stopped")
        except Exception as e:
            say(ask, error=f"{type(e).__name__}: {e}")
        finally:
            del calls[ask["id"]]

    async def opened(ask):
        servers = [Server(url, ask) for url in ask.get("redis", [])]
        await runner.call(lock.open, servers, ask.get("client_name", ""), ask["prefix"], ask["ttl_ms"] / 1000,
                          ask.get("callers", 1))
        return {}

    async def acquire(ask):
        limit = ask.get("timeout_ns")
        lease = await runner.call(lock.acquire, ask["key"], None if limit is None else limit / 1e9)
        if lease is None:
            return {"error": "timeout"}
        leases[ask["id"]] = lease
        return {"lease": ask["id"], "token": lock.token(lease), "until": valid_until(lock, lease)}

    async def release(ask):
        await runner.call(lock.release, leases[ask["lease"]])
        return {}

    async def extend(ask):
        await runner.call(lock.extend, leases[ask["lease"]], ask["ttl_ms"] / 1000)
        return {"until": valid_until(lock, leases[ask["lease"]])}

    kinds = {"open": opened, "acquire": acquire, "release": release, "extend": extend}
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "hello":
            say(ask, protocol=1, name=lock.name, version=lock.version, claims=lock.claims, nodes=lock.nodes,
                runtime="Python " + platform.python_version(), keys=lock.keys, keeps=lock.keeps, caveat=lock.caveat,
                extends=type(lock).extend is not Lock.extend, connects=lock.connects)
        elif ask["do"] == "clock":
            say(ask, now=now())
        elif ask["do"] == "run":
            run = Run(lock, ask, say, runner)
        elif ask["do"] == "stop":
            run.stop = now()
        elif ask["do"] == "cancel":
            if (task := calls.get(ask["call"])) is not None:
                runner.loop.call_soon_threadsafe(task.cancel)
        elif ask["do"] == "close":
            if run:
                run.end()
            break
        else:
            runner.start(call(ask, kinds[ask["do"]]))


def missing(package):
    """Ends a driver whose library is not installed, with the command that installs it."""
    sys.exit(f"{package} is not installed: lockbench drivers install python")
