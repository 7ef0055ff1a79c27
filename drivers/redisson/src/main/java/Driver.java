import java.io.IOException;
import java.net.URI;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.yaml.snakeyaml.Yaml;

/**
 * The driver of Redisson's locks, which speaks the protocol in docs/DRIVERS.md. The first argument selects lock, fair,
 * fenced, spin, redlock on five nodes, semaphore with two permits, or noop, which does nothing. Each client is a
 * thread, because the owner of a lock of Redisson is a thread. With coroutines, a fault of published sample code, the
 * clients share one thread, or as many as the second argument gives. The lock of ShedLock is here too, because it needs
 * the same loop.
 */
public final class Driver {
    static final long REPORT = 50; // ms between two reports; lockbench expects one every 100 ms
    static final long RETRY = 50; // ms of pause after an error
    static final int PERMITS = 2; // of the semaphore

    final String kind;
    final Map<Long, Holder> holders = new HashMap<>();
    final List<RedissonClient> nodes = new ArrayList<>();
    final Coroutines coroutines; // null: each client is a thread
    final boolean safe; // safeUpdate of ShedLock
    ShedLock shedlock; // null: Redisson's locks
    String prefix;
    Run run;

    Driver(String kind, String option) {
        this.kind = kind;
        coroutines = kind.equals("coroutines")
            ? new Coroutines(this, option.isEmpty() ? 1 : Integer.parseInt(option)) : null;
        safe = option.equals("safe");
    }

