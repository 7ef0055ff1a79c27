-- Renews the lock if it is still the caller's.
-- KEYS: lock   ARGV: lease in ms, owner   returns 1, or 0 when it was not the caller's
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0
