-- Takes the lock if it is free, or adds a hold if the caller has it, and draws a
-- fencing token for it. It never shortens a lease.
-- KEYS: lock, token   ARGV: lease in ms, owner
-- returns {1, token} if taken, otherwise {0, the lock's PTTL}
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, redis.call('PTTL', KEYS[1])}
end
local token = redis.call('INCR', KEYS[2]) -- first, so that nothing is held if it is refused
if redis.call('HINCRBY', KEYS[1], ARGV[2], 1) == 1 or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return {1, token}
