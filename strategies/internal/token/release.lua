-- Deletes the lock if its value is the caller's token.
-- KEYS: lock   ARGV: token   returns 1, or 0 if the lock has another value or is free
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
