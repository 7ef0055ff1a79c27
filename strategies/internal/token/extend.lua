-- Renews the lock if it is still the caller's.
-- KEYS: lock   ARGV: token, TTL in ms   returns 1, or 0 when it was not the caller's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