    public static void main(String[] args) {
        Driver driver = new Driver(args.length > 0 ? args[0] : "lock", args.length > 1 ? args[1] : "");
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            Map<String, Object> ask = new Yaml().load(lines.nextLine()); // JSON is YAML
            if (ask.get("do").equals("close")) {
                break;
            }
            driver.answer(ask);
        }
        driver.nodes.forEach(RedissonClient::shutdown);
        if (driver.shedlock != null) {
            driver.shedlock.close();
        }
        System.exit(0);
    }

    static long number(Object value) {
        return ((Number) value).longValue();
    }

    @SuppressWarnings("unchecked")
    static <T> List<T> list(Object value) {
        return (List<T>) value;
    }

    static String quoted(String text) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            b.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return b.append('"').toString();
    }

    static synchronized void say(Map<String, Object> ask, String fields) {
        System.out.println("{\"id\":" + ask.get("id") + fields + "}");
        System.out.flush();
    }

    /** Returns an error as a JSON string: "stopped", "not held" or the text of the exception. */
    static String why(Throwable e) {
        if (e instanceof InterruptedException || e.getCause() instanceof InterruptedException) {
            return quoted("stopped");
        }
        return quoted(e instanceof IllegalMonitorStateException ? "not held" : e.toString());
    }

    static void fail(Map<String, Object> ask, Throwable e) {
        say(ask, ",\"error\":" + why(e));
    }

    void answer(Map<String, Object> ask) {
        switch ((String) ask.get("do")) {
            case "hello" -> say(ask, hello());
            case "clock" -> say(ask, ",\"now\":" + System.nanoTime());
            case "open" -> {
                try {
                    open(ask);
                    say(ask, "");
                } catch (GeneralSecurityException | IOException | RuntimeException e) {
                    Throwable first = e;
                    while (first.getCause() != null) {
                        first = first.getCause();
                    }
                    fail(ask, first);
                }
            }
            case "run" -> {
                run = new Run(ask);
                new Thread(run).start();
            }
            case "stop" -> run.stop = System.nanoTime();
            case "acquire" -> {
                Holder holder = coroutines == null ? new ThreadHolder(ask) : coroutines.new Holder(ask);
                holders.put(number(ask.get("id")), holder);
                holder.start();
            }
            case "cancel" -> holders.values().forEach(holder -> holder.cancel(ask.get("call")));
            case "release" -> holders.get(number(ask.get("lease"))).release(ask);
            default -> fail(ask, new UnsupportedOperationException((String) ask.get("do")));
        }
    }

    /** Returns the reply to hello. It offers no unix socket, for which Redisson needs a native library of Netty. */
    String hello() {
        String about = switch (kind) {
            case "noop" -> ",\"nodes\":0,\"caveat\":\"excludes no client\"";
            case "fair" -> ",\"claims\":[\"exclusion\",\"recovery\",\"watchdog\",\"fifo\"],\"keys\":[\"{key}\","
                + "\"redisson_lock_queue:{key}\",\"redisson_lock_timeout:{key}\"]";
            case "fenced" -> ",\"claims\":[\"exclusion\",\"recovery\",\"watchdog\",\"fencing\"],\"keys\":[\"{key}\","
                + "\"redisson_lock_token:{key}\"],\"keeps\":[\"redisson_lock_token:{key}\"]";
            case "coroutines" -> ",\"claims\":[\"recovery\",\"watchdog\"],\"caveat\":\"as in published "
                + "sample code, coroutines share the thread that owns an RLock: they hold it together, and another "
                + "thread cannot release it\"";
            case "shedlock" -> ",\"claims\":[\"exclusion\",\"recovery\"],\"keys\":[\"shedlock:lockbench:{key}\"]"
                + (safe ? "" : ",\"caveat\":\"a late release is a plain DEL, which deletes another client's lock\"");
            case "redlock" -> ",\"claims\":[\"exclusion\",\"recovery\",\"watchdog\"],\"nodes\":5";
            case "semaphore" -> ",\"claims\":[\"exclusion\"],\"capacity\":" + PERMITS
                + ",\"keeps\":[\"{key}\"],\"caveat\":\"the permit of a holder that crashes stays taken for ever\"";
            default -> ",\"claims\":[\"exclusion\",\"recovery\",\"watchdog\"]";
        };
        boolean shed = kind.equals("shedlock");
        String version = shed ? ShedLock.version() : Redisson.class.getPackage().getImplementationVersion();
        String name = shed ? "ShedLock" + (safe ? " safe" : "") : "Redisson " + kind;
        return ",\"protocol\":1,\"name\":" + quoted(name) + ",\"version\":"
            + quoted(version == null ? "" : version) + ",\"runtime\":" + quoted("Java " + Runtime.version()) + about
            + format() + (shed || kind.equals("noop") ? "" : ",\"counts\":true,\"connects\":[\"tls\"]");
    }

    /** Returns the name of the format of the lock's keys and messages, which a lock of lockbench has too; or "". */
    String format() {
        return switch (kind) {
            case "lock" -> ",\"format\":\"Redisson RLock\"";
            case "fair" -> ",\"format\":\"Redisson RFairLock\"";
            case "fenced" -> ",\"format\":\"Redisson RFencedLock\"";
            case "spin" -> ",\"format\":\"Redisson RSpinLock\"";
            case "semaphore" -> ",\"format\":\"Redisson RSemaphore\"";
            default -> "";
        };
    }

    /** Connects to the servers. Redisson decodes the user and the password of an address, but ignores its database. */
    void open(Map<String, Object> ask) throws GeneralSecurityException, IOException {
        prefix = (String) ask.get("prefix");
        if (kind.equals("shedlock")) {
            shedlock = new ShedLock(Driver.<String>list(ask.get("redis")).get(0), (String) ask.get("client_name"),
                Duration.ofMillis(number(ask.get("ttl_ms"))), safe);
            return;
        }
        for (String address : Driver.<String>list(ask.getOrDefault("redis", List.of()))) {
            Config config = new Config();
            config.setLockWatchdogTimeout(number(ask.get("ttl_ms")));
            Certificates.configure(ask, config);
            String database = URI.create(address).getPath();
            config.useSingleServer().setAddress(address).setClientName((String) ask.get("client_name"))
                .setDatabase(database.length() > 1 ? Integer.parseInt(database.substring(1)) : 0)
                .setConnectionMinimumIdleSize(1).setConnectionPoolSize(64);
            nodes.add(Redisson.create(config));
        }
    }

    /** The lock of one key, as one client uses it. */
    interface Lock {
        /** Returns the fencing token, "null" for a lock without one, or null after timeout ns; a null timeout waits. */
        String acquire(Object timeout) throws InterruptedException;

        void release();
    }

    Lock lock(String key) {
        RedissonClient redisson = nodes.isEmpty() ? null : nodes.get(0);
        return switch (kind) {
            case "noop" -> new Lock() {
                public String acquire(Object timeout) {
                    return "null";
                }

                public void release() {
                }
            };
            case "lock", "coroutines" -> of(redisson.getLock(prefix + key));
            case "fair" -> of(redisson.getFairLock(prefix + key));
            case "fenced" -> fenced(redisson.getFencedLock(prefix + key));
            case "spin" -> of(redisson.getSpinLock(prefix + key));
            case "redlock" -> of(new RedissonRedLock(
                nodes.stream().map(node -> node.getLock(prefix + key)).toArray(RLock[]::new)));
            case "semaphore" -> semaphore(redisson.getSemaphore(prefix + key));
            case "shedlock" -> shedlock.lock(prefix + key);
            default -> throw new IllegalArgumentException("there is no kind " + kind);
        };
    }

    static Lock of(RLock lock) {
        return new Lock() {
            public String acquire(Object timeout) throws InterruptedException {
                boolean held = true;
                if (timeout == null) {
                    lock.lockInterruptibly();
                } else {
                    held = number(timeout) == 0 ? lock.tryLock() : lock.tryLock(number(timeout), TimeUnit.NANOSECONDS);
                }
                return held ? "null" : null;
            }

            public void release() {
                lock.unlock();
            }
        };
    }

    static Lock fenced(RFencedLock lock) {
        return new Lock() {
            public String acquire(Object timeout) throws InterruptedException {
                long limit = timeout == null ? TimeUnit.DAYS.toNanos(1) : number(timeout);
                Long token = limit == 0 ? lock.tryLockAndGetToken() : lock.tryLockAndGetToken(limit, TimeUnit.NANOSECONDS);
                return token == null ? null : token.toString();
            }

            public void release() {
                lock.unlock();
            }
        };
    }

    static Lock semaphore(RSemaphore semaphore) {
        semaphore.trySetPermits(PERMITS); // only the first call has an effect
        return new Lock() {
            public String acquire(Object timeout) throws InterruptedException {
                boolean held = true;
                if (timeout == null) {
                    semaphore.acquire();
                } else {
                    held = semaphore.tryAcquire(Duration.ofNanos(number(timeout)));
                }
                return held ? "null" : null;
            }

            public void release() {
                semaphore.release();
            }
        };
    }

    /** A lease that lockbench acquires and releases by separate requests, outside a run. */
    interface Holder {
        void start();

        /** Interrupts the call that serves the request with this id, and no other. */
        void cancel(Object call);

        void release(Map<String, Object> ask);
    }

    /** A Holder with a thread that acquires the lease and releases it. */
    final class ThreadHolder extends Thread implements Holder {
        private final Map<String, Object> ask;
        final BlockingQueue<Map<String, Object>> releases = new LinkedBlockingQueue<>();
        private Object calling; // the id of the request that the call serves; null between two calls

        ThreadHolder(Map<String, Object> ask) {
            this.ask = ask;
            setDaemon(true);
        }

        @Override
        public synchronized void cancel(Object call) {
            if (call.equals(calling)) {
                interrupt();
            }
        }

        @Override
        public void release(Map<String, Object> release) {
            releases.add(release);
        }

        private synchronized void calls(Object id) {
            calling = id;
            if (id == null) {
                Thread.interrupted();
            }
        }

        @Override
        public void run() {
            try {
                calls(ask.get("id"));
                Lock lock = lock((String) ask.get("key"));
                String token = lock.acquire(ask.get("timeout_ns"));
                calls(null);
                say(ask, token == null ? ",\"error\":\"timeout\"" : ",\"lease\":" + ask.get("id") + ",\"token\":" + token);
                while (token != null) {
                    Map<String, Object> release = releases.take();
                    calls(release.get("id"));
                    try {
                        lock.release();
                        say(release, "");
                    } catch (RuntimeException e) {
                        fail(release, e);
                    }
                    calls(null);
                }
            } catch (InterruptedException | RuntimeException e) {
                fail(ask, e);
            }
        }
    }

    /** The clients of one run, and the reports of their cycles. */
    final class Run implements Runnable {
        final Map<String, Object> ask;
        final List<Client> clients = new ArrayList<>();
        volatile long stop;
        private List<String> cycles = new ArrayList<>();

        Run(Map<String, Object> ask) {
            this.ask = ask;
            stop = number(ask.get("stop"));
            for (List<Number> client : Driver.<List<Number>>list(ask.get("clients"))) {
                int number = client.get(0).intValue();
                int step = client.get(1).intValue();
                clients.add(coroutines == null ? new ThreadClient(this, number, step)
                    : coroutines.new Client(this, number, step));
            }
        }

        /** Records a cycle whose lease was released just now. token and error are JSON. */
        void made(int client, int key, long asked, long granted, long released, String token, String error) {
            add("[" + client + "," + key + "," + asked + "," + granted + "," + released + "," + System.nanoTime() + ","
                + token + "," + error + "]");
        }

        /** Records a cycle without a lease. error is JSON. */
        void failed(int client, int key, long asked, long ended, String error) {
            add("[" + client + "," + key + "," + asked + ",null,null," + ended + ",null," + error + "]");
        }

        private synchronized void add(String cycle) {
            cycles.add(cycle);
        }

        /** Returns the counter of a key; null if lockbench does not request counting. */
        RBucket<String> counter(int key) {
            if (!ask.containsKey("count")) {
                return null;
            }
            String name = prefix + Driver.<String>list(ask.get("keys")).get(key) + ":counter";
            return nodes.get(0).getBucket(name, StringCodec.INSTANCE);
        }

        synchronized List<String> taken() {
            List<String> all = cycles;
            cycles = new ArrayList<>();
            return all;
        }

        @Override
        public void run() {
            clients.forEach(Client::start);
            for (boolean running = true; running;) {
                LockSupport.parkNanos(REPORT * 1_000_000);
                running = clients.stream().anyMatch(Client::isAlive);
                if (System.nanoTime() - stop >= 0) {
                    clients.forEach(Client::endWait);
                }
                List<String> all = taken();
                for (int i = 0; i < all.size(); i += 2000) {
                    String some = String.join(",", all.subList(i, Math.min(all.size(), i + 2000)));
                    say(ask, ",\"cycles\":[" + some + "]");
                }
                say(ask, ",\"done\":" + !running);
            }
        }
    }

    /** Returns the value of a counter plus one; null means that the counter does not exist yet. */
    static String incremented(String before) {
        return String.valueOf(before == null ? 1 : Long.parseLong(before) + 1);
    }

    /** A client of a run. */
    interface Client {
        void start();

        boolean isAlive();

        /** Interrupts the client if it is waiting for a lock. */
        void endWait();
    }

    /** A client that is a thread. */
    final class ThreadClient extends Thread implements Client {
        private final Run run;
        private final int number;
        private final List<String> keys;
        private final List<List<Number>> steps;
        private final Map<String, Lock> locks = new HashMap<>();
        private int step;
        private boolean waiting;

        ThreadClient(Run run, int number, int step) {
            this.run = run;
            this.number = number;
            this.step = step;
            keys = list(run.ask.get("keys"));
            steps = list(run.ask.get("steps"));
            setDaemon(true);
        }

        @Override
        public synchronized void endWait() {
            if (waiting) {
                interrupt();
            }
        }

        private synchronized void waits(boolean waits) {
            waiting = waits;
            if (!waits) {
                Thread.interrupted();
            }
        }

        private void until(long end) {
            for (long left; (left = end - System.nanoTime()) > 0;) {
                LockSupport.parkNanos(left);
            }
        }

        @Override
        public void run() {
            until(number(run.ask.get("start")));
            while (System.nanoTime() - run.stop < 0) {
                List<Number> now = steps.get(step++ % steps.size());
                int key = now.get(0).intValue();
                cycle(key, number(now.get(1)));
                until(System.nanoTime() + number(now.get(2)));
            }
        }

        /** Holds the lock until end, and increments the key's counter if lockbench requests it. */
        private void work(int key, long end) {
            RBucket<String> counter = run.counter(key);
            String before = counter == null ? null : counter.get();
            until(end);
            if (counter != null) {
                counter.set(incremented(before));
            }
        }

        private void cycle(int key, long hold) {
            Lock lock = locks.computeIfAbsent(keys.get(key), Driver.this::lock);
            long asked = System.nanoTime();
            String error = null;
            String token = null;
            waits(true);
            try {
                token = lock.acquire(run.ask.get("timeout_ns"));
                error = token == null ? quoted("timeout") : null;
            } catch (InterruptedException | RuntimeException e) {
                error = why(e);
            }
            long granted = System.nanoTime();
            waits(false);
            if (error != null) {
                run.failed(number, key, asked, granted, error);
                if (!error.equals(quoted("timeout"))) {
                    until(System.nanoTime() + RETRY * 1_000_000);
                }
                return;
            }
            String wrong = "null";
            try {
                work(key, granted + hold);
            } catch (RuntimeException e) {
                wrong = quoted(e.toString());
            }
            long released = System.nanoTime();
            try {
                lock.release();
            } catch (RuntimeException e) {
                wrong = why(e);
            }
            run.made(number, key, asked, granted, released, token, wrong);
        }
    }
}
