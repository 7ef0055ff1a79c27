"use strict";
// The common part of the drivers in Node, which speaks the protocol in docs/DRIVERS.md. A driver defines a Lock and
// calls serve. The clients are asynchronous functions.
const { readFileSync } = require("node:fs");
const readline = require("node:readline");
const { rootCertificates } = require("node:tls");

const now = () => Number(process.hrtime.bigint()); // CLOCK_MONOTONIC
const REPORT = 50; // ms between two reports; lockbench expects one every 100 ms
const LATE = 100e6; // ns after the end of the run at which open waits are reported as stopped
const LEAVE = 1800; // ms for waiting clients to end; lockbench ends the process after 2 s
const RETRY = 50; // ms of pause after an error

class NotHeld extends Error {} // the lease was lost before its release

// Lock does nothing, for measuring the driver itself. Drivers override the methods that they need.
class Lock {
  hello = { name: "noop", version: "", claims: [], nodes: 0, caveat: "excludes no client" };
  async open(servers, prefix, ttl, callers) {} // servers are options for ioredis; ttl is in ms
  async acquire(key, timeout) { return key; } // a lease, or null after timeout ms; 0: one try, null: no limit
  async release(lease) {} // throws NotHeld if the lease was lost
  async extend(lease, ttl) { throw new Error("the lock cannot extend a lease"); }
  token(lease) { return null; } // the fencing token; null if the lock has none
  until(lease) { return undefined; } // the end of the validity by Date.now; undefined if it is not known
  onLost(lease, tell) { return false; } // true if the lock calls tell when the lease is lost
}

