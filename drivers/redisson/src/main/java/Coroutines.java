import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;

/**
 * Clients that are coroutines: they share some threads, and suspend where a client that is a thread parks. This is the
 * fault of suspending functions around an RLock, whose owner is a thread. Two coroutines of one thread hold the lock
 * together. With several threads, a release may run on a thread that is not the owner, and fails.
 */
final class Coroutines {
    private final Driver driver;
    private final ScheduledThreadPoolExecutor threads;

    Coroutines(Driver driver, int threads) {
        this.driver = driver;
        this.threads = new ScheduledThreadPoolExecutor(threads, task -> {
            Thread thread = new Thread(task, "coroutines");
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Marks when a thread is in a call of the library, so that another thread interrupts only this call. */
    private static class Interruptible {
        private Thread caller; // null between two calls

        synchronized void begins() {
            caller = Thread.currentThread();
        }

        synchronized void ends() {
            caller = null;
            Thread.interrupted();
        }

        synchronized void interrupt() {
            if (caller != null) {
                caller.interrupt();
            }
        }
    }

    /** A client of a run. */
    final class Client implements Driver.Client {
        private final Driver.Run run;
        private final int number;
        private final List<String> keys;
        private final List<List<Number>> steps;
        private final Map<String, Driver.Lock> locks = new HashMap<>();
        private final Interruptible waits = new Interruptible();
        private int step;
        private volatile boolean alive = true;

        Client(Driver.Run run, int number, int step) {
            this.run = run;
            this.number = number;
            this.step = step;
            keys = Driver.list(run.ask.get("keys"));
            steps = Driver.list(run.ask.get("steps"));
        }

        @Override
        public void start() {
            at(Driver.number(run.ask.get("start")), this::cycle);
        }

        @Override
        public boolean isAlive() {
            return alive;
        }

        @Override
        public void endWait() {
            waits.interrupt();
        }

        /** Runs next at the instant then, or later when a thread is free. */
        private void at(long then, Runnable next) {
            threads.schedule(() -> {
                boolean fine = false;
                try {
                    next.run();
                    fine = true;
                } finally {
                    alive &= fine;
                }
            }, then - System.nanoTime(), TimeUnit.NANOSECONDS);
        }

        private void cycle() {
            if (System.nanoTime() - run.stop >= 0) {
                alive = false;
                return;
            }
            List<Number> now = steps.get(step++ % steps.size());
            int key = now.get(0).intValue();
            long think = Driver.number(now.get(2));
            Driver.Lock lock = locks.computeIfAbsent(keys.get(key), driver::lock);
            long asked = System.nanoTime();
            String error = null;
            waits.begins();
            try {
                error = lock.acquire(run.ask.get("timeout_ns")) == null ? Driver.quoted("timeout") : null;
            } catch (InterruptedException | RuntimeException e) {
                error = Driver.why(e);
            }
            long granted = System.nanoTime();
            waits.ends();
            if (error != null) {
                run.failed(number, key, asked, granted, error);
                long pause = error.equals(Driver.quoted("timeout")) ? 0 : Driver.RETRY * 1_000_000;
                at(System.nanoTime() + pause + think, this::cycle);
                return;
            }
            String[] wrong = {"null"};
            RBucket<String> counter = run.counter(key);
            String before = counter == null ? null : counter.get();
            at(granted + Driver.number(now.get(1)), () -> {
                if (counter != null) {
                    counter.set(Driver.incremented(before));
                }
                long released = System.nanoTime();
                try {
                    lock.release();
                } catch (RuntimeException e) {
                    wrong[0] = Driver.why(e);
                }
                run.made(number, key, asked, granted, released, "null", wrong[0]);
                at(System.nanoTime() + think, this::cycle);
            });
        }
    }

    /** A lease that lockbench acquires and releases by separate requests, outside a run. */
    final class Holder implements Driver.Holder {
        private final Map<String, Object> ask;
        private final Interruptible calls = new Interruptible();
        private Driver.Lock lock;
        private volatile Object calling; // the id of the request that a thread serves

        Holder(Map<String, Object> ask) {
            this.ask = ask;
        }

        @Override
        public void start() {
            call(ask, () -> {
                lock = driver.lock((String) ask.get("key"));
                String token = lock.acquire(ask.get("timeout_ns"));
                Driver.say(ask, token == null ? ",\"error\":\"timeout\""
                    : ",\"lease\":" + ask.get("id") + ",\"token\":null");
            });
        }

        @Override
        public void release(Map<String, Object> release) {
            call(release, () -> {
                lock.release();
                Driver.say(release, "");
            });
        }

        @Override
        public void cancel(Object call) {
            if (call.equals(calling)) {
                calls.interrupt();
            }
        }

        private interface Call {
            void go() throws InterruptedException;
        }

        private void call(Map<String, Object> question, Call call) {
            threads.execute(() -> {
                calling = question.get("id");
                calls.begins();
                try {
                    call.go();
                } catch (InterruptedException | RuntimeException e) {
                    Driver.fail(question, e);
                } finally {
                    calls.ends();
                    calling = null;
                }
            });
        }
    }
}
