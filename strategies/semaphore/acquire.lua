-- Takes a permit if one is free. With deadlines it first frees the permits that have expired.
-- It sets up a semaphore that does not exist yet.
-- KEYS: semaphore, and deadlines if permits have one
-- ARGV: permits, channel, PUBLISH or SPUBLISH; with deadlines also id, now, deadline, both in epoch ms
-- returns 0 if a permit was taken, otherwise the earliest deadline in epoch ms, or -1 if there is none
local free = redis.call('GET', KEYS[1])
local more = not free
if more then
  free = ARGV[1]
  redis.call('SET', KEYS[1], free)
end
local expired = KEYS[2] and redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[5]) or 0
if expired > 0 then
  more = true
  free = redis.call('INCRBY', KEYS[1], expired)
end
if tonumber(free) < 1 then
  local next = KEYS[2] and redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  return tonumber(next or -1)
end
free = redis.call('DECR', KEYS[1])
if KEYS[2] then
  redis.call('ZADD', KEYS[2], ARGV[6], ARGV[4])
end
if more and free > 0 then
  redis.call(ARGV[3], ARGV[2], free)
end
return 0