// server returns ioredis's options for a URL in the request open.
function server(url, ask) {
  const at = new URL(url.replace(/^unix:\/\/([^/]*@)?\//, "unix://$1localhost/")); // URL refuses a user without a host
  const isSocket = at.protocol === "unix:";
  const options = {
    username: decodeURIComponent(at.username), password: decodeURIComponent(at.password), // keeps a +
    db: Number(isSocket ? at.searchParams.get("db") : at.pathname.slice(1)), connectionName: ask.client_name,
  };
  if (isSocket) return { ...options, path: decodeURIComponent(at.pathname) };
  Object.assign(options, { host: at.hostname.replace(/^\[|\]$/g, ""), port: Number(at.port) });
  if (at.protocol !== "rediss:") return options;
  const read = (file) => file && readFileSync(file);
  return {
    ...options,
    tls: {
      ca: ask.tls_ca && [...rootCertificates, read(ask.tls_ca)], cert: read(ask.tls_cert), key: read(ask.tls_key),
      rejectUnauthorized: !ask.tls_skip_verify,
    },
  };
}

// connected returns a client of class Redis that is connected. ioredis would retry for a long time, and reports the
// reason for a failure only as an event.
async function connected(Redis, server) {
  const client = new Redis(server);
  await Promise.race([client.ping(), new Promise((_, fail) => client.once("error", fail))]);
  return client;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise((resolve) => setImmediate(resolve));

// until sleeps until an instant. Node's timers have whole milliseconds, so for the last one it polls the clock.
async function until(end) {
  const ms = Math.floor((end - now()) / 1e6) - 1;
  if (ms > 0) await pause(ms);
  while (now() < end) await turn();
}

// validUntil returns the end of a lease's validity; undefined if it is not known. Date.now has whole milliseconds.
function validUntil(lock, lease) {
  const end = lock.until(lease);
  return end === undefined ? undefined : now() + Math.round((end - Date.now() - 1) * 1e6);
}

const text = (error) => `${error.name}: ${error.message}`;

class Run {
  constructor(lock, ask, say) {
    Object.assign(this, { lock, ask, say, stop: ask.stop, cycles: [], waiting: new Map() });
    this.clients = ask.clients.map(([number, step]) => this.client(number, step));
    this.running = true;
    this.all = Promise.all(this.clients).then(() => { this.running = false; });
    this.timer = setInterval(() => this.report(), REPORT);
  }

  report() {
    let { running, cycles } = this;
    if (running && now() > this.stop + LATE) { // clients wait and cannot be interrupted
      for (const wait of this.waiting.values()) cycles.push([...wait, null, null, now(), null, "stopped"]);
      this.waiting = null;
      running = false;
    }
    this.cycles = [];
    for (let i = 0; i < cycles.length; i += 2000) this.say({ id: this.ask.id, cycles: cycles.slice(i, i + 2000) });
    this.say({ id: this.ask.id, done: !running });
    if (!running) clearInterval(this.timer);
  }

  async client(number, step) {
    const { steps } = this.ask;
    await until(this.ask.start);
    for (;;) {
      const [key, hold, think] = steps[step++ % steps.length];
      const asked = now();
      if (asked >= this.stop || !this.waiting) return;
      this.waiting.set(number, [number, key, asked]);
      const [cycle, failed] = await this.cycle(this.ask.keys[key], hold);
      if (!this.waiting) return; // report has reported this wait as stopped
      this.waiting.delete(number);
      this.cycles.push([number, key, asked, ...cycle]);
      if (failed) await pause(RETRY);
      if (think) await until(now() + think);
    }
  }

  // cycle returns the fields of a cycle from granted on, and whether the acquire failed with an error.
  async cycle(key, hold) {
    const limit = this.ask.timeout_ns;
    let lease, error = null;
    try {
      lease = await this.lock.acquire(key, limit === undefined ? null : limit / 1e6);
    } catch (e) {
      return [[null, null, now(), null, text(e)], true];
    }
    const granted = now();
    if (lease === null) return [[null, null, granted, null, "timeout"], false];
    const token = this.lock.token(lease);
    if (hold && this.waiting) await until(granted + hold); // otherwise it got the lock after the end of the run
    const end = validUntil(this.lock, lease), released = now();
    try {
      await this.lock.release(lease);
    } catch (e) {
      error = e instanceof NotHeld ? "not held" : text(e);
    }
    return [[granted, released, now(), token, error, end ?? null], false];
  }
}

// serve replies to the requests of lockbench until it closes standard input.
function serve(lock) {
  console.log = console.info = console.error; // the output of a library must not mix with the replies
  const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");
  const leases = new Map();
  let run;
  const answers = {
    hello: async () => ({
      protocol: 1, runtime: `Node ${process.version}`, extends: lock.extend !== Lock.prototype.extend,
      connects: ["unix", "tls"], ...lock.hello,
    }),
    clock: async () => ({ now: now() }),
    open: async (ask) => {
      await lock.open((ask.redis ?? []).map((url) => server(url, ask)), ask.prefix, ask.ttl_ms, ask.callers);
    },
    acquire: async (ask) => {
      const lease = await lock.acquire(ask.key, ask.timeout_ns === undefined ? null : ask.timeout_ns / 1e6);
      if (lease === null) return { error: "timeout" };
      leases.set(ask.id, lease);
      const watched = lock.onLost(lease, () => say({ id: ask.id, lost: true }));
      return { lease: ask.id, token: lock.token(lease), until: validUntil(lock, lease), watched };
    },
    release: async (ask) => { await lock.release(leases.get(ask.lease)); },
    extend: async (ask) => {
      await lock.extend(leases.get(ask.lease), ask.ttl_ms);
      return { until: validUntil(lock, leases.get(ask.lease)) };
    },
  };
  const close = async () => { // clients that still wait may get and release the lock
    if (run) {
      run.stop = Math.min(run.stop, now());
      await Promise.race([run.all, pause(LEAVE)]);
    }
    process.exit();
  };
  const lines = readline.createInterface({ input: process.stdin });
  lines.on("close", close);
  lines.on("line", async (line) => {
    const ask = JSON.parse(line);
    if (ask.do === "run") {
      run = new Run(lock, ask, say);
    } else if (ask.do === "stop") {
      run.stop = now();
    } else if (ask.do === "close") {
      lines.close();
    } else if (ask.do !== "cancel") { // a call cannot be cancelled
      try {
        say({ id: ask.id, ...(await answers[ask.do](ask)) });
      } catch (e) {
        say({ id: ask.id, error: e instanceof NotHeld ? "not held" : text(e) });
      }
    }
  });
}

// need returns a library that install.sh installs. If it is not installed, need ends the process.
function need(name) {
  try {
    return require(name);
  } catch {
    console.error(`${name} is not installed: lockbench drivers install node`);
    process.exit(1);
  }
}

// version returns the version of an installed library.
const version = (name) => JSON.parse(readFileSync(`${__dirname}/node_modules/${name}/package.json`))
  .version;

module.exports = { Lock, NotHeld, connected, serve, need, version };
