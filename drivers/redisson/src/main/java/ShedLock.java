import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisClientConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import redis.clients.jedis.JedisPoolConfig;

/**
 * The lock of ShedLock, in Redis by Spring and Jedis. A release deletes the key even if another client has the lock by
 * then. With safeUpdate a script compares the value first. ShedLock skips a job that another client runs, so it has
 * only a try-lock. A waiter here makes one try every 100 ms.
 */
final class ShedLock {
    static final long PAUSE = 100; // ms

    private final RedisLockProvider provider;
    private final JedisConnectionFactory connections;
    private final Duration ttl;

    ShedLock(String address, String client, Duration ttl, boolean safe) {
        this.ttl = ttl;
        URI at = URI.create(address);
        RedisStandaloneConfiguration server = new RedisStandaloneConfiguration(at.getHost(), at.getPort());
        if (at.getPath().length() > 1) {
            server.setDatabase(Integer.parseInt(at.getPath().substring(1)));
        }
        if (at.getRawUserInfo() != null) {
            String[] user = at.getRawUserInfo().split(":", 2);
            if (!user[0].isEmpty()) {
                server.setUsername(decoded(user[0]));
            }
            server.setPassword(decoded(user[user.length - 1]));
        }
        JedisPoolConfig pool = new JedisPoolConfig();
        pool.setMaxTotal(64);
        pool.setMaxIdle(64);
        JedisClientConfiguration.JedisClientConfigurationBuilder options = JedisClientConfiguration.builder();
        if (client != null && !client.isEmpty()) { // Spring refuses an empty name
            options.clientName(client);
        }
        connections = new JedisConnectionFactory(server, options.usePooling().poolConfig(pool).build());
        connections.afterPropertiesSet();
        connections.start();
        connections.getConnection().close(); // fails now if the server cannot be reached
        provider = new RedisLockProvider.Builder(connections).keyPrefix("shedlock").environment("lockbench")
            .safeUpdate(safe).build();
    }

    /** Returns the version in the name of ShedLock's jar, because its manifest has none; "" if the name has none. */
    static String version() {
        String jar = RedisLockProvider.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceFirst("^.*-([0-9][0-9.]*)[.]jar$", "$1").replaceFirst("^.*/.*$", "");
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    void close() {
        connections.destroy();
    }

    /** Returns the lock of that name for one client. Its key is shedlock:lockbench:NAME. */
    Driver.Lock lock(String name) {
        return new Driver.Lock() {
            private SimpleLock held;

            @Override
            public String acquire(Object timeout) throws InterruptedException {
                long began = System.nanoTime();
                for (;;) {
                    Optional<SimpleLock> got = provider.lock(
                        new LockConfiguration(Instant.now(), name, ttl, Duration.ZERO));
                    if (got.isPresent()) {
                        held = got.get();
                        return "null";
                    }
                    long left = timeout == null ? Long.MAX_VALUE
                        : Driver.number(timeout) - (System.nanoTime() - began);
                    if (left <= 0) {
                        return null;
                    }
                    Thread.sleep(Math.min(PAUSE, left / 1_000_000 + 1));
                }
            }

            @Override
            public void release() {
                try {
                    held.unlock();
                } catch (IllegalStateException e) { // it was released before
                    throw new IllegalMonitorStateException(e.getMessage());
                }
            }
        };
    }
}
