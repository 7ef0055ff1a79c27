-- Frees the lock if the caller still has it and, always or only with waiters, pushes a signal.
-- KEYS: lock, waiters, signal   ARGV: token, TTL in ms, mode (unused), when to signal
-- returns 1, or 0 if the caller did not have it
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
if ARGV[4] == 'always' or redis.call('EXISTS', KEYS[2]) == 1 and redis.call('EXISTS', KEYS[3]) == 0 then
  redis.call('RPUSH', KEYS[3], '1')
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
return 1
