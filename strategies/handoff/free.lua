-- Releases a lock for which nobody waits.
-- KEYS: the lock; ARGV: id
-- returns 1; 0 when somebody may wait, or the lock is not the caller's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
