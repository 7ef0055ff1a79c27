#!/usr/bin/env python3
"""A driver for a lock that SET NX acquires and waiters poll every 5 ms. docs/DRIVERS.md describes the protocol."""
import json, random, socket, sys, threading, time, urllib.parse

FREE = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0"
now = time.monotonic_ns  # CLOCK_MONOTONIC
asks, held, cancelled = {}, {}, set()  # the last request of each kind, the leases of acquire, the cancelled calls

def say(ask, **answer):
    sys.stdout.write(json.dumps({"id": ask["id"], **answer}) + "\n")  # a single write, so that threads do not mix their lines
    sys.stdout.flush()

class Lock:  # SET NX PX, tried every 5 ms
    redis = None

    def connect(self):
        url = urllib.parse.urlsplit(asks["open"]["redis"][0])
        self.redis = socket.create_connection((url.hostname, url.port)).makefile("rwb")
        if url.password:
            self.call("AUTH", *(urllib.parse.unquote(text) for text in (url.username or "default", url.password)))
        if database := url.path[1:]:
            self.call("SELECT", database)

    def call(self, *words):
        if not self.redis:
            self.connect()
        words = [str(word).encode() for word in words]
        redis, self.redis = self.redis, None  # without a reply, the next call connects again
        redis.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        redis.flush()
        if (answer := redis.readline())[:1] in (b"", b"-"):
            raise OSError(answer.decode() or "the connection was closed")
        self.redis = redis
        return answer.strip()

    def acquire(self, key, over):
        self.name, self.token, ttl = asks["open"]["prefix"] + key, random.getrandbits(64), asks["open"]["ttl_ms"]
        while True:
            self.until = now() + ttl * 1_000_000  # the TTL begins when Redis sets the key, which is later
            if self.call("SET", self.name, self.token, "NX", "PX", ttl) == b"+OK" and now() < self.until:
                return True
            if over():
                return False
            time.sleep(0.005)

    def release(self):  # returns the protocol's error
        return None if self.call("EVAL", FREE, 1, self.name, self.token) == b":1" else "not held"

def client(ask, cycles, number, step):
    lock = Lock()
    lock.connect()
    time.sleep(max(0, ask["start"] - now()) / 1e9)
    while now() < ask["stop"]:
        key, hold, think = ask["steps"][step % len(ask["steps"])]
        step, asked, granted, released, error = step + 1, now(), None, None, None
        try:
            if lock.acquire(ask["keys"][key], lambda: now() >= min(ask["stop"], asked + ask.get("timeout_ns", 1 << 62))):
                granted = now()
                time.sleep(hold / 1e9)
                released = now()
                error = lock.release()
            else:
                error = "stopped" if now() >= ask["stop"] else "timeout"
        except OSError as e:
            error, think = str(e), 50_000_000
        cycles.append([number, key, asked, granted, released, now(), None, error, granted and lock.until])
        time.sleep(think / 1e9)

def run(ask, running=True):
    cycles = []
    clients = [threading.Thread(target=client, args=(ask, cycles, *c)) for c in ask["clients"]]
    for c in clients:
        c.start()
    while running:
        time.sleep(0.05)
        running = any(c.is_alive() for c in clients)
        say(ask, cycles=[cycles.pop(0) for _ in range(len(cycles))], done=not running)

def call(ask):  # acquire or release, once, for lockbench check
    try:
        if ask["do"] == "release":
            return say(ask, error=held[ask["lease"]].release())
        lock, limit = Lock(), now() + ask.get("timeout_ns", 1 << 62)
        if lock.acquire(ask["key"], lambda: now() >= limit or ask["id"] in cancelled):
            held[ask["id"]] = lock
            return say(ask, lease=ask["id"], until=lock.until)
        say(ask, error="stopped" if ask["id"] in cancelled else "timeout")
    except OSError as e:
        say(ask, error=str(e))

for ask in map(json.loads, sys.stdin):
    asks[ask["do"]] = ask
    if ask["do"] in ("run", "acquire", "release"):
        threading.Thread(target=run if ask["do"] == "run" else call, args=[ask], daemon=True).start()
    elif ask["do"] == "stop":
        asks["run"]["stop"] = now()
    elif ask["do"] == "cancel":
        cancelled.add(ask["call"])
    elif ask["do"] != "close":  # hello, clock, open
        say(ask, protocol=1, name="mine", claims=["exclusion", "recovery"], now=now())
