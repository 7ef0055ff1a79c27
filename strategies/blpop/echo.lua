-- Pushes an echo for the process's own blocking connection.
-- KEYS: echo   ARGV: its number, TTL in ms
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
