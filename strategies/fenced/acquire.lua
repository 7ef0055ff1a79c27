-- Takes the lock if it is free or the caller's already, once more then, and draws
-- a fencing token for it.
-- KEYS: lock, token   ARGV: lease in ms, owner
-- returns {1, token} when taken, else {0, the lock's PTTL}
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, redis.call('PTTL', KEYS[1])}
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {1, redis.call('INCR', KEYS[2])}
