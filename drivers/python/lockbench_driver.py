"""What the drivers in Python share: docs/DRIVERS.md is the protocol.

A driver makes a Lock and calls serve. The clients are threads.
"""
import json
import os
import platform
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))  # what make drivers installs

now = time.monotonic_ns
REPORT = 0.05  # seconds between two reports; lockbench wants one in 100 ms
LATE = 100_000_000  # ns after the end of the run, when the waits that are still open are reported as such
RETRY = 0.05  # seconds of pause after an error


class NotHeld(Exception):
    """The lease had been lost before its release."""


class Lock:
    """A lock that does nothing: the floor. The drivers' locks override what they need."""

    name, version, claims, nodes = "noop", "", [], 0
    keys, keeps, caveat = ["{key}"], [], "excludes nobody"

    def open(self, redis, client_name, prefix, ttl, callers):
        """Connects to the servers with these URLs. ttl is in seconds; callers is the number of clients."""

    def acquire(self, key, timeout):
        """Returns a lease, or None after so many seconds; with 0 it tries once, with None it waits."""
        return key

    def release(self, lease):
        """Gives it back, or raises NotHeld."""

    def extend(self, lease, ttl):
        raise NotImplementedError("extend")

    def token(self, lease):
        """Returns the lease's fencing token; None without one."""
        return None


class Sleeper:
    """Sleeps that are right on average: it learns how late the system wakes it."""

    def __init__(self):
        self.late = 50_000

    def until(self, end):
        left = end - now()
        if left > self.late:
            time.sleep((left - self.late) / 1e9)
            over = now() - (end - self.late)
            self.late += (min(over, 1_000_000) - self.late) // 16


class Run:
    """The clients of one run."""

    def __init__(self, lock, ask, say):
        self.lock, self.ask, self.say = lock, ask, say
        self.stop = ask["stop"]
        self.guard = threading.Lock()
        self.cycles = []  # not reported yet
        self.waiting = {}  # client: [client, key, asked]; None once the open waits have been reported
        self.clients = [threading.Thread(target=self.client, args=c, daemon=True) for c in ask["clients"]]

    def start(self):
        for client in self.clients:
            client.start()
        threading.Thread(target=self.report, daemon=True).start()

    def end(self):
        """Lets clients that still wait give the lock back, for a second at most."""
        self.stop = min(self.stop, now())
        limit = time.monotonic() + 1
        for client in self.clients:
            client.join(max(0, limit - time.monotonic()))

    def report(self):
        done = False
        while not done:
            time.sleep(REPORT)
            running = any(client.is_alive() for client in self.clients)
            with self.guard:
                if running and now() > self.stop + LATE:  # they wait, and cannot be interrupted
                    self.cycles += [[*w, None, None, now(), None, "stopped"] for w in self.waiting.values()]
                    self.waiting = None
                    running = False
                cycles, self.cycles = self.cycles, []
            done = not running
            for i in range(0, len(cycles), 2000):
                self.say({"id": self.ask["id"], "cycles": cycles[i : i + 2000]})
            self.say({"id": self.ask["id"], "done": done})

    def client(self, client, step):
        steps, sleeper = self.ask["steps"], Sleeper()
        sleeper.until(self.ask["start"])
        while True:
            key, hold, think = steps[step % len(steps)]
            step += 1
            asked = now()
            with self.guard:
                if asked >= self.stop or self.waiting is None:
                    return
                self.waiting[client] = [client, key, asked]
            cycle, error = self.cycle(key, hold, sleeper)
            with self.guard:
                if self.waiting is None:
                    return  # it has been reported already
                del self.waiting[client]
                self.cycles.append([client, key, asked, *cycle])
            if error:
                time.sleep(RETRY)
            sleeper.until(now() + think)

    def cycle(self, key, hold, sleeper):
        """Returns granted, released, done, token, error of a cycle; and whether there was an error of the lock's."""
        limit = self.ask.get("timeout_ns")
        try:
            lease = self.lock.acquire(self.ask["keys"][key], None if limit is None else limit / 1e9)
        except Exception as e:
            return [None, None, now(), None, f"{type(e).__name__}: {e}"], True
        granted = now()
        if lease is None:
            return [None, None, granted, None, "timeout"], False
        token, error = self.lock.token(lease), None
        if hold:
            sleeper.until(granted + hold)
        released = now()
        try:
            self.lock.release(lease)
        except NotHeld:
            error = "not held"
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
        return [granted, released, now(), token, error], False


def serve(lock):
    """Answers what lockbench asks until it closes standard input."""
    out, guard, leases, run = sys.stdout, threading.Lock(), {}, None
    sys.stdout = sys.stderr  # what a library prints is no answer

    def say(answer):
        with guard:
            out.write(json.dumps(answer) + "\n")
            out.flush()

    def single(ask):
        """acquire, release or extend, outside a run."""
        try:
            if ask["do"] == "acquire":
                limit = ask.get("timeout_ns")
                lease = lock.acquire(ask["key"], None if limit is None else limit / 1e9)
                if lease is None:
                    return say({"id": ask["id"], "error": "timeout"})
                leases[ask["id"]] = lease
                return say({"id": ask["id"], "lease": ask["id"], "token": lock.token(lease)})
            if ask["do"] == "release":
                lock.release(leases[ask["lease"]])
            else:
                lock.extend(leases[ask["lease"]], ask["ttl_ms"] / 1000)
            say({"id": ask["id"]})
        except NotHeld:
            say({"id": ask["id"], "error": "not held"})
        except Exception as e:
            say({"id": ask["id"], "error": f"{type(e).__name__}: {e}"})

    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "hello":
            say({
                "id": ask["id"], "protocol": 1, "name": lock.name, "version": lock.version, "claims": lock.claims,
                "runtime": "Python " + platform.python_version(), "nodes": lock.nodes, "keys": lock.keys,
                "keeps": lock.keeps, "caveat": lock.caveat,
            })
        elif ask["do"] == "clock":
            say({"id": ask["id"], "now": now()})
        elif ask["do"] == "open":
            try:
                lock.open(ask.get("redis", []), ask.get("client_name", ""), ask["prefix"], ask["ttl_ms"] / 1000,
                          ask.get("callers", 1))
                say({"id": ask["id"]})
            except Exception as e:
                say({"id": ask["id"], "error": f"{type(e).__name__}: {e}"})
        elif ask["do"] == "run":
            run = Run(lock, ask, say)
            run.start()
        elif ask["do"] == "stop":
            run.stop = now()
        elif ask["do"] == "cancel":
            pass  # no wait can be ended
        elif ask["do"] == "close":
            if run:
                run.end()
            break
        else:
            threading.Thread(target=single, args=(ask,), daemon=True).start()


def missing(package):
    """Ends a driver whose library is not there."""
    sys.exit(f"{package} is not installed: make drivers")
