-- Frees the lock if it is still the caller's.
-- KEYS: lock   ARGV: token   returns 1, or 0 when it was not the caller's
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
